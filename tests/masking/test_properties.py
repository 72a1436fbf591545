"""The properties of a mask, each apart: a class a property, in the order of their definitions in the course.

A(q) is the set of non-empty tokens after whose bytes a document can still be reached. Masks are sound when every
finished output is a document of the grammar, complete when every tokenisation of every document is allowed; a grammar
is faithful when its documents are those of the schema, but for the table of restrictions.
"""

from __future__ import annotations

import itertools
import json
import random
from functools import lru_cache

import numpy as np
import pytest

from maskcheck.oracle import Oracle
from maskcheck.reasons import reasons
from maskcheck.way_out import FAR, WayOut
from modtools.errors import UsageError
from modtools.masking import Vocabulary, compile_json_schema, compile_regex
from modtools.masking.matcher import EmptyMaskError

SCHEMAS = {
    "integer": {"type": "integer", "minimum": -1},
    "number": {"type": "number", "maximum": 10},
    "any number": {"type": "number"},
    "string": {"type": "string", "maxLength": 1},
    "pattern": {"type": "string", "pattern": "a|^1$"},
    "enum": {"enum": [1, "a", None, [], {"a": 1}]},
    "array": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    "open object": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "closed object": {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
    "alternatives": {"anyOf": [{"type": "array", "maxItems": 0}, {"const": "aa"}, {"type": "integer"}]},
}
LETTERS = '"a10-.e[]{}:, '
PARTS = ["{", "}", '"a"', '"b"', ":", ",", "1", "[", "]"]


@pytest.fixture(params=SCHEMAS)
def schema(request):
    """One of the schemas."""
    return SCHEMAS[request.param]


class TestMaskSound:
    """Every finished output is a document of the grammar."""

    def test_what_is_written_until_end_of_sequence_is_accepted(self, schema, vocabulary):
        grammar, rng = compile_json_schema(schema, whitespace=1), random.Random(1)
        finished = 0
        for _ in range(80):
            matcher, text = grammar.matcher(vocabulary), b""
            for _ in range(12):
                allowed = np.flatnonzero(matcher.allowed())
                ends = vocabulary.eos_id in allowed and rng.random() < 0.5
                token_id = vocabulary.eos_id if ends else int(rng.choice(allowed))
                matcher.advance(token_id)
                if token_id == vocabulary.eos_id:
                    finished += 1
                    assert grammar.accepts(text), text
                    break
                text += vocabulary.tokens[token_id]
        assert finished >= 1


class TestMaskComplete:
    """Every tokenisation of every document is allowed."""

    DOCUMENTS = ('{"a":1}', '{"a": 12}', '{ "b":"é\\n","a":0}', "[1,12]", '"a"', "12", '{"a":[{"b":"c","a":1}]}')

    @staticmethod
    def _tokenisations(text: bytes, vocabulary: Vocabulary):
        """Every way to spell a text in tokens of more than one byte where there are such, and in single bytes."""
        if not text:
            yield []
            return
        fitting = [i for i, token in enumerate(vocabulary.tokens) if token and text.startswith(token)]
        for i in fitting:
            for rest in TestMaskComplete._tokenisations(text[len(vocabulary.tokens[i]) :], vocabulary):
                yield [i, *rest]

    def test_all_tokenisations_of_a_document_are_allowed_to_its_end(self, vocabulary):
        grammar, tried = compile_json_schema(True), 0
        for text in self.DOCUMENTS:
            for ids in itertools.islice(self._tokenisations(text.encode(), vocabulary), 400):
                matcher = grammar.matcher(vocabulary)
                for token_id in [*ids, vocabulary.eos_id]:
                    assert matcher.allowed()[token_id], (text, [vocabulary.tokens[i] for i in ids])
                    matcher.advance(token_id)
                tried += 1
        assert tried > 300


class TestGrammarFaithful:
    """The grammar's documents are the schema's, both ways, over all texts of a few characters."""

    def test_every_accepted_text_is_valid(self, schema):
        grammar, oracle = compile_json_schema(schema), Oracle(schema)
        accepted = [text for text in _texts() if grammar.accepts(text.encode())]
        assert [text for text in accepted if not oracle.is_valid(text.encode())] == []
        assert accepted

    def test_every_valid_text_is_accepted_or_refused_for_one_row_of_the_table(self, schema):
        grammar, oracle = compile_json_schema(schema), Oracle(schema)
        for text in filter(_is_json, _texts()):
            if not grammar.accepts(text.encode()) and oracle.is_valid(text.encode()):
                assert len(reasons(schema, text)) == 1, (text, reasons(schema, text))


def _texts():
    """All texts of a few letters, and all of a few parts of JSON."""
    for alphabet, length in ((LETTERS, 4), (PARTS, 5)):
        for size in range(length + 1):
            yield from map("".join, itertools.product(alphabet, repeat=size))


@lru_cache(maxsize=1_000_000)
def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class TestTrimmed:
    """From every state that can be reached a document can be finished; no prefix is a dead end."""

    def test_after_every_legal_byte_a_document_is_found(self, schema):
        grammar, rng, way = compile_json_schema(schema, whitespace=1), random.Random(2), WayOut()
        states = {grammar.start}
        for _ in range(30):
            states |= {after for byte in range(256) if (after := rng.choice(sorted(states, key=id)).step(byte))}
        for state in rng.sample(sorted(states, key=id), min(20, len(states))):
            for _ in range(60):
                if state.is_accepting:
                    break
                state = min(filter(None, map(state.step, range(256))), key=way.of)
            assert state.is_accepting and way.of(state) < FAR, state.describe()


class TestEndOfSequence:
    """End-of-sequence is allowed exactly where the text so far is a document."""

    def test_it_is_allowed_exactly_in_accepting_states(self, schema, vocabulary):
        grammar, rng, met = compile_json_schema(schema, whitespace=1), random.Random(3), set()
        for _ in range(60):
            matcher, text = grammar.matcher(vocabulary), b""
            for _ in range(8):
                mask = matcher.allowed()
                assert mask[vocabulary.eos_id] == grammar.accepts(text) == matcher.is_accepting(), text
                met.add(bool(mask[vocabulary.eos_id]))
                going_on = [i for i in np.flatnonzero(mask) if i != vocabulary.eos_id]
                if not going_on:
                    break
                token_id = int(rng.choice(going_on))
                matcher.advance(token_id)
                text += vocabulary.tokens[token_id]
        assert met == {True, False}


class TestSpecialTokens:
    """Special tokens are never text, whatever their bytes are; tokens without bytes are never allowed."""

    def test_a_special_token_with_printable_text_is_masked_where_that_text_is_legal(self):
        tokens = [b"</s>", b"<pad>", b'"', b"<pad>", b"", None, *(bytes([byte]) for byte in range(256))]
        vocabulary = Vocabulary.from_bytes(tokens, eos_id=0, special_ids=[1])
        matcher = compile_json_schema({"type": "string"}).matcher(vocabulary)
        matcher.advance(2)
        assert matcher.allowed()[:6].tolist() == [False, False, True, True, False, False]
        with pytest.raises(UsageError, match="not allowed"):
            matcher.advance(1)


class TestEmptySet:
    """An empty allowed set is an error that names the state, never a mask without any token."""

    def test_a_vocabulary_that_cannot_go_on_is_told_where(self):
        vocabulary = Vocabulary.from_bytes([b"", b'"', b"z"], eos_id=0)
        matcher = compile_json_schema({"type": "string", "pattern": "^[xy]$"}).matcher(vocabulary)
        with pytest.raises(EmptyMaskError, match="before the value"):
            matcher.allowed()

    def test_no_mask_on_any_walk_is_empty(self, schema, vocabulary):
        rng = random.Random(4)
        for _ in range(40):
            matcher = compile_json_schema(schema, whitespace=1).matcher(vocabulary)
            while not matcher.is_finished and rng.random() < 0.9:
                mask = matcher.allowed()
                assert mask.any()
                matcher.advance(int(rng.choice(np.flatnonzero(mask))))

    def test_a_pattern_is_held_to_the_same(self):
        vocabulary = Vocabulary.from_bytes([b"", b"a"], eos_id=0)
        with pytest.raises(EmptyMaskError):
            compile_regex("ab").matcher(vocabulary).allowed()
