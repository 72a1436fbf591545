"""What the tests of masking share: a small vocabulary full of awkward tokens, and the slow truth about masks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from maskcheck.oracle import parse
from maskcheck.sample import RealVocabulary, real_vocabulary
from modtools.masking import Vocabulary
from modtools.masking.grammar import State

# Tokens that straddle boundaries: keys and values, strings and punctuation, halves of characters and of escapes.
AWKWARD = [
    b'{"', b'","', b'":', b'": "', b'"}', b'a"', b'b":"c","a":', b'"a":1,"', b"\\u", b'\\"', b"\\ud83d", b"\\ude00",
    b"\xf0\x9f", b"\x98\x80", b"\xc3", b'\xa9"', b"abc", b"aa", b"1,", b"12}", b".5", b"e1", b"true", b"null,", b"  ",
    b"\n\n", b"\n  ", b'  "', b"[[", b"]]", b"],[", b"},{", b'": {"', b'":1,"zz":2', b'x":1,"x"', b'","b', b'a":1',
    b"-0", b'"x":"y","x":', b'say \\"', b"cat", b"dog\"}", b'": 1', b'"k":"a', b'b"', b" \t ",
]  # fmt: skip
ENDS, PADDING = "<|end|>", "<|padding|>"


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    """All single bytes, awkward tokens, random ones; ids 0 and 1 are special though their text is printable."""
    rng = random.Random(3)
    letters = 'ab"\\:,{}[]1 u0dé'.encode()
    mixed = [bytes(rng.choices(letters, k=rng.randrange(2, 6))) for _ in range(500)]
    tokens = [ENDS.encode(), PADDING.encode(), *(bytes([byte]) for byte in range(256)), *AWKWARD, *mixed]
    return Vocabulary.from_bytes(tokens, eos_id=0, special_ids=[1])


@pytest.fixture(scope="session")
def by_trial() -> Callable[[State, Vocabulary], np.ndarray]:
    """The allowed set the slow way: each token by itself, byte by byte."""

    def by_trial(state: State, vocabulary: Vocabulary) -> np.ndarray:
        readable = [bool(token) and state.read(token) is not None for token in vocabulary.tokens]
        readable[vocabulary.eos_id] = state.is_accepting
        return np.array(readable)

    return by_trial


@pytest.fixture(scope="session")
def tokenise() -> Callable[[bytes, Vocabulary, random.Random], list[int]]:
    """A random way to spell a text in tokens."""

    def tokenise(text: bytes, vocabulary: Vocabulary, rng: random.Random) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            fitting = [i for i, token in enumerate(vocabulary.tokens) if token and text.startswith(token, at)]
            longer = [i for i in fitting if len(vocabulary.tokens[i]) > 1]
            ids.append(rng.choice(longer if longer and rng.random() < 0.7 else fitting))
            at += len(vocabulary.tokens[ids[-1]])
        return ids

    return tokenise


@pytest.fixture(scope="session")
def is_valid() -> Callable[[object, bytes], bool]:
    """Whether a text is JSON in the strict sense (no key twice, no lone surrogate) and jsonschema finds it valid."""

    def is_valid(schema: object, text: bytes) -> bool:
        try:
            document = parse(text)
        except ValueError:
            return False
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        return kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(document)

    return is_valid


@pytest.fixture
def cases(shared: Path) -> list[dict]:
    """The cases of the course data: name, schema, accept, refuse, may_refuse."""
    lines = (shared / "cases" / "masking.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="session")
def real(need) -> RealVocabulary:
    """The tokenizer and the vocabulary of the embedded model."""
    found = real_vocabulary("49k")
    need(found is not None, "the embedded model (modtools model fetch)")
    return found
