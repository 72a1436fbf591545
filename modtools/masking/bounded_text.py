"""Texts with a pattern and a length together, when all their pairs of states would be too many to write down.

A state is (state of the pattern, characters so far). It is alive when a text of a permitted length still lies ahead;
for that it is enough to know, for each state of the pattern, the lengths of the texts ahead of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from modtools.masking.budget import spend
from modtools.masking.dfa import CharacterDFA, Label, Row


class BoundedText:
    """Answers as a CharacterDFA does, with rows that appear when they are asked for.

    Args:
        pattern: the automaton of the pattern.
        least, most: bounds of the length, in characters.
    """

    def __init__(self, pattern: CharacterDFA, least: int, most: int):
        self._pattern, self._least, self._most = pattern, least, most
        self._ahead = _lengths_ahead(pattern, most)
        self._index: dict[tuple[int, int], int] = {}
        self._known: list[tuple[int, int]] = []
        self.labels: list[Label] = []
        self.rows = _Rows(self._row)
        self.is_empty = not self._is_alive(0, 0)
        self._state(0, 0)

    def _is_alive(self, state: int, count: int) -> bool:
        first, last = max(0, self._least - count), self._most - count
        return last >= first and bool(self._ahead[state] >> first & ((1 << last - first + 1) - 1))

    def _state(self, state: int, count: int) -> int:
        if (state, count) not in self._index:
            self._index[state, count] = len(self._known)
            self._known.append((state, count))
            self.labels.append(self._pattern.labels[state] if self._least <= count <= self._most else None)
        return self._index[state, count]

    def _row(self, index: int) -> Row:
        state, count = self._known[index]
        row = self._pattern.rows[state]
        return tuple((a, b, self._state(t, count + 1)) for a, b, t in row if self._is_alive(t, count + 1))


class _Rows(Sequence):
    def __init__(self, make):
        self._make, self._made = make, {}

    def __getitem__(self, index: int) -> Row:
        if index not in self._made:
            self._made[index] = self._make(index)
        return self._made[index]

    def __len__(self) -> int:
        return len(self._made)


def _lengths_ahead(pattern: CharacterDFA, most: int) -> list[int]:
    """For each state a bit mask: bit n is set when a text of n characters, at most `most`, lies ahead of it."""
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
