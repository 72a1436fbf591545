"""Execution: a handler runs, and ends in exactly one of a result, a declared failure, or a named fault.

A handler runs in a thread, so that one that hangs does not hang the harness. A thread cannot be killed:
a late result is thrown away, and whether its effect took place stays open. Work that must be stoppable
(generated code, tests) runs as a process in the sandbox, which has its own limits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from modtools.contract import Failure, Operation, Tool, ToolFailure, ToolResult

_POLL_S = 0.02
_GRACE_S = 2.0  # a handler whose process has the same limit may report the timeout itself


@dataclass(frozen=True)
class Execution:
    """How a handler ended: with a result, or with a failure.

    Attributes:
        result: what it returned, or None.
        failure: why there is no result, or None.
        declared: whether the handler itself declined before any effect.
    """

    result: ToolResult | None = None
    failure: Failure | None = None
    declared: bool = False
    attempts: int = 1
    printed: str = ""


def execute(tool: Tool, operation: Operation, context: object, call) -> Execution:
    """Run one handler under the contract's time limit.

    Args:
        tool: contract and handler.
        operation: the canonical operation to carry out.
        context: bound by the caller (workspace, sandbox level).
        cancelled: asked every 20 ms; True ends the wait.

    Returns:
        An Execution; exceptions of the handler never leave this function.
    """
    ended: list[Execution] = []
    cancelled = call.cancelled
    done = threading.Event()

    def work() -> None:
        ended.append(_run(tool, operation, context, call))
        done.set()

    started = time.monotonic()
    limit_s = tool.contract.timeout_s + _GRACE_S
    threading.Thread(target=work, name=f"tool-{tool.contract.name}", daemon=True).start()
    while not done.wait(_POLL_S):
        if cancelled():
            return Execution(failure=Failure("cancelled", "the call was cancelled while the tool ran"))
        if time.monotonic() - started > limit_s:
            what = f"{tool.contract.name} gave no result within {tool.contract.timeout_s:g} s"
            return Execution(failure=Failure("timeout", what, expected="a smaller piece of work"))
    return ended[0]


def _run(tool: Tool, operation: Operation, context: object, call) -> Execution:
    try:
        result = tool.handler(operation, context, call) if tool.takes_call else tool.handler(operation, context)
    except ToolFailure as declined:
        return Execution(failure=declined.failure, declared=True)
    except BaseException as error:  # SystemExit of a handler must not look like an end without a result
        # The type only: an exception's text may hold what the model must not see. The audit has it all.
        return Execution(failure=Failure("crash", f"{tool.contract.name} broke with {type(error).__name__}"))
    if not isinstance(result, ToolResult):
        what = f"{tool.contract.name} returned {type(result).__name__} where a ToolResult was due"
        return Execution(failure=Failure("result_wrong_shape", what))
    return Execution(result=result)
