"""Runs of blanks at the start of tokens: between two parts of a document only their length matters.

A vocabulary has hundreds of tokens of blanks and line ends. Walked byte by byte they would cost more than all others
together, so they are collected once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modtools.masking.machine import BLANKS
from modtools.masking.trie import Node
from modtools.masking.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Runs:
    """The tokens below a node whose next byte is a blank.

    Attributes:
        ids: those that hold nothing but blanks from there on, shape (n,).
        lengths: of how many, shape (n,).
        nodes: by the first byte that is no blank, the nodes reached by it with the number of blanks before.
    """

    ids: np.ndarray
    lengths: np.ndarray
    nodes: dict[int, list[tuple[int, Node]]]


def runs(vocabulary: Vocabulary, node: Node) -> Runs:
    """The runs of blanks below a node, collected once and kept with the vocabulary."""
    known = vocabulary.blanks
    if node not in known:
        known[node] = _collect(vocabulary, node)
    return known[node]


def _collect(vocabulary: Vocabulary, node: Node) -> Runs:
    ids, lengths, nodes = [], [], {}
    queue = [(0, node)]
    for length, at in queue:
        for byte, child in at.children.items():
            if byte in BLANKS:
                queue.append((length + 1, child))
                if child.token >= 0:
                    ids += vocabulary.ids_of[child.token]
                    lengths += [length + 1] * len(vocabulary.ids_of[child.token])
            elif length:
                nodes.setdefault(byte, []).append((length, child))
    return Runs(np.array(ids, dtype=np.int64), np.array(lengths, dtype=np.int64), nodes)
