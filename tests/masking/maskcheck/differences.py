"""Where two masks differ on the same walk, and why: each difference is finished to a document and that is judged.

A token that only we allow is written on through our grammar; a token that only the other engine allows is written on
through the other's masks. The oracle then says who is right. What is right and refused there is explained by the one
change, in the text or in the schema, after which the other engine accepts it; what is right and refused here, by the
row of our table; what is wrong, by the keyword that it breaks. Tokens that look alike (the same kinds of characters)
in the same place of the schema are judged by one of them, drawn at random.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from bench.engines import Refused
from maskcheck.alike import closed, in_order, plain_numbers, plain_strings, without_blanks
from maskcheck.oracle import Oracle
from maskcheck.reasons import BOUNDS, reasons, without
from maskcheck.way_out import WayOut
from modtools.masking import Grammar

KEYWORDS = (
    ["pattern"], ["format"], ["patternProperties"], ["propertyNames"], ["additionalProperties"], ["required"],
    ["minLength", "maxLength"], [*BOUNDS], ["multipleOf"], ["minItems", "maxItems"], ["minProperties", "maxProperties"],
    ["enum"], ["const"], ["items", "prefixItems"], ["additionalItems"], ["allOf"], ["anyOf"], ["oneOf"], ["type"],
    ["$ref"], ["properties", "required", "additionalProperties", "patternProperties"],
)  # fmt: skip
OPENED = ("absent additionalProperties",)  # is no keyword to be taken out: true is written where it is absent
REWRITES = {  # by what a text no longer holds, in the order in which they are made
    "escapes in strings": lambda schema, text: plain_strings(text),
    "spelling of numbers": lambda schema, text: plain_numbers(text),
    "blanks": lambda schema, text: without_blanks(text),
    "U+007F": lambda schema, text: text.replace("\x7f", "~"),
    "characters that must be escaped": lambda schema, text: re.sub(r"\\(u....|.)", "~", text),
    "order of keys": in_order,
}
TRIES, MOST_STEPS, MOST_BYTES = 5, 1_500, 3_000
MOST_KINDS = 40  # of tokens that are judged in one place of a schema; where keys are free there are hundreds
NOT_JUDGED = f"not judged: more than {MOST_KINDS} kinds of tokens in one place"
NO_END = "no end was found from there"
CLOSING = b'"}],:0a'


@dataclass(frozen=True)
class Difference:
    """A group of tokens that one side allows and the other refuses, after the same text.

    Attributes:
        engine: the other engine.
        only: "ours" or "theirs", whose mask has the tokens.
        tokens: how many there are in the group.
        example: the text that one of them was finished to.
        right: "ours" or "theirs", by the oracle; "-" where no end was found.
        reason: why they differ; empty where nothing explains it.
    """

    engine: str
    only: str
    tokens: int
    example: bytes
    right: str
    reason: str


def look(token: bytes) -> str:
    """The kinds of characters of a token, runs of one kind taken together: ' "name": 12' is ' "a": 9'."""
    text = re.sub(rb"[A-Za-df-z]+|[\x80-\xff]+", lambda run: b"\x80" if run[0][0] >= 0x80 else b"a", token)
    return re.sub(rb"[0-9]+", b"9", re.sub(rb"\s+", b" ", text)).decode("latin-1")


class Comparison:
    """One schema in our compiler and in another engine.

    Args:
        small: the same engine on a vocabulary of single bytes, quick to compile; it judges documents.
        compact: without blanks, the keys in the order of the schema, on both sides; otherwise everyone's defaults.

    Raises:
        Refused: the other engine does not compile the schema.
    """

    def __init__(self, schema: Any, grammar: Grammar, engine, small, compact: bool):
        self.schema, self.ours, self.compact = schema, grammar, compact
        self.options = {"whitespace": 0, "property_order": "declared"} if compact else {}
        self.engine, self.vocabulary = engine, engine.vocabulary
        self.theirs, self._small = engine.grammar(schema, compact), small
        self._oracle, self._annotating, self._way = Oracle(schema), Oracle(schema, formats=False), WayOut()
        self._without = lru_cache(maxsize=None)(self._grammar_without)
        self._judged: dict[tuple, tuple[bytes, str, str]] = {}
        self._met: Counter[tuple] = Counter()

    def walk(self, rng: random.Random, wander: int, most: int) -> Iterator[tuple[int, list[Difference]]]:
        """For each step of one walk over tokens that both allow, its number and its differences."""
        matcher, ids = self.ours.matcher(self.vocabulary), []
        for step in range(most):
            mine = matcher.allowed()
            self._replay(ids)
            other = self.theirs.allowed()
            yield step, self._differences(matcher, ids, mine, other, rng)
            both = np.flatnonzero(mine & other)
            if not len(both):
                return
            token_id = self._choose(matcher, both, step >= wander, rng)
            if token_id == self.vocabulary.eos_id:
                return
            matcher.advance(token_id)
            ids.append(token_id)

    def _choose(self, matcher, both, is_closing: bool, rng: random.Random) -> int:
        if is_closing and self.vocabulary.eos_id in both:
            return self.vocabulary.eos_id
        texts = [int(i) for i in both if i != self.vocabulary.eos_id]
        if not texts:
            return self.vocabulary.eos_id
        few = rng.sample(texts, min(24, len(texts)))
        if not is_closing:
            return few[0]
        few += [i for i in texts if len(self.vocabulary.tokens[i]) == 1]
        left = {i: self._way.of(matcher.state.read(self.vocabulary.tokens[i])) for i in few}
        return min(few, key=left.get)

    def _replay(self, ids: list[int]) -> None:
        self.theirs.reset()
        for token_id in ids:
            if not self.theirs.advance(token_id):
                raise AssertionError(f"{self.engine.name} takes back a token that it allowed: {token_id}")

    def _differences(self, matcher, ids, mine, other, rng: random.Random) -> list[Difference]:
        found = []
        before = b"".join(self.vocabulary.tokens[i] for i in ids)
        place = frozenset(cell.machine for cell in matcher.state.cells)
        for only, mask in (("ours", mine & ~other), ("theirs", other & ~mine)):
            groups: dict[str, list[int]] = {}
            for i in map(int, np.flatnonzero(mask)):
                token = self.vocabulary.tokens[i]
                if token is None and i != self.vocabulary.eos_id:
                    raise AssertionError(f"{only}: special token {i} is allowed")
                groups.setdefault(look(token) if token else "end", []).append(i)
            for kind, group in groups.items():
                if (
                    not self.compact
                    and (place, only, kind) not in self._judged
                    and self._met[place, only] >= MOST_KINDS
                ):
                    found.append(Difference(self.engine.name, only, len(group), before, "?", NOT_JUDGED))
                    continue
                if (place, only, kind) not in self._judged:
                    self._met[place, only] += 1
                    token_id = rng.choice(group)
                    self._judged[place, only, kind] = self._judge(ids, token_id, before, only, rng)
                found.append(Difference(self.engine.name, only, len(group), *self._judged[place, only, kind]))
        return found

    def _judge(self, ids, token_id: int, before: bytes, only: str, rng: random.Random) -> tuple[bytes, str, str]:
        """A text that begins so, who is right about it, and why they differ."""
        begun = before + (self.vocabulary.tokens[token_id] or b"")
        if only == "ours":
            text = self._finish_ours(begun, rng)
            return text or begun, *self._explain_ours(text)
        if _holds_control_character(begun):  # no way to go on makes this JSON
            return begun, "ours", "Invalid control character is not kept there"
        text = self._finish_theirs(ids, token_id, before, rng)
        return text or begun, *self._explain_theirs(text)

    def _finish_ours(self, text: bytes, rng: random.Random) -> bytes | None:
        """A document of ours that begins so; None where the search finds none."""
        state = self.ours.start.read(text)
        for _ in range(MOST_BYTES):
            if state.is_accepting:
                return text
            left = self._way.of(state)
            nearer = (byte for byte in (*CLOSING, *range(256)) if self._way.of(state.step(byte)) < left)
            byte = next(nearer, None)
            if byte is None:
                legal = [byte for byte in range(256) if state.step(byte) is not None]
                byte = rng.choice([byte for byte in legal if byte in CLOSING] or legal)
            state, text = state.step(byte), text + bytes([byte])
        return None

    def _finish_theirs(self, ids, chosen: int, before: bytes, rng: random.Random) -> bytes | None:
        """A document of the other engine that begins so; None where none is found."""
        if chosen == self.vocabulary.eos_id:
            return before
        singles = [i for i, token in enumerate(self.vocabulary.tokens) if token and len(token) == 1]
        closing = [self.vocabulary.tokens.index(bytes([byte])) for byte in b'"}]']
        for attempt in range(TRIES):
            self._replay([*ids, chosen])
            text = before + self.vocabulary.tokens[chosen]
            for _ in range(MOST_STEPS):
                if self.theirs.is_accepting():
                    return text
                mask = self.theirs.allowed()
                ends = [i for i in closing if mask[i]]
                some = [i for i in singles if mask[i]] or [int(i) for i in np.flatnonzero(mask)]
                plain = [i for i in some if self.vocabulary.tokens[i].isalnum()] or some
                if not some:
                    break
                token_id = rng.choice(
                    ends if ends and rng.random() < 1 - attempt / 10 else rng.choice([plain, plain, some])
                )
                if not self.theirs.advance(token_id):
                    break
                text += self.vocabulary.tokens[token_id]
        return None

    def _explain_ours(self, text: bytes | None) -> tuple[str, str]:
        if text is None:
            return "-", NO_END
        if not self._oracle.is_valid(text):
            return "theirs", ""
        return "ours", self._why_refused_there(text.decode())

    def _explain_theirs(self, text: bytes | None) -> tuple[str, str]:
        if text is None:
            return "-", NO_END
        why = self._oracle.why_not(text)
        if why is not None and self._annotating.is_valid(text):
            return "ours", "format is not asserted there"
        if why is not None:
            keyword, _, message = why.partition(": ")
            said = message.split(":")[0] if keyword == "not strict JSON" else keyword
            return "ours", f"{_plain(said)} is not kept there"
        if self.ours.accepts(text):
            return "theirs", ""
        rows = reasons(self.schema, text.decode(), **self.options)
        return "theirs", f"our table: {' or '.join(rows)}" if rows else ""

    def _why_refused_there(self, text: str) -> str:
        """The change after which the other engine accepts the text: one, or few of the text and one of the schema."""
        if self._is_read(self._without(()), text):
            return "the same text is accepted in other tokens"
        rewritten = [names for size in (1, 2, len(REWRITES)) for names in combinations(REWRITES, size)]
        for names in rewritten:
            other = self._rewritten(text, names)
            if other != text and self._is_read(self._without(()), other):
                return f"{' and '.join(names) if len(names) < 3 else 'several spellings'} refused there"
        for candidate, name in ((text, ""), (self._rewritten(text, list(REWRITES)), " and several spellings")):
            if self._is_read(self._without(OPENED), candidate):
                return f"absent additionalProperties{name and ' (and the spelling)'} taken for false there"
            for keywords in KEYWORDS:
                if self._is_read(self._without(tuple(keywords)), candidate):
                    return f"{' or '.join(keywords[:2])}{name} narrower there"
        return ""

    def _rewritten(self, text: str, names: Sequence[str]) -> str:
        for name in names:
            text = REWRITES[name](self.schema, text)
        return text

    def _grammar_without(self, keywords: tuple[str, ...]):
        schema = closed(self.schema, others=True) if keywords == OPENED else without(self.schema, keywords)
        try:
            return self._small.grammar(schema, self.compact)
        except Refused:
            return None

    def _is_read(self, grammar, text: str) -> bool:
        if grammar is None:
            return False
        grammar.reset()
        return all(grammar.advance(byte) for byte in text.encode()) and grammar.is_accepting()


def _holds_control_character(begun: bytes) -> bool:
    """Whether the parser meets a raw control character inside a string, whatever may follow."""
    try:
        json.loads(begun.decode(errors="ignore"))
    except json.JSONDecodeError as error:
        return error.msg.startswith("Invalid control character")
    return False


def _plain(said: str) -> str:
    """The parser's complaint without its positions."""
    return "UTF-8" if "codec" in said else re.sub(r" at\b.*|\(.*", "", said).strip()
