"""Strings of a bounded length: characters are counted beside the automaton, not unrolled into its states.

A configuration is (state of the automaton, characters begun so far). It is alive when a text of a permitted length
still lies ahead; for that it is enough to know, for each state, the lengths of the texts ahead of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from modtools.masking.budget import spend
from modtools.masking.byte_automaton import DEAD, json_string
from modtools.masking.dfa import CharacterDFA
from modtools.masking.machine import FREE_STRING, Cell, Cells, Machine

if TYPE_CHECKING:
    from modtools.masking.split import Split


class CountedString(Machine):
    """A string of `least` to `most` characters, of a pattern or any; the data is (state, characters begun so far).

    Without an upper bound, which a pattern must have here, the count stops at `least`.
    """

    def __init__(self, cells: Cells, least: int, most: int | None, pattern: CharacterDFA | None = None):
        self.cells, self.least, self.most = cells, least, most
        self.automaton = FREE_STRING if pattern is None else json_string(pattern)
        self.opening = frozenset(b'"')
        self._ahead = None if pattern is None else _lengths_ahead(pattern, most)
        self._lengths: dict[int, int] = {}
        self._windows: WeakKeyDictionary[Split, tuple] = WeakKeyDictionary()  # a vocabulary drops splits

    def is_empty(self) -> bool:
        """Whether there is no such string."""
        return not self.is_alive(self.automaton.row(0)[ord('"')], 0)

    def lengths(self, state: int) -> int:
        """How many characters may begin from a state to the end: bit n is set where n may."""
        if state not in self._lengths:
            kind, *rest = self.automaton.keys[state]
            if kind == "closed":
                lengths = 1
            elif kind == "character":
                lengths = self._ahead[rest[0]]
            else:
                lengths = 0
                for target in {target for target in self.automaton.row(state) if target != DEAD}:
                    lengths |= self.lengths(target)
            self._lengths[state] = lengths
        return self._lengths[state]

    def is_alive(self, state: int, count: int) -> bool:
        """Whether a text of a permitted length lies ahead of a state, after so many characters."""
        if self.most is not None and count > self.most:
            return False
        if self._ahead is None:
            return True
        first, last = max(0, self.least - count), self.most - count
        return last >= first and bool(self.lengths(state) >> first & ((2 << last - first) - 1))

    def fits(self, parts: Split, count: int) -> np.ndarray:
        """Which of the tokens that stay leave it alive, after so many characters; shape (n,) bool."""
        if parts not in self._windows:
            states = np.flatnonzero(np.bincount(parts.ends))
            lengths = [self.lengths(state) for state in states.tolist()]
            fewest, most, gaps = (np.zeros(states.max(initial=-1) + 1, dtype=np.int64) for _ in range(3))
            fewest[states] = [(bits & -bits).bit_length() - 1 for bits in lengths]
            most[states] = [bits.bit_length() - 1 for bits in lengths]
            gaps[states] = [bits.bit_count() <= bits.bit_length() - (bits & -bits).bit_length() for bits in lengths]
            gaping = np.flatnonzero(gaps[parts.ends]).tolist()
            self._windows[parts] = fewest[parts.ends], most[parts.ends], gaping
        fewest, most, gaping = self._windows[parts]
        fits = (parts.begun + fewest <= self.most - count) & (parts.begun + most >= self.least - count)
        for i in gaping:
            fits[i] = self.is_alive(int(parts.ends[i]), count + int(parts.begun[i]))
        return fits

    def start(self, below: Cell) -> Cell:
        return self.cells(self, (0, 0), below)

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        return self.start(below).after(byte)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        state, count = cell.data
        after = self.automaton.row(state)[byte]
        if after == DEAD:
            return ()
        if self.automaton.labels[after] is not None:
            return (cell.below,) if count >= self.least else ()
        count += self.automaton.boundary[state]
        if not self.is_alive(after, count):
            return ()
        return (self.cells(self, (after, count if self.most is not None else min(count, self.least)), cell.below),)

    def own(self, cell: Cell) -> frozenset[int]:
        return self.automaton.legal(cell.data[0])

    def describe(self, cell: Cell) -> str:
        bounds = f"{self.least} to {self.most}" if self.most is not None else f"at least {self.least}"
        pattern = "" if self._ahead is None else " with a pattern"
        return f"inside a string{pattern} of {bounds} characters, {cell.data[1]} counted"


def _lengths_ahead(pattern: CharacterDFA, most: int) -> list[int]:
    """For each state of a pattern a bit mask: bit n is set when a text of n characters, at most `most`, lies ahead."""
    targets = [{t for _, _, t in row} for row in pattern.rows]
    now = frozenset(state for state, label in enumerate(pattern.labels) if label is not None)
    ahead = [0] * len(targets)
    for length in range(most + 1):
        for state in now:
            ahead[state] |= 1 << length
        before = frozenset(state for state, after in enumerate(targets) if after & now)
        if before == now:  # and so for all greater lengths
            rest = ((1 << most + 1) - 1) >> length << length
            return [mask | rest if state in now else mask for state, mask in enumerate(ahead)]
        spend(1 + len(now) // 8, "a string with a pattern and a length")
        now = before
    return ahead
