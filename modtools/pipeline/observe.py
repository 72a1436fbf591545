"""Normalising: a result or a failure becomes the bounded, redacted text the model sees.

Wherever the pipeline speaks, its words are the same on every surface. The text says what was wrong, where,
and what was expected; the switch `Wording` takes that away again for the ablation of chapter 7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from modtools.contract import Failure, Outcome, ToolResult
from modtools.pipeline.failures import FAILURES

# Terminal escapes, other controls and halves of characters carry nothing a model needs; newline and tab stay.
_CONTROLS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Wording:
    """Two of the four interface switches.

    Attributes:
        informative_errors: say what, where and what was expected; else only the outcome.
        result_header: begin a result with a line that sums it up; else show the body alone.
    """

    informative_errors: bool = True
    result_header: bool = True


# A call that was accepted, or done before, is no error.
_HEADS = {Outcome.SUCCESS: "ok", Outcome.BACKGROUND_ACCEPTED: "accepted"}


def failure_text(failure: Failure, outcome: Outcome, wording: Wording = Wording(), more: int = 0) -> str:
    """The observation of a failed call.

    Args:
        failure: what went wrong.
        outcome: how the request ended.
        wording: see `Wording`.
        more: how many further problems were found and are not listed.
    """
    if outcome in _HEADS:
        return _CONTROLS.sub("", f"{_HEADS[outcome]}: {failure.what}").replace("\n", " ")
    if not wording.informative_errors:
        return f"error: {outcome}"
    parts = [f"error: {outcome}/{failure.code}"]
    if failure.where:
        parts.append(f" at {failure.where}")
    parts.append(f": {failure.what}.")
    if failure.expected and outcome != Outcome.UNKNOWN_OUTCOME:  # there, nothing is to be sent before a look
        parts.append(f" Expected: {failure.expected}.")
    if more:
        parts.append(f" ({more} more {'problem' if more == 1 else 'problems'})")
    if outcome == Outcome.UNKNOWN_OUTCOME:
        parts.append(" It may or may not have been done: look before you try again.")
    elif FAILURES[failure.code].retryable:
        parts.append(" The same call may be tried again.")
    return _CONTROLS.sub("", "".join(parts)).replace("\n", " ")


def result_text(
    result: ToolResult, limit_chars: int, wording: Wording = Wording(), artefact: str = ""
) -> tuple[str, bool]:
    """The observation of a result.

    Args:
        result: of the handler.
        limit_chars: longest body shown, in characters.
        wording: see `Wording`.
        artefact: name under which the whole body is kept, mentioned when it is cut.

    Returns:
        (text, whether it was cut). Of a long body the first three quarters and the last quarter are shown.
    """
    body = _CONTROLS.sub("", result.body.replace("\r\n", "\n").replace("\r", "\n"))
    cut = len(body) > limit_chars
    if cut:
        tail = limit_chars // 4
        left_out = len(body) - limit_chars
        note = f"\n[... {left_out} of {len(body)} characters left out; the whole is kept as {artefact[:12]} ...]\n"
        body = body[: limit_chars - tail] + note + body[-tail:]
    summary = _CONTROLS.sub("", result.summary).replace("\n", " ")[:300]
    if result.next_page:
        body = f"{body.rstrip(chr(10))}\nmore: {_CONTROLS.sub('', result.next_page)[:300]}".lstrip("\n")
    if result.outcome not in _HEADS:  # never hidden by a switch: the model must see that it is not done
        head = (
            f"error: {result.outcome}/{result.code}: {summary}"
            if wording.informative_errors
            else f"error: {result.outcome}"
        )
        return f"{head}\n{body}".rstrip("\n"), cut
    if wording.result_header or result.outcome != Outcome.SUCCESS:
        return f"{_HEADS[result.outcome]}: {summary}\n{body}".rstrip("\n"), cut
    return (body.rstrip("\n") or "done"), cut
