"""Parsing: strict JSON, and a name for every broken rule."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modtools.pipeline.parse import MAX_CALL_CHARS, ParseFailure, parse_call, parse_json


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ('{"a": 1,}', "trailing_comma", "character"),
        ("[1, 2, ]", "trailing_comma", "character"),
        ("{'a': 1}", "single_quotes", "character 1"),
        ("{\"a\": 'b'}", "single_quotes", "character 6"),
        ('{"a": "x\ny"}', "control_character", "character 8"),
        ('{"a": "x\ty"}', "control_character", "character 8"),
        ('{"a": "x\x01y"}', "control_character", "character 8"),
        ('{"a": [1, 2}', "not_json", "character 11"),
        ('{"a": 1', "unbalanced", "character 7"),
        ('{"a": "b', "unbalanced", "character 6"),
        ('{"a": 1}}', "unbalanced", "character 8"),
        ('{"a": NaN}', "nan_infinity", ""),
        ('{"a": -Infinity}', "nan_infinity", ""),
        ('{"a": 1e999}', "nan_infinity", ""),
        ('{"a": 1, "a": 2}', "duplicate_key", 'key "a"'),
        ('{"b": {"a": 1, "\\u0061": 2}}', "duplicate_key", 'key "a"'),
        ('{"a": "\\ud800"}', "lone_surrogate", ""),
        ('{"\\udc00": 1}', "lone_surrogate", ""),
        ("[" * 40 + "]" * 40, "too_deep", "character 32"),
        ('"' + "a" * MAX_CALL_CHARS + '"', "too_large", ""),
        ("9" * 5000, "too_large", ""),
        ('{"a": True}', "not_json", "character 6"),
        ("{a: 1}", "not_json", "character 1"),
        ('{"a": 1} // done', "not_json", "character 9"),
        ('{"a": 01}', "not_json", "character"),
    ],
)
def test_each_broken_rule_has_its_name_and_place(text, code, where):
    with pytest.raises(ParseFailure) as raised:
        parse_json(text)
    assert raised.value.failure.code == code
    assert raised.value.failure.where.startswith(where)
    assert raised.value.failure.expected


def test_brackets_inside_strings_do_not_count_as_depth():
    assert parse_json('{"a": "' + "[" * 100 + '"}') == {"a": "[" * 100}


def test_paired_surrogates_are_one_character():
    assert parse_json('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def test_a_call_keeps_its_arguments_as_they_came():
    assert parse_call('{"name": "t", "arguments": ""}').arguments == ""
    assert parse_call('{"name": "t"}').arguments is None


@given(st.recursive(st.none() | st.booleans() | st.integers(-(10**300), 10**300) | st.text(),
                    lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(), v, max_size=4), max_leaves=20))  # fmt: skip
def test_what_python_writes_is_read_back(value):
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False)) == value


@given(st.text(st.sampled_from('{}[]",:\\ntrue1e-.u0d8\n'), max_size=25))
def test_whatever_is_accepted_is_json_for_the_standard_parser_too(text):
    try:
        value = parse_json(text)
    except ParseFailure:
        return
    assert value == json.loads(text)
