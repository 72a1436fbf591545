"""Sets of Unicode characters as sorted, disjoint ranges of code points. Surrogates are not characters."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]  # (first, last), both inside

ANY: Ranges = ((0, 0xD7FF), (0xE000, sys.maxunicode))


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The characters that lie in any of the ranges."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """The characters that lie in both."""
    pairs = ((max(a, c), min(b, d)) for a, b in left for c, d in right)
    return union((first, last) for first, last in pairs if first <= last)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    gaps, start = [], 0
    for first, last in ranges:
        gaps.append((start, first - 1))
        start = last + 1
    gaps.append((start, sys.maxunicode))
    return intersection(ANY, tuple(gap for gap in gaps if gap[0] <= gap[1]))


def characters(text: str) -> Ranges:
    """The set of the characters of a text."""
    return union((ord(c), ord(c)) for c in text)


@lru_cache
def category(name: str) -> Ranges:
    """A general category of Unicode: "L", "Lu", "Nd"; empty when there is no such category."""
    every = (c for first, last in ANY for c in range(first, last + 1))
    return union((c, c) for c in every if unicodedata.category(chr(c)).startswith(name))


PRINTABLE: Ranges = ((0x20, 0x7E),)
DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
# ECMA-262: WhiteSpace and LineTerminator.
SPACE = union([*characters("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), (0x2000, 0x200A)])
NOT_LINE_END = complement(characters("\n\r\u2028\u2029"))
