"""The contract of a hook: twelve parts, because the name of an event alone promises nothing.

Source: Part 05, "A hook attaches behaviour to a stable lifecycle point".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from modtools.contract import Failure, Operation, Outcome, ToolContract, ToolResult
from modtools.errors import UsageError
from modtools.pipeline.policy import Level


class HookPoint(StrEnum):
    """Where in a call's life a hook runs. Middleware and policy gates, which begin there too, say pre_tool_use."""

    PRE_TOOL_USE = "pre_tool_use"
    POST_TOOL_USE = "post_tool_use"
    TOOL_FAILURE = "tool_failure"
    REQUEST_ENDED = "request_ended"


@dataclass(frozen=True)
class Event:
    """What a hook is told. Every hook gets a deep copy of its own, so writing into it changes nothing.

    Attributes:
        point: what happens.
        request, actor, tenant: which call, on whose behalf.
        tool: qualified name.
        contract: of the tool.
        operation: canonical, or None before there is one.
        arguments: as validated, or None.
        result, failure: what execution gave.
        outcome: how the request ended.
    """

    point: HookPoint
    request: str
    actor: str
    tenant: str
    tool: str
    contract: ToolContract
    operation: Operation | None = None
    arguments: Mapping[str, Any] | None = None
    result: ToolResult | None = None
    failure: Failure | None = None
    outcome: Outcome | None = None

    @property
    def data(self) -> Any:
        """What an input schema is about: the result's data, or the arguments where there is no result."""
        return dict(self.result.data) if self.result else self.arguments


_CHOICES = {
    "point": tuple(HookPoint),
    "ceiling": tuple(Level),
    "failure": ("closed", "open"),
    "side_effects": ("none", "idempotent", "external"),
    "reentry": ("refuse", "skip"),
}
_LISTS = {
    "changes": ("input", "output"),
    "may": ("block", "ask", "cancel", "retry"),
    "trace_fields": tuple(field.name for field in fields(Event)),
}
_LONGEST_S = 3600


@dataclass(frozen=True)
class HookContract:
    """The twelve parts of a hook's contract; what is left out gives no power and takes the cautious value.

    Attributes:
        name: unique among the hooks of a pipeline.
        point: (1, timing) where it runs,
        tools: (1) and for which tools: a shell pattern over qualified names.
        input_schema: (2, schemas) JSON Schema of what it expects: the arguments, or the result's data; or None.
        output_schema: (2) JSON Schema of the arguments or the result's data that it puts in their place; or None.
        changes: (3) what it may change: "input", "output".
        may: (4) what else it may do: "block", "ask", "cancel", "retry".
        ceiling: (5) the highest level of policy at which it may speak.
        order: (6) smaller runs earlier, and further out; equal ones by name.
        conflicts: (7) when another hook changes the same thing differently: "refuse", or the name of a resolver.
        timeout_s: (8) seconds it may take; what `proceed` takes does not count.
        failure: (9) "closed": if it breaks, the call is refused or its result withheld; "open": it goes on.
        side_effects: (10) of the hook itself. One with "external" effects is never run again for a retry.
        trace_fields: (11) the fields of the event that its trace entry shows, without the values of arguments that
            the tool's contract redacts.
        reentry: (12) a call made by the hook that would enter it again: "refuse" ends that call and counts as the
            hook's failure; "skip" lets it go on without the hook, and is for hooks without any power.
    """

    name: str
    point: HookPoint
    tools: str = "*"
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    changes: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    ceiling: Level = Level.DEFAULT
    order: int = 0
    conflicts: str = "refuse"
    timeout_s: float = 5.0
    failure: str = "closed"
    side_effects: str = "external"
    trace_fields: tuple[str, ...] = ("request", "tool")
    reentry: str = "refuse"

    def __post_init__(self):
        for problem in self._problems():
            raise UsageError(f"hook {self.name!r}: {problem}")
        object.__setattr__(self, "point", HookPoint(self.point))
        object.__setattr__(self, "ceiling", Level(self.ceiling))

    def _problems(self) -> Iterator[str]:
        """What is wrong with the fields, one sentence each."""
        for field_name in ("name", "tools", "conflicts"):
            if not isinstance(getattr(self, field_name), str) or not getattr(self, field_name):
                yield f"{field_name} must be text, got {getattr(self, field_name)!r}"
        for field_name, choices in _CHOICES.items():
            if getattr(self, field_name) not in choices:
                yield f"{field_name} {getattr(self, field_name)!r}: expected one of {', '.join(map(str, choices))}"
        for field_name, choices in _LISTS.items():
            given = getattr(self, field_name)
            if not isinstance(given, tuple) or not all(item in choices for item in given):
                yield f"{field_name} {given!r}: expected a tuple with any of {', '.join(choices)}"
        if type(self.order) is not int:
            yield f"order {self.order!r}: expected a whole number"
        if type(self.timeout_s) not in (int, float) or not 0 < self.timeout_s <= _LONGEST_S:
            yield f"timeout_s {self.timeout_s!r}: expected seconds above 0 and up to {_LONGEST_S}"
        for field_name in ("input_schema", "output_schema"):
            if getattr(self, field_name) is not None and (problem := _schema_problem(getattr(self, field_name))):
                yield f"{field_name} is no JSON Schema: {problem}"
        critical = self.powers & {"block", "ask", "cancel", "input"}
        if critical and self.failure == "open":
            yield f'it has the power to {", ".join(sorted(critical))}, so it must fail "closed"'
        if self.powers and self.reentry == "skip":
            yield 'reentry "skip" would let a call go round a hook that has powers; expected "refuse"'

    @property
    def powers(self) -> frozenset[str]:
        """Parts 3 and 4 together."""
        return frozenset(self.changes + self.may)


def _schema_problem(schema: Any) -> str:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, Mapping):
        return f"{schema!r}; expected a mapping or None"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return error.message
    return ""
