"""Background work: accepted once as the result of its request, and ended by an event of its own.

The request has its one terminal result, background_accepted, before the work begins. Progress and completion refer
to it by its id and are never a second result.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from modtools.contract import Failure, Observation, Outcome, ToolResult, digest
from modtools.errors import RecordError, UsageError
from modtools.pipeline import commitment, performance
from modtools.pipeline.passage import Ended, Passage

if TYPE_CHECKING:
    from modtools.pipeline.pipeline import Pipeline


@dataclass(frozen=True)
class BackgroundEvent:
    """What a host hears of work that goes on behind.

    Attributes:
        request: id of the request that was accepted.
        kind: "progress" or "completed".
        text: a line on how far it is, or the observation's text.
        observation: how it ended, or None for progress.
    """

    request: str
    kind: str
    text: str
    observation: Observation | None = None


OnEvent = Callable[[BackgroundEvent], None]


def start(passage: Passage) -> None:
    """Begin the work of a request that has been accepted; it holds its locks until it has ended."""
    held = passage.held.pop_all()
    passage.bound = replace(passage.bound, progress=lambda text: _progress(passage, text))
    name = f"behind-{passage.tool.contract.name}"
    work = contextvars.copy_context().run  # a call made in there by a hook of it is still known as such
    threading.Thread(target=work, args=(_work, passage, held), name=name, daemon=True).start()


def _work(passage: Passage, held: ExitStack) -> None:
    with held:
        try:
            result = performance.perform(passage)
            if result.outcome == Outcome.BACKGROUND_ACCEPTED:
                failure = Failure("result_wrong_shape", f"{passage.tool.contract.name} said again that it goes on")
                raise Ended(failure, passage.outcome(failure.code))
            observation = performance.normalise(passage, result)
        except Ended as ended:
            observation = commitment.observe(passage, ended.failure, ended.outcome, ended.more)
        except Exception as error:
            failure = Failure("crash", f"{passage.tool.contract.name} broke with {type(error).__name__}")
            observation = commitment.observe(passage, failure, passage.outcome(failure.code))
        _end(passage.pipeline, passage.request.id, observation)


def _progress(passage: Passage, text: str) -> None:
    line = performance.scrub(str(text)[:500], passage.secrets)
    passage.pipeline.audit.append(passage.request.id, "progress", {"text": line})
    passage.pipeline.on_event(BackgroundEvent(passage.request.id, "progress", line))


def _end(pipeline: Pipeline, request: str, observation: Observation) -> None:
    fields = {"outcome": observation.outcome, "code": observation.code, "observation": digest(observation.text)}
    if observation.artefact:
        fields["artefact"] = observation.artefact
    try:
        pipeline.audit.append(request, "completed", fields)
    except RecordError:  # the next process that opens the log ends it as unknown, and so do we
        lost = Failure("unknown_outcome", "the record of how it ended could not be written")
        text = commitment.failure_text(lost, Outcome.UNKNOWN_OUTCOME, pipeline.wording)
        observation = Observation(Outcome.UNKNOWN_OUTCOME, text, "unknown_outcome")
    pipeline.on_event(BackgroundEvent(request, "completed", observation.text, observation))


def complete(pipeline: Pipeline, request: str, result: ToolResult) -> Observation:
    """Report the end of work that another system does: a handler had answered with BACKGROUND_ACCEPTED.

    Raises:
        UsageError: where no such work is open under this request, or the kit runs it itself.
    """
    if request not in pipeline.audit.ledger.background() or request in pipeline.audit.ledger.dying():
        raise UsageError(f"request {request!r} has no background work that is open and done by another system")
    text, _ = performance.result_text(result, 4000, pipeline.wording)
    observation = Observation(result.outcome, text, result.code, operation_id=result.operation_id)
    _end(pipeline, request, observation)
    return observation
