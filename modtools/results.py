"""How a call ends: the ten outcomes, what a handler returns or raises, and what the model sees of it.

`modtools.contract` has the other half of the nouns, and gives these out too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from modtools.errors import UsageError


class Outcome(StrEnum):
    """How a request ended. Every request ends in exactly one."""

    SUCCESS = "success"
    VALIDATION_FAILED = "validation_failed"
    PERMISSION_DENIED = "permission_denied"
    APPROVAL_REQUIRED = "approval_required"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    PARTIAL = "partial"
    BACKGROUND_ACCEPTED = "background_accepted"
    UNKNOWN_OUTCOME = "unknown_outcome"
    UNAVAILABLE_TOOL = "unavailable_tool"


class Stage(StrEnum):
    """The five coarse stages between a model's text and a tool's effect."""

    EXTRACT = "extract"
    PARSE = "parse"
    VALIDATE = "validate"
    SEMANTIC = "semantic"
    DISPATCH = "dispatch"


_HANDLER_OUTCOMES = (Outcome.SUCCESS, Outcome.PARTIAL, Outcome.BACKGROUND_ACCEPTED, Outcome.UNKNOWN_OUTCOME)


@dataclass(frozen=True)
class ToolResult:
    """What a handler returns.

    Attributes:
        summary: one line, e.g. "3 matches for 'rate'".
        body: the text the model needs; may be empty, may be huge (it is bounded later).
        data: structured result, checked against the contract's output_schema.
        outcome: SUCCESS; PARTIAL where part of the work was done; BACKGROUND_ACCEPTED where it goes on;
            UNKNOWN_OUTCOME where the handler cannot tell.
        code: a name of modtools.pipeline.failures for anything but plain success.
        operation_id: under which the system that did it knows it, or "".
        next_page: how to ask for the rest, e.g. 'the same call with "page": 2', or "".
    """

    summary: str
    body: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.SUCCESS
    code: str = ""
    operation_id: str = ""
    next_page: str = ""

    def __post_init__(self):
        texts = (self.summary, self.body, self.code, self.operation_id, self.next_page)
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.data, Mapping):
            raise UsageError("a tool result's data is a mapping, its other parts are of type str")
        if self.outcome not in _HANDLER_OUTCOMES:
            raise UsageError(f"a handler ends in one of {', '.join(_HANDLER_OUTCOMES)}, not in {self.outcome!r}")


@dataclass(frozen=True)
class Failure:
    """One thing that went wrong, from the table in modtools.pipeline.failures.

    Attributes:
        code: a name of that table, e.g. "missing_argument".
        what: what was wrong, one sentence without full stop.
        where: the place, e.g. "arguments.path" or "character 17".
        expected: what would have been right, or what to do next.
    """

    code: str
    what: str
    where: str = ""
    expected: str = ""


class ToolFailure(Exception):
    """Raised by a canonicaliser or handler that declines *before* any effect, with one Failure."""

    def __init__(self, code: str, what: str, where: str = "", expected: str = ""):
        self.failure = Failure(str(code), str(what), str(where), str(expected))
        super().__init__(what)


@dataclass(frozen=True)
class Observation:
    """The normalised result. The model sees `text`, bounded, redacted, and telling what to do next.

    Attributes:
        outcome: terminal status.
        text: what the model is told.
        code: of the failure table, or "".
        retryable: whether the same call may be sent again unchanged.
        artefact: digest under which the whole body is kept, where `text` shows a part.
        provenance: qualified name and version of the tool that said it, e.g. "mail.send_email@1.0.0".
        operation_id: as in ToolResult.
        redacted: whether something was left out of `text` because it is secret.
        latency_s: seconds from the request to this observation.
    """

    outcome: Outcome
    text: str
    code: str = ""
    retryable: bool = False
    artefact: str = ""
    provenance: str = ""
    operation_id: str = ""
    redacted: bool = False
    latency_s: float = 0.0
