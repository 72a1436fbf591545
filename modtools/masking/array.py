"""Arrays: the index decides what an item must be, and whether another may come."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from modtools.masking.machine import BLANKS, Cell, Cells, Machine, Value

OPEN, CLOSE, COMMA = b"[],"


class Phase(IntEnum):
    """Where in the array: after [, after a comma, after an item."""

    OPENED = 0
    COMMA = 1
    ITEM = 2


OWN = {Phase.OPENED: frozenset([CLOSE]), Phase.COMMA: frozenset(), Phase.ITEM: frozenset([CLOSE, COMMA])}


class Array(Machine):
    """The data is (phase, blanks so far, items begun so far).

    Attributes:
        first: what the first items must be.
        rest: what all others must be.
        least, most: how many items; `most` is None for no bound.
    """

    def __init__(self, cells: Cells, blanks: int, first: Sequence[Value], rest: Value, least: int, most: int | None):
        self.cells, self.blanks = cells, blanks
        self.first, self.rest, self.least, self.most = first, rest, least, most
        self.opening = frozenset([OPEN])

    def is_possible(self) -> bool:
        """Whether some finite array fits, by what is known of the items so far."""
        needed = [*self.first[: self.least], *([self.rest] if self.least > len(self.first) else [])]
        return all(value.possible for value in needed) and (self.most is None or self.least <= self.most)

    def prune(self) -> None:
        """No item may begin that cannot be finished: the array ends before it."""
        ends = [i for i, value in enumerate(self.first) if not value.possible]
        ends += [len(self.first)] if not self.rest.possible else []
        ends += [self.most] if self.most is not None else []
        self.most = min(ends, default=None)
        # Without an upper bound, indices beyond this look all the same.
        self.counted = self.most if self.most is not None else max(len(self.first), self.least)

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        return (self.cells(self, (Phase.OPENED, 0, 0), below),) if byte == OPEN else ()

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        phase, blanks, count = cell.data
        if byte in BLANKS:
            return (self.cells(self, (phase, blanks + 1, count), cell.below),) if blanks < self.blanks else ()
        if byte == CLOSE and phase != Phase.COMMA:
            return (cell.below,) if count >= self.least else ()
        if count == self.most:
            return ()
        if phase == Phase.ITEM:
            return (self.cells(self, (Phase.COMMA, 0, count), cell.below),) if byte == COMMA else ()
        item, around = self.coming(cell)
        return item.begin(around, byte)

    def own(self, cell: Cell) -> frozenset[int]:
        return OWN[cell.data[0]]

    def coming(self, cell: Cell) -> tuple[Value, Cell] | None:
        phase, _, count = cell.data
        if phase == Phase.ITEM or count == self.most:
            return None
        item = self.first[count] if count < len(self.first) else self.rest
        return item, self.cells(self, (Phase.ITEM, 0, min(count + 1, self.counted)), cell.below)

    def room_for_blanks(self, cell: Cell) -> int:
        return self.blanks - cell.data[1]

    def describe(self, cell: Cell) -> str:
        where = {Phase.OPENED: "after [", Phase.COMMA: "after a comma", Phase.ITEM: "after an item"}
        return f"in an array of {cell.data[2]} items, {where[cell.data[0]]}"
