"""The nouns of a tool call: contract, call, operation, and (from modtools.results) how it ends.

Everything here is frozen data. The steps that turn one into the next live in modtools.pipeline;
the tools themselves in modtools.surfaces. Source: course chapter 1 and spec of the pipeline
(five stages of Module 2, nine steps of Part 05).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any

from modtools.digests import canonical_json, copied, digest
from modtools.errors import UsageError
from modtools.results import Failure, Observation, Outcome, Stage, ToolFailure, ToolResult

__all__ = [
    "BoundCall", "Effect", "Failure", "Observation", "Operation", "Outcome", "Stage", "Tool", "ToolCall", "ToolContract",
    "ToolFailure", "ToolResult", "canonical_json", "copied", "digest",
]  # fmt: skip


class Effect(StrEnum):
    """What a call may change."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    DESTRUCTIVE = "destructive"
    EXTERNAL_SEND = "external_send"

    def covers(self, other: Effect) -> bool:
        """Whether a contract with this effect lets a call have the other one.

        Every effect covers reading; running programs and destroying cover writing; sending covers nothing else.
        """
        return other in (self, Effect.READ) or (other == Effect.WRITE and self in (Effect.EXECUTE, Effect.DESTRUCTIVE))


_CHOICES = {
    "effect": tuple(Effect),
    "risk": ("low", "medium", "high"),
    "approval": ("required", "none"),
    "concurrency": ("exclusive", "exclusive_per_resource", "parallel"),
    "runs": ("in_process", "process"),
}


@dataclass(frozen=True)
class ToolContract:
    """What a tool promises: the shape of a call and the semantics of executing it.

    A semantic that is left out takes the cautious value: the tool counts as writing, of high risk, not
    idempotent, never retried, exclusive, and in need of approval. Source: Part 05, "A tool contract needs
    execution semantics".

    Attributes:
        name: what the model writes; letters, digits, `_`, `-` and `.`.
        description: what the model reads.
        input_schema: JSON Schema 2020-12 of the arguments, an object schema.
        version: of the contract, MAJOR.MINOR.PATCH; a change of meaning is a new version.
        owner: who answers for it.
        output_schema: JSON Schema of a successful result's data, or None.
        effect: the most a call can do (see `Effect.covers`). It also says how a call ends whose handler outlives
            its time: "timeout" for a tool that reads, "unknown_outcome" for any other.
        risk: "low", "medium" or "high": of the most dangerous call.
        approval: "required" or "none".
        idempotent: whether doing it twice is doing it once.
        idempotency_key: names of required arguments; calls of one actor that agree in them are one piece of work,
            carried out once.
        concurrency: "parallel" beside anything; "exclusive_per_resource" beside calls for other resources;
            "exclusive": no other call that is not "parallel" runs meanwhile.
        runs: "in_process", in a thread that can only be left behind; or "process", which can be ended.
        background: the call is accepted at once and goes on behind; its end is an event of its own.
        timeout_s: seconds a call may take.
        retries: how often a try that failed *before any effect*, or of an idempotent tool, is made again.
        credentials: names of the secrets that the handler is given, and no others.
        errors: the tool's own error codes.
        observation_chars: the longest observation shown to the model, in characters.
        redact: names of arguments whose values never reach audit, artefact or observation.
        deprecated: empty, or what to use instead.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    version: str = "1.0.0"
    owner: str = ""
    output_schema: Mapping[str, Any] | None = None
    effect: Effect = Effect.WRITE
    risk: str = "high"
    approval: str = "required"
    idempotent: bool = False
    idempotency_key: tuple[str, ...] = ()
    concurrency: str = "exclusive"
    runs: str = "in_process"
    background: bool = False
    timeout_s: float = 10.0
    retries: int = 0
    credentials: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    observation_chars: int = 4000
    redact: tuple[str, ...] = ()
    deprecated: str = ""

    def __post_init__(self):
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", self.name):
            raise UsageError(
                f"tool name {self.name!r}: expected a letter, then up to 63 letters, digits, '_', '-' or '.'"
            )
        for problem in self._problems():
            raise UsageError(f"tool {self.name}: {problem}")

    def _problems(self) -> Iterator[str]:
        """What is wrong with the fields, one sentence each."""
        schema = self.input_schema
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            got = schema.get("type") if isinstance(schema, Mapping) else schema
            yield f"input_schema must be an object schema, got type {got!r}"
        if self.output_schema is not None and not isinstance(self.output_schema, Mapping):
            yield f"output_schema must be a JSON Schema or None, got {self.output_schema!r}"
        for field_name, choices in _CHOICES.items():
            if getattr(self, field_name) not in choices:
                yield f"{field_name} {getattr(self, field_name)!r}: expected one of {', '.join(choices)}"
        for field_name in ("description", "owner", "deprecated"):
            if not isinstance(getattr(self, field_name), str):
                yield f"{field_name} must be text"
        for field_name in ("idempotent", "background"):
            if not isinstance(getattr(self, field_name), bool):
                yield f"{field_name} must be true or false, got {getattr(self, field_name)!r}"
        for field_name in ("idempotency_key", "credentials", "errors", "redact"):
            names = getattr(self, field_name)
            if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
                yield f"{field_name} must be a tuple of names, got {names!r}"
        if not isinstance(self.version, str) or not re.fullmatch(r"\d+\.\d+\.\d+", self.version):
            yield f"version {self.version!r}: expected MAJOR.MINOR.PATCH, e.g. 1.0.0"
        if type(self.timeout_s) not in (int, float) or not 0 < self.timeout_s < math.inf:
            yield f"timeout_s {self.timeout_s!r}: expected a positive number of seconds"
        for field_name, least in (("retries", 0), ("observation_chars", 1)):
            if type(getattr(self, field_name)) is not int or getattr(self, field_name) < least:
                yield f"{field_name} {getattr(self, field_name)!r}: expected a whole number of at least {least}"
        if not set(self.idempotency_key) <= set(schema.get("required", ())):
            yield f"idempotency_key {', '.join(self.idempotency_key)}: expected names of required arguments"

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> ToolContract:
        """A contract from a registry entry, that is from JSON; what the entry leaves out takes the cautious value.

        Raises:
            UsageError: for a field that no contract has (a misspelt semantic must not be dropped), or a bad value.
        """
        known = {f.name: f for f in fields(cls)}
        unknown = [name for name in entry if name not in known]
        if unknown:
            raise UsageError(f"tool {entry.get('name')!r}: no field {', '.join(unknown)}; there are {', '.join(known)}")
        missing = [name for name in ("name", "description", "input_schema") if name not in entry]
        if missing:
            raise UsageError(f"tool {entry.get('name')!r}: the entry has no {', '.join(missing)}")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
        if values.get("effect") in tuple(Effect):
            values["effect"] = Effect(values["effect"])
        return cls(**values)

    @property
    def schema_text(self) -> str:
        """The line of the prompt that describes this tool; its tokens are the description cost l(s)."""
        return json.dumps(
            {"name": self.name, "description": self.description, "parameters": self.input_schema},
            ensure_ascii=False,
        )

    @cached_property
    def input_text(self) -> str:
        """The input schema as JSON, by which its validator is kept."""
        return json.dumps(self.input_schema)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every field: shape and semantics."""
        return digest({f.name: getattr(self, f.name) for f in fields(self)})


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
        state: version of the resources' state that the canonicaliser saw, or "" where they have none. It is no
            part of the digest: the same operation on a changed file is still the same operation.
        risk: of this very call, or "" where it is the contract's.
    """

    action: str
    arguments: Mapping[str, Any]
    resources: tuple[str, ...]
    effect: Effect
    state: str = ""
    risk: str = ""

    def __post_init__(self):
        texts = isinstance(self.action, str) and isinstance(self.resources, tuple)
        if not texts or not all(isinstance(r, str) for r in self.resources) or not isinstance(self.effect, Effect):
            raise UsageError(f"operation {self.action!r}: expected a name, a tuple of resource names, and an Effect")
        if not isinstance(self.state, str) or self.risk not in ("", *_CHOICES["risk"]):
            raise UsageError(f"operation {self.action!r}: state is text, risk one of {', '.join(_CHOICES['risk'])}")
        try:
            self.digest  # computed now, so that what is no JSON is refused here
        except (TypeError, ValueError) as error:
            raise UsageError(f"operation {self.action!r}: its arguments are no JSON ({error})") from None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of action and arguments."""
        return digest({"action": self.action, "arguments": dict(self.arguments)})

    def copy(self) -> Operation:
        """The same with arguments of its own, for code that might write into them."""
        twin = copy(self)
        object.__setattr__(twin, "arguments", copied(self.arguments))
        return twin


@dataclass(frozen=True)
class BoundCall:
    """What the pipeline binds to one execution: never from the model's arguments.

    Attributes:
        request: id of the request.
        actor: on whose behalf.
        operation_id: names this execution towards other systems.
        idempotency_key: equal for calls that are one piece of work, or "".
        credentials: name -> secret, those of the contract and no others.
        deadline_s: a time on the clock of `time.monotonic` that ends it before the contract's own limit does.
        cancelled: whether it should stop.
        progress: takes one line on how far it is.
    """

    request: str
    actor: str
    operation_id: str
    idempotency_key: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    deadline_s: float = math.inf
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class Tool:
    """A contract with the two functions behind it.

    Attributes:
        contract: see ToolContract.
        canonicalise: (arguments, context) -> Operation; raises ToolFailure.
        handler: (operation, context) -> ToolResult, or (operation, context, call: BoundCall) -> ToolResult where
            `takes_call`; raises ToolFailure before any effect.
        source: the server or plugin it comes from; "" for the host's own.
        takes_call: whether the handler wants the BoundCall.
        context is whatever the caller of the pipeline binds (the lab binds an episode's workspace and box).
    """

    contract: ToolContract
    canonicalise: Callable[[Mapping[str, Any], Any], Operation]
    handler: Callable[..., ToolResult]
    source: str = ""
    takes_call: bool = False

    @property
    def qualified_name(self) -> str:
        """The name that is unique in a catalogue: "source.name", or the plain name of the host's own tools."""
        return f"{self.source}.{self.contract.name}" if self.source else self.contract.name
