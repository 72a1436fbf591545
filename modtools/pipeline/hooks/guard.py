"""The guard around foreign code: its own thread, its time, its exceptions, and the calls that it makes itself.

A thread cannot be killed. One that outlives its time is left behind: what it returns later is thrown away, and it
can no longer get anything executed.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from modtools.contract import Failure


class Breach(Exception):
    """Foreign code did not keep to its contract; the text is ours and quotes no value."""


class Refused(Exception):
    """`proceed` will not go on; carries the failure."""

    def __init__(self, failure: Failure):
        self.failure = failure
        super().__init__(failure.what)


@dataclass(frozen=True)
class Ended:
    """How a piece of foreign code ended.

    Attributes:
        value: what it returned.
        problem: why that is worth nothing, e.g. "broke with ValueError", or "".
        reentered: whether the problem is that it called what it guards.
        duration_s: seconds it took itself, without what `proceed` took.
    """

    value: Any = None
    problem: str = ""
    reentered: bool = False
    duration_s: float = 0.0

    @property
    def code(self) -> str:
        """The name of the problem in the failure table."""
        return "reentrant_call" if self.reentered else "hook_failed"


class UnderWay:
    """A hook under way. Its thread, and every thread that inherits the context, sees this very object, so a call
    in there can mark it, and the mark is read outside whatever the hook makes of that call's result."""

    def __init__(self, hook: Any):
        self.hook, self.reentered = hook, False


_UNDER_WAY: contextvars.ContextVar[tuple[UnderWay, ...]] = contextvars.ContextVar("hooks_under_way", default=())


def mark_reentry(hook: Any) -> bool:
    """Whether this hook is under way around us; if so, it is marked as having called itself."""
    entries = [entry for entry in _UNDER_WAY.get() if entry.hook is hook]
    for entry in entries:
        entry.reentered = True
    return bool(entries)


def is_under_way(hook: Any) -> bool:
    """Whether this hook is under way around us."""
    return any(entry.hook is hook for entry in _UNDER_WAY.get())


def run_guarded(hook: Any, timeout_s: float, work: Callable[..., Any], serve: Callable[[], Any] | None = None) -> Ended:
    """Run one piece of foreign code.

    Args:
        hook: on whose behalf; known as under way meanwhile.
        timeout_s: seconds it has, without what `serve` takes.
        work: runs in a thread of its own with a copy of the context; gets `proceed` where there is `serve`.
        serve: what `proceed` does, in the caller's thread; raises Refused where it will not.

    Returns:
        How it ended; an exception of `work` never leaves this function, one of `serve` does, except Refused,
        which `work` gets.
    """
    if mark_reentry(hook):
        return Ended(problem="would be entered again by a call of its own", reentered=True)
    entry, line = UnderWay(hook), _Line()
    work = partial(work, line.proceed) if serve else work
    context = contextvars.copy_context()
    context.run(_UNDER_WAY.set, (*_UNDER_WAY.get(), entry))
    begun, served_s = time.monotonic(), 0.0

    def ended(value: Any = None, problem: str = "") -> Ended:
        problem = "called what it stands before" if entry.reentered else problem
        return Ended(value, problem, entry.reentered, time.monotonic() - begun - served_s)

    try:
        threading.Thread(target=context.run, args=(line.answer, work), name="hook", daemon=True).start()
    except RuntimeError:
        return ended(problem="could not be given a thread")
    try:
        while True:
            left_s = timeout_s - (time.monotonic() - begun - served_s)
            try:
                message = line.inbox.get(timeout=max(left_s, 0))
            except queue.Empty:
                return ended(problem=f"gave no answer within {timeout_s:g} s")
            if isinstance(message, tuple):
                return ended(*message)
            serving = time.monotonic()
            broken = entry.reentered and Refused(Failure("reentrant_call", "the hook called what it stands before"))
            message.put(broken or line.served(serve, message))
            served_s += time.monotonic() - serving
    finally:
        line.close()


class _Line:
    """Between the caller's thread and the foreign one: requests to proceed, and at last (value, problem)."""

    def __init__(self):
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._lock, self._closed = threading.Lock(), False

    def answer(self, work: Callable[[], Any]) -> None:
        """Run the work; in the foreign thread."""
        try:
            ended = work(), ""
        except (Breach, Refused) as ours:
            ended = None, str(ours)
        except BaseException as error:  # SystemExit too; by type only, for the text may hold what nobody may see
            ended = None, f"broke with {type(error).__name__[:64]}"
        self.inbox.put(ended)

    def proceed(self) -> Any:
        """Have the caller go on, and wait for what comes of it; in the foreign thread."""
        reply: queue.SimpleQueue = queue.SimpleQueue()
        with self._lock:
            if self._closed:
                raise _too_late()
            self.inbox.put(reply)
        value = reply.get()
        if isinstance(value, Refused):
            raise value
        return value

    def served(self, serve: Callable[[], Any], reply: queue.SimpleQueue) -> Any:
        """What a request to proceed is answered with; in the caller's thread."""
        try:
            return serve()
        except Refused as refused:
            return refused
        except BaseException:  # the caller's own trouble, an interrupt for instance: nobody is left waiting
            reply.put(_too_late())
            raise

    def close(self) -> None:
        """From now on nothing goes on."""
        with self._lock:
            self._closed = True
        while not self.inbox.empty():
            message = self.inbox.get()
            if not isinstance(message, tuple):
                message.put(_too_late())


def _too_late() -> Refused:
    return Refused(Failure("hook_failed", "the hook's time is over"))
