"""Between two parts of a document only the number of blanks matters, so the trie is read as if they were not there.

A vocabulary has hundreds of tokens of blanks and line ends. Walked byte by byte they would cost more than all others
together.
"""

from __future__ import annotations

import numpy as np

from modtools.masking.machine import BLANKS
from modtools.masking.trie import bundled, unbundled
from modtools.masking.vocabulary import Vocabulary


class Spaced:
    """What may follow a node after some blanks, or none. Attributes as those of modtools.masking.trie.Node, and:

    Attributes:
        ids: of the tokens that hold nothing but blanks from the node on.
        array: the same as an array of shape (n,).

    Args:
        node: where the blanks begin.
        room: how many there may be at most.
    """

    __slots__ = ("_firsts", "array", "children", "ids", "size")

    def __init__(self, node, room: int):
        self.ids: list[int] = []
        firsts: dict[int, list] = {}
        level = [node]
        for length in range(room + 1):
            longer = []
            for byte, child in (item for at in level for item in at.children.items()):
                if byte not in BLANKS:
                    firsts.setdefault(byte, []).extend(unbundled(child))
                elif length < room:
                    longer.append(child)
                    self.ids += child.ids
            level = longer
        self.array = np.array(self.ids, dtype=np.intp)
        self.children = {byte: bundled(nodes) for byte, nodes in firsts.items()}
        self.size = sum(child.size for child in self.children.values())
        self._firsts = [node for nodes in firsts.values() for node in nodes]

    def prefixes(self) -> dict[int, np.ndarray]:
        """The prefixes that end with the first byte after the blanks: by depth their places in levels[depth]."""
        found: dict[int, list[int]] = {}
        for node in self._firsts:
            found.setdefault(node.depth - 1, []).append(node.index)
        return {depth: np.array(sorted(places)) for depth, places in found.items()}


def spaced(vocabulary: Vocabulary, node, room: int) -> Spaced:
    """The tokens below a node as they are after up to `room` blanks; made once and kept with the vocabulary."""
    known, key = vocabulary.blanks, (node, min(room, vocabulary.longest_blanks))
    if key not in known:
        known[key] = Spaced(*key)
    return known[key]
