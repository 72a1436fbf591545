"""The nouns of a tool call: contract, call, operation, outcome, observation.

Everything here is frozen data. The steps that turn one into the next live in modtools.pipeline;
the tools themselves in modtools.surfaces. Source: course chapter 1 and spec of the pipeline
(five stages of Module 2, nine steps of Part 05).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
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


class Effect(StrEnum):
    """What a call may change. The order is the order of caution."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


def canonical_json(value: Any) -> str:
    """One spelling of a JSON value: keys sorted, no spaces, raw UTF-8. Digests are taken over it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: Any) -> str:
    """SHA-256 (hex) of bytes, of text as UTF-8, or of the canonical JSON of anything else."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    elif not isinstance(value, bytes):
        value = canonical_json(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(value).hexdigest()


@dataclass(frozen=True)
class ToolContract:
    """What a tool promises: the shape of a call and the semantics of executing it.

    A semantic that is left out takes the cautious value: the tool counts as writing, not idempotent,
    exclusive, and in need of approval.

    Attributes:
        name: what the model writes; letters, digits, `_`, `-` and `.`.
        description: what the model reads.
        input_schema: JSON Schema 2020-12 of the arguments, an object schema.
        version: of the contract; a change of meaning is a new version.
        output_schema: JSON Schema of a successful result's data, or None.
        effect: the most a call can do.
        idempotent: whether doing it twice is doing it once.
        concurrency: "exclusive" or "parallel".
        approval: "required" or "none".
        timeout_s: seconds a call may take.
        observation_chars: the longest observation shown to the model, in characters.
        redact: names of arguments whose values never reach audit, artefact or observation.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    version: str = "1.0.0"
    output_schema: Mapping[str, Any] | None = None
    effect: Effect = Effect.WRITE
    idempotent: bool = False
    concurrency: str = "exclusive"
    approval: str = "required"
    timeout_s: float = 10.0
    observation_chars: int = 4000
    redact: tuple[str, ...] = ()

    def __post_init__(self):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", self.name):
            raise UsageError(
                f"tool name {self.name!r}: expected a letter, then up to 63 letters, digits, '_', '-' or '.'"
            )
        if self.input_schema.get("type") != "object":
            raise UsageError(
                f"tool {self.name}: input_schema must be an object schema, got type {self.input_schema.get('type')!r}"
            )
        if self.concurrency not in ("exclusive", "parallel") or self.approval not in ("required", "none"):
            raise UsageError(
                f"tool {self.name}: concurrency is 'exclusive' or 'parallel', approval 'required' or 'none'"
            )

    @property
    def schema_text(self) -> str:
        """The line of the prompt that describes this tool; its tokens are the description cost l(s)."""
        return json.dumps(
            {"name": self.name, "description": self.description, "parameters": self.input_schema},
            ensure_ascii=False,
        )


@dataclass(frozen=True)
class ToolCall:
    """A parsed request of the model: a name and arguments, nothing yet looked up or believed."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Operation:
    """A canonical operation: what would be done to the workspace, whichever surface asked for it.

    Attributes:
        action: "read", "search", "replace", "write", "run_tests" or "run_python" on the lab's surfaces.
        arguments: canonical arguments (paths resolved, aliases gone).
        resources: canonical resources touched, such as "workspace:src/a.py".
        effect: of this very call, at most the contract's.
    """

    action: str
    arguments: Mapping[str, Any]
    resources: tuple[str, ...]
    effect: Effect

    def __post_init__(self):
        texts = isinstance(self.action, str) and isinstance(self.resources, tuple)
        if not texts or not all(isinstance(r, str) for r in self.resources) or not isinstance(self.effect, Effect):
            raise UsageError(f"operation {self.action!r}: expected a name, a tuple of resource names, and an Effect")
        digest(dict(self.arguments))  # raises for what is not JSON

    @property
    def digest(self) -> str:
        """SHA-256 of action and arguments."""
        return digest({"action": self.action, "arguments": dict(self.arguments)})


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
    """

    summary: str
    body: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.SUCCESS
    code: str = ""

    def __post_init__(self):
        if not isinstance(self.summary, str) or not isinstance(self.body, str) or not isinstance(self.data, Mapping):
            raise UsageError("a tool result has a summary and a body of type str, and a mapping as its data")
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
    """What the model sees of a result: bounded, redacted, and telling what to do next."""

    outcome: Outcome
    text: str
    code: str = ""
    retryable: bool = False
    artefact: str = ""


@dataclass(frozen=True)
class Tool:
    """A contract with the two functions behind it.

    Attributes:
        canonicalise: (arguments, context) -> Operation; raises ToolFailure.
        handler: (operation, context) -> ToolResult; raises ToolFailure before any effect.
        context is whatever the caller of the pipeline binds (the lab binds an episode's workspace and box).
    """

    contract: ToolContract
    canonicalise: Callable[[Mapping[str, Any], Any], Operation]
    handler: Callable[[Operation, Any], ToolResult]
