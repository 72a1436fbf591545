"""Masks are sound and maximal: exactly the tokens after which a document can still be finished."""

from __future__ import annotations

import random

import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.masking import Vocabulary, allowed, compile_grammar, compile_json_schema, compile_regex
from modtools.masking.matcher import EmptyMaskError

SCHEMAS = {
    "anything": True,
    "open object": {"properties": {"a": {"type": "integer"}, "ab": {}}, "required": ["a"], "type": "object"},
    "closed object": {
        "type": "object",
        "properties": {"a": {"type": "number", "minimum": 0, "maximum": 1.5}, "b": {"enum": ["é", "\n", 1, None]}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "keys by pattern": {
        "type": "object",
        "patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}},
        "additionalProperties": False,
    },
    "classes of keys": {
        "type": "object",
        "patternProperties": {"^i": {"type": "integer"}, "^s": {"type": "string"}, "^[éü]": {"type": "null"}},
        "additionalProperties": False,
    },
    "two keys only": {"type": "object", "patternProperties": {"^[ab]$": {}}, "additionalProperties": False},
    "an impossible key": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": False},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "short keys": {"type": "object", "propertyNames": {"maxLength": 1}, "minProperties": 1, "maxProperties": 2},
    "a tree": {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#"}}}, "required": ["a"]},
    "a tuple": {
        "type": "array",
        "prefixItems": [{"type": "boolean"}, {"type": "string", "minLength": 2, "maxLength": 3}],
        "items": {"type": "integer", "multipleOf": 3},
        "minItems": 1,
        "maxItems": 4,
    },
    "pattern": {"type": "string", "pattern": "^[a-é]{1,3}$"},
    "pattern and length": {"type": "string", "pattern": "[ab]", "minLength": 2, "maxLength": 40},
    "lengths with gaps": {"type": "string", "pattern": "^(abc|dd)*$", "minLength": 4, "maxLength": 7},
    "an amount of a length": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]{1,2})?$", "minLength": 5, "maxLength": 9},
    "room for the required": {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": {"type": "integer"},
        "maxProperties": 2,
    },
    "half characters counted": {"type": "string", "pattern": "^[é-ü☀-☂a]*$", "minLength": 1, "maxLength": 3},
    "number in an array": {"type": "array", "items": {"type": "number", "minimum": -12, "maximum": 120}},
    "overlap": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^a"}, {"type": "number"}]},
}


@pytest.fixture(params=[0, 10_000], ids=["splits", "walks"])
def threshold(request, monkeypatch):
    """Both ways to a mask: tokens split per automaton state wherever possible, and never."""
    monkeypatch.setattr(allowed, "WIDE_TOKENS", request.param)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("order", ["any", "declared"])
def test_a_mask_allows_exactly_the_tokens_that_can_be_read(name, order, threshold, vocabulary, by_trial):
    rng = random.Random(name)
    grammar = compile_json_schema(SCHEMAS[name], whitespace=3, property_order=order)
    for _ in range(4):
        matcher = grammar.matcher(vocabulary)
        for _ in range(20):
            mask = matcher.allowed()
            assert np.array_equal(mask, by_trial(matcher.state, vocabulary)), matcher.state.describe()
            token_id = int(rng.choice(np.flatnonzero(mask)))
            matcher.advance(token_id)
            if token_id == vocabulary.eos_id:
                break


def _towards_the_end(matcher, rng: random.Random) -> int:
    """An allowed token, one that closes something where there is one."""
    mask, tokens = matcher.allowed(), matcher.vocabulary.tokens
    if mask[matcher.vocabulary.eos_id]:
        return matcher.vocabulary.eos_id
    is_inside = "inside a string" in matcher.state.describe() or "key that" in matcher.state.describe()
    for plain in (b'ab"', b'"') if is_inside else (b"}]", b'"ab:,1'):
        fitting = [i for i in (tokens.index(bytes([byte])) for byte in plain) if mask[i]]
        if fitting:
            return rng.choice(fitting)
    return int(rng.choice(np.flatnonzero(mask)))


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("order", ["any", "declared"])
def test_no_walk_through_masks_gets_stuck_and_every_end_is_valid(name, order, vocabulary, is_valid):
    rng = random.Random(name)
    grammar = compile_json_schema(SCHEMAS[name], whitespace=2, property_order=order)
    finished = 0
    for _ in range(25):
        matcher, text = grammar.matcher(vocabulary), b""
        for step in range(300):
            token_id = (
                _towards_the_end(matcher, rng) if step > 12 else int(rng.choice(np.flatnonzero(matcher.allowed())))
            )
            matcher.advance(token_id)
            if token_id == vocabulary.eos_id:
                finished += 1
                assert is_valid(SCHEMAS[name], text) and grammar.accepts(text), text
                break
            text += vocabulary.tokens[token_id]
    assert finished >= 24


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_are_exact_over_a_vocabulary_cut_out_of_documents(name, vocabulary, by_trial):
    """Its tokens straddle whatever boundaries the documents have."""
    rng = random.Random(name)
    grammar, documents = compile_json_schema(SCHEMAS[name], whitespace=2), []
    while len(documents) < 8:
        matcher, text = grammar.matcher(vocabulary), b""
        for step in range(300):
            token_id = (
                _towards_the_end(matcher, rng) if step > 8 else int(rng.choice(np.flatnonzero(matcher.allowed())))
            )
            matcher.advance(token_id)
            text += vocabulary.tokens[token_id] or b""
            if token_id == vocabulary.eos_id:
                documents.append(text)
                break
    pieces = set()
    for text in documents:
        for _ in range(60):
            at = rng.randrange(len(text))
            pieces.add(text[at : at + rng.randrange(1, 9)])
    cut = Vocabulary.from_bytes([None, *(bytes([byte]) for byte in range(256)), *sorted(pieces)], eos_id=0)
    for text in documents:
        for _ in range(8):
            matcher = grammar.matcher(cut)
            matcher.read(text[: rng.randrange(len(text) + 1)])
            assert np.array_equal(matcher.allowed(), by_trial(matcher.state, cut)), matcher.state.describe()


def test_half_a_character_is_allowed_only_where_its_other_half_can_follow(vocabulary):
    matcher = compile_json_schema({"type": "string", "pattern": "^[é-ê]$"}).matcher(vocabulary)
    matcher.advance(vocabulary.tokens.index(b'"'))
    allowed_bytes = {vocabulary.tokens[i] for i in np.flatnonzero(matcher.allowed())}
    assert b"\xc3" in allowed_bytes and b"\xc2" not in allowed_bytes and b"\xa9" not in allowed_bytes
    matcher.advance(vocabulary.tokens.index(b"\xc3"))
    assert {vocabulary.tokens[i] for i in np.flatnonzero(matcher.allowed())} == {b"\xa9", b"\xaa", b'\xa9"'}


@pytest.mark.parametrize("begun", ['{"é":1,"'.encode() + b"\xc3", b'{"\\u00e9":1,"' + b"\xc3", b'{"a\\n":1,"a\\'])
def test_a_used_key_is_not_completed_from_inside_a_character_or_an_escape(begun, by_trial):
    ends = [b'\xa9"', b'\xaa"', b'n"', b't"', b'n":2,"a\\n"']
    words = Vocabulary.from_bytes([None, *(bytes([byte]) for byte in range(256)), *ends], eos_id=0)
    matcher = compile_json_schema({"type": "object", "additionalProperties": {"type": "integer"}}).matcher(words)
    matcher.read(begun)
    assert np.array_equal(matcher.allowed(), by_trial(matcher.state, words))
    allowed_ends = {words.tokens[i] for i in np.flatnonzero(matcher.allowed())} & {*ends}
    assert allowed_ends == ({b't"'} if begun.endswith(b"\\") else {b'\xaa"'})


@pytest.mark.parametrize("begun", ['{"é":1,"', '{"é":1,"中":2,"', '{"ab":1,"é":1,"', '{"\\n":1,"'])
def test_a_byte_that_begins_used_keys_only_is_refused(begun, by_trial):
    ends = ["中".encode()[:2], b"\\n", b"\\", b'b":', b'ab":1,"', b"a"]
    words = Vocabulary.from_bytes([None, *(bytes([byte]) for byte in range(256)), *ends], eos_id=0)
    few = {
        "type": "object",
        "patternProperties": {"^(é|中|ab|\n)$": {"type": "integer"}},
        "additionalProperties": False,
    }
    matcher = compile_json_schema(few, whitespace=0).matcher(words)
    matcher.read(begun.encode())
    assert np.array_equal(matcher.allowed(), by_trial(matcher.state, words))
    assert matcher.allowed()[words.tokens.index(b"\xc3")] == ("é" not in begun)


@pytest.mark.parametrize(
    ("schema", "begun"),
    [
        ({"propertyNames": {"enum": ["a"]}}, b'{"a'),
        ({"propertyNames": {"enum": ["a"]}}, b'{"'),
        ({"propertyNames": {"maxLength": 0}}, b'{"'),
        ({"patternProperties": {"^[ab]$": {"type": "integer"}}, "additionalProperties": False}, b'{"b":1,"a'),
    ],
)
def test_a_token_that_completes_the_last_key_does_not_begin_another(schema, begun, by_trial):
    ends = [b'":1,"', b'":1,', b'":"","', b'":1, "', b'a":1,"', b'":1', b'":1}', b'":{"a":1,"b":2}']
    words = Vocabulary.from_bytes([None, *(bytes([byte]) for byte in range(256)), *ends], eos_id=0)
    matcher = compile_json_schema({"type": "object"} | schema).matcher(words)
    matcher.read(begun)
    assert np.array_equal(matcher.allowed(), by_trial(matcher.state, words))


def test_a_token_that_leaves_too_few_characters_to_come_is_refused(by_trial):
    words = Vocabulary.from_bytes(
        [None, *(bytes([byte]) for byte in range(256)), b".5", b".55", b"12", b"123."], eos_id=0
    )
    matcher = compile_json_schema(SCHEMAS["an amount of a length"]).matcher(words)
    for text in (b'"1', b"2", b"3"):
        matcher.read(text)
        assert np.array_equal(matcher.allowed(), by_trial(matcher.state, words))
        assert matcher.allowed()[words.tokens.index(b".55")] == (text != b'"1')


def test_a_token_is_refused_where_the_vocabulary_cannot_finish_what_it_begins():
    tokens = [None, b"a", b"b", b"cd", b"c"]  # no token for d alone
    matcher = compile_regex("a?(bx|cd|cdd)").matcher(Vocabulary.from_bytes(tokens, eos_id=0))
    assert np.flatnonzero(matcher.allowed()).tolist() == [1, 3]
    with pytest.raises(UsageError, match="not allowed"):
        matcher.advance(2)
    matcher.advance(3)
    assert np.flatnonzero(matcher.allowed()).tolist() == [0]


def test_after_the_end_nothing_is_allowed_until_a_reset(vocabulary):
    matcher = compile_regex("a*").matcher(vocabulary)
    matcher.advance(vocabulary.eos_id)
    with pytest.raises(EmptyMaskError, match="after end-of-sequence"):
        matcher.allowed()
    matcher.reset()
    assert matcher.allowed()[vocabulary.tokens.index(b"a")]


def test_a_copy_goes_its_own_way_and_a_refused_token_changes_nothing(vocabulary):
    matcher = compile_regex("ab|ac").matcher(vocabulary)
    matcher.advance(vocabulary.tokens.index(b"a"))
    copy = matcher.copy()
    copy.advance(vocabulary.tokens.index(b"b"))
    with pytest.raises(UsageError, match="not allowed"):
        matcher.advance(vocabulary.tokens.index(b"x"))
    assert copy.is_accepting() and not matcher.is_accepting()
    matcher.advance(vocabulary.tokens.index(b"c"))
    assert matcher.is_accepting()


def test_a_mask_belongs_to_its_caller(vocabulary):
    grammar = compile_regex("a+")
    first, second = grammar.matcher(vocabulary), grammar.matcher(vocabulary)
    before = first.allowed().copy()
    first.allowed()[:] = False
    assert np.array_equal(first.allowed(), before) and np.array_equal(second.allowed(), before)


def test_tokens_with_the_same_bytes_are_allowed_together():
    twins = Vocabulary.from_bytes([None, b"a", b"b", b"a"], eos_id=0)
    assert compile_regex("a").matcher(twins).allowed().tolist() == [False, True, False, True]


def test_a_grammar_needs_only_the_bytes_without_which_something_cannot_be_finished():
    printable = {*range(0x20, 0x7F), *range(0x80, 0xC0)}
    assert compile_regex(".*").needs == printable  # whatever was begun, printable characters can end it
    assert compile_regex("[а-я]+").needs == {0xD0, 0xD1, *range(0x80, 0xC0)}
    assert 0x04 in compile_regex("a\x04").needs
    assert compile_grammar('reply = until("<call>") "<call>" json({"enum": ["é"]})').needs == printable | {0xC3}
