"""Lazy automata over bytes: characters spelled in UTF-8, plain or inside a JSON string with all its escapes.

Rows appear when they are asked for. What is left of a half-read character is kept as the ranges it may still become,
counted from the first of them: after E1 any three-byte character looks the same as after E2, so both share a state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np

from modtools.masking.charset import PRINTABLE, union
from modtools.masking.dfa import CharacterDFA, Label, can_finish_within

Key = Hashable
DEAD = -1
UNKNOWN = -1  # in a table: a row that was not asked for yet
QUOTE, BACKSLASH = 0x22, 0x5C
CONTINUATION = range(0x80, 0xC0)  # the bytes of a character after its first
SHORT_ESCAPES = {ord(letter): ord(c) for letter, c in zip('"\\/bfnrt', '"\\/\b\f\n\r\t')}


class ByteAutomaton:
    """States are numbered as they are met; state 0 is the start.

    Attributes:
        rows: for each state its 256 targets, DEAD where the byte is refused; None until asked for (see row).
        labels: for each state None or the label of what is complete there.
        boundary: for each state whether the next byte begins a new character of a JSON string.
        is_quoted: whether every text ends with a quote that stands nowhere else in it.
        is_scarce: whether few texts, or we do not know how many, lie ahead of a key; None where that does not matter.
    """

    def __init__(
        self,
        start: Key,
        expand: Callable[[Key], dict[int, Key]],
        label: Callable[[Key], Label],
        is_quoted: bool = False,
    ):
        self._expand, self._label, self.is_quoted = expand, label, is_quoted
        self._index: dict[Key, int] = {}
        self.keys: list[Key] = []
        self.rows: list[list[int] | None] = []
        self.labels: list[Label] = []
        self.boundary: list[bool] = []
        self.is_scarce: Callable[[Key], bool] | None = None
        self._legal: dict[int, frozenset[int]] = {}
        self._table = np.zeros((1, 256), dtype=np.intp)  # see advance
        self._flags = np.array([[False], [False], [True]])
        self._state(start)

    def _state(self, key: Key) -> int:
        if key not in self._index:
            self._index[key] = len(self.keys)
            self.keys.append(key)
            self.rows.append(None)
            self.labels.append(self._label(key))
            self.boundary.append(key[0] == "character")
        return self._index[key]

    def row(self, state: int) -> list[int]:
        """The 256 targets of a state."""
        row = self.rows[state]
        if row is None:
            row, targets = [DEAD] * 256, self._expand(self.keys[state])
            for byte, key in targets.items():
                row[byte] = self._state(key)
            self.rows[state], self._legal[state] = row, frozenset(targets)
        return row

    def legal(self, state: int) -> frozenset[int]:
        """The bytes that may follow inside this automaton."""
        if state not in self._legal:
            self.row(state)
        return self._legal[state]

    def is_final(self, state: int) -> bool:
        """Whether nothing can follow inside this automaton."""
        return self.labels[state] is not None and not self.legal(state)

    def advance(self, numbers: np.ndarray, byte: np.ndarray) -> np.ndarray:
        """Many states at once, each by its own byte; all arrays of shape (n,).

        Here a state's number is one more than elsewhere, and 0 is DEAD, from which every byte leads to 0.
        """
        if len(self._table) <= len(self.keys):
            table = np.full((2 * len(self.keys) + 1, 256), UNKNOWN, dtype=np.intp)
            table[: len(self._table)] = self._table
            self._table = table
        at = (numbers << 8) + byte
        after = self._table.ravel().take(at)
        if after.min(initial=0) == UNKNOWN:
            for number in np.unique(numbers[after == UNKNOWN]).tolist():
                self._table[number] = self.row(number - 1)
                self._table[number] += 1
            after = self._table.ravel().take(at)
        return after

    def flags(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By number of all states so far: whether the next byte begins a character, whether a text is complete, and
        whether it must end, or is dead."""
        while self._flags.shape[1] < len(self.keys) + 1:
            states = range(self._flags.shape[1] - 1, len(self.keys))
            complete = [self.labels[state] is not None for state in states]
            ends = [self.is_final(state) for state in states]
            fresh = np.array([[self.boundary[state] for state in states], complete, ends], dtype=bool)
            self._flags = np.hstack([self._flags, fresh])
        return tuple(self._flags)


@lru_cache(maxsize=256)
def plain_text(dfa: CharacterDFA) -> ByteAutomaton:
    """The texts of `dfa` in UTF-8."""

    def expand(key: Key) -> dict[int, Key]:
        if key[0] == "rest":
            return _continue(key)
        ascii_row = {
            b: ("character", t) for first, last, t in dfa.rows[key[1]] for b in range(first, min(last, 127) + 1)
        }
        return ascii_row | _lead(dfa.rows[key[1]])

    return ByteAutomaton(("character", 0), expand, lambda key: dfa.labels[key[1]] if key[0] == "character" else None)


def needed_bytes(dfa: CharacterDFA) -> frozenset[int]:
    """With a token for each of these bytes, every text of `dfa` that was begun in UTF-8 can be finished."""
    if can_finish_within(dfa, PRINTABLE):  # and a character that was begun, with bytes that continue it
        return frozenset([*range(0x20, 0x7F), *CONTINUATION])
    ranges = [t[:2] for row in dfa.rows for t in row]
    ascii_bytes = {byte for first, last in ranges for byte in range(first, min(last, 0x7F) + 1)}
    return frozenset([*ascii_bytes, *CONTINUATION, *_lead([(first, last, 0) for first, last in union(ranges)])])


def spell(text: str) -> bytes:
    """The one spelling of a declared key or a given string: shortest escapes, otherwise raw UTF-8.

    Raises:
        UnicodeEncodeError: a lone surrogate.
    """
    return json.dumps(text, ensure_ascii=False).encode()


@lru_cache(maxsize=256)
def json_string(dfa: CharacterDFA, one_spelling: bool = False) -> ByteAutomaton:
    """The JSON strings, quotes included, whose decoded text `dfa` accepts; the label is the text's.

    With one_spelling each text is spelled as by `spell`, otherwise in any way that JSON knows.
    """

    def expand(key: Key) -> dict[int, Key]:
        kind = key[0]
        if kind == "open":
            return {QUOTE: ("character", 0)}
        if kind == "character":
            return _inside(dfa, key[1], one_spelling)
        if kind == "rest":
            return _continue(key)
        if kind == "escape":
            return _escape(dfa.rows[key[1]])
        if kind == "hex":
            return _hex(key)
        if kind == "low":
            ranges = tuple((first + 0xDC00, last + 0xDC00, target) for first, last, target in key[2])
            return {BACKSLASH: ("low", "u", key[2])} if key[1] == "\\" else {ord("u"): ("hex", 4, ranges)}
        if kind == "spelled":
            return _spelled(key[1])
        return {}

    return ByteAutomaton(("open",), expand, lambda key: key[1] if key[0] == "closed" else None, is_quoted=True)


def literals(texts: dict[bytes, Label]) -> ByteAutomaton:
    """Exactly these byte strings, each with its label: a trie, whose nodes hold the strings that go on from there."""

    def expand(key: Key) -> dict[int, Key]:
        _, depth, ahead = key
        branches: dict[int, list[bytes]] = {}
        for text in ahead:
            if len(text) > depth:
                branches.setdefault(text[depth], []).append(text)
        return {byte: ("literal", depth + 1, tuple(branch)) for byte, branch in branches.items()}

    def label(key: Key) -> Label:
        _, depth, ahead = key
        return next((texts[text] for text in ahead if len(text) == depth), None)

    return ByteAutomaton(("literal", 0, tuple(texts)), expand, label)


def _cut(row: Iterable, first: int, last: int, base: int) -> tuple:
    """The part of the ranges from first to last, counted from base."""
    return tuple((max(a, first) - base, min(b, last) - base, t) for a, b, t in row if a <= last and b >= first)


def _lead(row) -> dict[int, Key]:
    """The bytes that begin a character beyond ASCII."""
    keys: dict[int, Key] = {}
    if not row or row[-1][1] < 0x80:
        return keys
    for lead, length, shift, least, most in (
        (range(0xC2, 0xE0), 1, 6, 0x80, 0x7FF),
        (range(0xE0, 0xF0), 2, 12, 0x800, 0xFFFF),
        (range(0xF0, 0xF5), 3, 18, 0x10000, 0x10FFFF),
    ):
        for byte in lead:
            base = (byte & (0x3F >> length)) << shift
            if ranges := _cut(row, max(base, least), min(base + (1 << shift) - 1, most), base):
                keys[byte] = ("rest", length, ranges)
    return keys


def _continue(key: Key) -> dict[int, Key]:
    """The continuation bytes after a part of a character."""
    _, length, ranges = key
    width, keys = 1 << 6 * (length - 1), {}
    for i in range(64):
        if part := _cut(ranges, i * width, (i + 1) * width - 1, i * width):
            keys[0x80 + i] = ("character", part[0][2]) if length == 1 else ("rest", length - 1, part)
    return keys


def _inside(dfa: CharacterDFA, state: int, one_spelling: bool) -> dict[int, Key]:
    """The bytes between two characters of a string."""
    row = dfa.rows[state]
    keys = {b: ("character", t) for first, last, t in row for b in range(max(first, 0x20), min(last, 0x7F) + 1)}
    keys = {b: key for b, key in keys.items() if b not in (QUOTE, BACKSLASH)} | _lead(row)
    if one_spelling:
        escaped = [c for c in (*range(0x20), QUOTE, BACKSLASH) if _cut(row, c, c, c)]
        keys |= _spelled(tuple((spell(chr(c))[1:-1], ("character", _cut(row, c, c, c)[0][2])) for c in escaped))
    elif row:
        keys[BACKSLASH] = ("escape", state)
    if dfa.labels[state] is not None:
        keys[QUOTE] = ("closed", dfa.labels[state])
    return keys


def _spelled(options: tuple[tuple[bytes, Key], ...]) -> dict[int, Key]:
    """The first bytes of some spellings, each of which leads to its own key."""
    return {
        first: next((key for text, key in options if text == bytes([first])), None)
        or ("spelled", tuple((text[1:], key) for text, key in options if text[0] == first))
        for first in {text[0] for text, _ in options}
    }


def _escape(row) -> dict[int, Key]:
    """What may follow a backslash. Characters beyond 16 bits are spelled as two escapes, high and low."""
    keys = {}
    for letter, character in SHORT_ESCAPES.items():
        if part := _cut(row, character, character, character):
            keys[letter] = ("character", part[0][2])
    pairs = []
    for first, last, target in _cut(row, 0x10000, 0x10FFFF, 0x10000):
        edges = sorted({first >> 10, (first >> 10) + 1, last >> 10, (last >> 10) + 1})
        for high, after in pairwise(edges):
            if high <= last >> 10:
                low = (max(first, high << 10) & 0x3FF, min(last, (after << 10) - 1) & 0x3FF, target)
                pairs.append((0xD800 + high, 0xD800 + after - 1, low))
    ranges = [(a, b, ("character", t)) for a, b, t in _cut(row, 0, 0xFFFF, 0)] + _join(pairs)
    keys[ord("u")] = ("hex", 4, tuple(sorted(ranges, key=lambda r: r[0])))
    return keys


def _join(pairs: list) -> list:
    """High surrogates with the low ones that may follow them: [(first, last, ("low", ...)), ...]."""
    edges = sorted({edge for a, b, _ in pairs for edge in (a, b + 1)})
    joined = []
    for first, after in pairwise(edges):
        low = tuple((lo, hi, ("character", t)) for a, b, (lo, hi, t) in pairs if a <= first <= b)
        if low:
            joined.append((first, after - 1, ("low", "\\", low)))
    return joined


def _hex(key: Key) -> dict[int, Key]:
    """The hexadecimal digits of an escape, both spellings of each."""
    _, length, ranges = key
    width, keys = 16 ** (length - 1), {}
    for i, digit in enumerate("0123456789abcdef"):
        if part := _cut(ranges, i * width, (i + 1) * width - 1, i * width):
            keys[ord(digit)] = keys[ord(digit.upper())] = part[0][2] if length == 1 else ("hex", length - 1, part)
    return keys
