"""The vocabulary as a trie, laid out as numpy levels: level d holds all distinct token prefixes of d bytes, sorted.

Children of one node lie side by side in the next level, and the tokens below a node are one range of the sorted
tokens. So a whole level can be advanced with one gather, and a subtree is two numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Level:
    """The prefixes of one length. All arrays have shape (prefixes,), `child` one entry more.

    Attributes:
        parent: index in the level above.
        byte: last byte of the prefix.
        token: index of the token that is this prefix in the sorted tokens, or -1.
        first, after: the sorted tokens that begin with the prefix are those from `first` up to, not including, `after`.
        child: the children of prefix i lie in the level below from child[i] up to, not including, child[i + 1].
    """

    parent: np.ndarray
    byte: np.ndarray
    token: np.ndarray
    first: np.ndarray
    after: np.ndarray
    child: np.ndarray


def build_levels(sorted_tokens: Sequence[bytes]) -> list[Level]:
    """The levels of distinct, non-empty byte strings in sorted order; entry 0 holds the prefixes of one byte."""
    count = len(sorted_tokens)
    size = np.array([len(token) for token in sorted_tokens], dtype=np.int64)
    longest = int(size.max(initial=0))
    padded = b"".join(token.ljust(longest, b"\0") for token in sorted_tokens)
    text = np.frombuffer(padded, np.uint8).reshape(count, longest)
    columns: list[dict[str, np.ndarray]] = []
    above = np.zeros(count, dtype=np.int64)  # for each token its node in the level before
    for depth in range(longest):
        present = np.flatnonzero(size > depth)
        byte, parent = text[present, depth], above[present]
        starts = np.flatnonzero(np.append(True, (byte[1:] != byte[:-1]) | (parent[1:] != parent[:-1])))
        first, after = present[starts], present[np.append(starts[1:], len(present)) - 1] + 1
        token = np.where(size[first] == depth + 1, first, -1)
        above[present] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(present))))
        columns.append({"parent": parent[starts], "byte": byte[starts], "token": token, "first": first, "after": after})
    levels = []
    for column, below in zip(columns, [*columns[1:], {"parent": np.zeros(0, dtype=np.int64)}]):
        child = np.searchsorted(below["parent"], np.arange(len(column["parent"]) + 1))
        levels.append(Level(**column, child=child))
    return levels


class Node:
    """A node of the trie for walks in Python; its children are made when they are first asked for.

    Attributes:
        depth: length of its prefix in bytes.
        begin, end: its children in levels[depth] lie from begin up to, not including, end.
        token: index of the token that ends here in the sorted tokens, or -1.
        size: how many tokens go through here.
    """

    __slots__ = ("_children", "_levels", "begin", "depth", "end", "size", "token")

    def __init__(self, levels: list[Level], depth: int = 0, index: int = 0):
        self._levels, self._children, self.depth = levels, None, depth
        if depth == 0:
            self.token, self.begin, self.end = -1, 0, len(levels[0].byte) if levels else 0
            self.size = int(levels[0].after[-1]) if levels else 0
        else:
            level = levels[depth - 1]
            self.token, self.size = int(level.token[index]), int(level.after[index] - level.first[index])
            self.begin, self.end = int(level.child[index]), int(level.child[index + 1])

    @property
    def children(self) -> dict[int, Node]:
        """The nodes one byte further, by that byte."""
        if self._children is None:
            indices = range(self.begin, self.end)
            self._children = {
                int(self._levels[self.depth].byte[i]): Node(self._levels, self.depth + 1, i) for i in indices
            }
        return self._children
