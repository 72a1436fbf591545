"""What compiles and what is refused: references, alternatives, orders of keys, and every row of the restrictions."""

from __future__ import annotations

import itertools
import json

import pytest

from modtools.errors import UsageError
from modtools.masking import RESTRICTIONS, BudgetError, SchemaError, compile_json_schema


def _judge(schema: object, texts: list[str], **options) -> list[bool]:
    grammar = compile_json_schema(schema, **options)
    return [grammar.accepts(text.encode()) for text in texts]


CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
    "required": ["b"],
    "additionalProperties": False,
}
REFUSED_BY = {  # row of the table: (schema, options, a text the schema allows and the row refuses, its twin that is accepted)
    "duplicate keys": (True, {}, '{"a":1,"\\u0061":1}', '{"a":1,"b":1}'),
    "lone surrogates": ({"type": "string"}, {}, '"\\ud83d"', '"\\ud83d\\ude00"'),
    "one spelling": ({"enum": ["é", 1]}, {}, '"\\u00e9"', '"é"'),
    "one spelling of bounded names": ({"propertyNames": {"maxLength": 1}}, {}, '{"\\u0061":1}', '{"a":1}'),
    "whitespace": ({"type": "array"}, {"whitespace": 2}, "[   ]", "[  ]"),
    "property order": (CLOSED, {"property_order": "declared"}, '{"b":1,"a":1}', '{"a":1,"b":1}'),
    "integers": ({"type": "integer"}, {}, "1.0", "1"),
    "bounded numbers": ({"type": "number", "maximum": 4}, {}, "1e-3", "0.001"),
    "multiples": ({"type": "number", "multipleOf": 0.5}, {}, "1.50", "1.5"),
    "formats": ({"format": "time"}, {}, '"23:59:60Z"', '"23:59:59Z"'),
    "asserted formats": ({"format": "date"}, {}, '"tomorrow"', '"2026-11-30"'),
    "own dialects": ({"$schema": "https://example.org/mine", "type": "integer"}, {}, '"a"', "1"),
}


@pytest.mark.parametrize("name", [restriction.name for restriction in RESTRICTIONS])
def test_each_restriction_refuses_what_it_says_and_only_for_that(name, is_valid):
    schema, options, refused, accepted = REFUSED_BY[name]
    assert _judge(schema, [refused, accepted], **options) == [False, True]
    if name not in ("duplicate keys", "lone surrogates", "formats", "asserted formats", "own dialects"):
        assert is_valid(schema, refused.encode())


def test_any_order_of_keys_is_accepted_and_required_ones_must_come():
    grammar = compile_json_schema(CLOSED)
    for size in range(4):
        for keys in itertools.permutations("abc", size):
            text = json.dumps(dict.fromkeys(keys, 1))
            assert grammar.accepts(text.encode()) == ("b" in keys), text


def test_declared_order_keeps_the_order_and_free_keys_come_last():
    schema = {**CLOSED, "additionalProperties": True}
    texts = ['{"a":1,"b":1,"z":1}', '{"b":1,"c":1}', '{"z":1,"b":1}', '{"b":1,"a":1}', '{"b":1,"z":1,"c":1}']
    assert _judge(schema, texts, property_order="declared") == [True, True, False, False, False]


def test_the_number_of_members_is_bounded_in_any_order_and_in_the_declared():
    schema = {**CLOSED, "minProperties": 2, "maxProperties": 2}
    texts = ['{"b":1}', '{"a":1,"b":1}', '{"b":1,"c":1}', '{"a":1,"b":1,"c":1}']
    assert _judge(schema, texts) == _judge(schema, texts, property_order="declared") == [False, True, True, False]


def test_a_key_passed_over_may_not_leave_too_few():
    schema = {
        "properties": {"a": {}, "b": {}, "c": {}},
        "additionalProperties": False,
        "minProperties": 2,
        "type": "object",
    }
    state = compile_json_schema(schema, property_order="declared").start.read(b'{"')
    assert state.step(ord("b")) is not None and state.step(ord("c")) is None


def test_recursion_closes_by_itself():
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}},
                           "required": ["v"], "additionalProperties": False}},
    }  # fmt: skip
    deep = '{"v":1,"next":' * 200 + '{"v":0}' + "}" * 200
    assert _judge(tree, [deep, deep[:-1], '{"next":{"v":1}}']) == [True, False, False]


def test_schemas_that_no_document_fits_are_refused():
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    for schema in (
        False,
        endless,
        {"type": "string", "minLength": 2, "maxLength": 1},
        {"allOf": [{"type": "null"}, {"const": 1}]},
    ):
        with pytest.raises(SchemaError, match="no document fits"):
            compile_json_schema(schema)


def test_a_value_that_cannot_be_finished_is_never_begun():
    state = compile_json_schema({"properties": {"a": False, "b": {}}, "additionalProperties": False}).start.read(b'{"')
    assert state.step(ord("a")) is None and state.step(ord("b")) is not None
    assert _judge({"type": "array", "prefixItems": [{}], "items": False}, ["[1]", "[1,2]", "[]"]) == [True, False, True]


def test_all_of_and_siblings_of_references_must_hold_together():
    schema = {
        "$ref": "#/$defs/named",
        "allOf": [{"properties": {"n": {"maxLength": 3}}}, {"patternProperties": {"^n": {"pattern": "^x"}}}],
        "$defs": {
            "named": {"type": "object", "properties": {"n": {"type": "string", "minLength": 2}}, "required": ["n"]}
        },
    }
    texts = ['{"n":"xyz"}', '{"n":"x"}', '{"n":"xyzz"}', '{"n":"yyy"}', '{"n":"xy","nn":5}', '{"n":"xy","nn":"y"}']
    assert _judge(schema, texts) == [True, False, False, False, True, False]
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"s": {"type": "string"}},
           "items": {"$ref": "#/definitions/s", "maxLength": 1}}  # fmt: skip
    assert _judge(old, ['["ab"]', "[1]"]) == [True, False]


def test_one_of_compiles_only_where_its_branches_are_disjoint():
    kinds = [{"properties": {"k": {"const": kind}}, "required": ["k"], "type": "object"} for kind in ("a", "b")]
    assert _judge({"oneOf": kinds}, ['{"k":"b"}', '{"k":"c"}']) == [True, False]
    assert _judge({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}], "type": "string"}, ['"a"', '"c"']) == [True, False]
    with pytest.raises(SchemaError, match="oneOf at /items: branches 0 and 1 may both hold") as caught:
        compile_json_schema({"items": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}})
    assert (caught.value.keyword, caught.value.pointer) == ("oneOf", "/items")


def test_given_objects_and_arrays_are_accepted_in_any_order_and_layout():
    schema = {"enum": [{"a": [1, "é"], "b": None}, "x"]}
    texts = [
        '{ "b" : null, "a":[1 , "é"]}',
        '"x"',
        '{"a":[1,"é"]}',
        '{"a":[1],"b":null}',
        '{"a":[1,"é"],"b":null,"c":1}',
    ]
    assert _judge(schema, texts) == [True, True, False, False, False]
    assert _judge({"enum": [1, "a", True, None, [1]], "type": ["string", "array"]}, ['"a"', "[1]", "1", "true"]) == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"items": {"not": {}}}, "not at /items"),
        ({"properties": {"a/b": {"uniqueItems": True}}}, "uniqueItems at /properties/a~1b"),
        ({"if": {}, "then": {}}, r"if at \(root\)"),
        ({"dependentRequired": {"a": ["b"]}}, "dependentRequired"),
        ({"contains": {}}, "contains"),
        ({"$ref": "https://example.org/x"}, "leads out of the document"),
        ({"$ref": "#/$defs/x"}, "leads nowhere"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "leads back to itself"),
        ({"format": "idn-email"}, "format at"),
        ({"type": "text"}, "type at"),
        ({"multipleOf": 1e-12}, "multipleOf at"),
        ({"minLength": -1}, "minLength at"),
        ({"properties": []}, "properties at"),
        ({"items": 3}, "schema at /items"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_keyword_and_place(schema, named):
    with pytest.raises(SchemaError, match=named):
        compile_json_schema(schema)


def test_keywords_that_speak_of_other_types_and_annotations_are_no_obstacle():
    schema = {"type": "string", "uniqueItems": True, "x-note": 1, "title": "t", "default": 3, "format": "int64"}
    assert _judge(schema, ['"a"', "3"]) == [True, False]


def test_what_would_cost_too_much_is_refused():
    with pytest.raises(BudgetError, match="more than"):
        compile_json_schema({"type": "string", "pattern": "^(a|b)*a(a|b){15}$"})


def test_large_bounds_are_counted_and_not_unrolled():
    grammar = compile_json_schema({"type": "array", "minItems": 3, "items": {"maxLength": 100_000, "type": "string"}})
    text = json.dumps(["x" * 100_000] * 3)
    assert grammar.accepts(text.encode()) and not grammar.accepts(text.replace('"]', 'x"]').encode())


def test_wrong_arguments_are_named():
    for options in ({"property_order": "sorted"}, {"whitespace": -1}):
        with pytest.raises(UsageError, match=next(iter(options))):
            compile_json_schema(True, **options)


def test_a_state_says_in_words_where_it_is():
    state = compile_json_schema(CLOSED).start.read(b'{"a":1')
    assert (
        state.describe()
        == "inside an integer < in an object, after a member; keys so far: a; still required: b < after the value"
    )


def test_an_object_with_more_members_than_there_are_keys_fits_no_document():
    two = {"type": "object", "patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": False}
    with pytest.raises(SchemaError, match="no document"):
        compile_json_schema(two | {"minProperties": 3})
    with pytest.raises(SchemaError, match="no document"):
        compile_json_schema(two | {"minProperties": 2, "properties": {"a": {}, "b": False}})
    assert compile_json_schema(two | {"minProperties": 2}).accepts(b'{"b":null,"a":null}')


@pytest.mark.parametrize(
    "branches",
    [
        [{"format": "hostname"}, {"const": "ab--c.com"}],
        [{"type": "string", "format": "time"}, {"const": "12:00:00z"}],
        [{"type": "string", "format": "ipv6"}, {"type": "string", "pattern": "\\."}],
        [{"type": "string", "format": "date"}, {"type": "string", "format": "ipv4"}],
        [{"type": "number", "exclusiveMinimum": 0, "maximum": 1e-25}, {"type": "number", "minimum": 0}],
        [{"type": "object", "properties": {"u": {"format": "uri"}}}, {"type": "object", "required": ["u"]}],
    ],
)
def test_branches_of_one_of_are_disjoint_by_the_schema_and_not_by_our_narrower_spellings(branches):
    with pytest.raises(SchemaError, match="oneOf"):
        compile_json_schema({"oneOf": branches})


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_one_of_must_be_disjoint_in_every_place_that_refers_to_it(names):
    either = {"oneOf": [{"type": ["integer", "string"], "minimum": 0}, {"type": ["integer", "boolean"], "maximum": 10}]}
    beside = {"a": {"type": ["string", "boolean"]}, "b": {"type": "integer"}}  # with integers the branches overlap
    places = {name: {"allOf": [{"$ref": "#/$defs/u"}, beside[name]]} for name in names}
    with pytest.raises(SchemaError, match="oneOf"):
        compile_json_schema({"$defs": {"u": either}, "type": "object", "properties": places})
    alone = {"$defs": {"u": either}, "type": "object", "properties": {"a": places["a"]}, "required": ["a"]}
    assert compile_json_schema(alone).accepts(b'{"a":true}') and not compile_json_schema(alone).accepts(b'{"a":1}')


@pytest.mark.parametrize("order", ["any", "declared"])
def test_free_keys_leave_room_for_the_required_ones(order):
    schema = {"type": "object", "properties": {"id": {}}, "required": ["id"], "maxProperties": 2}
    grammar = compile_json_schema(schema, property_order=order)
    assert grammar.accepts(b'{"id":3,"x":1}') and not grammar.accepts(b'{"id":3,"x":1,"y":2}')
    assert grammar.accepts(b'{"x":1,"id":3}') == (order == "any")
    assert grammar.start.read(b'{"x":1,"y') is None


@pytest.mark.parametrize("least", [0, 1, 2, 5])
def test_each_item_is_judged_by_its_own_schema_wherever_the_least_number_lies(least):
    first = [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]
    grammar = compile_json_schema({"type": "array", "prefixItems": first, "items": {"type": "null"}, "minItems": least})
    whole = ["a", 1, True, None, None, None]
    for length in range(len(whole) + 1):
        assert grammar.accepts(json.dumps(whole[:length]).encode()) == (length >= least)
        wrong = [*whole[:length], 1.5]
        assert not grammar.accepts(json.dumps(wrong).encode())
    assert not grammar.accepts(b'["a",1,2,3]') and not grammar.accepts(b'["a",1,true,true,null]')
