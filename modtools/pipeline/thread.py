"""A handler in a thread of this process: quick to start, and impossible to stop.

A thread that has finished waits for the next handler. One whose time is over is left behind: its late result is
thrown away, and whether its effect takes place stays open.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from modtools.contract import BoundCall, Effect, Failure, Operation, Tool
from modtools.pipeline.concurrency import Hold
from modtools.pipeline.handler import POLL_S, Execution, carry_out, why_give_up

_FIRST_WAIT_S = 0.002  # most handlers end within it, and nobody has to be asked
_KEPT_THREADS = 16

_idle: list[_Runner] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # the threads do not live on in a fork


class _Runner(threading.Thread):
    """A thread that carries out one piece of work after the other; it is in `_idle` while it has none."""

    def __init__(self):
        super().__init__(name="tool", daemon=True)
        self.jobs: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        kept = True
        while kept:
            work, ended = self.jobs.get()
            value = work()
            if kept := len(_idle) < _KEPT_THREADS:
                _idle.append(self)  # before the result is out, so that the next call finds it
            ended.put(value)
            del work, ended, value  # an idle thread keeps nobody's context alive


def run_in_thread(
    tool: Tool, operation: Operation, context: object, call: BoundCall, ends_s: float, hold: Hold | None
) -> Execution:
    """Run a handler in a thread, in a copy of the caller's context variables.

    A handler that takes the call and asks `cancelled` is told True from the moment it has been given up.

    Args:
        tool, operation, context, call: as for `execute`.
        ends_s: when to give it up, on the clock of `time.monotonic`.
        hold: shared with the thread, which keeps it until a handler with effects has ended, left behind or not.
    """
    given_up = threading.Event()
    arguments = (operation, context)
    if tool.takes_call:
        arguments += (replace(call, cancelled=lambda: given_up.is_set() or call.cancelled()),)
    variables, ended = contextvars.copy_context(), SimpleQueue()
    # What only reads does no harm behind the back of others.
    shared = hold if operation.effect != Effect.READ else None

    def work() -> Execution:
        try:
            return variables.run(carry_out, tool.contract.name, tool.handler, arguments)
        finally:
            if shared:
                shared.let_go()

    try:
        runner = _idle_runner()
    except RuntimeError:
        no_thread = Failure("unavailable", f"no thread could be started for {tool.contract.name}")
        return Execution(failure=no_thread, declared=True)
    if shared:
        shared.share()
    runner.jobs.put((work, ended))
    wait_s = _FIRST_WAIT_S
    try:
        while True:
            try:
                return ended.get(timeout=max(0.0, min(wait_s, ends_s - time.monotonic())))
            except Empty:
                failure = why_give_up(tool.contract, call, ends_s)
            if failure:
                return Execution(failure=failure, left_behind=True)
            wait_s = POLL_S
    finally:
        given_up.set()


def _idle_runner() -> _Runner:
    try:
        return _idle.pop()
    except IndexError:
        return _Runner()
