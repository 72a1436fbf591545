"""One try of a handler: whatever it does, it ends in exactly one Execution.

The thread and the worker process call the same function, so a tool behaves the same in both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modtools.contract import BoundCall, Failure, Outcome, ToolContract, ToolFailure, ToolResult

POLL_S = 0.02  # how often a caller who waits is asked whether the call was cancelled


@dataclass(frozen=True)
class Execution:
    """How a handler ended: with a result, or with a failure.

    Attributes:
        result: what it returned, or None.
        failure: why there is no result, or None.
        declared: whether nothing was done: the handler declined before any effect, or never began.
        attempts: how often it was tried.
        printed: what it wrote to standard output and standard error, where it ran in a process of its own.
        left_behind: whether its thread still ran when it was given up.
    """

    result: ToolResult | None = None
    failure: Failure | None = None
    declared: bool = False
    attempts: int = 1
    printed: str = ""
    left_behind: bool = False


def carry_out(name: str, handler: Callable[..., Any], arguments: tuple[Any, ...]) -> Execution:
    """Call a handler once.

    Args:
        name: of the tool.
        handler: see `modtools.contract.Tool`.
        arguments: the operation, the context and, where the handler takes it, the call.

    Returns:
        An Execution. Its result is a copy, with data as JSON gives them back, so that nothing the handler still
        holds can change it. Nothing the handler raises leaves this function.
    """
    try:
        try:
            result = handler(*arguments)
        except ToolFailure as declined:
            said = declined.failure
            failure = Failure(str(said.code), str(said.what), str(said.where), str(said.expected))
            return Execution(failure=failure, declared=True)
    except BaseException as error:  # SystemExit of a handler must not look like an end without a result
        # The type only: an exception's text may hold what the model must not see.
        return Execution(failure=Failure("crash", f"{name} broke with {type_name(error)}"))
    if not issubclass(type(result), ToolResult):
        what = f"{name} returned {type_name(result)} where a ToolResult was due"
        return Execution(failure=Failure("result_wrong_shape", what))
    try:
        return Execution(result=_copy(result))
    except BaseException as error:  # the parts of a result may be objects of the handler's own making
        what = f"the result of {name} is not made of text and JSON: taking it broke with {type_name(error)}"
        return Execution(failure=Failure("result_wrong_shape", what))


def why_give_up(contract: ToolContract, call: BoundCall, ends_s: float) -> Failure | None:
    """Why a handler that still runs is not waited for any longer, or None.

    Args:
        contract: of its tool.
        call: asked whether it was cancelled.
        ends_s: when its time is over, on the clock of `time.monotonic`.
    """
    if call.cancelled():
        return Failure("cancelled", "the call was cancelled while the tool ran")
    if time.monotonic() < ends_s:
        return None
    within = "before the deadline of the call" if ends_s == call.deadline_s else f"within {contract.timeout_s:g} s"
    return Failure("timeout", f"{contract.name} gave no result {within}", expected="a smaller piece of work")


def type_name(value: object) -> str:
    """The name of a value's type, asked in a way that no class can answer for itself."""
    return type.__dict__["__name__"].__get__(type(value))


def _copy(result: ToolResult) -> ToolResult:
    texts = (result.summary, result.body, result.code, result.operation_id, result.next_page)
    summary, body, code, operation_id, next_page = map(str.__str__, texts)
    data = json.loads(json.dumps(dict(result.data), allow_nan=False)) if result.data else {}
    return ToolResult(summary, body, data, Outcome(result.outcome), code, operation_id, next_page)
