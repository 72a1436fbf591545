"""The parts of a pushdown automaton: cells of a stack, and machines that say what a byte does to the topmost cell.

A configuration is a cell: a machine, that machine's own data, and the cell below. When a value is complete its cell
is dropped, and the cell below goes on. Equal cells are one object, so comparing and caching them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

from modtools.masking.byte_automaton import DEAD, ByteAutomaton, json_string
from modtools.masking.dfa import Label, any_text

BLANKS = frozenset(b" \t\n\r")
FREE_STRING = json_string(any_text())  # shared by all grammars, so a vocabulary is split for it once


class Cell:
    """One frame of the stack, with all frames below it.

    Attributes:
        memo: what was found out about this cell: by a byte the cells after it, and whatever others put there.
    """

    __slots__ = ("below", "data", "machine", "memo")

    def __init__(self, machine: Machine, data: Any, below: Cell | None):
        self.machine, self.data, self.below = machine, data, below
        self.memo: dict = {}

    def after(self, byte: int) -> tuple[Cell, ...]:
        """The cells after one more byte."""
        found = self.memo.get(byte)
        if found is None:
            found = self.memo[byte] = self.machine.step(self, byte)
        return found


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

    def start(self, below: Cell) -> Cell | None:
        """The cell before the first byte of a value, put upon `below`; None where the first byte is the only one."""
        return None

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        """The cells after the first byte of a value, put upon `below`; none where the byte cannot begin it."""
        raise NotImplementedError

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        """The cells after one more byte; ask the cell, which remembers."""
        raise NotImplementedError

    def own(self, cell: Cell) -> frozenset[int]:
        """The bytes that this machine itself may read next, blanks aside; others it certainly may not."""
        raise NotImplementedError

    def coming(self, cell: Cell) -> tuple[Value, Cell] | None:
        """The value that may begin here, and the cell it is put upon."""
        return None

    def legal(self, cell: Cell) -> frozenset[int]:
        """The bytes that may follow; others certainly may not."""
        legal, coming = self.own(cell), self.coming(cell)
        if coming is not None:
            legal |= coming[0].opening
        return legal | BLANKS if self.room_for_blanks(cell) else legal

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

    def filter(self, below: Cell) -> Callable[[int], bool] | None:
        """Says of the automaton's states whether the value can be finished from there; None where it always can."""
        return None

    def completed(self, below: Cell, label: Label) -> Cell:
        """The cell after a value of this label."""
        return below

    def start(self, below: Cell) -> Cell:
        return self.cells(self, 0, below)

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        return self._after(self.automaton.row(0)[byte], below)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        state = cell.data
        after = self._after(self.automaton.row(state)[byte], cell.below)
        label = self.automaton.labels[state]
        return after if label is None else after + self.completed(cell.below, label).after(byte)

    def _after(self, state: int, below: Cell) -> tuple[Cell, ...]:
        is_alive = self.filter(below)
        if state == DEAD or (is_alive is not None and not is_alive(state)):
            return ()
        if self.automaton.is_final(state):
            return (self.completed(below, self.automaton.labels[state]),)
        return (self.cells(self, state, below),)

    def own(self, cell: Cell) -> frozenset[int]:
        own, label = self.automaton.legal(cell.data), self.automaton.labels[cell.data]
        if label is not None:
            around = self.completed(cell.below, label)
            own |= around.machine.legal(around)
        return own

    def is_complete(self, cell: Cell) -> bool:
        label = self.automaton.labels[cell.data]
        if label is None:
            return False
        around = self.completed(cell.below, label)
        return around.machine.is_complete(around)

    def describe(self, cell: Cell) -> str:
        return f"inside {self.name}"


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
        """The bytes with which the value may begin; asked for after pruning only."""
        return frozenset().union(*(machine.opening for machine in self.alternatives))

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
            return (self.cells(self, (read, blanks + 1), None),) if blanks < self.blanks else ()
        return () if read else self.value.begin(self.cell(True), byte)

    def own(self, cell: Cell) -> frozenset[int]:
        return frozenset()

    def coming(self, cell: Cell) -> tuple[Value, Cell] | None:
        return None if cell.data[0] else (self.value, self.cell(True))

    def room_for_blanks(self, cell: Cell) -> int:
        return self.blanks - cell.data[1]

    def is_complete(self, cell: Cell) -> bool:
        return cell.data[0]

    def describe(self, cell: Cell) -> str:
        return "after the value" if cell.data[0] else "before the value"
