"""Background work: accepted once as the result of its request, and ended by an event of its own.

The request has its one terminal result, background_accepted, before the work begins. Progress and completion refer
to it by its id and are never a second result.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from modtools.contract import Failure, Observation, Outcome, ToolResult, digest
from modtools.errors import RecordError, UsageError
from modtools.pipeline import commitment, performance
from modtools.pipeline.observe import result_text
from modtools.pipeline.passage import Ended, Passage
from modtools.pipeline.redact import scrub
from modtools.pipeline.request import Request

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

_LOG = logging.getLogger(__name__)


def start(passage: Passage) -> None:
    """Begin the work of a request that has been accepted; it holds its locks until it has ended."""
    held = passage.held.pop_all()
    passage.bound = replace(passage.bound, progress=lambda text: _progress(passage, text))
    name = f"behind-{passage.tool.contract.name}"
    work = contextvars.copy_context().run  # a call made in there by a hook of it is still known as such
    try:
        threading.Thread(target=work, args=(_work, passage, held), name=name, daemon=True).start()
    except RuntimeError:
        failure = Failure("unavailable", f"no thread could be started for {passage.tool.contract.name}")
        with held:
            _end(passage.pipeline, passage.request.id, commitment.observe(passage, failure))


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
    line = scrub(str(text), passage.secrets)[:500]
    try:
        passage.pipeline.audit.append(passage.request.id, "progress", {"text": line})
    except RecordError as error:  # work with effects does not stop over a word on how far it is
        _LOG.warning("a line of progress of request %s is lost: %s", passage.request.id, error)
    _tell(passage.pipeline, BackgroundEvent(passage.request.id, "progress", line))


def _tell(pipeline: Pipeline, event: BackgroundEvent) -> None:
    """Tell the host; what breaks in there is not the work's trouble. By type only: the text may hold anything."""
    try:
        pipeline.on_event(event)
    except Exception as error:
        _LOG.warning("on_event broke with %s over request %s", type(error).__name__, event.request)


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
    _tell(pipeline, BackgroundEvent(request, "completed", observation.text, observation))


def complete(pipeline: Pipeline, request: str, result: ToolResult) -> Observation:
    """Report the end of work that another system does: a handler had answered with BACKGROUND_ACCEPTED.

    The result is held against the contract, bounded and redacted like any other. In another process than the one that
    took the call, nobody knows which values were secret: where the tool redacts any, only the outcome is told.

    Raises:
        UsageError: where no such work is open under this request, or the kit runs it itself; and for a result that
            says that it still goes on.
    """
    if request not in pipeline.audit.ledger.background() or request in pipeline.audit.ledger.dying():
        raise UsageError(f"request {request!r} has no background work that is open and done by another system")
    if result.outcome == Outcome.BACKGROUND_ACCEPTED:
        raise UsageError(f"request {request!r}: {result.outcome} is no end")
    passage = pipeline.elsewhere.get(request) or _taken_before(pipeline, request)
    if passage is None:
        told = ToolResult("its words are withheld: nobody here knows what is secret in them", outcome=result.outcome)
        observation = Observation(result.outcome, result_text(told, 4000, pipeline.wording)[0])
    elif problem := performance.broken_promise(passage.tool.contract, result):
        what = f"the result of {passage.tool.contract.name} breaks its contract: {problem}"
        observation = commitment.observe(passage, Failure("result_wrong_shape", what), Outcome.UNKNOWN_OUTCOME)
    else:
        observation = performance.normalise(passage, result)
    _end(pipeline, request, observation)
    pipeline.elsewhere.pop(request, None)
    return observation


def _taken_before(pipeline: Pipeline, request: str) -> Passage | None:
    """A request that another process took, as far as it is known: None where its tool is gone, or knew secrets."""
    ends = (line for line in pipeline.audit.lines() if (line["request"], line["event"]) == (request, "terminal"))
    passage = Passage(pipeline, Request(request, ""), lambda: False)
    passage.tool = pipeline.snapshot.tools.get(next(ends)["tool"])
    secretive = passage.tool is None or passage.tool.contract.redact or passage.tool.contract.credentials
    return None if secretive else passage
