"""Broken, endless and malicious schemas and patterns: a clear error that names the place, and no hang."""

from __future__ import annotations

import json

import pytest

from modtools.masking import BudgetError, PatternError, SchemaError, compile_json_schema, compile_regex


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ('{"const": 1e400}', "const"),
        ('{"const": NaN}', "const"),
        ('{"enum": [1, {"a": [-1e400]}]}', "enum"),
        ('{"const": 1e400, "multipleOf": 2}', "const"),
        ('{"minLength": 1e400}', "minLength"),
        ('{"minLength": NaN}', "minLength"),
        ('{"maxItems": 1e400}', "maxItems"),
        ('{"minLength": null}', "minLength"),
        ('{"minimum": null}', "minimum"),
        ('{"exclusiveMinimum": "x"}', "exclusiveMinimum"),
        ('{"format": ["date"]}', "format"),
        ('{"format": 3}', "format"),
        ('{"type": {"a": 1}}', "type"),
        ('{"type": [{}]}', "type"),
        ('{"type": "array", "prefixItems": null}', "prefixItems"),
        ('{"type": "array", "prefixItems": {}}', "prefixItems"),
        ('{"properties": {"a": {"$ref": "#/allOf/²"}}, "allOf": [{}]}', "$ref"),
        ('{"$ref": "#"}', "$ref"),
        ('{"allOf": [{"$ref": "#"}]}', "$ref"),
        ('{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}', "$ref"),
    ],
)
def test_a_broken_keyword_is_refused_by_its_name(schema, keyword):
    with pytest.raises(SchemaError) as caught:
        compile_json_schema(json.loads(schema))
    assert caught.value.keyword == keyword and len(str(caught.value)) < 400


@pytest.mark.parametrize("keyword", ["const", "minimum"])
def test_a_number_of_thousands_of_digits_is_refused_and_one_beyond_doubles_is_not(keyword):
    with pytest.raises(SchemaError, match="900 digits"):
        compile_json_schema({"type": "integer", keyword: 10**5000})
    assert compile_json_schema({"type": "integer", keyword: 10**310}).accepts(str(10**310).encode())


def test_what_is_no_json_is_refused():
    with pytest.raises(SchemaError, match="no value of JSON"):
        compile_json_schema({"enum": [{1, 2}]})


def _nested(depth: int, keyword: str) -> dict:
    schema: dict = {"type": "integer"}
    for _ in range(depth):
        schema = {keyword: {"a": schema} if keyword == "properties" else [schema]}
    return schema


@pytest.mark.parametrize("keyword", ["properties", "anyOf", "allOf", "prefixItems"])
def test_a_schema_nested_too_deeply_is_refused(keyword):
    with pytest.raises((BudgetError, SchemaError), match="nested"):
        compile_json_schema(_nested(3_000, keyword))
    compile_json_schema(_nested(40, keyword))


@pytest.mark.parametrize(
    "pattern", ["(" * 2_000 + "a" + ")" * 2_000, "(?:" + "()" * 10_000 + "){10000}", r"^(\p{L}|\p{N}){1,4000}$"]
)
def test_an_endless_pattern_is_refused(pattern):
    with pytest.raises(BudgetError):
        compile_regex(pattern)


@pytest.mark.parametrize("pattern", ["a{2}{3}", "a{2}+", "(?<>a)", "(?<1>a)", "(?<n>a)(?<n>b)", "(?<n"])
def test_a_broken_pattern_is_refused(pattern):
    with pytest.raises(PatternError):
        compile_regex(pattern)


def test_alternatives_that_multiply_are_refused():
    schema = {"allOf": [{"anyOf": [{"minimum": i}, {"maxLength": i}]} for i in range(30)]}
    with pytest.raises(BudgetError, match="alternatives"):
        compile_json_schema(schema)


def test_ways_to_read_that_double_with_every_byte_are_refused_while_reading():
    lists = [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 5}]
    grammar = compile_json_schema({"anyOf": [*lists, {"type": "integer"}]})
    assert grammar.accepts(b"[[1,[2]],3]")
    with pytest.raises(BudgetError, match="ways to read"):
        grammar.accepts(b"[" * 40 + b"]" * 40)


def test_keys_with_a_nul_are_told_from_others():
    low = {"type": "integer", "maximum": 3}
    either = {"$ref": "#/properties/a%00", "anyOf": [{"minimum": 0}, {"type": "string"}]}
    grammar = compile_json_schema({"properties": {"a": either, "a\0": low}})
    assert grammar.accepts(b'{"a":3}') and not grammar.accepts(b'{"a":5}')


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [
        ({"exclusiveMaximum": 1e16}, ["9999999999999998", "12"], ["9999999999999999.9", "9999999999999999"]),
        ({"exclusiveMinimum": 2**53}, ["9007199254740994"], ["9007199254740992.1", "9007199254740993"]),
        ({"exclusiveMaximum": 10**15 - 1}, ["999999999999998"], ["999999999999998.9", "999999999999999"]),
    ],
)
def test_no_double_is_rounded_onto_an_excluded_bound(bound, inside, outside):
    grammar = compile_json_schema({"type": "number"} | bound)
    assert [text for text in inside if not grammar.accepts(text.encode())] == []
    assert [text for text in outside if grammar.accepts(text.encode())] == []


@pytest.mark.parametrize(("value", "text"), [(1e15, "1000000000000000"), (1e16, "10000000000000000"), (1e22, "1e+22")])
def test_a_given_number_is_spelled_as_javascript_prints_it(value, text):
    assert compile_json_schema({"const": value}).accepts(text.encode())
    assert compile_json_schema({"enum": [1e30], "multipleOf": 0.01}).accepts(b"1e+30")
