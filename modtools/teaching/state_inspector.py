"""The state inspector: choose what happens to one tool and one call of it, and see which of the five states hold.

Nothing is made up: each choice runs a catalogue, a policy, a handler and an audit of its own, and the states are
read from what these hold afterwards.
"""

from __future__ import annotations

import html
import itertools
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Effect, Operation, Tool, ToolContract, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Rule
from modtools.pipeline.states import Fact, State, capability_states
from modtools.teaching.explorer import code, explorer, table

CHOICES: Mapping[str, tuple[str, ...]] = {
    "audience": ("everyone", "another tenant"),
    "turn": ("shows the tool", "does not show it"),
    "policy": ("allows", "denies", "asks"),
    "call": ("works", "breaks on the way", "is not made"),
    "revoked": ("never", "before the call", "after the call"),
}
"""What may happen, by name; the first of each is the plain case."""

_NAME, _ACTOR, _TENANT = "mail.remind", "ann", "acme"
_RULES = {
    "allows": Rule("allow", "*", id="everybody may"),
    "denies": Rule("deny", "*", id="nobody may"),
    "asks": Rule("ask", "*", id="a person looks first"),
}
_MARKS = {True: "✓ yes", False: "✗ no", None: "? not known"}


@dataclass(frozen=True)
class Inspection:
    """What is true after one run.

    Attributes:
        choices: what happened: a key of CHOICES -> the option taken.
        facts: state -> Fact.
        outcome: how the call ended, "" where none was made.
        told: what the model was told, "" likewise.
    """

    choices: Mapping[str, str]
    facts: Mapping[State, Fact]
    outcome: str = ""
    told: str = ""

    @property
    def pattern(self) -> tuple[bool | None, ...]:
        """The five answers in the order of State."""
        return tuple(self.facts[state].holds for state in State)


def inspect(**choices: str) -> Inspection:
    """Let it happen, and ask for the five states.

    Args:
        choices: a key of CHOICES -> one of its options; what is left out is the plain case.

    Raises:
        UsageError: for a key or an option that is not in CHOICES.
    """
    chosen = {name: options[0] for name, options in CHOICES.items()} | choices
    for name, option in chosen.items():
        if option not in CHOICES.get(name, ()):
            valid = "; ".join(f"{known}: {', '.join(options)}" for known, options in CHOICES.items())
            raise UsageError(f"{name} {option!r} is no choice; there are {valid}")
    audience = ("*",) if chosen["audience"] == "everyone" else ("other/*",)
    catalogue = Catalogue(Snapshot.of((_tool(chosen["call"] == "works"),), audiences={_NAME: audience}))
    turn = catalogue.snapshot.only((_NAME,) if chosen["turn"] == "shows the tool" else ())
    pipeline = Pipeline(catalogue, Policy((_RULES[chosen["policy"]],)), AuditLog())
    if chosen["revoked"] == "before the call":
        catalogue.revoke(_NAME, "withdrawn")
    request, result = None, None
    if chosen["call"] != "is not made":
        request, text = "r1", json.dumps({"name": _NAME, "arguments": {}})
        result = pipeline.run(Request(request, text, actor=_ACTOR, tenant=_TENANT, seen=turn))
    if chosen["revoked"] == "after the call":
        catalogue.revoke(_NAME, "withdrawn")
    facts = capability_states(catalogue, turn, pipeline.audit, _ACTOR, _TENANT, _NAME, request)
    return (
        Inspection(chosen, facts, str(result.outcome), result.observation.text) if result else Inspection(chosen, facts)
    )


def every_inspection() -> Iterator[Inspection]:
    """One for each combination of choices."""
    for options in itertools.product(*CHOICES.values()):
        yield inspect(**dict(zip(CHOICES, options)))


def states_text(inspection: Inspection) -> str:
    """The five states as plain lines."""
    lines = [
        textwrap.fill(f"{state:13} {_MARKS[fact.holds]:11} {fact.why}", 100, subsequent_indent=" " * 26)
        for state, fact in inspection.facts.items()
    ]
    return "\n".join([*lines, f"{'the call':13} {inspection.outcome or 'was not made'}"])


def states_html(inspection: Inspection) -> str:
    """The five states as a table, and what the model was told."""
    rows = [[state, _MARKS[fact.holds], fact.why] for state, fact in inspection.facts.items()]
    shown = table(["state", "holds", "evidence"], rows)
    if not inspection.outcome:
        return f"{shown}<p>No call was made.</p>"
    return f"{shown}<p>The call ended in <b>{html.escape(inspection.outcome)}</b>. The model is told:</p>{code(inspection.told)}"


def state_inspector() -> Any:
    """The widget: a list to choose from for each key of CHOICES, and the states below."""
    return explorer(lambda **choices: states_html(inspect(**choices)), **CHOICES)


def _tool(works: bool) -> Tool:
    """A tool that sends one reminder, or breaks when it may or may not have sent it."""
    contract = ToolContract(
        "remind", "Send one reminder.", {"type": "object"}, effect=Effect.EXTERNAL_SEND, approval="none"
    )

    def send(operation: Operation, context: object) -> ToolResult:
        if not works:
            raise ConnectionError("the mail server went away")
        return ToolResult("1 reminder sent")

    return Tool(
        contract,
        lambda arguments, context: Operation("send", {}, ("mail:customer",), Effect.EXTERNAL_SEND),
        send,
        "mail",
    )
