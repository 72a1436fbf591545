"""What tokens still hold after a place where a text may end inside them.

A token such as `","` closes a string and goes on. Whether it may depends on two things: does the text end at the
quote, and can what lies around the text read the rest. The second does not depend on the text, so all rests of a
vocabulary stand in one trie, and a walk through it answers for all tokens and all texts at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from modtools.masking.vocabulary import Vocabulary

_ANOTHER_KEY = re.compile(rb',[ \t\n\r]*"[^"]*"', re.DOTALL)
QUOTED = "after a quote"


class RestNode:
    """A node of the trie of rests. Attributes as those of modtools.masking.trie.Node, with rests for tokens."""

    __slots__ = ("children", "ids")
    size = 0  # rests are walked and never split, so nobody asks how many there are

    def __init__(self):
        self.children: dict[int, RestNode] = {}
        self.ids: list[int] = []

    @property
    def is_leaf(self) -> bool:
        return not self.children


@dataclass(eq=False)
class Rests:
    """Rest number e is what token[e] holds from its byte cut[e] on. Arrays of shape (E,).

    Attributes:
        token: ids of tokens.
        word: their places in the vocabulary's sorted tokens.
        cut: where the rests begin.
        by_cut: for each cut the rests with it, and where the bytes before the cut stand in the vocabulary's
            levels[cut - 1]; both sorted by the latter.
        root: the trie of the rests.
    """

    vocabulary: Vocabulary
    token: np.ndarray
    word: np.ndarray
    cut: np.ndarray
    by_cut: dict[int, tuple[np.ndarray, np.ndarray]]
    root: RestNode = field(repr=False)

    def inside(self, rest: int, since: int) -> bytes:
        """The bytes of a token before its rest, from one of them on."""
        return self.vocabulary.tokens[self.token[rest]][since : self.cut[rest]]

    @cached_property
    def at(self) -> dict[tuple[int, int], list[int]]:
        """The rests by their place among the sorted tokens and their cut."""
        found: dict[tuple[int, int], list[int]] = {}
        for rest, place in enumerate(zip(self.word.tolist(), self.cut.tolist())):
            found.setdefault(place, []).append(rest)
        return found

    @cached_property
    def has_comma(self) -> np.ndarray:
        """Whether the rest holds a comma, after which another key may have to come; shape (E,) bool."""
        tokens = self.vocabulary.tokens
        return np.array([b"," in tokens[t][c:] for t, c in zip(self.token, self.cut)], dtype=bool)

    @cached_property
    def has_another_key(self) -> np.ndarray:
        """Whether the rest goes on to close another key of the same object; shape (E,) bool."""
        tokens = self.vocabulary.tokens
        return np.array([bool(_ANOTHER_KEY.search(tokens[t], c)) for t, c in zip(self.token, self.cut)], dtype=bool)


def rests(vocabulary: Vocabulary, first: str | frozenset[int]) -> Rests:
    """The rests after each quote, or those that begin with one of some bytes; collected once for a vocabulary."""
    if first not in vocabulary.rests:
        vocabulary.rests[first] = _collect(vocabulary, first)
    return vocabulary.rests[first]


def _collect(vocabulary: Vocabulary, first: str | frozenset[int]) -> Rests:
    if first == QUOTED:
        cuts = _cuts(vocabulary.sorted_tokens, b'(?<=")')
    else:
        some = b"".join(b"\\x%02x" % byte for byte in sorted(first))
        cuts = _cuts(vocabulary.sorted_tokens, b"(?<!^)[" + some + b"]") if some else []
    token, word, cut, where = [], [], [], {}
    root = RestNode()
    for index, at in cuts:
        node = root
        for byte in vocabulary.sorted_tokens[index][at:]:
            node = node.children.setdefault(byte, RestNode())
        for token_id in vocabulary.ids_of[index]:
            node.ids.append(len(token))
            where.setdefault(at, []).append((index, len(token)))
            token.append(token_id)
            word.append(index)
            cut.append(at)
    by_cut = {}
    for at, pairs in where.items():
        words, numbers = np.array(sorted(pairs)).T
        level = vocabulary.levels[at - 1]
        by_cut[at] = numbers, np.searchsorted(level.first, words, side="right") - 1
    columns = [np.array(column, dtype=np.int64) for column in (token, word, cut)]
    return Rests(vocabulary, *columns, by_cut, root)


def _cuts(words: list[bytes], before: bytes) -> Iterable[tuple[int, int]]:
    """The places in words where a pattern begins: (index of the word, place)."""
    pattern = re.compile(before, re.DOTALL)
    return ((index, match.start()) for index, word in enumerate(words) for match in pattern.finditer(word))
