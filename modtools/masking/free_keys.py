"""Keys that a schema does not declare: which there may be, and how many are left."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from modtools.masking.budget import spend
from modtools.masking.byte_automaton import DEAD, ByteAutomaton, json_string
from modtools.masking.dfa import CharacterDFA, Label, product, without, words
from modtools.masking.machine import Value

SCARCE = 1_000  # so many keys ahead may be used up


def bounded_keys(dfa: CharacterDFA, values: Mapping[object, Value]) -> FreeKeys:
    """Keys of which, after some prefixes, only finitely many are left."""
    automaton = json_string(dfa, one_spelling=True)

    def is_scarce(key) -> bool:
        return key[0] != "character" or (dfa.counts[key[1]] is not None and dfa.counts[key[1]] <= SCARCE)

    automaton.is_scarce = is_scarce
    return FreeKeys(automaton, values, bounded=True)


def how_many(dfa: CharacterDFA, label: Label, names: Iterable[str]) -> int | None:
    """How many keys of one class there are beside those with these names; None where there is no end of them."""
    keys = product([dfa], lambda labels: True if labels[0] == label else None, "the keys of an object")
    return without(keys, words(names), "the keys of an object").counts[0]


@dataclass(frozen=True, eq=False)
class FreeKeys:
    """The keys that are not declared.

    Attributes:
        automaton: JSON strings, labelled by the class of the key.
        values: what the value of a key must be, by the class.
        bounded: some prefixes can be continued in finitely many ways only, so each step looks whether one is left;
            then the automaton knows one spelling for each key, and no declared key.
    """

    automaton: ByteAutomaton
    values: Mapping[object, Value]
    bounded: bool

    def is_left(self, state: int, spelled: bytes, used: frozenset[str]) -> bool:
        """Whether a key is left that begins so and is not used."""
        if not self.bounded or not used:
            return True
        return self._left(state, spelled, used, 1) > 0

    def count(self, used: frozenset[str], most: int) -> int:
        """How many keys are left, counted up to `most`."""
        return self._left(0, b"", used, most) if self.bounded else most

    def _left(self, state: int, spelled: bytes, used: frozenset[str], most: int) -> int:
        ahead = itertools.islice(self._endings(state), len(used) + most)
        return min(most, sum(decoded(spelled + ending) not in used for ending in ahead))

    def _endings(self, state: int) -> Iterator[bytes]:
        """The spelled rests of keys from a state, the shortest first."""
        queue = [(self._distance[state], 0, state, b"")]
        while queue:
            _, _, at, spelled = heapq.heappop(queue)
            if self.automaton.labels[at] is not None:
                yield spelled
            for byte, target in enumerate(self.automaton.row(at)):
                if target != DEAD:
                    length = len(spelled) + 1
                    entry = (length + self._distance[target], -length, target, spelled + bytes([byte]))
                    heapq.heappush(queue, entry)

    @cached_property
    def _distance(self) -> list[int]:
        """For each state the fewest bytes to the end of a key."""
        rows, state = [], 0
        while state < len(self.automaton.keys):
            spend(1, "the keys of an object")
            rows.append({target for target in self.automaton.row(state) if target != DEAD})
            state += 1
        before: list[list[int]] = [[] for _ in rows]
        for state, targets in enumerate(rows):
            for target in targets:
                before[target].append(state)
        queue = [state for state, label in enumerate(self.automaton.labels) if label is not None]
        distance = dict.fromkeys(queue, 0)
        for state in queue:
            fresh = [earlier for earlier in before[state] if earlier not in distance]
            distance |= dict.fromkeys(fresh, distance[state] + 1)
            queue += fresh
        return [distance[state] for state in range(len(rows))]


def decoded(spelled: bytes) -> str:
    """The text of a JSON string, quotes included."""
    if b"\\" not in spelled:  # as it mostly is, and json.loads takes ten times as long
        return spelled[1:-1].decode()
    return json.loads(spelled.decode())
