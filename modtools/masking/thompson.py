"""Thompson's construction: from a tree of sequences, alternatives and repetitions to places and edges (Thompson, 1968).

Patterns become automata over characters so, and the rules of a grammar become networks. They differ in their leaves.
"""

from __future__ import annotations

from typing import Any

from modtools.masking.budget import spend

Tree = tuple[Any, ...]


class Construction:
    """Adds trees: ("cat", trees), ("alt", trees), ("rep", tree, least, most), and leaves of any other kind.

    `most` is None where a repetition has no end.
    """

    def place(self) -> int:
        """A new place."""
        raise NotImplementedError

    def skip(self, source: int, target: int) -> None:
        """An edge that reads nothing."""
        raise NotImplementedError

    def leaf(self, tree: Tree, source: int, target: int) -> None:
        """The edges of a leaf."""
        raise NotImplementedError

    def add(self, tree: Tree, source: int) -> int:
        """Adds the tree behind `source` and returns the place after it."""
        kind = tree[0]
        spend(0, "a repetition of empty parts")  # these cost no place, but time
        if kind == "cat":
            for part in tree[1]:
                source = self.add(part, source)
            return source
        end = self.place()
        if kind == "alt":
            for option in tree[1]:
                self.skip(self.add(option, source), end)
        elif kind == "rep":
            self._repeat(tree[1], tree[2], tree[3], source, end)
        else:
            self.leaf(tree, source, end)
        return end

    def _repeat(self, tree: Tree, least: int, most: int | None, source: int, end: int) -> None:
        for _ in range(least):
            source = self.add(tree, source)
        if most is None:
            loop = self.place()
            self.skip(source, loop)
            self.skip(self.add(tree, loop), loop)
            source = loop
        for _ in range(most - least if most is not None else 0):
            self.skip(source, end)
            source = self.add(tree, source)
        self.skip(source, end)
