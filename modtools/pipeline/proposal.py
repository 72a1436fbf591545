"""The steps before any effect: what the model proposes becomes one canonical operation, and is decided.

    extract -> parse -> resolve -> validate -> canonicalise -> classify -> authorise

Each step reads what earlier ones found and either adds to it or raises Ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from modtools.contract import Failure, Operation, ToolCall, ToolFailure, copied
from modtools.pipeline.approvals import lifted_asks
from modtools.pipeline.extract import extract as find_call
from modtools.pipeline.failures import from_tool
from modtools.pipeline.hooks import HookPoint
from modtools.pipeline.parse import ParseFailure, parse_call
from modtools.pipeline.passage import Ended, Passage
from modtools.pipeline.policy import ASK, DENY, Query, Rule
from modtools.pipeline.redact import secret_values
from modtools.pipeline.trace import Step
from modtools.pipeline.validate import validate_arguments

_RISKS = ("low", "medium", "high")


def extract(passage: Passage) -> None:
    """Find the one call in the reply."""
    request = passage.request
    passage.extraction = find_call(request.text, request.finish_reason, passage.snapshot.tools)
    if passage.extraction.failure:
        raise Ended(passage.extraction.failure)


def parse(passage: Passage) -> None:
    """Read the call as JSON; from here on it is known what is secret."""
    try:
        passage.call = parse_call(passage.extraction.text, passage.extraction.value)
    except ParseFailure as error:
        raise Ended(error.failure) from None
    passage.secrets = tuple(secret_values(passage.call.arguments, passage.redacted))


def resolve(passage: Passage) -> None:
    """Find the tool in the snapshot that the model saw, and see that the current catalogue still means the same."""
    snapshot, name = passage.snapshot, passage.call.name
    found = snapshot.find(name)
    if len(found) > 1:
        names = _quoted([tool.qualified_name for tool in found])
        raise Ended(Failure("ambiguous_tool", f'"{name}" is offered by several servers', "name", f"one of {names}"))
    if not found and name in snapshot.retired:
        raise Ended(_retired(name, snapshot.retired[name]))
    if not found:
        what = f'there is no tool "{name[:64]}"'
        names = _quoted(snapshot.discoverable(passage.request.actor, passage.request.tenant))
        raise Ended(
            Failure("unknown_tool", what, "name", f"one of {names}" if names else "no call: no tool is offered")
        )
    if changed := passage.pipeline.difference(snapshot, name):
        raise Ended(_retired(name, changed))
    passage.tool = found[0]
    for point in HookPoint if passage.pipeline.hooks else ():
        if hook := passage.pipeline.hooks.reentrant(point, found[0].qualified_name):
            raise Ended(Failure("reentrant_call", f"the hook {hook} calls the tool that it guards"))


def _retired(name: str, what_changed: str) -> Failure:
    return Failure("retired_tool", f'"{name[:64]}" is no longer offered: {what_changed}', "name")


def validate(passage: Passage) -> None:
    """Check the arguments against the tool's schema."""
    arguments, failures = validate_arguments(passage.tool.contract, passage.call.arguments)
    if failures:
        raise Ended(failures[0], more=len(failures) - 1)
    passage.call = ToolCall(passage.call.name, arguments)


def canonicalise(passage: Passage) -> None:
    """Turn the arguments into the operation that would run: paths resolved, aliases gone."""
    try:
        operation = passage.tool.canonicalise(copied(passage.call.arguments), passage.pipeline.context)
    except ToolFailure as declined:
        raise Ended(from_tool(declined.failure)) from None
    if not isinstance(operation, Operation):
        raise TypeError(f"{passage.call.name}: the canonicaliser returned {type(operation).__name__}")
    # What policy decides about and what the audit names is this very digest, whatever a handler does later.
    passage.operation, passage.operation_digest = operation, operation.digest
    # A handler speaks of the canonical form, which may be spelled otherwise than what the model wrote.
    passage.secrets += tuple(secret_values(dict(operation.arguments), passage.redacted))


def classify(passage: Passage) -> None:
    """See that this call stays within the effect and the risk of its contract."""
    contract, operation = passage.tool.contract, passage.operation
    if not contract.effect.covers(operation.effect):
        what = f"{passage.call.name} would {operation.effect}, but its contract allows it to {contract.effect} at most"
        raise Ended(Failure("not_authorised", what))
    if operation.risk and _RISKS.index(operation.risk) > _RISKS.index(contract.risk):
        what = f"this call of {passage.call.name} has {operation.risk} risk, its contract {contract.risk} at most"
        raise Ended(Failure("not_authorised", what))


def authorise(passage: Passage) -> None:
    """Ask the hooks, then decide the canonical operation; approvals that came with the request lift their asks."""
    hooks = passage.pipeline.hooks
    rules = _hooks_before(passage) if hooks else []
    request, operation = passage.request, passage.operation
    query = Query(
        operation,
        passage.tool.qualified_name,
        passage.tool.contract,
        request.actor,
        request.tenant,
        request.workspace,
        (passage.snapshot.version, passage.snapshot.digest),
    )
    if hooks:
        gates = hooks.gate_rules(query)
        passage.hooked += gates.trace
        if gates.failure:
            raise Ended(gates.failure)
        rules += gates.rules
    decision = passage.policy.decide(query, rules)
    if request.approvals:
        lifted, problem = lifted_asks(passage.pipeline.audit, request.approvals, decision.binding)
        if problem:
            raise Ended(Failure("approval_invalid", problem, expected="the call again without it, to ask anew"))
        decision = passage.policy.decide(query, rules, lifted)
    passage.decision = decision
    if decision.verdict == DENY:
        raise Ended(Failure("not_authorised", f"{operation.action} is not permitted here"))
    if decision.verdict == ASK:
        raise Ended(Failure("approval_needed", f"{operation.action} needs a person's approval first"))


def _hooks_before(passage: Passage) -> list[Rule]:
    """Ask interceptors and hooks. What they changed is believed as little as what the model wrote."""
    before = passage.pipeline.hooks.before(passage.event(HookPoint.PRE_TOOL_USE))
    passage.hooked += before.trace
    passage.notes += [before.context] * bool(before.context)
    if before.failure:
        raise Ended(before.failure)
    if before.arguments is not None:
        passage.call = ToolCall(passage.call.name, before.arguments)
        passage.secrets += tuple(secret_values(before.arguments, passage.redacted))
        try:
            validate(passage)
            canonicalise(passage)
            classify(passage)
        except Ended as ended:
            what = f"what the hooks made of the arguments is refused: {ended.failure.code}"
            raise Ended(Failure("hook_failed", what)) from None
    return list(before.asks)


def still_holds(passage: Passage) -> None:
    """See that what was decided about is still so, for a call that had to wait for its turn."""
    if changed := passage.pipeline.difference(passage.snapshot, passage.call.name):
        raise Ended(_retired(passage.call.name, changed))
    if passage.pipeline.policy.digest != passage.policy.digest:
        raise Ended(
            Failure("stale_version", "the policy changed while the call waited", expected="the same call again")
        )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)


STEPS = (
    (Step.PARSE, parse),
    (Step.RESOLVE, resolve),
    (Step.VALIDATE, validate),
    (Step.CANONICALISE, canonicalise),
    (Step.CLASSIFY, classify),
    (Step.AUTHORISE, authorise),
)
