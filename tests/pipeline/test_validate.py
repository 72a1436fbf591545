"""Validation: what the schema says, plus the two house rules."""

from __future__ import annotations

import pytest

from modtools.contract import ToolContract
from modtools.pipeline.validate import validate_arguments


def contract(**properties) -> ToolContract:
    return ToolContract("t", "A tool.", {"type": "object", "properties": properties, "required": list(properties)[:1]})


def codes(tool: ToolContract, arguments) -> list[str]:
    return [failure.code for failure in validate_arguments(tool, arguments)[1]]


@pytest.mark.case(1)
def test_an_argument_the_tool_does_not_know_is_refused_by_name():
    _, failures = validate_arguments(contract(yes={"type": "boolean"}), {"yes": True, "extra": "x"})
    assert [f.code for f in failures] == ["unknown_property"]
    assert '"extra"' in failures[0].what and '"yes"' in failures[0].expected


@pytest.mark.parametrize(
    ("schema", "value", "where"),
    [
        ({"type": "object", "properties": {"k": {"type": "integer"}}}, {"j": 1}, "arguments.a"),
        (
            {"type": "array", "items": {"type": "object", "properties": {"k": {}}}},
            [{"k": 1}, {"j": 1}],
            "arguments.a[1]",
        ),
        ({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"k": {}}}]}, {"k": 1, "j": 1}, "arguments.a"),
        ({"allOf": [{"properties": {"k": {}}}, {"properties": {"l": {}}}]}, {"k": 1, "l": 1, "j": 1}, "arguments.a"),
        ({"type": "array", "prefixItems": [{"properties": {"k": {}}}]}, [{"j": 1}], "arguments.a[0]"),
    ],
)
def test_unknown_properties_are_refused_at_every_depth(schema, value, where):
    _, failures = validate_arguments(contract(a=schema), {"a": value})
    assert [(f.code, f.where) for f in failures] == [("unknown_property", where)] and '"j"' in failures[0].what


def test_references_are_closed_where_they_are_used():
    tool = ToolContract("t", "", {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}},
                                  "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}})  # fmt: skip
    assert codes(tool, {"a": {"next": {"next": {}}}}) == []
    assert codes(tool, {"a": {"next": {"other": 1}}}) == ["unknown_property"]


@pytest.mark.parametrize("schema", [{"type": "object"}, {"additionalProperties": True, "properties": {"k": {}}},
                                    {"patternProperties": {"^j": {}}, "properties": {"k": {}}}])  # fmt: skip
def test_what_a_schema_leaves_open_on_purpose_stays_open(schema):
    assert codes(contract(a=schema), {"a": {"j": 1}}) == []


@pytest.mark.case(6)
@pytest.mark.parametrize("arguments", ["", None, {}])
def test_a_tool_without_parameters_takes_empty_arguments(arguments):
    assert validate_arguments(contract(), arguments) == ({}, [])


@pytest.mark.case(15)
@pytest.mark.parametrize("arguments", ['{"path": "a"}', "{}", "a", ""])
def test_arguments_as_a_string_are_refused(arguments):
    tool = contract(path={"type": "string"})
    assert codes(tool, arguments) == ["arguments_as_string"]


@pytest.mark.case(5)
def test_text_for_a_parameter_without_a_type_stays_text():
    arguments, failures = validate_arguments(contract(x={}), {"x": '__import__("os").system("true")'})
    assert failures == [] and arguments["x"] == '__import__("os").system("true")'


@pytest.mark.parametrize(
    ("schema", "value", "code"),
    [
        ({"type": "string"}, 1, "wrong_type"),
        ({"type": "integer"}, True, "wrong_type"),
        ({"type": ["string", "null"]}, 1, "wrong_type"),
        ({"enum": ["a", "b"]}, "c", "not_in_enum"),
        ({"const": 1}, 2, "not_in_enum"),
        ({"minimum": 1}, 0, "out_of_range"),
        ({"maxLength": 2}, "abc", "out_of_range"),
        ({"pattern": "^a"}, "b", "out_of_range"),
        ({"minItems": 1}, [], "out_of_range"),
        ({"format": "ipv4"}, "1.2.3", "out_of_range"),
        ({"not": {"type": "string"}}, "a", "invalid_argument"),
        ({"multipleOf": 1e-300}, 1e300, "out_of_range"),
    ],
)
def test_each_kind_of_wrong_value_has_its_code(schema, value, code):
    assert codes(contract(a=schema), {"a": value}) == [code]


def test_a_missing_argument_comes_first_and_the_rest_is_counted():
    tool = contract(path={"type": "string"}, n={"type": "integer"})
    assert codes(tool, {"n": "x", "m": 1}) == ["missing_argument", "unknown_property", "wrong_type"]


@pytest.mark.parametrize("arguments", [[], 3, True, [{"path": "a"}]])
def test_arguments_that_are_no_object_are_refused(arguments):
    assert codes(contract(path={"type": "string"}), arguments) == ["wrong_type"]


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_that_declares_no_parameters_takes_none(schema):
    assert codes(ToolContract("t", "", schema), {"force": True}) == ["unknown_property"]


def test_a_free_object_behind_a_reference_stays_free():
    for reference in ({"$ref": "#/$defs/r"}, {"$ref": "#/$defs/s"}, {"allOf": [{"$ref": "#/$defs/r"}]}):
        schema = {"type": "object", "properties": {"o": reference},
                  "$defs": {"r": {"type": "object"}, "s": {"$ref": "#/$defs/r"}}}  # fmt: skip
        assert codes(ToolContract("t", "", schema), {"o": {"any": 1}}) == []


def test_properties_that_only_a_condition_declares_are_closed_too():
    for part in (
        {"then": {"properties": {"k": {}}}, "if": True},
        {"dependentSchemas": {"k": {"properties": {"k": {}}}}},
    ):
        assert codes(contract(a=part), {"a": {"k": 1, "j": 1}}) == ["unknown_property"]


def test_each_failure_names_what_it_is_about():
    tool = ToolContract("t", "", {"type": "object", "properties": {"a": {}, "it's": {}}, "required": ["a", "it's"]})
    assert [f.what for f in validate_arguments(tool, {})[1]] == ['"a", "it\'s" are missing']
    depends = ToolContract(
        "t", "", {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}}
    )
    assert [f.what for f in validate_arguments(depends, {"a": 1})[1]] == ['"b" is missing']
    refused = contract(a=False)
    assert "False schema does not allow" in validate_arguments(refused, {"a": 1})[1][0].what
