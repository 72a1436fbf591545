"""The cases of the course data, by document and token by token."""

from __future__ import annotations

import random

import numpy as np
import pytest

from modtools.masking import Vocabulary, compile_json_schema
from modtools.masking.matcher import EmptyMaskError


def test_documents_are_accepted_and_refused_as_the_cases_say(cases):
    wrong = []
    for case in cases:
        grammar = compile_json_schema(case["schema"])
        wrong += [("refused", case["name"], text) for text in case["accept"] if not grammar.accepts(text.encode())]
        wrong += [("accepted", case["name"], text) for text in case["refuse"] if grammar.accepts(text.encode())]
    assert wrong == []
    assert len(cases) >= 26


def test_every_tokenisation_of_an_accepted_document_is_allowed_to_its_end(cases, vocabulary, tokenise):
    rng = random.Random(5)
    for case in cases:
        grammar = compile_json_schema(case["schema"])
        for text in case["accept"]:
            for _ in range(8):
                matcher = grammar.matcher(vocabulary)
                for token_id in tokenise(text.encode(), vocabulary, rng):
                    assert matcher.allowed()[token_id], (case["name"], text, vocabulary.tokens[token_id])
                    matcher.advance(token_id)
                assert matcher.allowed()[vocabulary.eos_id] and matcher.is_accepting()


def test_no_tokenisation_leads_through_a_refused_document(cases, vocabulary, tokenise):
    rng = random.Random(6)
    for case in cases:
        grammar = compile_json_schema(case["schema"])
        for text in case["refuse"]:
            matcher, is_through = grammar.matcher(vocabulary), True
            for token_id in tokenise(text.encode(), vocabulary, rng):
                if not matcher.allowed()[token_id]:
                    is_through = False
                    break
                matcher.advance(token_id)
            assert not (is_through and matcher.allowed()[vocabulary.eos_id]), (case["name"], text)


def test_the_text_of_a_special_token_is_never_string_content(vocabulary):
    matcher = compile_json_schema({"type": "object", "properties": {"t": {"type": "string"}}}).matcher(vocabulary)
    for byte in b'{"t":"':
        matcher.advance(vocabulary.tokens.index(bytes([byte])))
    assert not matcher.allowed()[[0, 1]].any()


def test_end_of_sequence_is_masked_before_anything_is_written(vocabulary):
    assert not compile_json_schema({"type": "object"}).matcher(vocabulary).allowed()[vocabulary.eos_id]


def test_an_empty_allowed_set_is_an_error_that_names_the_state():
    quotes_only = Vocabulary.from_bytes([b"", b'"', b"z"], eos_id=0)
    matcher = compile_json_schema({"type": "string", "pattern": "^[xy]$"}).matcher(quotes_only)
    with pytest.raises(EmptyMaskError, match="before the value"):
        matcher.allowed()


@pytest.mark.parametrize("blanks", [0, 1, 7])
def test_so_many_blanks_are_accepted_and_one_more_is_refused(blanks):
    grammar = compile_json_schema({"type": "object", "properties": {"a": {"type": "array"}}}, whitespace=blanks)
    for template in ('{{"a"{}:[1]}}', '{{"a":[{}1]}}', '{}{{"a":[]}}', '{{"a":[]}}{}', "{{{}}}", '{{"a":[1{},2]}}'):
        assert grammar.accepts(template.format(" " * blanks).encode())
        assert not grammar.accepts(template.format("\n" * (blanks + 1)).encode())


def test_a_blank_is_a_byte_and_not_a_printable_letter(vocabulary):
    matcher = compile_json_schema({"type": "string", "pattern": "^[a-z]+ [a-z]+$"}).matcher(vocabulary)
    for token in (b'"', b"cat"):
        matcher.advance(vocabulary.tokens.index(token))
    allowed = matcher.allowed()
    assert allowed[vocabulary.tokens.index(b" ")] and not allowed[vocabulary.tokens.index("Ġ".encode()[:1])]
    assert np.flatnonzero(allowed).size > 1
