"""The one pipeline: a model's text goes in, exactly one terminal result comes out.

Module 2 draws five stages, Part 05 nine steps; they are the same road (see `trace.STAGE_OF`):

    extract -> parse -> resolve -> validate -> canonicalise -> classify -> authorise
            -> bind -> execute -> normalise -> commit

Two products leave it: an Observation for the model, and audit lines for everybody else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modtools.catalogue.snapshot import Snapshot
from modtools.pipeline.audit import AuditLog
from modtools.pipeline.observe import Wording
from modtools.pipeline.passage import Passage
from modtools.pipeline.policy import Policy
from modtools.pipeline.request import Request, Result


class Pipeline:
    """Everything a call meets, bound once: catalogue snapshot, policy, audit, context, wording.

    Args:
        snapshot: the tools the model saw.
        policy: decides canonical operations.
        audit: an AuditLog.
        context: handed to canonicalisers and handlers (on the lab's surfaces a `surfaces.Context`).
        wording: the two switches of observation texts.
    """

    def __init__(
        self, snapshot: Snapshot, policy: Policy, audit: AuditLog, context: Any = None, wording: Wording = Wording()
    ):
        self.snapshot, self.policy, self.audit = snapshot, policy, audit
        self.context, self.wording = context, wording

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
        return Passage(self, request, cancelled).run()
