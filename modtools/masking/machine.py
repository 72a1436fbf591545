"""The parts of a pushdown automaton: cells of a stack, and machines that say what a byte does to the topmost cell.

A configuration is a cell: a machine, that machine's own data, and the cell below. When a value is complete its cell
is dropped, and the cell below goes on. Equal cells are one object, so comparing and caching them costs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Any

from modtools.masking.byte_automaton import DEAD, ByteAutomaton, json_string
from modtools.masking.dfa import any_text

BLANKS = frozenset(b" \t\n\r")
EVERY_BYTE = frozenset(range(256))
FREE_STRING = json_string(any_text())  # shared by all grammars, so a vocabulary is split for it once


class Cell:
    """One frame of the stack, with all frames below it."""

    __slots__ = ("below", "data", "machine")

    def __init__(self, machine: Machine, data: Any, below: Cell | None):
        self.machine, self.data, self.below = machine, data, below


class Cells:
    """The cells that exist: equal ones are made once."""

    MAX = 200_000

    def __init__(self):
        self._known: dict[tuple, Cell] = {}

    def __call__(self, machine: Machine, data: Hashable, below: Cell | None) -> Cell:
        key = (machine, data, below)
        cell = self._known.get(key)
        if cell is None:
            if len(self._known) > self.MAX:
                self._known.clear()  # only sharing is lost
            cell = self._known[key] = Cell(machine, data, below)
        return cell


class Machine:
    """What all machines answer. Compared by identity.

    Attributes:
        opening: the bytes with which a value may begin.
    """

    opening: frozenset[int]

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        """The cells after the first byte of a value, put upon `below`; none where the byte cannot begin it."""
        raise NotImplementedError

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        """The cells after one more byte."""
        raise NotImplementedError

    def legal(self, cell: Cell) -> frozenset[int]:
        """The bytes that may follow; others certainly may not."""
        raise NotImplementedError

    def unfold(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells it stands for: itself, or all that may come next where it is but a place between two parts."""
        return (cell,)

    def room_for_blanks(self, cell: Cell) -> int:
        """How many blanks may stand here, between two parts of a document; 0 inside a part."""
        return 0

    def is_complete(self, cell: Cell) -> bool:
        """Whether the whole document may end here."""
        return False

    def describe(self, cell: Cell) -> str:
        """The state in words."""
        raise NotImplementedError


class Scalar(Machine):
    """A value that a byte automaton reads; the data is its state."""

    def __init__(self, cells: Cells, automaton: ByteAutomaton, name: str):
        self.cells, self.automaton, self.name = cells, automaton, name
        self.opening = automaton.legal(0)

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        return self._after(self.automaton.row(0)[byte], below)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        state = cell.data
        after = self._after(self.automaton.row(state)[byte], cell.below)
        if self.automaton.labels[state] is not None:
            after += cell.below.machine.step(cell.below, byte)
        return after

    def _after(self, state: int, below: Cell) -> tuple[Cell, ...]:
        if state == DEAD:
            return ()
        return (below if self.automaton.is_final(state) else self.cells(self, state, below),)

    def legal(self, cell: Cell) -> frozenset[int]:
        own = self.automaton.legal(cell.data)
        if self.automaton.labels[cell.data] is not None:
            own |= cell.below.machine.legal(cell.below)
        return own

    def is_complete(self, cell: Cell) -> bool:
        return self.automaton.labels[cell.data] is not None and cell.below.machine.is_complete(cell.below)

    def describe(self, cell: Cell) -> str:
        return f"inside {self.name}"


class CountedString(Machine):
    """Any string of `least` to `most` characters; the data is (state, characters begun so far).

    Characters are counted, not unrolled. Without an upper bound the count stops at `least`.
    """

    def __init__(self, cells: Cells, least: int, most: int | None):
        self.cells, self.least, self.most = cells, least, most
        self.automaton, self.opening = FREE_STRING, frozenset(b'"')

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        state = self.automaton.row(0)[byte]
        return () if state == DEAD else (self.cells(self, (state, 0), below),)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        state, count = cell.data
        after = self.automaton.row(state)[byte]
        if after == DEAD:
            return ()
        if self.automaton.labels[after] is not None:
            return (cell.below,) if count >= self.least else ()
        if self.automaton.boundary[state]:
            if count == self.most:
                return ()
            count = count + 1 if self.most is not None else min(count + 1, self.least)
        return (self.cells(self, (after, count), cell.below),)

    def legal(self, cell: Cell) -> frozenset[int]:
        return EVERY_BYTE

    def describe(self, cell: Cell) -> str:
        if (self.least, self.most) == (0, None):
            return "inside a string"
        bounds = f"{self.least} to {self.most}" if self.most is not None else f"at least {self.least}"
        return f"inside a string of {bounds} characters, {cell.data[1]} counted"


class Value:
    """What may stand at one place of a document: one of some machines. Filled, then pruned, by the compiler.

    Attributes:
        alternatives: the machines.
        possible: whether any finite document stands for it.
    """

    def __init__(self, name: str):
        self.name = name
        self.alternatives: list[Machine] = []
        self.possible = False

    @cached_property
    def opening(self) -> frozenset[int]:
        """The bytes with which the value may begin, and blanks before it; asked for after pruning only."""
        return BLANKS.union(*(machine.opening for machine in self.alternatives))

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        """The cells after the first byte of the value."""
        return tuple(cell for machine in self.alternatives for cell in machine.begin(below, byte))


class Root(Machine):
    """The document around the value; the data is (whether the value was read, blanks so far)."""

    def __init__(self, cells: Cells, value: Value, blanks: int):
        self.cells, self.value, self.blanks = cells, value, blanks

    def cell(self, read: bool) -> Cell:
        """The lowest cell, before the value or after it."""
        return self.cells(self, (read, 0), None)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        read, blanks = cell.data
        if byte in BLANKS:
            if blanks < self.blanks:
                return (self.cells(self, (read, blanks + 1), None),)
            return ()
        return () if read else self.value.begin(self.cell(True), byte)

    def legal(self, cell: Cell) -> frozenset[int]:
        return BLANKS if cell.data[0] else self.value.opening

    def room_for_blanks(self, cell: Cell) -> int:
        return self.blanks - cell.data[1]

    def is_complete(self, cell: Cell) -> bool:
        return cell.data[0]

    def describe(self, cell: Cell) -> str:
        return "after the value" if cell.data[0] else "before the value"
