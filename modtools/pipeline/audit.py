"""The audit log: what was asked, decided and done, apart from what the model sees.

An append-only file of JSON lines. A request writes "received", then "executing" just before its handler starts,
then "terminal". A process that dies in between leaves a request open; the next one that opens the log closes it:
"cancelled" where nothing had begun, "unknown_outcome" where it had. So every request has exactly one terminal line,
whatever happens. Beside these stand "approved" (a person answered an ask), "progress" and "completed" (background
work, which ends as an event of its own and never as a second terminal line).

Each line holds the SHA-256 of the line before it, so a line that was changed, put in or taken out breaks the chain
(see `modtools.pipeline.verification`). Raw texts and large results are kept beside the log as artefacts, named by
their digest: short ones as lines of `artefacts.jsonl`, others as files of their own. A line is written before what
it announces is done, and is not forced to the disk: it survives the death of the process, not a power cut.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from modtools.contract import Outcome, digest
from modtools.errors import RecordError, UsageError
from modtools.pipeline.concurrency import Locks
from modtools.pipeline.ledger import Ledger
from modtools.records import LineFile, read_lines, whole_lines, write_whole


SHORT_BYTES = 10_000  # a file of its own costs more than such a line


class AuditLog:
    """One folder with `audit.jsonl`, `artefacts.jsonl` and `artefacts/`; without a folder, the same in memory.

    Opening a folder recovers the requests that a dead process left open (their ids are in `recovered`).
    One process has it open at a time, and only one object writes: a file that somebody else has changed is not
    written to any more. A call that an interrupt (Ctrl-C) stops within a line leaves the log as the file has it.

    Args:
        folder: where to keep it; it is made where it is missing.
        clock: seconds since 1970.

    Raises:
        RecordError: where the folder cannot hold an audit, the one in it is broken, or another process has it open.
    """

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time):
        self.folder = Path(folder).absolute() if folder else None  # the working folder may change
        self.clock = clock
        self.artefacts: dict[str, bytes] = {}
        self.keys = Locks()  # of calls for one piece of work, whichever pipeline they come through
        self._memory: list[bytes] = []
        self._kept: set[str] = set()
        self._lock = threading.RLock()
        if self.folder:
            try:
                (self.folder / "artefacts").mkdir(parents=True, exist_ok=True)
                self._only = FileLock(self.folder / ".lock", timeout=0, thread_local=False, is_singleton=True)
                self._only.acquire()
            except Timeout:
                raise RecordError(f"another process has the audit in {self.folder} open; wait for its end") from None
            except OSError as error:
                raise RecordError(f"{self.folder} cannot hold an audit: {error}") from error
            self._lines, self._short = (LineFile(self.folder / name) for name in ("audit.jsonl", "artefacts.jsonl"))
            self._kept.update(short_artefacts(self.folder))
        self._read()
        self.recovered = tuple(self.ledger.open)
        for request, event in list(self.ledger.open.items()):
            outcome = Outcome.CANCELLED if event == "received" else Outcome.UNKNOWN_OUTCOME
            fields = {"outcome": outcome, "code": str(outcome), "executed": event == "executing", "recovered": True}
            self.append(request, "terminal", fields)
        for request in self.ledger.dying():
            self.append(request, "completed", {"outcome": Outcome.UNKNOWN_OUTCOME, "recovered": True})

    def _read(self) -> None:
        """Learn from the lines on record what the next one may be."""
        self.ledger, self._size, self._settled = Ledger(), 0, True
        for number, raw in enumerate(whole_lines(self.folder / "audit.jsonl") if self.folder else self._memory, 1):
            try:
                self.ledger.read(raw)
            except UsageError as error:
                place = self.folder or "the audit"
                raise RecordError(f"{place}, line {number}: {error}; this audit cannot be carried on") from None
            self._size += len(raw) + 1

    def append(self, request: str, event: str, fields: Mapping[str, Any]) -> None:
        """Write one line, whole or not at all.

        Raises:
            UsageError: for an event that may not follow what the log says of this request, such as a request id
                that was used before, or a second end.
            RecordError: where the line cannot be written (disk full, folder gone).
        """
        with self._lock:
            if not self._settled:  # an interrupt came between a line and what we know of it
                self._read()
            line = {
                "prev": self.ledger.head,
                "request": request,
                "event": event,
                "time": round(self.clock(), 6),
                **fields,
            }
            self.ledger.check(line)
            self._settled = False
            if self.folder:
                try:
                    written = self._lines.append(line, at=self._size)
                except RecordError:
                    self._settled = True  # nothing is there
                    raise
            else:
                written = json.dumps(line, separators=(",", ":")).encode()
                self._memory.append(written)
            self.ledger.note(line, written)
            self._size += len(written) + 1
            self._settled = True

    def keep(self, content: str | bytes) -> str:
        """Keep an artefact and return its digest; the same content is stored once.

        Raises:
            RecordError: where it cannot be written.
        """
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        name = digest(data)
        if not self.folder:
            self.artefacts[name] = data
            return name
        with self._lock:
            if name in self._kept:
                return name
            if isinstance(content, str) and len(data) <= SHORT_BYTES:
                self._short.append({"name": name, "text": content})
            elif not (path := self.folder / "artefacts" / name).exists():
                write_whole(path, data)
            self._kept.add(name)
        return name

    def artefact(self, name: str) -> bytes:
        """What was kept under a digest.

        Raises:
            UsageError: where nothing was.
        """
        if not self.folder:
            found = self.artefacts.get(name)
        else:
            found = read_artefact(self.folder, name, short_artefacts(self.folder))
        if found is None:
            raise UsageError(f"no artefact {name[:12]} was kept")
        return found

    def lines(self) -> list[dict[str, Any]]:
        """All lines, oldest first."""
        if self.folder:
            return read_lines(self.folder / "audit.jsonl")
        return [json.loads(line) for line in self._memory]


def short_artefacts(folder: Path) -> dict[str, bytes]:
    """Digest -> content of the artefacts in `artefacts.jsonl`; what is no such line is left out."""
    found = {}
    for raw in whole_lines(folder / "artefacts.jsonl"):
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            line = json.loads(raw)
            found[line["name"]] = line["text"].encode("utf-8", "surrogatepass")
    return found


def read_artefact(folder: Path, name: str, short: Mapping[str, bytes]) -> bytes | None:
    """The content of one artefact, or None where it is missing; `short` as `short_artefacts` gives them."""
    path = folder / "artefacts" / name
    return path.read_bytes() if re.fullmatch("[0-9a-f]{64}", name) and path.is_file() else short.get(name)
