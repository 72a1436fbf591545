"""The end of a request: the audit first, then what the model sees. Two products, and neither is made from the other."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from modtools.contract import Failure, Observation, Outcome, canonical_json, digest
from modtools.errors import RecordError
from modtools.pipeline.failures import FAILURES, outcome_of
from modtools.pipeline.hooks import HookPoint
from modtools.pipeline.observe import failure_text
from modtools.pipeline.passage import Passage
from modtools.pipeline.redact import MARK, scrub
from modtools.pipeline.request import Result
from modtools.pipeline.trace import Step

ARTEFACT_CHARS = 16_000_000
"""What is kept of one text, in characters; the audit says when it was more."""


def observe(passage: Passage, failure: Failure, outcome: Outcome | None = None, more: int = 0) -> Observation:
    """The observation of a failure."""
    outcome, failure = outcome or outcome_of(failure.code), passage.told(failure)
    text = scrub(failure_text(failure, outcome, passage.pipeline.wording, more), passage.secrets)[:2000]
    retryable = FAILURES[failure.code].retryable and outcome != Outcome.UNKNOWN_OUTCOME
    return Observation(outcome, text, failure.code, retryable)


def commit(passage: Passage, observation: Observation, failure: Failure | None) -> Result:
    """Write the terminal line, then hand out the result.

    Where the line cannot be written the log stays open for this request, and the next process that opens it
    closes it the same way as the result says here.
    """
    begun_s = time.perf_counter()
    notes = scrub("\n".join(f"note: {note}" for note in passage.notes), passage.secrets)
    text = f"{observation.text}\n{notes}" if notes else observation.text
    observation = replace(
        observation,
        text=text,
        provenance=f"{passage.tool.qualified_name}@{passage.tool.contract.version}" if passage.tool else "",
        operation_id=observation.operation_id or (passage.bound.operation_id if passage.executing else ""),
        redacted=MARK in text,
        latency_s=time.perf_counter() - passage.started_s,
    )
    try:
        passage.pipeline.audit.append(passage.request.id, "terminal", _fields(passage, observation))
    except RecordError as error:
        passage.record(Step.COMMIT, False, str(error), begun_s)
        code = "unknown_outcome" if passage.executing else "cancelled"
        lost = Failure(code, "the record of the call could not be written")
        return result(passage, observe(passage, lost), lost)
    passage.record(Step.COMMIT, True, str(observation.outcome), begun_s)
    return result(passage, observation, failure)


def tell_listeners(passage: Passage, ended: Result) -> Result:
    """Tell the listeners how a request ended, and add to its result what they did; they hold up nobody but it."""
    if not passage.tool or not passage.pipeline.hooks:
        return ended
    event = passage.event(HookPoint.REQUEST_ENDED, failure=ended.failure, outcome=ended.outcome)
    return replace(ended, hooks=(*ended.hooks, *passage.pipeline.hooks.ended(event)))


def result(passage: Passage, observation: Observation, failure: Failure | None) -> Result:
    """The terminal result; it holds secrets in its call and operation alone."""
    hooked = passage.hooked
    if passage.secrets:
        hooked = [replace(trace, did=scrub(trace.did, passage.secrets)) for trace in hooked]
    return Result(
        passage.request.id,
        observation.outcome,
        observation,
        tuple(passage.trace),
        passage.told(failure) if failure else None,
        passage.call,
        passage.operation,
        passage.decision,
        tuple(hooked),
        passage.extraction.finish,
        passage.extraction.span,
    )


def _fields(passage: Passage, observation: Observation) -> dict[str, Any]:
    call, tool, decision = passage.call, passage.tool, passage.decision
    fields = {
        "actor": passage.request.actor,
        "outcome": observation.outcome,
        "code": observation.code,
        "executed": passage.executing,
        "raw": digest(passage.request.text),
        "raw_artefact": keep(passage, _raw_text(passage)),
        "tool": tool.qualified_name if tool else scrub(call.name, passage.secrets)[:200] if call else None,
        "contract": tool.contract.version if tool else None,
        "catalogue": [passage.snapshot.version, passage.snapshot.digest],
        "policy": [passage.policy.version, passage.policy.digest],
        "operation": passage.operation_digest,
        "decision": decision.record() if decision and not passage.announced else None,  # else it stands there already
        "observation": digest(observation.text),
        "artefact": observation.artefact or None,
        "operation_id": observation.operation_id or None,
        "duration_s": round(observation.latency_s, 6),
    }
    if passage.hooked:
        fields["hooks"] = [[trace.name, scrub(trace.did, passage.secrets)] for trace in passage.hooked]
    if passage.printed:
        fields["printed"] = keep(passage, scrub(passage.printed, passage.secrets))
    if passage.attempts > 1:
        fields["attempts"] = passage.attempts
    if observation.outcome == Outcome.BACKGROUND_ACCEPTED:
        fields["ours"] = tool.contract.background
    return fields


def _raw_text(passage: Passage) -> str:
    """The reply as it is kept: whole, or where it holds something secret, the call alone without it."""
    if passage.redacted and not passage.call:
        return "[not kept: the reply could not be parsed, and a tool of this catalogue redacts arguments]"
    if not passage.secrets:
        return passage.request.text
    # Not the reply itself: it may spell a value with other escapes, or repeat it in prose.
    return scrub(canonical_json({"name": passage.call.name, "arguments": passage.call.arguments}), passage.secrets)


def keep(passage: Passage, text: str) -> str:
    """Keep an artefact; a full disk loses the artefact, is said in the record, and never the result."""
    if len(text) > ARTEFACT_CHARS:
        text = f"{text[:ARTEFACT_CHARS]}\n[... cut: {len(text)} characters in all ...]"
    try:
        return passage.pipeline.audit.keep(text)
    except RecordError:
        return ""
