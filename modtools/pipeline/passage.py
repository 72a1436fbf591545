"""One request on its way through the steps, from the raw text to the terminal result.

Every step either passes the call on or ends it with a Failure of the table in `failures`. The steps themselves stand
in `proposal` (everything before an effect), `performance` (the effect) and `commitment` (the end).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from modtools.catalogue.snapshot import Snapshot
from modtools.contract import BoundCall, Effect, Failure, Operation, Outcome, Tool, ToolCall
from modtools.pipeline.concurrency import Hold
from modtools.pipeline.extract import Extraction
from modtools.pipeline.failures import outcome_of
from modtools.pipeline.hooks import Event, HookPoint, HookTrace
from modtools.pipeline.policy import Decision, Policy
from modtools.pipeline.redact import scrub, scrubbed, unquoted
from modtools.pipeline.request import Request
from modtools.pipeline.trace import Step, StepRecord

if TYPE_CHECKING:
    from modtools.pipeline.pipeline import Pipeline


class Ended(Exception):
    """A step ended the call; carries the failure and how many more problems there were."""

    def __init__(self, failure: Failure, outcome: Outcome | None = None, more: int = 0):
        self.failure, self.more = failure, more
        self.outcome = outcome or outcome_of(failure.code)


class Passage:
    """Holds what the steps of one request have found so far; made for one `Pipeline.run`."""

    def __init__(self, pipeline: Pipeline, request: Request, cancelled: Callable[[], bool]):
        self.pipeline, self.request, self._is_cancelled = pipeline, request, cancelled
        self.snapshot: Snapshot = request.seen or pipeline.snapshot
        self.policy: Policy = pipeline.policy
        self.trace: list[StepRecord] = []
        self.extraction = Extraction()
        self.call: ToolCall | None = None
        self.tool: Tool | None = None
        self.operation: Operation | None = None
        self.operation_digest: str | None = None
        self.decision: Decision | None = None
        self.bound: BoundCall | None = None
        self.announced = False  # the audit says that it is about to be executed
        self.executing = False
        self.attempts = 0
        self.printed = ""
        self.started_s = time.perf_counter()
        self.redacted = {name for tool in self.snapshot.tools.values() for name in tool.contract.redact}
        self.secrets: tuple[str, ...] = ()
        self.hooked: list[HookTrace] = []
        self.notes: list[str] = []  # what hooks want the model to know
        self.hold: Hold | None = None
        self.held = ExitStack()  # locks, let go once the end is on record

    def cancelled(self) -> bool:
        """Whether the caller wants it to end; a caller that cannot say counts as wanting it."""
        try:
            return bool(self._is_cancelled())
        except Exception:
            return True

    def outcome(self, code: str) -> Outcome:
        """How a failure ends here: the outcome stays open where something with effects had begun."""
        has_effects = self.operation is not None and self.operation.effect != Effect.READ
        return outcome_of(code, self.executing, has_effects)

    def told(self, failure: Failure) -> Failure:
        """The failure as it may leave the pipeline."""
        return scrubbed(failure, self.secrets) if self.call or not self.redacted else unquoted(failure)

    def event(self, point: HookPoint, **ended: Any) -> Event:
        """What hooks are told about this request; `ended` is what the event has beyond tool and operation."""
        request, tool = self.request, self.tool
        arguments = self.call.arguments if isinstance(self.call.arguments, Mapping) else None
        return Event(
            point, request.id, request.actor, request.tenant, tool.qualified_name, tool.contract, self.operation,
            arguments, **ended,
        )  # fmt: skip

    def record(self, step: Step, passed: bool, detail: str, begun_s: float) -> None:
        """Write a step into the trace."""
        self.trace.append(StepRecord(step, passed, scrub(detail, self.secrets), time.perf_counter() - begun_s))

    def step(self, step: Step, work: Callable[[Passage], Any]) -> Any:
        """Take one step; whatever breaks in it becomes a failure of this request.

        Raises:
            Ended: where the call ends here.
        """
        begun_s = time.perf_counter()
        # Before execution nothing was done; after it, the result is there and is delivered.
        if step != Step.NORMALISE and self.cancelled():
            self.record(step, False, "cancelled before this step", begun_s)
            raise Ended(Failure("cancelled", "the call was cancelled before the tool ran"))
        try:
            value = work(self)
        except Ended as ended:
            failure = self.told(ended.failure)
            self.record(step, False, f"{failure.code}: {failure.what}", begun_s)
            raise
        except (Exception, SystemExit) as error:
            # A broken tool, schema or policy. The type only: the text may hold what the model must not see.
            self.record(step, False, f"broke with {type(error).__name__}", begun_s)
            name = scrub(self.call.name, self.secrets)[:64] if self.call else "the call"
            if step == Step.AUTHORISE:
                failure = Failure("not_authorised", f"{name} could not be authorised: the policy broke")
            else:
                failure = Failure("crash", f"{name} could not be handled: {step} broke with {type(error).__name__}")
            raise Ended(failure, self.outcome(failure.code)) from error
        self.record(step, True, self._found(step), begun_s)
        return value

    def _found(self, step: Step) -> str:
        """What a passed step found, for the trace."""
        if step == Step.EXTRACT:
            return "finish" if self.extraction.finish else "characters {} to {}".format(*self.extraction.span)
        if step == Step.PARSE:
            return self.call.name
        if step == Step.RESOLVE:
            return f"{self.tool.qualified_name} {self.tool.contract.version} of catalogue {self.snapshot.version}"
        if step == Step.CANONICALISE:
            return f"{self.operation.action} {' '.join(self.operation.resources)}".strip()
        if step == Step.CLASSIFY:
            return str(self.operation.effect)
        return f"{self.decision.verdict}: {self.decision.why}" if step == Step.AUTHORISE else ""
