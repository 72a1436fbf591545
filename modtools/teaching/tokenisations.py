"""How many ways there are to spell one text in the tokens of a vocabulary."""

from __future__ import annotations

from modtools.masking import Vocabulary


def count_tokenisations(text: bytes, vocabulary: Vocabulary) -> int:
    """The number of token sequences whose bytes are this text; tokens with the same bytes count apart."""
    ids_of = dict(zip(vocabulary.sorted_tokens, vocabulary.ids_of))
    longest = max(map(len, ids_of))
    ways = [1] + [0] * len(text)  # ways[n]: to spell the first n bytes
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - longest), end):
            ways[end] += ways[start] * len(ids_of.get(text[start:end], ()))
    return ways[-1]
