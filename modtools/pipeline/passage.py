"""One request on its way through the steps, from the raw text to the terminal result.

Every step either passes the call on or ends it with a Failure of the table in `failures`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modtools.contract import (
    BoundCall, Effect, Failure, Observation, Operation, Outcome, Tool, ToolCall, ToolFailure, ToolResult, canonical_json, digest,
)  # fmt: skip
from modtools.errors import RecordError
from modtools.pipeline.execute import execute
from modtools.pipeline.extract import Extraction, extract
from modtools.pipeline.failures import FAILURES, outcome_of
from modtools.pipeline.observe import failure_text, result_text
from modtools.pipeline.parse import ParseFailure, parse_call
from modtools.pipeline.policy import ASK, DENY
from modtools.pipeline.redact import scrub, secret_values, unquoted
from modtools.pipeline.request import Request, Result
from modtools.pipeline.trace import Step, StepRecord
from modtools.pipeline.validate import check_result, validate_arguments

if TYPE_CHECKING:
    from modtools.pipeline.pipeline import Pipeline


class _Ended(Exception):
    """A step ended the call; carries the failure and how many more problems there were."""

    def __init__(self, failure: Failure, outcome: Outcome | None = None, more: int = 0):
        if failure.code not in FAILURES:  # a tool's own word for an error that the table does not have
            failure = replace(failure, code="tool_error")
        self.failure, self.more = failure, more
        self.outcome = outcome or outcome_of(failure.code)


class Passage:
    """Holds what the steps of one request have found so far; made for one `run`."""

    def __init__(self, pipeline: Pipeline, request: Request, cancelled: Callable[[], bool]):
        self.pipeline, self.request, self._is_cancelled = pipeline, request, cancelled
        self.trace: list[StepRecord] = []
        self.extraction = Extraction()
        self.call: ToolCall | None = None
        self.tool: Tool | None = None
        self.operation: Operation | None = None
        self.operation_digest: str | None = None
        self.executing = False
        self.decision = ""
        self.started = time.perf_counter()
        self.redacted = {name for tool in pipeline.snapshot.tools.values() for name in tool.contract.redact}
        self.secrets: tuple[str, ...] = ()

    def run(self) -> Result:
        """Take every step until the request has ended."""
        try:
            self.pipeline.audit.append(self.request.id, "received", {"actor": self.request.actor})
        except RecordError as error:
            failure = Failure("audit_unavailable", "no record of the call can be kept, so it was not carried out")
            self._record(Step.EXTRACT, False, str(error), time.perf_counter())
            return self._result(outcome_of(failure.code), self._observe(failure), failure)
        try:
            self._step(Step.EXTRACT, self._extract)
            if self.extraction.finish:
                return self._commit(Outcome.SUCCESS, Observation(Outcome.SUCCESS, "ok: finished"), None)
            self._step(Step.PARSE, self._parse)
            self._step(Step.RESOLVE, self._resolve)
            self._step(Step.VALIDATE, self._validate)
            self._step(Step.CANONICALISE, self._canonicalise)
            self._step(Step.CLASSIFY, self._classify)
            self._step(Step.AUTHORISE, self._authorise)
            self._step(Step.BIND, self._bind)
            result = self._step(Step.EXECUTE, self._execute)
            observation = self._step(Step.NORMALISE, lambda: self._normalise(result))
        except _Ended as ended:
            return self._commit(ended.outcome, self._observe(ended.failure, ended.outcome, ended.more), ended.failure)
        except BaseException:  # Ctrl-C: the request ends here too, and the interrupt goes on to whoever sent it
            failure = Failure("cancelled", "the harness was interrupted")
            outcome = self._outcome(failure.code, self.executing)
            self._commit(outcome, self._observe(failure, outcome), failure)
            raise
        failure = Failure(observation.code, FAILURES[observation.code].meaning) if observation.code else None
        return self._commit(observation.outcome, observation, failure)

    def cancelled(self) -> bool:
        """Whether the caller wants it to end; a caller that cannot say counts as wanting it."""
        try:
            return bool(self._is_cancelled())
        except Exception:
            return True

    def _step(self, step: Step, work: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        # Before execution nothing was done; after it, the result is there and is delivered.
        if step != Step.NORMALISE and self.cancelled():
            self._record(step, False, "cancelled before this step", begun)
            raise _Ended(Failure("cancelled", "the call was cancelled before the tool ran"))
        try:
            value = work()
        except _Ended as ended:
            self._record(step, False, f"{ended.failure.code}: {ended.failure.what}", begun)
            raise
        except (Exception, SystemExit) as error:
            # A broken tool, schema or policy. The type only: the text may hold what the model must not see.
            self._record(step, False, f"broke with {type(error).__name__}", begun)
            name = self.call.name[:64] if self.call else "the call"
            failure = Failure("crash", f"{name} could not be handled: {step} broke with {type(error).__name__}")
            raise _Ended(failure, self._outcome(failure.code, self.executing)) from error
        self._record(step, True, self._found(step), begun)
        return value

    def _record(self, step: Step, passed: bool, detail: str, begun: float) -> None:
        self.trace.append(StepRecord(step, passed, scrub(detail, self.secrets), time.perf_counter() - begun))

    def _found(self, step: Step) -> str:
        """What a passed step found, for the trace."""
        if step == Step.EXTRACT:
            return "finish" if self.extraction.finish else "characters {} to {}".format(*self.extraction.span)
        if step == Step.PARSE:
            return self.call.name
        if step == Step.RESOLVE:
            return (
                f"{self.tool.contract.name} {self.tool.contract.version} of catalogue {self.pipeline.snapshot.version}"
            )
        if step == Step.CANONICALISE:
            return f"{self.operation.action} {' '.join(self.operation.resources)}".strip()
        if step == Step.CLASSIFY:
            return str(self.operation.effect)
        return self.decision if step == Step.AUTHORISE else ""

    # The steps. Each reads what earlier ones found and either adds to it or raises _Ended.

    def _extract(self) -> None:
        self.extraction = extract(self.request.text, self.request.finish_reason, self.pipeline.snapshot.tools)
        if self.extraction.failure:
            raise _Ended(self.extraction.failure)

    def _parse(self) -> None:
        try:
            self.call = parse_call(self.extraction.text)
        except ParseFailure as error:
            raise _Ended(error.failure) from None
        self.secrets = tuple(secret_values(self.call.arguments, self.redacted))

    def _resolve(self) -> None:
        snapshot, name = self.pipeline.snapshot, self.call.name
        self.tool = snapshot.tools.get(name)
        if self.tool is None and name in snapshot.retired:
            raise _Ended(
                Failure("retired_tool", f'"{name[:64]}" is no longer offered: {snapshot.retired[name]}', "name")
            )
        if self.tool is None:
            known = ", ".join(f'"{known}"' for known in snapshot.tools)
            raise _Ended(Failure("unknown_tool", f'there is no tool "{name[:64]}"', "name", f"one of {known}"))

    def _validate(self) -> None:
        arguments, failures = validate_arguments(self.tool.contract, self.call.arguments)
        if failures:
            raise _Ended(failures[0], more=len(failures) - 1)
        self.call = ToolCall(self.call.name, arguments)

    def _canonicalise(self) -> None:
        try:
            operation = self.tool.canonicalise(copy.deepcopy(self.call.arguments), self.pipeline.context)
        except ToolFailure as declined:
            raise _Ended(declined.failure) from None
        if not isinstance(operation, Operation):
            raise TypeError(f"{self.call.name}: the canonicaliser returned {type(operation).__name__}")
        # What policy decides about and what the audit names is this very digest, whatever a handler does later.
        self.operation, self.operation_digest = operation, operation.digest

    def _classify(self) -> None:
        allowed, actual = self.tool.contract.effect, self.operation.effect
        if not allowed.covers(actual):
            what = f"{self.call.name} would {actual}, but its contract allows it to {allowed} at most"
            raise _Ended(Failure("not_authorised", what))

    def _authorise(self) -> None:
        decision = self.pipeline.policy.decide(self.operation, self.tool.contract)
        self.decision = f"{decision.verdict}: {decision.why}"
        if decision.verdict == DENY:
            raise _Ended(Failure("not_authorised", f"{self.operation.action} is not permitted here"))
        if decision.verdict == ASK:
            raise _Ended(Failure("approval_needed", f"{self.operation.action} needs a person's approval first"))

    def _bind(self) -> None:
        fields = {"tool": self.call.name, "operation": self.operation_digest, "decision": self.decision}
        try:
            self.pipeline.audit.append(self.request.id, "executing", fields)
        except RecordError:
            what = "no record of the call can be kept, so it was not carried out"
            raise _Ended(Failure("audit_unavailable", what)) from None

    def _execute(self) -> ToolResult:
        self.executing = True
        call = BoundCall(self.request.id, self.request.actor, self.request.id, cancelled=self.cancelled)
        execution = execute(self.tool, self.operation, self.pipeline.context, call)
        if execution.failure:
            started = not execution.declared
            raise _Ended(execution.failure, self._outcome(execution.failure.code, started) if started else None)
        return execution.result

    def _normalise(self, result: ToolResult) -> Observation:
        contract = self.tool.contract
        problem = ""
        if contract.output_schema and result.outcome == Outcome.SUCCESS:
            problem = check_result(contract.output_schema, dict(result.data))
        elif result.code and result.code not in FAILURES:
            problem = f"its code {result.code!r} is not in the table"
        if problem:
            failure = Failure("result_wrong_shape", f"the result of {contract.name} breaks its contract: {problem}")
            raise _Ended(failure, self._outcome(failure.code, started=True))
        body = scrub(result.body, self.secrets)
        artefact = self._keep(body) if len(body) > contract.observation_chars else ""
        shown = replace(result, body=body, summary=scrub(result.summary, self.secrets))
        text, cut = result_text(
            shown, contract.observation_chars, self.pipeline.wording, artefact or "nothing (no disk)"
        )
        code = result.code or ("result_too_large" if cut else "")
        return Observation(result.outcome, text, code, bool(code) and FAILURES[code].retryable, artefact)

    # The end: audit first, then the observation.

    def _commit(self, outcome: Outcome, observation: Observation, failure: Failure | None) -> Result:
        begun = time.perf_counter()
        call = self.call
        fields = {
            "actor": self.request.actor,
            "outcome": outcome,
            "code": observation.code,
            "raw": digest(self.request.text),
            "raw_artefact": self._keep(self._raw_text()),
            "tool": scrub(call.name[:200], self.secrets) if call else None,
            "contract": self.tool.contract.version if self.tool else None,
            "catalogue": [self.pipeline.snapshot.version, self.pipeline.snapshot.digest],
            "policy": [self.pipeline.policy.version, self.pipeline.policy.digest],
            "arguments": digest(canonical_json(call.arguments)) if call else None,
            "operation": self.operation_digest,
            "decision": self.decision or None,
            "observation": digest(observation.text),
            "artefact": observation.artefact or None,
            "duration_s": round(time.perf_counter() - self.started, 6),
        }
        try:
            self.pipeline.audit.append(self.request.id, "terminal", fields)
        except RecordError as error:
            # The log stays open for this request, and the next process closes it the same way.
            self._record(Step.COMMIT, False, str(error), begun)
            executed = any(record.step == Step.EXECUTE for record in self.trace)
            code = "unknown_outcome" if executed else "audit_unavailable"
            lost = Failure(code, "the record of the call could not be written")
            return self._result(outcome_of(code), self._observe(lost), lost)
        self._record(Step.COMMIT, True, str(outcome), begun)
        return self._result(outcome, observation, failure)

    def _raw_text(self) -> str:
        """The reply as it is kept: whole, or where it holds something secret, the call alone without it."""
        if self.redacted and not self.call:
            return "[not kept: the reply could not be parsed, and a tool of this catalogue redacts arguments]"
        if not self.secrets:
            return self.request.text
        # Not the reply itself: it may spell a value with other escapes, or repeat it in prose.
        return scrub(canonical_json({"name": self.call.name, "arguments": self.call.arguments}), self.secrets)

    def _keep(self, content: str) -> str:
        """Keep an artefact; a full disk loses the artefact, is said in the record, and never the result."""
        try:
            return self.pipeline.audit.keep(content)
        except RecordError:
            return ""

    def _outcome(self, code: str, started: bool) -> Outcome:
        return outcome_of(code, started, self.operation is not None and self.operation.effect != Effect.READ)

    def _observe(self, failure: Failure, outcome: Outcome | None = None, more: int = 0) -> Observation:
        outcome = outcome or outcome_of(failure.code)
        if self.redacted and not self.call:
            failure = unquoted(failure)
        text = scrub(failure_text(failure, outcome, self.pipeline.wording, more), self.secrets)
        retryable = FAILURES[failure.code].retryable and outcome != Outcome.UNKNOWN_OUTCOME
        return Observation(outcome, text[:2000], failure.code, retryable)

    def _result(self, outcome: Outcome, observation: Observation, failure: Failure | None) -> Result:
        return Result(
            self.request.id,
            outcome,
            observation,
            tuple(self.trace),
            failure,
            self.call,
            self.operation,
            self.extraction.finish,
            self.extraction.span,
        )
