"""The five states of a capability, each asked of its own evidence and never inferred from another.

That the model sees a tool says nothing of whether this call of it is authorised, and an authorised call need
not have been carried out. Source: Part 05, "Visible, discoverable, authorised and executed are different states".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Outcome
from modtools.pipeline.audit import AuditLog


class State(StrEnum):
    """What can be true of (actor, tool, call)."""

    REGISTERED = "registered"
    DISCOVERABLE = "discoverable"
    MODEL_VISIBLE = "model_visible"
    AUTHORISED = "authorised"
    EXECUTED = "executed"


@dataclass(frozen=True)
class Fact:
    """Whether a state holds.

    Attributes:
        holds: None where nothing is known, as without a call.
        why: one sentence that names the evidence.
    """

    holds: bool | None
    why: str


def capability_states(
    catalogue: Catalogue, turn: Snapshot, audit: AuditLog, actor: str, tenant: str, tool: str, request: str | None
) -> dict[State, Fact]:
    """All five states.

    Args:
        catalogue: as it is now: the evidence of "registered" and "discoverable".
        turn: what was loaded into the model's turn: the evidence of "model_visible".
        audit: where the call is recorded: the evidence of "authorised" and "executed".
        actor, tenant: who asks. A call that somebody else made is no evidence about them.
        tool: its qualified name. A call of another tool is no evidence about it.
        request: id of the call, or None where none was made.
    """
    lines = [line for line in audit.lines() if line["request"] == request] if request is not None else []
    unrelated = _unrelated(lines, actor, tenant, tool, request)
    now = catalogue.snapshot
    return {
        State.REGISTERED: _registered(now, tool),
        State.DISCOVERABLE: _discoverable(now, actor, tenant, tool),
        State.MODEL_VISIBLE: _model_visible(turn, tool),
        State.AUTHORISED: unrelated or _authorised(lines, request),
        State.EXECUTED: unrelated or _executed(lines, request),
    }


def _registered(now: Snapshot, tool: str) -> Fact:
    if tool in now.tools:
        return Fact(True, f"Catalogue version {now.version} holds {tool} {now.tools[tool].contract.version}.")
    gone = now.retired.get(tool, "it holds no tool of that name")
    return Fact(False, f"Catalogue version {now.version} does not hold {tool}: {gone}.")


def _discoverable(now: Snapshot, actor: str, tenant: str, tool: str) -> Fact:
    if tool in now.discoverable(actor, tenant):
        return Fact(True, f"The audience of {tool} in catalogue version {now.version} covers {tenant}/{actor}.")
    return Fact(False, f"No audience in catalogue version {now.version} opens {tool} to {tenant}/{actor}.")


def _model_visible(turn: Snapshot, tool: str) -> Fact:
    if tool in turn.tools:
        return Fact(True, f"The turn's snapshot, catalogue version {turn.version}, shows the schema of {tool}.")
    return Fact(False, f"The turn's snapshot, catalogue version {turn.version}, does not show {tool}.")


def _unrelated(
    lines: Sequence[Mapping[str, Any]], actor: str, tenant: str, tool: str, request: str | None
) -> Fact | None:
    """Why the audit says nothing of this actor and tool, or None where it does."""
    if request is None:
        return Fact(None, "No call was made.")
    received = next((line for line in lines if line["event"] == "received"), None)
    if received is None:
        return Fact(None, f"The audit has no request {request}.")
    by = (received.get("tenant"), received.get("actor"))
    if by != (tenant, actor):
        return Fact(None, f"The audit has request {request} as a call of {by[0]}/{by[1]}.")
    called = next((line["tool"] for line in lines if line.get("tool")), None)
    if called is None:
        return Fact(None, f"The audit names no tool for request {request}.")
    return Fact(None, f"The audit has request {request} as a call of {called}.") if called != tool else None


def _authorised(lines: Sequence[Mapping[str, Any]], request: str) -> Fact:
    decision = next((line["decision"] for line in lines if line.get("decision")), None)
    if decision is None:
        return Fact(None, f"The audit has no decision about request {request}.")
    verdict = decision["verdict"]
    return Fact(verdict == "allow", f"The decision about request {request} is {verdict}: {decision['why']}.")


def _executed(lines: Sequence[Mapping[str, Any]], request: str) -> Fact:
    terminal = next((line for line in lines if line["event"] == "terminal"), None)
    if terminal is None:
        return Fact(None, f"The audit has no terminal line of request {request}.")
    ended = f"The terminal line of request {request} says {terminal['outcome']}"
    if terminal["outcome"] == Outcome.UNKNOWN_OUTCOME:
        return Fact(False, f"{ended}, so what came of it is not known.")
    if terminal["outcome"] == Outcome.BACKGROUND_ACCEPTED:
        return Fact(None, f"{ended}, and the end of that work is not in it.")
    executed = terminal.get("executed")
    if executed is None:  # a request that was closed after its process had died
        return Fact(None, f"{ended}, and not whether the handler was started.")
    return Fact(executed, f"{ended}, and that the handler was {'' if executed else 'not '}started.")
