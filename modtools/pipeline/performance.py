"""The steps around the effect: bind what the call needs, execute it, normalise what comes back."""

from __future__ import annotations

import uuid
from dataclasses import replace

from modtools.contract import (
    BoundCall, Failure, Observation, Outcome, ToolContract, ToolFailure, ToolResult, digest,
)  # fmt: skip
from modtools.digests import one_number
from modtools.errors import RecordError, UsageError
from modtools.pipeline.commitment import keep
from modtools.pipeline.execute import execute as run_handler
from modtools.pipeline.failures import FAILURES, HOST_CODES, from_tool
from modtools.pipeline.handler import Execution
from modtools.pipeline.hooks import HookPoint
from modtools.pipeline.hooks.answer import faithful
from modtools.pipeline.hooks.guard import Breach
from modtools.pipeline.ledger import Work
from modtools.pipeline.observe import result_text
from modtools.pipeline.passage import Ended, Passage
from modtools.pipeline.proposal import still_holds
from modtools.pipeline.redact import scrub
from modtools.pipeline.validate import check_result

NO_RECORD = Failure("audit_unavailable", "no record of the call can be kept, so it was not carried out")


def bind(passage: Passage) -> None:
    """Give the call what it needs and no more, wait for its turn, and announce it in the audit.

    Work that was done before under the same idempotency key is not done again: the call ends here with how that
    ended. Two such calls at once wait for each other.
    """
    pipeline, contract, request = passage.pipeline, passage.tool.contract, passage.request
    credentials = {name: _credential(passage, name) for name in contract.credentials}
    passage.secrets = (*passage.secrets, *credentials.values())
    passage.bound = bound = BoundCall(
        request.id,
        request.actor,
        uuid.uuid4().hex,
        _idempotency_key(passage),
        credentials,
        cancelled=passage.cancelled,
    )
    try:
        if bound.idempotency_key:
            passage.held.enter_context(pipeline.audit.keys.take((bound.idempotency_key,), contract, bound))
        passage.hold = passage.held.enter_context(pipeline.locks.hold(contract, passage.operation, bound))
    except ToolFailure as declined:
        raise Ended(declined.failure) from None
    still_holds(passage)
    before = pipeline.audit.ledger.work.get(bound.idempotency_key)
    if before:
        raise Ended(*_not_again(before, passage.operation_digest))
    fields = {
        "tool": passage.tool.qualified_name,
        "operation": passage.operation_digest,
        "decision": passage.decision.record(),
        "operation_id": bound.operation_id,
        **({"idempotency_key": bound.idempotency_key} if bound.idempotency_key else {}),
        **({"approvals": list(request.approvals)} if request.approvals else {}),
    }
    try:
        pipeline.audit.append(request.id, "executing", fields)
        passage.announced = True
    except RecordError:
        raise Ended(NO_RECORD) from None
    except UsageError:  # another request was quicker with the same approval
        raise Ended(Failure("approval_invalid", "the approval was used; it is good for one execution")) from None


def _credential(passage: Passage, name: str) -> str:
    value = passage.pipeline.vault(passage.request.actor, passage.request.tenant, name)
    if not isinstance(value, str) or not value:
        raise Ended(Failure("unavailable", f"there is no credential {name} for {passage.request.actor}"))
    return value


def _idempotency_key(passage: Passage) -> str:
    """Equal for calls of one actor that agree in the arguments which the contract names; "" without any.

    Where the canonical operation has an argument of that name, its value counts: one thing may be written in many ways.
    """
    names, request = passage.tool.contract.idempotency_key, passage.request
    arguments = {**passage.call.arguments, **passage.operation.arguments}
    values = [one_number(arguments[name]) for name in names]
    return digest([request.tenant, request.actor, passage.tool.qualified_name, values]) if names else ""


def _not_again(before: Work, operation: str) -> tuple[Failure, Outcome | None]:
    if before.operation != operation:
        what = f"request {before.request} did other work under the same idempotency key"
        return Failure("idempotency_conflict", what, expected="another key, or the same work"), None
    if before.outcome == Outcome.SUCCESS:
        return Failure("already_done", f"request {before.request} did it, and it was not done again"), None
    outcome = Outcome(before.outcome or Outcome.UNKNOWN_OUTCOME)
    what = f"request {before.request} began it and ended in {outcome}; it was not begun again"
    return Failure("already_done", what), outcome


def execute(passage: Passage) -> ToolResult:
    """Run the handler, or accept the call where its contract lets it go on behind."""
    if passage.tool.contract.background:
        passage.executing = True
        summary = f"{passage.tool.contract.name} goes on in the background as {passage.bound.operation_id[:12]}"
        return ToolResult(summary, outcome=Outcome.BACKGROUND_ACCEPTED, operation_id=passage.bound.operation_id)
    return perform(passage)


def perform(passage: Passage) -> ToolResult:
    """Run the handler inside its middleware until no hook has it tried again; Ended where there is no result."""
    hooks, tries = passage.pipeline.hooks, 0
    if not hooks:
        done = _once(passage)
        return _result_of(passage, done, done.result)
    while True:
        wrapped = hooks.around(
            passage.event(HookPoint.PRE_TOOL_USE),
            lambda: _once(passage),
            tries,
            lambda done: done.declared,
            lambda done: max(1, done.attempts),
            lambda told, true: _same_end(told, true, passage),
        )
        passage.hooked += wrapped.trace
        if wrapped.failure:
            raise Ended(wrapped.failure)
        done, tries = wrapped.value, wrapped.tries
        point = HookPoint.TOOL_FAILURE if done.failure else HookPoint.POST_TOOL_USE
        after = hooks.after(passage.event(point, result=done.result, failure=done.failure), tries, done.declared)
        passage.hooked += after.trace
        if not after.retry:
            break
    passage.notes += [after.context] * bool(after.context)
    return _result_of(passage, done, after.result)


def _same_end(told: Execution, true: Execution, passage: Passage) -> Execution:
    """What a middleware tells in place of the truth; Breach where more than the words of a result differ."""
    if true.result is None or replace(told, result=true.result) != true:
        raise Breach("changed how the call ended, not only what is told of it")
    return replace(true, result=faithful(told.result, passage.event(HookPoint.POST_TOOL_USE, result=true.result)))


def _result_of(passage: Passage, done: Execution, result: ToolResult | None) -> ToolResult:
    """The result to be told; Ended where the execution gave none."""
    if done.failure:
        failure = from_tool(done.failure)
        raise Ended(failure, None if done.declared else passage.outcome(failure.code))
    return result


def _once(passage: Passage) -> Execution:
    """One execution, its result measured against the contract."""
    passage.executing = True
    tool, contract = passage.tool, passage.tool.contract
    if passage.attempts:  # a hook has it tried again; its tries and ours have one budget, the contract's
        tool = replace(tool, contract=replace(contract, retries=contract.retries - passage.attempts))
    done = run_handler(tool, passage.operation, passage.pipeline.context, passage.bound, passage.hold)
    passage.attempts, passage.printed = passage.attempts + done.attempts, passage.printed + done.printed
    if done.result and (problem := broken_promise(contract, done.result)):
        what = f"the result of {contract.name} breaks its contract: {problem}"
        return replace(done, result=None, failure=Failure("result_wrong_shape", what))
    return done


def broken_promise(contract: ToolContract, result: ToolResult) -> str:
    """What a result has that its contract does not allow, or ""."""
    if result.code and (result.code not in FAILURES or result.code in HOST_CODES):
        return f"its code {result.code[:64]!r} is none that a tool may end with"
    if contract.output_schema and result.outcome == Outcome.SUCCESS:
        return check_result(contract.output_schema, dict(result.data))
    return ""


def normalise(passage: Passage, result: ToolResult) -> Observation:
    """Bound, redact and word a result."""
    contract = passage.tool.contract
    body = scrub(result.body, passage.secrets)
    artefact = keep(passage, body) if len(body) > contract.observation_chars else ""
    shown = replace(
        result,
        body=body,
        summary=scrub(result.summary, passage.secrets),
        next_page=scrub(result.next_page, passage.secrets),
    )
    text, cut = result_text(
        shown, contract.observation_chars, passage.pipeline.wording, artefact or "nothing (no disk)"
    )
    code = result.code or ("result_too_large" if cut else "")
    retryable = bool(code) and FAILURES[code].retryable
    operation_id = scrub(result.operation_id, passage.secrets)[:200]
    return Observation(result.outcome, text, code, retryable, artefact, operation_id=operation_id)
