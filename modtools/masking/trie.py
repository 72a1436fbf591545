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
    """The prefixes of one length. Arrays without a shape have (prefixes,), `child` one entry more.

    Attributes:
        parent: index in the level above.
        byte: last byte of the prefix.
        token: index of the token that is this prefix in the sorted tokens, or -1.
        ends: the prefixes that are tokens, shape (tokens of this length,).
        first, after: the sorted tokens that begin with the prefix are those from `first` up to, not including, `after`.
        child: the children of prefix i lie in the level below from child[i] up to, not including, child[i + 1].
    """

    parent: np.ndarray
    byte: np.ndarray
    token: np.ndarray
    ends: np.ndarray
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
        column = {"parent": parent[starts], "byte": byte[starts].astype(np.intp), "first": first, "after": after}
        columns.append({**column, "token": token, "ends": np.flatnonzero(token >= 0)})
    levels = []
    for column, below in zip(columns, [*columns[1:], {"parent": np.zeros(0, dtype=np.int64)}]):
        child = np.searchsorted(below["parent"], np.arange(len(column["parent"]) + 1))
        levels.append(Level(**column, child=child))
    return levels


class Node:
    """A node of the trie for walks in Python; its children are made when they are first asked for.

    Attributes:
        depth: length of its prefix in bytes.
        index: its place in levels[depth - 1].
        begin, end: its children in levels[depth] lie from begin up to, not including, end.
        size: how many different tokens go through here.
        is_leaf: whether none of them goes on.
        ids: the ids of the tokens that end here.
    """

    __slots__ = ("_children", "_ids_of", "_levels", "begin", "depth", "end", "ids", "index", "is_leaf", "size")

    def __init__(self, levels: list[Level], ids_of: list[list[int]], depth: int = 0, index: int = 0):
        self._levels, self._ids_of, self._children = levels, ids_of, None
        self.depth, self.index, self.ids = depth, index, []
        if depth == 0:
            self.begin, self.end, self.size = 0, len(levels[0].byte) if levels else 0, len(ids_of)
        else:
            level = levels[depth - 1]
            self.begin, self.end = int(level.child[index]), int(level.child[index + 1])
            self.size = int(level.after[index] - level.first[index])
            if level.token[index] >= 0:
                self.ids = ids_of[level.token[index]]
        self.is_leaf = self.begin == self.end

    @property
    def children(self) -> dict[int, Node]:
        """The nodes one byte further, by that byte."""
        if self._children is None:
            self._children = {
                int(self._levels[self.depth].byte[i]): Node(self._levels, self._ids_of, self.depth + 1, i)
                for i in range(self.begin, self.end)
            }
        return self._children

    def prefixes(self) -> dict[int, np.ndarray]:
        """The prefixes one byte further: by depth their places in levels[depth]."""
        return {self.depth: np.arange(self.begin, self.end)}


class Bundle:
    """Several nodes read as one: what may follow after any of their prefixes. Attributes as those of Node.

    Args:
        nodes: not one of them below another.
    """

    __slots__ = ("_children", "ids", "is_leaf", "nodes", "size")

    def __init__(self, nodes: Sequence[Node]):
        self.nodes, self._children = nodes, None
        self.ids = [i for node in nodes for i in node.ids]
        self.size = sum(node.size for node in nodes)
        self.is_leaf = all(node.is_leaf for node in nodes)

    @property
    def children(self) -> dict[int, Node | Bundle]:
        """The nodes one byte further, by that byte."""
        if self._children is None:
            found: dict[int, list[Node]] = {}
            for node in self.nodes:
                for byte, child in node.children.items():
                    found.setdefault(byte, []).append(child)
            self._children = {byte: bundled(nodes) for byte, nodes in found.items()}
        return self._children

    def prefixes(self) -> dict[int, np.ndarray]:
        """The prefixes one byte further: by depth their places in levels[depth]."""
        found: dict[int, list[np.ndarray]] = {}
        for node in self.nodes:
            found.setdefault(node.depth, []).append(np.arange(node.begin, node.end))
        return {depth: np.sort(np.concatenate(places)) for depth, places in found.items()}


def bundled(nodes: Sequence[Node]) -> Node | Bundle:
    """Some nodes as one."""
    return nodes[0] if len(nodes) == 1 else Bundle(nodes)


def unbundled(node: Node | Bundle) -> Sequence[Node]:
    """The nodes that are read as one."""
    return node.nodes if isinstance(node, Bundle) else (node,)
