"""The allowed set of a state: the tokens after whose bytes a document can still be finished.

A narrow cell (punctuation, a key) is walked byte by byte through the trie of the vocabulary. A wide cell (inside a
string, a number) has its tokens split once: those that stay inside are one array, those that leave are walked from
the cell below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from modtools.masking.blanks import runs
from modtools.masking.free_keys import SCARCE
from modtools.masking.grammar import State
from modtools.masking.machine import BLANKS, Cell, CountedString, Scalar
from modtools.masking.object import FreeKey
from modtools.masking.split import Rest, Split, split
from modtools.masking.trie import Node
from modtools.masking.vocabulary import Vocabulary

WIDE_BYTES = 16  # a cell is wide when more bytes than this may follow in it
WIDE_TOKENS = 48  # and below this many tokens a walk is quicker than a split
ANOTHER_KEY = "\udfff"  # stands for a free key that was read inside a token; no key can be spelled like this


def text_tokens(state: State, vocabulary: Vocabulary) -> np.ndarray:
    """The tokens, end-of-sequence aside, whose bytes the grammar can read from a state; shape (V,) bool."""
    mask = np.zeros(len(vocabulary), dtype=bool)
    _Walk(vocabulary, mask).below(state, vocabulary.root)
    return mask


class _Walk:
    """Sets the allowed tokens of one state in one mask."""

    def __init__(self, vocabulary: Vocabulary, mask: np.ndarray):
        self.vocabulary, self.mask = vocabulary, mask

    def below(self, state: State, node: Node) -> None:
        """Allows the tokens below a node that the grammar can read on from a state."""
        if len(state.cells) > 1:
            for cell in state.cells:
                self.below(state.only({cell}), node)
            return
        (cell,) = state.cells
        if node.size >= WIDE_TOKENS and _is_wide(cell):
            self.wide(state, cell, node)
            return
        legal, children = state.legal(), node.children
        room = cell.machine.room_for_blanks(cell)
        spaced = runs(self.vocabulary, node) if room else None
        if spaced is not None:
            self.mask[spaced.ids[spaced.lengths <= room]] = True
            legal = legal - BLANKS
        for byte in legal if spaced is not None or len(legal) < len(children) else children:
            child = children.get(byte)
            further = spaced.nodes.get(byte, ()) if spaced is not None else ()
            after = state.step(byte) if child is not None or further else None
            if after is None:
                continue
            if child is not None:
                self.at(after, child)
            for length, spaced_child in further:
                if length <= room:
                    self.at(after, spaced_child)

    def at(self, state: State, node: Node) -> None:
        """Allows the token that ends at a node, and those below that the grammar can read on."""
        if node.token >= 0:
            self.mask[self.vocabulary.ids_of[node.token]] = True
        if node.begin < node.end:
            self.below(state, node)

    def wide(self, state: State, cell: Cell, node: Node) -> None:
        """The same for one wide configuration of the state."""
        machine = cell.machine
        if isinstance(machine, FreeKey):
            parts = split(self.vocabulary, node, machine.owner.free.automaton, cell.data[0])
            self.free_key(state, cell, node, parts)
        elif isinstance(machine, CountedString):
            parts = split(self.vocabulary, node, machine.automaton, cell.data[0])
            self.counted(state, cell, parts)
        else:
            parts = split(self.vocabulary, node, machine.automaton, cell.data)
            self.mask |= parts.stay
            around = state.only({cell.below})
            for rest in parts.leave.values():
                self.rests(around, rest, lambda rest: rest.ids)
            if machine.automaton.labels[cell.data] is not None:
                self.below(around, node)

    def counted(self, state: State, cell: Cell, parts: Split) -> None:
        """Tokens inside a string whose characters are counted."""
        machine, (_, count) = cell.machine, cell.data
        left = parts.longest if machine.most is None else machine.most - count
        self.mask |= parts.stay if parts.longest <= left else parts.stay & (parts.begun <= left)
        owed = machine.least - count

        def fitting(rest: Rest) -> np.ndarray:
            if owed <= 0 and machine.most is None:
                return rest.ids
            most = np.iinfo(np.int64).max if machine.most is None else left
            return rest.ids[(rest.begun >= owed) & (rest.begun <= most)]

        for rest in parts.leave.values():
            self.rests(state.only({cell.below}), rest, fitting)

    def free_key(self, state: State, cell: Cell, node: Node, parts: Split) -> None:
        """Tokens inside a free key: all but those that complete a key which is declared or was used.

        Where few keys are left, or a token completes two keys, the token is tried by itself.
        """
        owner, waiting = cell.machine.owner, cell.below
        by_trial = {*parts.two_keys, *(parts.scarce if waiting.data[3] else ())}
        doubtful = sorted({*cell.machine.clashing(cell, parts), *by_trial})
        before = self.mask[doubtful]
        self.mask |= parts.stay
        for label, rest in parts.leave.items():
            around = state.only({owner.after_free(waiting, ANOTHER_KEY, label)})
            self.rests(around, rest, lambda rest: rest.ids)
        self.mask[doubtful] = before
        alone = state.only({cell})
        for token_id in by_trial:
            self.mask[token_id] |= alone.read(self.vocabulary.tokens[token_id][node.depth :]) is not None

    def rests(self, state: State, rest: Rest, fitting: Callable[[Rest], np.ndarray]) -> None:
        """Allows the tokens that leave, where the grammar can read their rest from a state."""
        if rest.leavers:
            self.mask[fitting(rest)] = True
        legal, children = state.legal(), rest.children
        for byte in legal if len(legal) < len(children) else children:
            child = children.get(byte)
            after = state.step(byte) if child is not None else None
            if after is not None:
                self.rests(after, child, fitting)


def _is_wide(cell: Cell) -> bool:
    machine = cell.machine
    if isinstance(machine, FreeKey):
        return not machine.owner.free.bounded or len(cell.below.data[3]) < SCARCE
    if isinstance(machine, Scalar):
        return len(machine.automaton.legal(cell.data)) > WIDE_BYTES
    return isinstance(machine, CountedString)
