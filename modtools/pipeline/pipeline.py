"""The one pipeline: a model's text goes in, exactly one terminal result comes out.

Module 2 draws five stages, Part 05 nine steps; they are the same road (see `trace.STAGE_OF`):

    extract -> parse -> resolve -> validate -> canonicalise -> classify -> authorise
            -> bind -> execute -> normalise -> commit

Two products leave it: an Observation for the model, and audit lines for everybody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Failure, Observation, Outcome, ToolResult
from modtools.errors import RecordError, UsageError
from modtools.pipeline import commitment, performance, proposal
from modtools.pipeline.approvals import Approval, approve
from modtools.pipeline.audit import AuditLog
from modtools.pipeline.background import OnEvent, complete, start
from modtools.pipeline.commitment import commit, observe
from modtools.pipeline.concurrency import Locks
from modtools.pipeline.hooks import Hooks
from modtools.pipeline.observe import Wording
from modtools.pipeline.failures import FAILURES
from modtools.pipeline.passage import Ended, Passage
from modtools.pipeline.policy import Policy
from modtools.pipeline.process import check_stoppable
from modtools.pipeline.request import Request, Result
from modtools.pipeline.trace import Step

Vault = Callable[[str, str, str], str]
"""(actor, tenant, name of a credential) -> its value, or "" where there is none."""


class Pipeline:
    """Everything a call meets, bound once.

    Args:
        tools: a Catalogue, whose current snapshot is used; or one Snapshot that never changes.
        policy: decides canonical operations. It may be replaced between requests.
        audit: an AuditLog.
        context: handed to canonicalisers and handlers (on the lab's surfaces a `surfaces.Context`).
        wording: the two switches of observation texts.
        vault: where credentials come from; the model's arguments are no such place.
        on_event: hears of background work.
        hooks: foreign code at named points of a call.

    Raises:
        UsageError: for a tool that is to run in a process of its own and cannot.
    """

    def __init__(
        self,
        tools: Snapshot | Catalogue,
        policy: Policy,
        audit: AuditLog,
        context: Any = None,
        wording: Wording = Wording(),
        *,
        vault: Vault = lambda actor, tenant, name: "",
        on_event: OnEvent = lambda event: None,
        hooks: Hooks = Hooks(),
    ):
        self._tools, self.policy, self.audit = tools, policy, audit
        self.context, self.wording = context, wording
        self.vault, self.on_event, self.hooks = vault, on_event, hooks
        self.locks = Locks()
        self.elsewhere: dict[str, Passage] = {}  # requests whose work another system does
        for tool in self.snapshot.tools.values():
            check_stoppable(tool)

    @property
    def snapshot(self) -> Snapshot:
        """The tools as they are now."""
        return self._tools if isinstance(self._tools, Snapshot) else self._tools.snapshot

    def difference(self, seen: Snapshot, name: str) -> str:
        """What has changed about a tool since a snapshot was seen, or ""."""
        if isinstance(self._tools, Catalogue):
            return self._tools.difference(seen, name)
        return "" if seen.find(name) == self._tools.find(name) else "the catalogue was replaced"

    def run(self, request: Request, cancelled: Callable[[], bool] = lambda: False) -> Result:
        """Take one request to its terminal result.

        Args:
            request: the model's reply.
            cancelled: asked between steps and while a handler runs.

        Returns:
            The Result. Whatever the text and whatever the handler does, there is exactly one, and the audit
            has exactly one terminal line for it.

        Raises:
            UsageError: where the request's id was used before.
        """
        passage = Passage(self, request, cancelled)
        with passage.held:
            try:
                result = _ended(passage)
            except UsageError:  # the id was used before; what that request is in is not ours to end
                raise
            except BaseException:  # Ctrl-C: the request ends here too, and the interrupt goes on to whoever sent it
                failure = Failure("cancelled", "the harness was interrupted")
                with suppress(UsageError):  # not yet received, or the end is on record already
                    commit(passage, observe(passage, failure, passage.outcome(failure.code)), failure)
                raise
            # Not where an earlier call's work goes on: that is told, and not begun again.
            if result.outcome == Outcome.BACKGROUND_ACCEPTED and passage.executing:
                if passage.tool.contract.background:
                    start(passage)
                else:
                    self.elsewhere[request.id] = passage
        return commitment.tell_listeners(passage, result)

    def approve(self, request: str, by: str, valid_s: float = 600.0) -> Approval:
        """Approve what a request asked for; see `approvals.approve`."""
        return approve(self.audit, request, by, valid_s)

    def complete(self, request: str, result: ToolResult) -> Observation:
        """Report the end of work that another system does; see `background.complete`."""
        return complete(self, request, result)


def _received(passage: Passage) -> dict[str, Any]:
    """What the audit says of a request before anything else is known; it names those whose asks were approved."""
    request, audit = passage.request, passage.pipeline.audit
    fields = {"actor": request.actor, "tenant": request.tenant, "workspace": request.workspace}
    approved = [audit.ledger.approvals.get(id, {}).get("request") for id in request.approvals]
    return {**fields, "follows": approved} if approved else fields


def _ended(passage: Passage) -> Result:
    """Take a request through every step, and write how it ended."""
    try:
        passage.pipeline.audit.append(passage.request.id, "received", _received(passage))
    except RecordError as error:
        passage.record(Step.EXTRACT, False, str(error), time.perf_counter())
        return commitment.result(passage, observe(passage, performance.NO_RECORD), performance.NO_RECORD)
    try:
        observation = _take(passage)
        failure = Failure(observation.code, FAILURES[observation.code].meaning) if observation.code else None
    except Ended as ended:
        observation, failure = observe(passage, ended.failure, ended.outcome, ended.more), ended.failure
    return commit(passage, observation, failure)


def _take(passage: Passage) -> Observation:
    """Every step but the last, in order; Ended where one of them ends the call."""
    passage.step(Step.EXTRACT, proposal.extract)
    if passage.extraction.finish:
        return Observation(Outcome.SUCCESS, "ok: finished")
    for step, work in proposal.STEPS:
        passage.step(step, work)
    passage.step(Step.BIND, performance.bind)
    done = passage.step(Step.EXECUTE, performance.execute)
    return passage.step(Step.NORMALISE, lambda passage: performance.normalise(passage, done))
