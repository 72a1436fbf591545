"""What the tokens of a vocabulary do inside one byte automaton, whatever lies around it.

Some tokens stay inside: whether they are allowed depends on the automaton's state only, so it is found out once for
all documents and schemas. The others leave: their first bytes complete the text, and the rest must please what comes
next. Distinct rests are few, so they are kept as a small trie with the tokens that share each rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from modtools.masking.byte_automaton import ByteAutomaton
from modtools.masking.machine import FREE_STRING
from modtools.masking.trie import Node
from modtools.masking.vocabulary import Vocabulary

_TWO_KEYS = re.compile(rb',[ \t\n\r]*"[^"]*"', re.DOTALL)

KEPT_BYTES = 100_000_000  # of splits a vocabulary keeps, most of it for their arrays of tokens that stay


@dataclass(frozen=True)
class Leaver:
    """A token that leaves: its id, its bytes before it leaves, and how many characters of a string begin in these."""

    token_id: int
    inside: bytes
    begun: int


@dataclass(eq=False)
class Rest:
    """A node of the trie of rests.

    Attributes:
        children: the rests one byte longer, by that byte.
        leavers: the tokens whose rest this is.
    """

    children: dict[int, Rest] = field(default_factory=dict)
    leavers: list[Leaver] = field(default_factory=list)

    @cached_property
    def ids(self) -> np.ndarray:
        """The ids of the leavers, shape (n,)."""
        return np.array([leaver.token_id for leaver in self.leavers], dtype=np.int64)

    @cached_property
    def begun(self) -> np.ndarray:
        """How many characters begin in each of them, shape (n,)."""
        return np.array([leaver.begun for leaver in self.leavers], dtype=np.int64)

    def below(self, rest: bytes) -> Rest:
        """The node of a longer rest, made if need be."""
        node = self
        for byte in rest:
            node = node.children.setdefault(byte, Rest())
        return node


@dataclass(eq=False)
class Split:
    """The tokens below one node of the trie, read from one state of an automaton.

    Attributes:
        stay: shape (V,) bool, the tokens that stay inside.
        begun: shape (V,), how many characters of a string begin in those; None in other automata.
        leave: by the label of the text that is completed, the rests of the tokens that leave.
        two_keys: the tokens whose rest closes another key of the same object.
        scarce: the tokens that stay where few ways may be left to go on.
    """

    stay: np.ndarray
    begun: np.ndarray | None
    leave: dict[Hashable, Rest]
    two_keys: list[int]
    scarce: list[int]

    @cached_property
    def longest(self) -> int:
        """The most characters that begin in any of the tokens that stay."""
        return int(self.begun.max(initial=0))

    @cached_property
    def leavers_by_inside(self) -> dict[bytes, list[int]]:
        """The ids of the tokens that leave, by their bytes before they leave."""
        found: dict[bytes, list[int]] = {}
        queue = list(self.leave.values())
        for rest in queue:
            queue += rest.children.values()
            for leaver in rest.leavers:
                found.setdefault(leaver.inside, []).append(leaver.token_id)
        return found

    @cached_property
    def leavers_by_text(self) -> dict[str, list[int]]:
        """The same by the text of a key that was read to a boundary before them, the quote left out."""
        found: dict[str, list[int]] = {}
        for inside, ids in self.leavers_by_inside.items():
            found.setdefault(json.loads(b'"' + inside), []).extend(ids)
        return found


def split(vocabulary: Vocabulary, node: Node, automaton: ByteAutomaton, state: int) -> Split:
    """Splits the tokens below `node`, whose bytes so far led to `state`; found once and kept with the vocabulary."""
    known, key = vocabulary.splits, (automaton, node, state)
    if key in known:
        known[key] = known.pop(key)  # the one used last is dropped last
    else:
        known[key] = _split(vocabulary, node, automaton, state)
        if len(known) * len(vocabulary) > KEPT_BYTES:
            del known[next(iter(known))]
    return known[key]


def _split(vocabulary: Vocabulary, node: Node, automaton: ByteAutomaton, start: int) -> Split:
    """Level by level: all live prefixes of one length are advanced with one gather."""
    is_counted = automaton is FREE_STRING
    stay = np.zeros(len(vocabulary.sorted_tokens), dtype=bool)
    begun = np.zeros(len(vocabulary.sorted_tokens), dtype=np.uint16)
    leave: dict[Hashable, Rest] = {}
    two_keys: list[int] = []
    scarce: list[int] = []
    depth = node.depth
    prefixes = np.arange(node.begin, node.end)
    before = np.full(len(prefixes), start)
    counts = np.zeros(len(prefixes), dtype=np.uint16)
    while len(prefixes):
        level = vocabulary.levels[depth]
        depth += 1
        states = automaton.advance(before, level.byte[prefixes])
        boundary = np.array(automaton.boundary)
        complete = np.array([label is not None for label in automaton.labels])
        alive = states >= 0
        before, prefixes, states, counts = before[alive], prefixes[alive], states[alive], counts[alive]
        counts = counts + (boundary[before] & ~complete[states])
        final = complete.copy()
        for state in np.unique(states[complete[states]]):
            final[state] = automaton.is_final(state)
        for i in np.flatnonzero(complete[states]):
            skip = 0 if final[states[i]] else int(level.token[prefixes[i]] >= 0)
            rests = leave.setdefault(automaton.labels[states[i]], Rest())
            for token in range(level.first[prefixes[i]] + skip, level.after[prefixes[i]]):
                word = vocabulary.sorted_tokens[token]
                for token_id in vocabulary.ids_of[token]:
                    leaver = Leaver(token_id, word[node.depth : depth], int(counts[i]))
                    rests.below(word[depth:]).leavers.append(leaver)
                    if _TWO_KEYS.search(word, depth):
                        two_keys.append(token_id)
        inside = ~final[states]
        prefixes, states, counts = prefixes[inside], states[inside], counts[inside]
        token = level.token[prefixes]
        stay[token[token >= 0]] = True
        if automaton.is_scarce is not None:
            few = np.array([automaton.is_scarce(key) for key in automaton.keys])
            scarce += [i for index in token[(token >= 0) & few[states]] for i in vocabulary.ids_of[index]]
        begun[token[token >= 0]] = counts[token >= 0]
        first, size = level.child[prefixes], level.child[prefixes + 1] - level.child[prefixes]
        before, counts = np.repeat(states, size), np.repeat(counts, size)
        prefixes = np.arange(len(before)) + np.repeat(first - (np.cumsum(size) - size), size)
    return Split(vocabulary.spread(stay), vocabulary.spread(begun) if is_counted else None, leave, two_keys, scarce)
