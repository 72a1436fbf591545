"""What goes into the pipeline and what comes out: a request, and its terminal result."""

from __future__ import annotations

from dataclasses import dataclass

from modtools.catalogue.snapshot import Snapshot
from modtools.contract import Failure, Observation, Operation, Outcome, ToolCall
from modtools.errors import UsageError
from modtools.pipeline.hooks import HookTrace
from modtools.pipeline.policy import Decision
from modtools.pipeline.trace import StepRecord


@dataclass(frozen=True)
class Request:
    """One reply of the model, to be taken as one request.

    Attributes:
        id: names the request in the audit; never used twice.
        text: the raw reply.
        finish_reason: "stop", "length" or "lost".
        actor, tenant, workspace: on whose behalf, and where.
        approvals: ids of approvals for exactly this operation (see `approvals.approve`).
        seen: the catalogue snapshot that the model saw in its turn, or None for the current one.
    """

    id: str
    text: str
    finish_reason: str = "stop"
    actor: str = "model"
    tenant: str = ""
    workspace: str = ""
    approvals: tuple[str, ...] = ()
    seen: Snapshot | None = None

    def __post_init__(self):
        if not isinstance(self.text, str) or not isinstance(self.id, str):
            raise UsageError(f"request {self.id!r}: id and text must be of type str")
        if not all(isinstance(part, str) for part in (self.actor, self.tenant, self.workspace, *self.approvals)):
            raise UsageError(f"request {self.id!r}: actor, tenant, workspace and approvals must be of type str")


@dataclass(frozen=True)
class Result:
    """The terminal result of a request.

    Attributes:
        request: its id.
        outcome: one of the ten.
        observation: what the model sees.
        trace: the steps taken, the last of them where the call ended.
        failure: what went wrong, or None.
        call: as parsed, or None.
        operation: the canonical operation, or None where the call did not get so far.
        decision: of the policy, or None likewise.
        hooks: what each hook did, in order.
        finished: the reply was the control message that ends the episode.
        span: (start, end) of the call in the reply, in characters.
    """

    request: str
    outcome: Outcome
    observation: Observation
    trace: tuple[StepRecord, ...]
    failure: Failure | None = None
    call: ToolCall | None = None
    operation: Operation | None = None
    decision: Decision | None = None
    hooks: tuple[HookTrace, ...] = ()
    finished: bool = False
    span: tuple[int, int] = (0, 0)
