"""Verifying an audit: the chain of digests, the order of events, one end a request, and the artefacts beside it.

What it cannot see: whole lines cut off at the end of the file, since nothing after them remembers them. Keep the
`head` that a verification prints somewhere else, and give it to a later one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.contract import digest
from modtools.errors import RecordError, UsageError
from modtools.pipeline.audit import read_artefact, short_artefacts
from modtools.pipeline.ledger import FIRST, Ledger
from modtools.records import whole_lines

ARTEFACTS = ("raw_artefact", "artefact", "printed")  # fields of a line that name one


@dataclass(frozen=True)
class Verification:
    """What was found.

    Attributes:
        records: number of whole lines.
        broken_at: number of the first line that is wrong, counted from 1, or None.
        why: what is wrong there, or "".
        head: digest of the last line; the next line will hold it.
        open: requests without an end; a log that is in use may have some.
    """

    records: int
    broken_at: int | None
    why: str
    head: str
    open: tuple[str, ...]


def verify_audit(folder: Path, head: str = "") -> Verification:
    """Verify the audit in a folder, or in the folder `audit` of a run.

    Args:
        folder: where it is.
        head: as an earlier verification printed it: the line with this digest must still be there.

    Raises:
        RecordError: where there is no audit, or it cannot be read.
    """
    folder = Path(folder)
    if not (folder / "audit.jsonl").exists() and (folder / "audit" / "audit.jsonl").exists():
        folder = folder / "audit"
    if not (folder / "audit.jsonl").exists():
        raise RecordError(f"{folder} holds no audit.jsonl; give an audit's folder, or a run's")
    lines = whole_lines(folder / "audit.jsonl")
    ledger, heads, short = Ledger(), {FIRST}, short_artefacts(folder)

    def verdict(broken_at: int | None, why: str) -> Verification:
        return Verification(len(lines), broken_at, why, ledger.head, tuple(ledger.open))

    for number, raw in enumerate(lines, 1):
        try:
            line = ledger.read(raw)
        except UsageError as error:
            return verdict(number, str(error))
        if problem := _artefact_problem(line, folder, short):
            return verdict(number, problem)
        heads.add(ledger.head)
    if head and head not in heads:
        return verdict(len(lines) + 1, "no line has the head that was given: lines were cut off, or all were made anew")
    return verdict(None, "")


def _artefact_problem(line: Mapping[str, Any], folder: Path, short: Mapping[str, bytes]) -> str:
    for name in (str(line[field]) for field in ARTEFACTS if line.get(field)):
        content = read_artefact(folder, name, short)
        if content is None or digest(content) != name:
            return (
                f"its artefact {name[:12]} is missing" if content is None else f"its artefact {name[:12]} was changed"
            )
    return ""
