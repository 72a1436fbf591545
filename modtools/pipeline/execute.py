"""Execution: a handler runs under its contract, and ends in exactly one of a result, a declared failure, or a fault.

Where it runs is the contract's word: in a thread of this process, which can only be left behind when its time is
over (`thread`), or in a process of its own, which is ended with everything it started (`process`).
"""

from __future__ import annotations

import time
from dataclasses import replace

from modtools.contract import BoundCall, Effect, Failure, Operation, Tool, ToolContract
from modtools.pipeline.concurrency import Hold
from modtools.pipeline.failures import FAILURES
from modtools.pipeline.handler import POLL_S, Execution
from modtools.pipeline.process import run_in_process
from modtools.pipeline.thread import run_in_thread

_GRACE_S = 2.0  # a handler in a thread, whose own child has the same limit, may report the timeout itself
_BACK_OFF_S, _LONGEST_BACK_OFF_S = 0.05, 1.0


def execute(tool: Tool, operation: Operation, context: object, call: BoundCall, hold: Hold | None = None) -> Execution:
    """Run one handler under the contract's time limit, and again where the contract allows it.

    A try that failed is made again, after a pause that doubles, where the same call may be sent again (see
    `FAILURES`) and either nothing was done yet or doing it twice does no harm: the contract is idempotent or only
    reads. All tries and pauses together have `timeout_s`, so that none begins beside a thread whose time
    is over, and none begins after the call's deadline.

    Args:
        tool: contract and handler.
        operation: the canonical operation to carry out; each try gets a copy of its own.
        context: bound by the caller (workspace, sandbox level). For a process it is pickled.
        call: its deadline, and `cancelled`, which is asked every 20 ms; True ends the wait.
        hold: what the call holds of `Locks`; a handler with effects that is left behind keeps it until it ends.

    Returns:
        An Execution; exceptions of the handler never leave this function.
    """
    contract, printed = tool.contract, ""
    in_thread = contract.runs == "in_process"
    tries_end_s = min(time.monotonic() + contract.timeout_s, call.deadline_s)
    ends_s = min(tries_end_s + _GRACE_S * in_thread, call.deadline_s)
    if time.monotonic() >= ends_s:
        over = Failure("timeout", f"the time of the call was over before {contract.name} ran")
        return Execution(failure=over, declared=True, attempts=0)
    for attempt in range(1, contract.retries + 2):
        mine = operation.copy()
        if in_thread:
            execution = run_in_thread(tool, mine, context, call, ends_s, hold)
        else:
            execution = run_in_process(tool, mine, context, call, ends_s)
        printed += execution.printed
        pause_s = min(_BACK_OFF_S * 2 ** (attempt - 1), _LONGEST_BACK_OFF_S)
        if (
            attempt > contract.retries
            or not _may_be_retried(execution, contract)
            or not _pause(pause_s, tries_end_s, call)
        ):
            break
    return execution if attempt == 1 else replace(execution, attempts=attempt, printed=printed)


def _may_be_retried(execution: Execution, contract: ToolContract) -> bool:
    if execution.failure is None or execution.failure.code == "cancelled":
        return False
    mode = FAILURES.get(execution.failure.code)
    harmless = execution.declared or contract.idempotent or contract.effect == Effect.READ
    return harmless and mode is not None and mode.retryable


def _pause(pause_s: float, ends_s: float, call: BoundCall) -> bool:
    """Wait; False, and no longer, where the call's time is over by then or it is cancelled."""
    until_s = time.monotonic() + pause_s
    if until_s >= ends_s:
        return False
    while (left_s := until_s - time.monotonic()) > 0:
        if call.cancelled():
            return False
        time.sleep(min(left_s, POLL_S))
    return not call.cancelled()
