"""What a vocabulary cannot spell: states from which no sequence of its tokens leads to the end.

With a token for every byte that a grammar needs there are none, and this file is not used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from modtools.masking.budget import budget, spend
from modtools.masking.grammar import Grammar, State
from modtools.masking.vocabulary import Vocabulary


class Reach:
    """Searches through the tokens of one vocabulary, and remembers which states can be finished."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self._known: dict[State, bool] = {}

    @classmethod
    def of(cls, grammar: Grammar, vocabulary: Vocabulary) -> Reach:
        """The one for this grammar and vocabulary."""
        return grammar.reaches.setdefault(vocabulary, cls(vocabulary))

    def can_finish(self, state: State) -> bool:
        """Whether some tokens lead from a state to the end of a document.

        Raises:
            BudgetError: the search takes too long.
        """
        if state in self._known:
            return self._known[state]
        with budget():
            return self._search(state)

    def _search(self, state: State) -> bool:
        origin: dict[State, State | None] = {state: None}
        queue = [state]
        for at in queue:
            if at.is_accepting or self._known.get(at):
                found: State | None = at
                while found is not None:
                    self._known[found] = True
                    found = origin[found]
                return True
            spend(1, "the search for an end through tokens; a vocabulary with all single bytes needs none")
            for after in {after for _, after in self._tokens(at)}:
                if after not in origin and self._known.get(after) is not False:
                    origin[after] = at
                    queue.append(after)
        self._known |= dict.fromkeys(queue, False)
        return False

    def _tokens(self, state: State) -> Iterator[tuple[list[int], State]]:
        """The ids of the tokens that can be read from a state, and the state after them."""
        stack = [(self.vocabulary.root, state)]
        while stack:
            node, at = stack.pop()
            for byte, child in node.children.items():
                after = at.step(byte)
                if after is not None:
                    if child.ids:
                        yield child.ids, after
                    stack.append((child, after))

    def restrict(self, state: State, mask: np.ndarray) -> None:
        """Takes out of a mask, shape (V,) bool, the tokens from which no end can be reached."""
        with budget():
            for ids, after in self._tokens(state):
                if not self.can_finish(after):
                    mask[ids] = False
