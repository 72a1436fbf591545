"""What an audit's lines add up to: which requests are open, what was approved, which work was done under which key.

The one place that says which line may follow which. The log asks it before each line and tells it after.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from modtools.contract import Outcome, digest
from modtools.errors import UsageError

FIRST = "0" * 64  # what the first line holds in place of a predecessor's digest

# event -> the state a request must be in; None: not yet known
_FOLLOWS = {
    "received": (None,),
    "executing": ("received",),
    "terminal": ("received", "executing"),
    "approved": (Outcome.APPROVAL_REQUIRED,),
    "progress": (Outcome.BACKGROUND_ACCEPTED,),
    "completed": (Outcome.BACKGROUND_ACCEPTED,),
}


@dataclass
class Work:
    """A piece of work under an idempotency key: the request that did it, its operation, and how it ended (or None)."""

    request: str
    operation: str
    outcome: str | None = None
    operation_id: str = ""


@dataclass
class Ledger:
    """The state behind an audit.

    Attributes:
        head: SHA-256 of the last line; the next one must hold it.
        records: number of lines.
        open: request -> its last event, for requests without their terminal line.
        approvals: approval id -> its line.
        used: ids of approvals that were spent.
        work: idempotency key -> Work.
    """

    head: str = FIRST
    records: int = 0
    open: dict[str, str] = field(default_factory=dict)
    approvals: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    work: dict[str, Work] = field(default_factory=dict)
    _ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    _behind: dict[str, bool] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)

    def read(self, raw: bytes) -> dict[str, Any]:
        """Take in a line as it stands on disk, without its newline; UsageError where it may not follow."""
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise UsageError("it is no JSON object")
        try:
            self.check(line)
            self.note(line, raw)
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"a field of it is missing or of the wrong kind ({error})") from None
        return line

    def check(self, line: Mapping[str, Any]) -> None:
        """Raise UsageError where this line may not follow."""
        request, event = line.get("request"), line.get("event")
        if line.get("prev") != self.head:
            raise UsageError("it does not follow the line before it: one of the two was changed, or a line is missing")
        if not isinstance(request, str) or event not in _FOLLOWS:
            raise UsageError(f"{str(dict(line))[:80]} is no event of a request; events are {', '.join(_FOLLOWS)}")
        state = self.open.get(request) or self._ended.get(request, {}).get("outcome")
        if event == "received" and state:
            raise UsageError(f"request {request!r} was made before; a new request needs a new id")
        ends = {"terminal": tuple(Outcome), "completed": tuple(set(Outcome) - {Outcome.BACKGROUND_ACCEPTED})}
        if event in ends and line.get("outcome") not in ends[event]:
            raise UsageError(f"request {request!r}: {event} with {line.get('outcome')!r}; that is no end")
        if state not in _FOLLOWS[event] or (event in ("progress", "completed") and request not in self._behind):
            raise UsageError(f"request {request!r} is {state or 'unknown'}; {event} cannot follow")
        if event == "executing" and not self.used.isdisjoint(line.get("approvals", ())):
            raise UsageError(f"request {request!r}: an approval is good for one execution, and was used")
        if event == "executing" and line.get("idempotency_key") in self.work:
            raise UsageError(f"request {request!r}: work under its idempotency key was begun before")

    def note(self, line: Mapping[str, Any], raw: bytes) -> None:
        """Take in a line that was checked, and is on record as `raw`."""
        request, event = line["request"], line["event"]
        self.head, self.records = digest(raw), self.records + 1
        if event in ("received", "executing"):
            self.open[request] = event
        if event == "executing":
            self.used.update(line.get("approvals", ()))
            if key := line.get("idempotency_key"):
                self._keys[request] = key
                self.work[key] = Work(request, line.get("operation") or "", None, line.get("operation_id") or "")
        elif event == "terminal":
            self.open.pop(request, None)
            asked = line["outcome"] == Outcome.APPROVAL_REQUIRED  # an approval is bound to the rest of the line
            self._ended[request] = dict(line) if asked else {"outcome": line["outcome"]}
            if line["outcome"] == Outcome.BACKGROUND_ACCEPTED and line.get("executed"):  # else an earlier call's work
                self._behind[request] = bool(line.get("ours"))
            self._end_work(request, line["outcome"])
        elif event == "approved":
            self.approvals[line["approval"]] = dict(line)
        elif event == "completed":
            del self._behind[request]
            self._end_work(request, line["outcome"])

    def ended(self, request: str) -> dict[str, Any] | None:
        """The terminal line of a request; where nothing was asked for, its outcome alone."""
        return self._ended.get(request)

    def background(self) -> tuple[str, ...]:
        """Requests whose work goes on behind."""
        return tuple(self._behind)

    def dying(self) -> Iterator[str]:
        """Of these, the ones whose work was a thread or child of the process that had the log open."""
        return iter([request for request, ours in self._behind.items() if ours])

    def _end_work(self, request: str, outcome: str) -> None:
        key = self._keys.get(request)
        if key is None:
            return
        if outcome in (Outcome.SUCCESS, Outcome.PARTIAL, Outcome.BACKGROUND_ACCEPTED, Outcome.UNKNOWN_OUTCOME):
            self.work[key].outcome = outcome
        else:  # nothing was done, so the key is free again
            del self.work[key], self._keys[request]
