"""What the tokens of a vocabulary do inside one byte automaton, whatever lies around it.

Some tokens stay inside: whether they are allowed depends on the automaton's state only, so it is found out once for
all documents and schemas. The others leave: their first bytes complete the text, and their rest (modtools.masking.
rests) must please what comes next.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from modtools.masking.byte_automaton import DEAD, ByteAutomaton
from modtools.masking.rests import Rests
from modtools.masking.vocabulary import Vocabulary

NOTHING = np.zeros(0, dtype=np.intp)
KEPT_BYTES = 150_000_000  # of splits a vocabulary keeps
MANY = 1 / 16  # of the tokens of a vocabulary: beyond this a set of tokens is quicker as booleans


@dataclass(eq=False)
class Split:
    """The tokens below one node of the trie, read from one state of an automaton.

    Attributes:
        starts: the prefixes one byte below the node: by depth their places in the vocabulary's levels[depth].
        ids: the tokens that stay inside, shape (n,).
        begun: how many characters of a JSON string begin in each of those, where they are counted; shape (n,).
        ends: the states in which they end, shape (n,).
        left: for each rest the state in which its token leaves before it, DEAD where it does not; shape (E,).
        left_begun: how many characters begin in the token before the rest, shape (E,).
        scarce: the tokens that stay where few ways may be left to go on, by their place among the sorted tokens.
    """

    vocabulary: Vocabulary
    automaton: ByteAutomaton
    rests: Rests
    starts: dict[int, np.ndarray]
    ids: np.ndarray
    begun: np.ndarray
    ends: np.ndarray
    left: np.ndarray
    left_begun: np.ndarray
    scarce: list[int]

    @cached_property
    def stay(self) -> np.ndarray | None:
        """The tokens that stay as booleans, shape (V,); None where they are few."""
        if len(self.ids) < MANY * len(self.vocabulary):
            return None
        stay = np.zeros(len(self.vocabulary), dtype=bool)
        stay[self.ids] = True
        return stay

    @cached_property
    def begun_in(self) -> np.ndarray:
        """`begun` by token id, shape (V,)."""
        begun_in = np.zeros(len(self.vocabulary), dtype=np.uint16)
        begun_in[self.ids] = self.begun
        return begun_in

    @cached_property
    def longest(self) -> int:
        """The most characters that begin in any of the tokens that stay."""
        return int(self.begun.max(initial=0))

    def since(self, words: np.ndarray) -> np.ndarray:
        """For some tokens below the node, by their place among the sorted tokens, where in them the node ends."""
        since = np.full(len(words), -1)
        for depth, places in self.starts.items():
            level = self.vocabulary.levels[depth]
            where = np.searchsorted(level.first, words, side="right") - 1
            since[(level.after[where] > words) & np.isin(where, places)] = depth
        return since

    @cached_property
    def insides(self) -> dict[int, bytes]:
        """For each rest before which its token leaves, the bytes read until then."""
        leaving = np.flatnonzero(self.left != DEAD)
        since = self.since(self.rests.word[leaving])
        return {rest: self.rests.inside(rest, at) for rest, at in zip(leaving.tolist(), since.tolist())}

    @cached_property
    def plain(self) -> list[tuple[int, np.ndarray]]:
        """The states in which tokens leave, each with the rests that touch no other key, shape (E,) bool."""
        states = np.unique(self.left[self.left != DEAD]).tolist()
        return [(state, (self.left == state) & ~self._touches_another_key) for state in states]

    @cached_property
    def two_keys(self) -> list[int]:
        """The rests that touch another key."""
        return np.flatnonzero((self.left != DEAD) & self._touches_another_key).tolist()

    @property
    def _touches_another_key(self) -> np.ndarray:
        """Where keys may be used up a comma is enough, for it asks whether one is left; else the key's last quote."""
        return self.rests.has_another_key if self.automaton.is_scarce is None else self.rests.has_comma

    @cached_property
    def rests_by_text(self) -> dict[str, list[int]]:
        """The same rests by the text read until then, of a JSON string that was between two characters."""
        found: dict[str, list[int]] = {}
        for rest, inside in self.insides.items():
            found.setdefault(json.loads(b'"' + inside), []).append(rest)
        return found

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return 2 * self.ids.nbytes + self.left.nbytes + 3 * len(self.vocabulary) * (self.stay is not None)


class Splits:
    """The splits that a vocabulary keeps: those used last, up to KEPT_BYTES.

    Attributes:
        wanted: (automaton, node, state) of which a walk turned out to be long.
    """

    def __init__(self):
        self.wanted: set[Hashable] = set()
        self._known: dict[Hashable, Split] = {}
        self._bytes = 0

    def __call__(
        self, vocabulary: Vocabulary, node, automaton: ByteAutomaton, state: int, rests: Rests, is_counted: bool = False
    ) -> Split:
        """The split of the tokens below a node, from a state; characters are counted only where asked for."""
        key = (automaton, node, state, rests, is_counted)
        found = self._known.get(key)
        if found is None:
            found = _split(vocabulary, node, automaton, state, rests, is_counted)
            self._bytes += found.nbytes
            while self._bytes > KEPT_BYTES and self._known:
                self._bytes -= self._known.pop(next(iter(self._known))).nbytes
                self.wanted.clear()
        else:
            del self._known[key]  # the one used last is dropped last
        self._known[key] = found
        return found


class _Reading:
    """Reads the tokens below a node level by level: all prefixes of one length are advanced with one gather.

    States are numbered as by ByteAutomaton.advance. While many prefixes of a level are alive all are carried along,
    side by side as they lie; then only those that are; and the last few are read byte by byte.
    """

    CROWD = 1 / 6  # of the prefixes of a level
    FEW = 16  # prefixes

    def __init__(self, vocabulary: Vocabulary, automaton: ByteAutomaton, these: Rests, is_counted: bool):
        self.vocabulary, self.automaton, self.rests, self.is_counted = vocabulary, automaton, these, is_counted
        self.words, self.begun, self.ends = [NOTHING], [NOTHING], [NOTHING]
        self.left = np.full(len(these.token), DEAD, dtype=np.int32)
        self.left_begun = np.zeros(len(these.token), dtype=np.uint16)

    def run(self, starts: dict[int, np.ndarray], start: int) -> None:
        """Reads everything below some prefixes, from one state of the automaton."""
        if len(starts) == 1:
            ((depth, places),) = starts.items()
            if len(places) and places[-1] - places[0] == len(places) - 1:
                self.crowd(depth, int(places[0]), int(places[-1]) + 1, start + 1)
                return
        prefixes = before = counts = NOTHING
        for depth in range(min(starts, default=0), max(starts, default=-1) + 1):
            fresh = starts.get(depth, NOTHING)
            prefixes = np.concatenate([prefixes, fresh])
            order = np.argsort(prefixes)
            before = np.concatenate([before, np.full(len(fresh), start + 1)])[order]
            counts = np.concatenate([counts, np.zeros(len(fresh), dtype=np.intp)])[order]
            prefixes, before, counts = self.step(depth, prefixes[order], before, counts)
        self.alive(depth + 1, prefixes, before, counts)

    def crowd(self, depth: int, begin: int, end: int, start: int) -> None:
        """Reads a range of prefixes that lie side by side, dead ones included, until few are alive."""
        before, counts = np.full(end - begin, start), np.zeros(end - begin, dtype=np.intp)
        while end > begin:
            level = self.vocabulary.levels[depth]
            states = self.automaton.advance(before, level.byte[begin:end])
            if np.count_nonzero(states) < self.CROWD * (end - begin):
                alive = np.flatnonzero(states)
                self.alive(depth, alive + begin, before[alive], counts[alive])
                return
            counts = self.count(before, states, counts)
            ends = level.ends[slice(*np.searchsorted(level.ends, (begin, end)))]
            self.note_ends(level.token[ends], states[ends - begin], counts[ends - begin])
            numbers, where = self.rests.by_cut.get(depth + 1, (NOTHING, NOTHING))
            inside = slice(*np.searchsorted(where, (begin, end)))
            self.note_rests(numbers[inside], where[inside] - begin, states, counts)
            above, begin, end = begin, int(level.child[begin]), int(level.child[end])
            depth += 1
            if end > begin:
                parent = self.vocabulary.levels[depth].parent[begin:end] - above
                before, counts = states.take(parent), counts.take(parent) if self.is_counted else parent

    def alive(self, depth: int, prefixes: np.ndarray, before: np.ndarray, counts: np.ndarray) -> None:
        """Reads some prefixes until they are dead or few."""
        while len(prefixes) > self.FEW:
            prefixes, before, counts = self.step(depth, prefixes, before, counts)
            depth += 1
        for prefix, state, count in zip(prefixes.tolist(), before.tolist(), counts.tolist()):
            level = self.vocabulary.levels[depth]
            for word in range(int(level.first[prefix]), int(level.after[prefix])):
                self.word(word, depth, state - 1, count)

    def step(self, depth: int, prefixes: np.ndarray, before: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
        """One level further: the prefixes below, the states before their last byte, the characters begun."""
        level = self.vocabulary.levels[depth]
        states = self.automaton.advance(before, level.byte[prefixes])
        alive = np.flatnonzero(states)
        prefixes, states = prefixes[alive], states[alive]
        counts = self.count(before[alive], states, counts[alive])
        token = level.token[prefixes]
        ended = np.flatnonzero(token >= 0)
        self.note_ends(token[ended], states[ended], counts[ended])
        numbers, where = self.rests.by_cut.get(depth + 1, (NOTHING, NOTHING))
        at = np.searchsorted(prefixes, where)
        found = np.flatnonzero(prefixes.take(at, mode="clip") == where) if len(prefixes) else NOTHING
        self.note_rests(numbers[found], at[found], states, counts)
        first = level.child[prefixes]
        size = level.child[prefixes + 1] - first
        above = np.repeat(np.arange(len(first)), size)
        below = (first - np.cumsum(size) + size).take(above) + np.arange(len(above))
        return below, states.take(above), counts.take(above) if self.is_counted else above

    def count(self, before: np.ndarray, states: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The characters begun, the last byte included; nothing that means anything where they are not counted."""
        if not self.is_counted:
            return counts
        is_boundary, is_complete, _ = self.automaton.flags()
        return counts + (is_boundary[before] & ~is_complete[states])

    def note_ends(self, words: np.ndarray, states: np.ndarray, counts: np.ndarray) -> None:
        """Notes the tokens that end in some states and stay inside."""
        is_over = self.automaton.flags()[2]
        stay = np.flatnonzero(~is_over[states] if self.automaton.is_quoted else states)
        self.words.append(words[stay])
        self.begun.append(counts[stay])
        self.ends.append(states[stay] - 1)

    def note_rests(self, numbers: np.ndarray, at: np.ndarray, states: np.ndarray, counts: np.ndarray) -> None:
        """Notes before which rests a text is complete; `at` says where in `states` each rest begins."""
        leaves = np.flatnonzero(self.automaton.flags()[1][states[at]])
        numbers, at = numbers[leaves], at[leaves]
        self.left[numbers], self.left_begun[numbers] = states[at] - 1, counts[at]

    def word(self, word: int, depth: int, state: int, count: int) -> None:
        """Reads one token from its byte number `depth` on."""
        automaton, text = self.automaton, self.vocabulary.sorted_tokens[word]
        for at in range(depth, len(text)):
            after = automaton.row(state)[text[at]]
            if after == DEAD:
                return
            is_complete = automaton.labels[after] is not None
            count += automaton.boundary[state] and not is_complete
            if is_complete:
                for rest in self.rests.at.get((word, at + 1), ()):
                    self.left[rest], self.left_begun[rest] = after, count
            state = after
        one = np.array([word]), np.array([state + 1]), np.array([count])
        self.note_ends(*one)


def _split(vocabulary: Vocabulary, node, automaton: ByteAutomaton, start: int, rests: Rests, is_counted: bool) -> Split:
    reading = _Reading(vocabulary, automaton, rests, is_counted)
    starts = node.prefixes()
    reading.run(starts, start)
    words, ends = np.concatenate(reading.words), np.concatenate(reading.ends).astype(np.int32)
    scarce = []
    if automaton.is_scarce is not None:
        few = [state for state in np.unique(ends).tolist() if automaton.is_scarce(automaton.keys[state])]
        scarce = words[np.isin(ends, few)].tolist()
    ids, which = vocabulary.with_twins(words)
    begun = np.concatenate(reading.begun).astype(np.uint16)
    return Split(
        vocabulary, automaton, rests, starts, ids, begun[which], ends[which], reading.left, reading.left_begun, scarce
    )
