"""Finite automata over characters: what a pattern, a length or a set of names means, before any bytes.

A state's row is a tuple of (first, last, target): the characters of that range lead to that state. Every automaton
is trimmed: from each of its states a text that it accepts can still be reached, so a prefix that is alive can be
finished. The empty language is the one automaton without transitions whose start does not accept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from modtools.masking import charset
from modtools.masking.budget import spend

Row = tuple[tuple[int, int, int], ...]
Label = Hashable | None


@dataclass(frozen=True)
class CharacterDFA:
    """A trimmed deterministic automaton; state 0 is the start. Equal ones share what is built upon them.

    Attributes:
        rows: for each state its transitions, sorted and disjoint.
        labels: for each state None where it does not accept, otherwise what kind of text it accepts (True, or a class).
    """

    rows: tuple[Row, ...]
    labels: tuple[Label, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.rows, self.labels))

    @property
    def is_empty(self) -> bool:
        return not self.rows[0] and self.labels[0] is None

    def label(self, text: str) -> Label:
        """The label of a text, None when it is refused."""
        state = 0
        for character in map(ord, text):
            targets = [target for first, last, target in self.rows[state] if first <= character <= last]
            if not targets:
                return None
            state = targets[0]
        return self.labels[state]

    @cached_property
    def counts(self) -> tuple[int | None, ...]:
        """For each state, how many accepted texts lie ahead; None where there is no end of them."""
        unknown = object()
        counts: list = [unknown] * len(self.rows)
        waiting = [{target for _, _, target in row} for row in self.rows]
        changed = True
        while changed:  # peel off the states all of whose successors are counted; what stays lies before a cycle
            changed = False
            for state, targets in enumerate(waiting):
                if counts[state] is unknown and all(counts[target] is not unknown for target in targets):
                    ahead = sum((last - first + 1) * counts[target] for first, last, target in self.rows[state])
                    counts[state] = ahead + (self.labels[state] is not None)
                    changed = True
        return tuple(None if count is unknown else count for count in counts)


def explore(start: Hashable, expand: Callable[[Hashable], tuple[Iterable, Label]], what: str) -> CharacterDFA:
    """The automaton reachable from `start`; expand(key) gives ((first, last, key), ...) in order and the label."""
    index, rows, labels = {start: 0}, [], []
    queue = [start]
    for key in queue:
        spend(1, what)
        transitions, label = expand(key)
        row: list[tuple[int, int, int]] = []
        for first, last, target in transitions:
            if target not in index:
                index[target] = len(queue)
                queue.append(target)
            if row and row[-1][1] + 1 == first and row[-1][2] == index[target]:
                first = row.pop()[0]
            row.append((first, last, index[target]))
        rows.append(row)
        labels.append(label)
    return _trim(rows, labels)


def _trim(rows: Sequence[Iterable[tuple[int, int, int]]], labels: Sequence[Label]) -> CharacterDFA:
    """Keeps the states from which an accepting one can be reached, and the start."""
    alive = _alive(rows, labels)
    kept = [state for state in range(len(rows)) if state in alive or state == 0]
    number = {state: i for i, state in enumerate(kept)}
    live = [tuple((a, b, number[t]) for a, b, t in rows[state] if t in alive) for state in kept]
    return CharacterDFA(tuple(live), tuple(labels[state] for state in kept))


def _alive(rows: Sequence[Iterable[tuple[int, int, int]]], labels: Sequence[Label]) -> set[int]:
    """The states from which an accepting one can be reached."""
    before: list[list[int]] = [[] for _ in rows]
    for state, row in enumerate(rows):
        for _, _, target in row:
            before[target].append(state)
    alive = {state for state, label in enumerate(labels) if label is not None}
    queue = list(alive)
    for state in queue:
        fresh = [earlier for earlier in before[state] if earlier not in alive]
        alive.update(fresh)
        queue += fresh
    return alive


def can_finish_within(dfa: CharacterDFA, ranges: charset.Ranges) -> bool:
    """Whether from every state some accepted text lies ahead that holds characters of the ranges only."""
    rows = [[t for t in row if charset.intersection(ranges, (t[:2],))] for row in dfa.rows]
    return len(_alive(rows, dfa.labels)) == len(rows)


def product(parts: Sequence[CharacterDFA], label: Callable[[tuple[Label, ...]], Label], what: str) -> CharacterDFA:
    """Runs several automata side by side over every text; `label` turns their labels (None: refused) into one."""

    def expand(key):
        rows = [part.rows[state] if state is not None else () for part, state in zip(parts, key)]
        cuts = sorted({cut for row in rows for first, last, _ in row for cut in (first, last + 1)})
        places, transitions = [0] * len(rows), []
        for first, after in itertools.pairwise(cuts):
            target = []
            for i, row in enumerate(rows):
                while places[i] < len(row) and row[places[i]][1] < first:
                    places[i] += 1
                inside = places[i] < len(row) and row[places[i]][0] <= first
                target.append(row[places[i]][2] if inside else None)
            if any(state is not None for state in target):
                transitions.append((first, after - 1, tuple(target)))
        labels = tuple(part.labels[state] if state is not None else None for part, state in zip(parts, key))
        return transitions, label(labels)

    return explore((0,) * len(parts), expand, what)


def intersect(parts: Sequence[CharacterDFA], what: str) -> CharacterDFA:
    """The texts that all parts accept; every text when there are no parts."""
    if len(parts) < 2:
        return parts[0] if parts else any_text()
    return product(parts, lambda labels: None if None in labels else True, what)


def unite(parts: Sequence[CharacterDFA], what: str) -> CharacterDFA:
    """The texts that some part accepts."""
    if len(parts) == 1:
        return parts[0]
    return product(parts, lambda labels: True if any(labels) else None, what)


def without(left: CharacterDFA, right: CharacterDFA, what: str) -> CharacterDFA:
    """The texts of `left` that `right` refuses, with their labels of `left`."""
    return product([left, right], lambda labels: None if labels[1] is not None else labels[0], what)


@lru_cache
def any_text() -> CharacterDFA:
    """Every text."""
    return CharacterDFA((tuple((first, last, 0) for first, last in charset.ANY),), (True,))


def lengths(least: int, most: int | None) -> CharacterDFA:
    """The texts of `least` to `most` characters; `most` is None for no bound."""
    last = least if most is None else most

    def expand(count):
        ahead = count + 1 if count < last else (count if most is None else None)
        return [(a, b, ahead) for a, b in charset.ANY] if ahead is not None else [], True if count >= least else None

    return explore(0, expand, f"a length of {least} to {most}")


def words(texts: Iterable[str]) -> CharacterDFA:
    """Exactly these texts."""
    texts = frozenset(texts)

    def expand(prefix):
        ahead = sorted({t[len(prefix)] for t in texts if len(t) > len(prefix) and t.startswith(prefix)})
        return [(ord(c), ord(c), prefix + c) for c in ahead], True if prefix in texts else None

    return explore("", expand, f"{len(texts)} given strings")
