"""The audit log: what was asked, decided and done, apart from what the model sees.

An append-only file of JSON lines. A request writes "received", then "executing" just before its handler
starts, then "terminal". A process that dies in between leaves a request open; `recover` closes it when the
log is next opened: "cancelled" where nothing had begun, "unknown_outcome" where it had. So every request
has exactly one terminal line, whatever happens. Raw texts and large results are kept beside it as
artefacts, named by their digest.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modtools.contract import Outcome, digest
from modtools.errors import RecordError, UsageError
from modtools.records import append_line, read_lines, write_whole


_EVENTS = ("received", "executing", "terminal")


class AuditLog:
    """One folder with `audit.jsonl` and `artefacts/`; without a folder, the same in memory.

    Opening a folder recovers the requests that a dead process left open (their ids are in `recovered`).
    Only one process may have it open at a time; the lab's run lock sees to that.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = Path(folder) if folder else None
        self.artefacts: dict[str, bytes] = {}
        self._memory: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._open: dict[str, str] = {}
        self._closed: set[str] = set()
        if self.folder:
            try:
                (self.folder / "artefacts").mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise RecordError(f"{self.folder} cannot hold an audit: {error}") from error
        for line in self.lines():
            if not isinstance(line.get("request"), str) or line.get("event") not in _EVENTS:
                raise RecordError(f"{self.folder}: not an audit line: {str(line)[:80]}; mend or remove the folder")
            self._note(line)
        self.recovered = tuple(self._open)
        for request, event in list(self._open.items()):
            outcome = Outcome.CANCELLED if event == "received" else Outcome.UNKNOWN_OUTCOME
            self.append(request, "terminal", {"outcome": outcome, "code": str(outcome), "recovered": True})

    def append(self, request: str, event: str, fields: Mapping[str, Any]) -> None:
        """Write one line, whole or not at all.

        Raises:
            UsageError: for a request id that was used before, or that has its terminal line already.
            RecordError: where the line cannot be written (disk full, folder gone).
        """
        with self._lock:
            if request in self._closed or (event == "received" and request in self._open):
                raise UsageError(f"request {request!r} was made before; a new request needs a new id")
            line = {"request": request, "event": event, "time": round(time.time(), 6), **fields}
            if self.folder:
                append_line(self.folder / "audit.jsonl", line)
            else:
                self._memory.append(json.loads(json.dumps(line)))
            self._note(line)

    def keep(self, content: str | bytes) -> str:
        """Keep an artefact and return its digest; the same content is stored once.

        Raises:
            RecordError: where it cannot be written.
        """
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        name = digest(data)
        if not self.folder:
            self.artefacts[name] = data
        elif not (path := self.folder / "artefacts" / name).exists():
            write_whole(path, data)
        return name

    def lines(self) -> list[dict[str, Any]]:
        """All lines, oldest first."""
        return read_lines(self.folder / "audit.jsonl") if self.folder else list(self._memory)

    def _note(self, line: Mapping[str, Any]) -> None:
        if line["event"] == "terminal":
            self._open.pop(line["request"], None)
            self._closed.add(line["request"])
        else:
            self._open[line["request"]] = line["event"]
