"""One request on its way through the steps, from the raw text to the terminal result.

Every step either passes the call on or ends it with a Failure of the table in `failures`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modtools.contract import (
    Effect, Failure, Observation, Operation, Outcome, Tool, ToolCall, ToolFailure, ToolResult, canonical_json, digest,
)  # fmt: skip
from modtools.errors import RecordError
from modtools.pipeline.execute import execute
from modtools.pipeline.extract import Extraction, extract
from modtools.pipeline.failures import FAILURES, outcome_of
from modtools.pipeline.observe import failure_text, result_text
from modtools.pipeline.parse import ParseFailure, parse_call
from modtools.pipeline.policy import ASK, DENY
from modtools.pipeline.request import Request, Result
from modtools.pipeline.trace import Step, StepRecord
from modtools.pipeline.validate import check_result, validate_arguments

if TYPE_CHECKING:
    from modtools.pipeline.pipeline import Pipeline


class _Ended(Exception):
    """A step ended the call; carries the failure and how many more problems there were."""

    def __init__(self, failure: Failure, outcome: Outcome | None = None, more: int = 0):
        self.failure, self.more = failure, more
        self.outcome = outcome or outcome_of(failure.code)


class Passage:
    """Holds what the steps of one request have found so far; made for one `run`."""

    def __init__(self, pipeline: Pipeline, request: Request, cancelled: Callable[[], bool]):
        self.pipeline, self.request, self.cancelled = pipeline, request, cancelled
        self.trace: list[StepRecord] = []
        self.extraction = Extraction()
        self.call: ToolCall | None = None
        self.tool: Tool | None = None
        self.operation: Operation | None = None
        self.decision = ""
        self.started = time.perf_counter()

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
        failure = Failure(observation.code, FAILURES[observation.code].meaning) if observation.code else None
        return self._commit(observation.outcome, observation, failure)

    def _step(self, step: Step, work: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        if self.cancelled():
            self._record(step, False, "cancelled before this step", begun)
            # Before execution nothing was done; after it, the result is there and is delivered.
            if step != Step.NORMALISE:
                raise _Ended(Failure("cancelled", "the call was cancelled before the tool ran"))
        try:
            value = work()
        except _Ended as ended:
            self._record(step, False, f"{ended.failure.code}: {ended.failure.what}", begun)
            raise
        self._record(step, True, self._found(step), begun)
        return value

    def _record(self, step: Step, passed: bool, detail: str, begun: float) -> None:
        self.trace.append(StepRecord(step, passed, detail, time.perf_counter() - begun))

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
            first = failures[0]
            if any(first.where.startswith(f"arguments.{name}") for name in self.tool.contract.redact):
                first = replace(first, what="the value is not valid")  # a secret must not come back in an error
            raise _Ended(first, more=len(failures) - 1)
        self.call = ToolCall(self.call.name, arguments)

    def _canonicalise(self) -> None:
        try:
            self.operation = self.tool.canonicalise(self.call.arguments, self.pipeline.context)
        except ToolFailure as declined:
            raise _Ended(declined.failure) from None
        except Exception as error:  # a broken canonicaliser must not let a call reach policy half understood
            what = f"the call to {self.call.name} could not be resolved ({type(error).__name__})"
            raise _Ended(Failure("crash", what)) from error

    def _classify(self) -> None:
        allowed, actual = self.tool.contract.effect, self.operation.effect
        order = list(Effect)
        if order.index(actual) > order.index(allowed):
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
        fields = {"tool": self.call.name, "operation": self.operation.digest, "decision": self.decision}
        try:
            self.pipeline.audit.append(self.request.id, "executing", fields)
        except RecordError:
            what = "no record of the call can be kept, so it was not carried out"
            raise _Ended(Failure("audit_unavailable", what)) from None

    def _execute(self) -> ToolResult:
        execution = execute(self.tool, self.operation, self.pipeline.context, self.cancelled)
        if execution.failure:
            raise _Ended(execution.failure, self._outcome(execution.failure.code, started=not execution.declared))
        return execution.result

    def _normalise(self, result: ToolResult) -> Observation:
        contract = self.tool.contract
        if contract.output_schema and result.outcome == Outcome.SUCCESS:
            problem = check_result(contract.output_schema, dict(result.data))
            if problem:
                failure = Failure("result_wrong_shape", f"the result of {contract.name} breaks its contract: {problem}")
                raise _Ended(failure, self._outcome(failure.code, started=True))
        artefact = ""
        if len(result.body) > contract.observation_chars:
            artefact = self._keep(result.body)
        text, cut = result_text(
            result, contract.observation_chars, self.pipeline.wording, artefact or "nothing (no disk)"
        )
        code = result.code or ("result_too_large" if cut else "")
        return Observation(result.outcome, text, code, bool(code) and FAILURES[code].retryable, artefact)

    # The end: audit first, then the observation.

    def _commit(self, outcome: Outcome, observation: Observation, failure: Failure | None) -> Result:
        begun = time.perf_counter()
        call, operation = self.call, self.operation
        fields = {
            "actor": self.request.actor,
            "outcome": outcome,
            "code": observation.code,
            "raw": digest(self.request.text),
            "raw_artefact": self._keep(self._raw_text()),
            "tool": call.name[:200] if call else None,
            "contract": self.tool.contract.version if self.tool else None,
            "catalogue": [self.pipeline.snapshot.version, self.pipeline.snapshot.digest],
            "policy": [self.pipeline.policy.version, self.pipeline.policy.digest],
            "arguments": digest(canonical_json(call.arguments)) if call else None,
            "operation": operation.digest if operation else None,
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
        """The reply as it is kept: whole, or where a contract redacts arguments, the call without their values."""
        redact = {name for tool in self.pipeline.snapshot.tools.values() for name in tool.contract.redact}
        if not redact:
            return self.request.text
        if not self.call or not isinstance(self.call.arguments, dict):
            return "[not kept: the reply could not be parsed, and a tool of this catalogue redacts arguments]"
        arguments = {k: "[redacted]" if k in redact else v for k, v in self.call.arguments.items()}
        return canonical_json({"name": self.call.name, "arguments": arguments})

    def _keep(self, content: str) -> str:
        """Keep an artefact; a full disk loses the artefact, is said in the record, and never the result."""
        try:
            return self.pipeline.audit.keep(content)
        except RecordError:
            return ""

    def _outcome(self, code: str, started: bool) -> Outcome:
        return outcome_of(code, started, self.operation.effect != Effect.READ)

    def _observe(self, failure: Failure, outcome: Outcome | None = None, more: int = 0) -> Observation:
        outcome = outcome or outcome_of(failure.code)
        text = failure_text(failure, outcome, self.pipeline.wording, more)
        return Observation(outcome, text[:2000], failure.code, FAILURES[failure.code].retryable)

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
