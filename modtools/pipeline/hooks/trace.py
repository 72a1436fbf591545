"""What is written down about a hook: what it did, how long it took, and the fields that its contract names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from modtools.contract import Failure, Operation, ToolContract, ToolResult, canonical_json
from modtools.pipeline.hooks.guard import Ended
from modtools.pipeline.hooks.contract import Event
from modtools.pipeline.hooks.shapes import Registered
from modtools.pipeline.redact import MARK, scrub, secret_values

_LONGEST = 300  # characters of a reason, or of a field in a trace entry


@dataclass(frozen=True)
class HookTrace:
    """One entry: a hook, and what came of asking it.

    Attributes:
        name: of the hook.
        shape: one of the five.
        did: in words, e.g. "block: the daily limit is reached".
        duration_s: seconds it took, without what `proceed` took.
        fields: the event's fields that its contract names, as text, without redacted values.
    """

    name: str
    shape: str
    did: str
    duration_s: float
    fields: Mapping[str, str]


def entry(each: Registered, event: Event, did: str, ended: Ended) -> HookTrace:
    """The trace entry of one hook."""
    values = {name: getattr(event, name) for name in each.contract.trace_fields}
    shown_fields = {name: shown(_text(value, event), event) for name, value in values.items() if value is not None}
    return HookTrace(each.contract.name, each.shape, shown(did, event), ended.duration_s, shown_fields)


def shown(text: str, event: Event) -> str:
    """A text about this event, without redacted values and not too long."""
    return scrubbed(text, event)[:_LONGEST]


def scrubbed(text: str, event: Event) -> str:
    """A text about this event, without redacted values."""
    known = [dict(event.arguments or {}), dict(event.operation.arguments) if event.operation else {}]
    return scrub(text, tuple(secret_values(known, event.contract.redact)))


def _text(value: Any, event: Event) -> str:
    if isinstance(value, ToolContract):
        return f"{value.name} {value.version}"
    if isinstance(value, Operation):
        return " ".join([value.action, *value.resources])
    if isinstance(value, ToolResult):
        return value.summary
    if isinstance(value, Failure):
        return f"{value.code}: {value.what}"
    return canonical_json(_masked(value, event.contract.redact)) if isinstance(value, Mapping) else str(value)


def _masked(value: Any, names: Collection[str]) -> Any:
    """The arguments with a mark under every redacted name: true, false and null are values too."""
    if isinstance(value, Mapping):
        return {key: MARK if key in names else _masked(item, names) for key, item in value.items()}
    return [_masked(item, names) for item in value] if isinstance(value, list) else value
