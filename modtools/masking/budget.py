"""How much work compiling one grammar may cost: states and seconds, counted in one place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from modtools.errors import ModtoolsError

MAX_STATES = 50_000
MAX_SECONDS = 2.0  # of this thread on a processor, so that a busy machine refuses nothing more


class BudgetError(ModtoolsError):
    """Compiling a grammar would cost more states or time than one grammar may."""


class _Account:
    def __init__(self):
        self.states, self.deadline = 0, time.thread_time() + MAX_SECONDS


_account: ContextVar[_Account | None] = ContextVar("account", default=None)


@contextmanager
def budget() -> Iterator[None]:
    """Everything compiled inside is charged to one account; a budget inside a budget shares the outer one."""
    if _account.get() is not None:
        yield
        return
    token = _account.set(_Account())
    try:
        yield
    except RecursionError as error:
        raise BudgetError("nested too deeply to compile; make it flatter") from error
    finally:
        _account.reset(token)


def spend(states: int, on: str) -> None:
    """Charges `states` to the account that is open, if any.

    Raises:
        BudgetError: the account is empty, or its time is over.
    """
    account = _account.get()
    if account is None:
        return
    account.states += states
    if account.states > MAX_STATES:
        raise BudgetError(f"more than {MAX_STATES} states, the last for {on}; make its bounds smaller")
    if time.thread_time() > account.deadline:
        raise BudgetError(f"more than {MAX_SECONDS} s of work, at the end for {on}; make the schema smaller")
