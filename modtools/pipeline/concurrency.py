"""Which calls may run beside each other: the three concurrency classes of a contract.

"parallel" runs beside anything; "exclusive_per_resource" beside calls for other resources; "exclusive" beside
no call that is not "parallel". Calls that must wait are served in the order in which they came, and each takes all
it needs at once: so none can starve, and no two can wait for each other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import takewhile

from modtools.contract import BoundCall, Operation, ToolContract, ToolFailure
from modtools.pipeline.handler import POLL_S


class Locks:
    """What the calls of one pipeline hold, and which of them wait."""

    def __init__(self):
        self._changed = threading.Condition()
        self._queue: list[Hold] = []  # those that hold and those that wait, as they came

    def hold(
        self, contract: ToolContract, operation: Operation, call: BoundCall
    ) -> AbstractContextManager[Hold | None]:
        """Wait until the call may run beside those that run, and hold what it needs for the length of the block.

        Names of resources are compared as they are: a tool that touches a folder and all that is in it must name
        all that is in it, or be "exclusive". One that names no resource counts as "exclusive".

        Args:
            contract: says the class; nobody waits longer than its `timeout_s`.
            operation: names the resources.
            call: ends the wait with its deadline, or when it is cancelled (asked every 20 ms).

        Yields:
            The Hold, or None for a call that needs none.

        Raises:
            ToolFailure: "busy" or "cancelled"; nothing was done.
        """
        if contract.concurrency == "parallel":
            return nullcontext()
        per_resource = contract.concurrency == "exclusive_per_resource"
        return self.take(operation.resources if per_resource else (), contract, call)

    @contextmanager
    def take(self, resources: Collection[str], contract: ToolContract, call: BoundCall) -> Iterator[Hold]:
        """Hold these resources, or all there are where none is named; otherwise as `hold`."""
        mine = Hold(self, frozenset(resources))
        with self._changed:
            self._queue.append(mine)
        try:
            ends_s = min(call.deadline_s, time.monotonic() + contract.timeout_s)
            while not self._comes_up(mine, min(POLL_S, ends_s - time.monotonic())):
                if call.cancelled():
                    raise ToolFailure("cancelled", "the call was cancelled before the tool ran")
                if time.monotonic() >= ends_s:
                    raise ToolFailure("busy", f"another call holds what {contract.name} needs")
            yield mine
        finally:
            mine.let_go()

    def _comes_up(self, mine: Hold, wait_s: float) -> bool:
        """Whether nothing that came earlier, holding or waiting, excludes this one; waits for that."""

        def is_free() -> bool:
            return not any(other.excludes(mine) for other in takewhile(lambda other: other is not mine, self._queue))

        with self._changed:
            return self._changed.wait_for(is_free, wait_s)

    def _count(self, hold: Hold, more: int) -> None:
        with self._changed:
            hold.shares += more
            if not hold.shares:
                self._queue.remove(hold)
                self._changed.notify_all()


class Hold:
    """What one call holds, until everybody who shares it has let go: the call, and a handler it left behind.

    Attributes:
        resources: their canonical names; none means all there are.
        shares: how many have to let go.
    """

    def __init__(self, locks: Locks, resources: frozenset[str]):
        self._locks, self.resources, self.shares = locks, resources, 1

    def share(self) -> None:
        """One more has to let go."""
        self._locks._count(self, +1)

    def let_go(self) -> None:
        """One fewer; the last one gives back what is held."""
        self._locks._count(self, -1)

    def excludes(self, other: Hold) -> bool:
        """Whether the two may not be held at once."""
        return not (self.resources and other.resources and self.resources.isdisjoint(other.resources))
