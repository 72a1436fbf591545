"""A tokenizer's tokens as byte strings: what a mask is made over.

A mask must see the bytes a token adds to the text, not the tokenizer's printable spelling of them: byte-level BPE
writes a blank as Ġ, sentencepiece as ▁, and both cut a UTF-8 character where they please.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from modtools.errors import UsageError
from modtools.masking.trie import Level, Node, build_levels

_BLANKS = re.compile(rb"[ \t\n\r]+")


class Vocabulary:
    """The tokens of one tokenizer.

    Attributes:
        tokens: the bytes of each token by its id; None for special tokens and ids without a token.
        eos_id: the token that ends a sequence.
        sorted_tokens: the distinct byte strings among them, sorted.
        ids: shape (len(sorted_tokens),), one token id for each of those.
        twins: shape (n, 2), further ids with the same bytes: (index in sorted_tokens, id).
    """

    def __init__(self, tokens: Sequence[bytes | None], eos_id: int):
        self.tokens, self.eos_id = list(tokens), eos_id
        if not 0 <= eos_id < len(self.tokens):
            raise UsageError(f"eos_id is {eos_id}, expected an id below {len(self.tokens)}, the number of tokens")
        self.tokens[eos_id] = None  # never text, whatever its bytes are
        strange = next((token for token in self.tokens if not isinstance(token, bytes | None)), None)
        if strange is not None:
            raise UsageError(f"a token is {strange!r}, expected bytes, or None for a special token")
        order = sorted((token, i) for i, token in enumerate(self.tokens) if token)
        self.sorted_tokens: list[bytes] = []
        ids, twins = [], []
        for token, i in order:
            if self.sorted_tokens and self.sorted_tokens[-1] == token:
                twins.append((len(ids) - 1, i))
            else:
                self.sorted_tokens.append(token)
                ids.append(i)
        self.ids = np.array(ids, dtype=np.int64)
        self.twins = np.array(twins, dtype=np.int64).reshape(-1, 2)
        self.splits = None  # for modtools.masking.allowed
        self.rests: dict = {}  # for modtools.masking.rests
        self.blanks: dict = {}  # for modtools.masking.blanks

    @classmethod
    def from_bytes(cls, tokens: Sequence[bytes | None], *, eos_id: int, special_ids: Iterable[int] = ()) -> Vocabulary:
        """A vocabulary from its byte strings; eos_id and special_ids are never text, whatever their bytes are."""
        special = frozenset(special_ids)
        return cls([None if i in special else token for i, token in enumerate(tokens)], eos_id)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any) -> Vocabulary:
        """The vocabulary of a fast tokenizer of transformers: byte-level BPE, or sentencepiece with byte fallback.

        A network's head may be wider than this; ids beyond it are no tokens and are to be masked.

        Raises:
            UsageError: neither kind, or no end-of-sequence token.
        """
        if tokenizer.eos_token_id is None or not hasattr(tokenizer, "backend_tokenizer"):
            raise UsageError(f"{type(tokenizer).__name__}: expected a fast tokenizer with an end-of-sequence token")
        added = tokenizer.added_tokens_decoder
        special = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)
        spelling = _spelling(tokenizer.backend_tokenizer.to_str())
        by_id = {i: text for text, i in tokenizer.get_vocab().items()}
        tokens: list[bytes | None] = [None] * (max(by_id) + 1)
        for i, text in by_id.items():
            if i not in special:
                tokens[i] = text.encode() if i in added else spelling(text)
        return cls(tokens, tokenizer.eos_token_id)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def levels(self) -> list[Level]:
        """The trie of sorted_tokens."""
        return build_levels(self.sorted_tokens)

    @cached_property
    def root(self) -> Node:
        """The root of the same trie, for walks in Python."""
        return Node(self.levels, self.ids_of)

    @cached_property
    def single_bytes(self) -> frozenset[int]:
        """The bytes that are tokens by themselves."""
        return frozenset(token[0] for token in self.sorted_tokens if len(token) == 1)

    def with_twins(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From places in sorted_tokens, shape (n,), to the ids of all tokens with those bytes, and their places in
        `words`; both of shape (m,)."""
        which, ids = np.arange(len(words)), self.ids[words]
        if len(self.twins):
            place = np.full(len(self.ids), -1)
            place[words] = which
            twins = self.twins[place[self.twins[:, 0]] >= 0]
            which, ids = np.concatenate([which, place[twins[:, 0]]]), np.concatenate([ids, twins[:, 1]])
        return ids, which

    @cached_property
    def longest_blanks(self) -> int:
        """The most blanks that stand side by side in a token."""
        return max((len(run) for token in self.sorted_tokens for run in _BLANKS.findall(token)), default=0)

    @cached_property
    def ids_of(self) -> list[list[int]]:
        """For each of the sorted tokens all ids with its bytes."""
        ids_of = [[int(i)] for i in self.ids]
        for index, i in self.twins.tolist():
            ids_of[index].append(i)
        return ids_of

    def facts(self, token_id: int) -> TokenFacts:
        """What a token does to a text, by its id."""
        token = self.tokens[token_id] or b""
        head = len(token) - len(token.lstrip(bytes(range(0x80, 0xC0))))
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        decoder.decode(token[head:])
        tail = len(decoder.getstate()[0])
        safe = bool(token) and not head and not tail and not any(byte < 0x20 or byte in b'"\\' for byte in token)
        return TokenFacts(safe, sum(byte & 0xC0 != 0x80 for byte in token), head, tail)


@dataclass(frozen=True)
class TokenFacts:
    """What a token does to a text.

    Attributes:
        is_string_safe: may stand inside any JSON string, between two characters.
        code_points: how many characters begin in it.
        bytes_owed, bytes_open: how many bytes at its start finish an earlier character, and how many at its end
            begin one that it does not finish.
    """

    is_string_safe: bool
    code_points: int
    bytes_owed: int
    bytes_open: int


def _spelling(tokenizer_json: str):
    """How this tokenizer spells bytes: a function from its spelling to bytes."""
    description = json.loads(tokenizer_json)
    kinds = {part["type"] for part in _parts(description.get("decoder")) + _parts(description.get("pre_tokenizer"))}
    if "ByteLevel" in kinds:
        table = _byte_letters()
        return lambda text: bytes(table[letter] for letter in text)
    if description["model"].get("byte_fallback"):
        return _sentencepiece
    raise UsageError("expected a tokenizer with byte-level BPE or byte fallback; this one cannot spell every text")


def _parts(stage: dict | None) -> list[dict]:
    """The steps of a stage of a tokenizer, sequences opened."""
    if stage is None:
        return []
    inner = stage.get("decoders") or stage.get("pretokenizers")
    return [part for step in inner for part in _parts(step)] if inner else [stage]


def _byte_letters() -> dict[str, int]:
    """The letter that byte-level BPE writes for each byte: itself where it is printable, otherwise one from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _sentencepiece(text: str) -> bytes:
    if match := re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", text):
        return bytes([int(match[1], 16)])
    return text.replace("\u2581", " ").encode()
