"""The allowed set of a state: the tokens after whose bytes a document can still be finished.

Where few bytes may follow (punctuation, a key, a literal) the trie of the vocabulary is walked in Python. Where many
may follow (inside a string, a number with its thousand tokens) the tokens are split once for the automaton's state:
those that stay inside, and those that leave, whose rests must please the cell below.
"""

from __future__ import annotations

import numpy as np

from modtools.masking.blanks import spaced
from modtools.masking.byte_automaton import DEAD
from modtools.masking.counted import CountedString
from modtools.masking.free_keys import SCARCE
from modtools.masking.grammar import State
from modtools.masking.machine import FREE_STRING, Cell, Scalar
from modtools.masking.network import Network
from modtools.masking.object import FreeKey
from modtools.masking.rests import QUOTED, Rests, rests
from modtools.masking.split import Splits
from modtools.masking.vocabulary import Vocabulary

WIDE_BYTES = 16  # a state is wide when more bytes than this may follow in it
WIDE_TOKENS = 48  # and below this many tokens a walk is quicker than a split
FEW_IDS = 16  # beyond these an array is quicker than a list
MOST_STEPS = 300  # of a walk through one text, before it is split instead
ANOTHER_KEY = "\udfff"  # stands for a free key that was read inside a token; no key can be spelled like this


def text_tokens(state: State, vocabulary: Vocabulary) -> np.ndarray:
    """The tokens, end-of-sequence aside, whose bytes the grammar can read from a state; shape (V,) bool."""
    walk = _Walk(vocabulary, can_split=True)
    for cell in state.cells:
        walk.below(cell, vocabulary.root)
    return walk.mask()


def readable(vocabulary: Vocabulary, cell: Cell, these: Rests) -> np.ndarray:
    """The rests that the grammar can read from a cell, as numbers in `these`, shape (n,); kept with the cell."""
    if these not in cell.memo:
        walk = _Walk(vocabulary, can_split=False)
        walk.at((cell,), these.root)
        cell.memo[these] = np.concatenate([np.array(walk.ids, dtype=np.intp), *walk.some])
    return cell.memo[these]


class _Walk:
    """Collects what is allowed below some nodes: single ids, arrays of ids, and arrays of booleans.

    Args:
        can_split: whether the nodes are those of the vocabulary's trie, not of a trie of rests.
    """

    def __init__(self, vocabulary: Vocabulary, can_split: bool):
        if vocabulary.splits is None:
            vocabulary.splits = Splits()
        self.vocabulary, self.splits, self.can_split = vocabulary, vocabulary.splits, can_split
        self.ids: list[int] = []
        self.some: list[np.ndarray] = []
        self.many: list[np.ndarray] = []
        self.base: np.ndarray | None = None  # one of the last kind that is ours to write in

    def mask(self) -> np.ndarray:
        """What was collected, shape (V,) bool."""
        if self.base is None:
            self.base = self.many.pop().copy() if self.many else np.zeros(len(self.vocabulary), dtype=bool)
        mask = self.base
        for further in self.many:
            mask |= further
        for ids in self.some:
            mask[ids] = True
        mask[self.ids] = True
        return mask

    def at(self, cells: tuple[Cell, ...], node) -> None:
        """Allows the token that ends at a node, and those below that can be read on from a cell."""
        if cells:
            self.ids += node.ids
            if not node.is_leaf:
                for cell in cells:
                    self.below(cell, node)

    def below(self, cell: Cell, node) -> None:
        """Allows the tokens below a node that can be read on from a cell."""
        machine = cell.machine
        if isinstance(machine, Scalar):
            self.scalar(machine, cell.data, cell.below, node)
            return
        if isinstance(machine, Network):
            for before in machine.unfold(cell):
                self.below(before, node)
            return
        if self.can_split and node.size >= WIDE_TOKENS:
            if isinstance(machine, CountedString) and cell.data[0]:
                self.counted(cell, node)
                return
            if isinstance(machine, FreeKey) and _is_wide_key(cell):
                self.free_key(cell, node)
                return
        room = machine.room_for_blanks(cell)
        if room:
            node = spaced(self.vocabulary, node, room)
            if len(node.ids) > FEW_IDS:
                self.some.append(node.array)
            else:
                self.ids += node.ids
        coming = machine.coming(cell)
        if coming is not None:
            self.value(*coming, node)
        own, children = machine.own(cell), node.children
        for byte in own if len(own) < len(children) else own & children.keys():
            child = children.get(byte)
            if child is not None:
                self.at(cell.after(byte), child)

    def value(self, value, around: Cell, node) -> None:
        """Allows the tokens below a node that begin a value."""
        for machine in value.alternatives:
            start = machine.start(around)
            if start is not None:
                self.below(start, node)
                continue
            for byte in machine.opening:
                child = node.children.get(byte)
                if child is not None:
                    self.at(machine.begin(around, byte), child)

    def scalar(self, machine: Scalar, start: int, around: Cell, node) -> None:
        """The same inside a text that an automaton reads: no cell is made before the text is complete."""
        automaton, is_alive = machine.automaton, machine.filter(around)
        may_split = self.can_split and is_alive is None
        stack, steps, wanted = [(start, node)], 0, self.splits.wanted
        while stack:
            state, at = stack.pop()
            label = automaton.labels[state]
            if label is not None:
                self.below(machine.completed(around, label), at)
            row, legal, children = automaton.row(state), automaton.legal(state), at.children
            if may_split and at.size >= WIDE_TOKENS:
                if len(legal) > WIDE_BYTES or (automaton, at, state) in wanted:
                    self.split_scalar(machine, state, around, at)
                    continue
                if steps > MOST_STEPS:
                    wanted.add((automaton, node, start))
            for byte in legal if len(legal) < len(children) else children:
                child = children.get(byte)
                target = row[byte]
                if child is not None and target != DEAD and (is_alive is None or is_alive(target)):
                    steps += 1
                    self.ids += child.ids
                    if not child.is_leaf:
                        stack.append((target, child))

    def split_scalar(self, machine: Scalar, state: int, around: Cell, node) -> None:
        """The same by a split."""
        automaton = machine.automaton
        these = rests(self.vocabulary, QUOTED if automaton.is_quoted else around.machine.legal(around))
        parts = self.splits(self.vocabulary, node, automaton, state, these)
        if parts.stay is None:
            self.some.append(parts.ids)
        else:
            self.many.append(parts.stay)
        numbers = readable(self.vocabulary, around, these)
        self.some.append(these.token[numbers[parts.left[numbers] != DEAD]])

    def counted(self, cell: Cell, node) -> None:
        """Tokens inside a string whose characters are counted."""
        machine, (state, count) = cell.machine, cell.data
        these = rests(self.vocabulary, QUOTED)
        parts = self.splits(self.vocabulary, node, machine.automaton, state, these, is_counted=True)
        room = parts.longest if machine.most is None else machine.most - count
        if machine.automaton is not FREE_STRING:
            self.some.append(parts.ids[machine.fits(parts, count)])
        elif parts.stay is None:
            self.some.append(parts.ids[parts.begun <= room])
        else:
            self.many.append(parts.stay if parts.longest <= room else parts.stay & (parts.begun_in <= room))
        numbers = readable(self.vocabulary, cell.below, these)
        numbers = numbers[parts.left[numbers] != DEAD]
        begun = parts.left_begun[numbers]
        fits = begun >= machine.least - count
        if machine.most is not None:
            fits &= begun <= room
        self.some.append(these.token[numbers[fits]])

    def free_key(self, cell: Cell, node) -> None:
        """Tokens inside a free key: all but those that complete a key which is declared or was used.

        Where few keys are left, or a token completes two keys, the token is tried by itself.
        """
        owner, waiting = cell.machine.owner, cell.below
        these = rests(self.vocabulary, QUOTED)
        parts = self.splits(self.vocabulary, node, owner.free.automaton, cell.data[0], these)
        staying = np.zeros(len(self.vocabulary), dtype=bool) if parts.stay is None else parts.stay.copy()
        if parts.stay is None:
            staying[parts.ids] = True
        taken = {*cell.machine.clashing(cell, parts)}
        for state, is_left in parts.plain:
            around = owner.after_free(waiting, ANOTHER_KEY, owner.free.automaton.labels[state])
            numbers = readable(self.vocabulary, around, these)
            numbers = numbers[is_left[numbers]]
            if taken:
                numbers = [number for number in numbers.tolist() if number not in taken]
            self.some.append(these.token[numbers])
        tried = [int(these.word[rest]) for rest in parts.two_keys if rest not in taken]
        tried += parts.scarce if waiting.data[3] else []
        for word, since in zip(tried, parts.since(np.array(tried, dtype=np.int64)).tolist()) if tried else ():
            fits = _reads(cell, self.vocabulary.sorted_tokens[word][since:])
            staying[self.vocabulary.ids_of[word]] = fits
        if self.base is None:
            self.base = staying
        else:
            self.many.append(staying)


def _reads(cell: Cell, text: bytes) -> bool:
    """Whether the grammar can read a text from a cell."""
    cells = {cell}
    for byte in text:
        cells = {after for at in cells for after in at.after(byte)}
    return bool(cells)


def _is_wide_key(cell: Cell) -> bool:
    return not cell.machine.owner.free.bounded or len(cell.below.data[3]) < SCARCE
