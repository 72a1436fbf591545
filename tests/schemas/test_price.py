"""Prices by a real tokenizer, savings that are differences of counts, and a slimmer list under which the same calls are valid."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from modtools.schemas.lint import lint
from modtools.schemas.price import (
    ECHOES,
    EXAMPLES,
    KEYS,
    LONG_ENUM,
    TWICE,
    prices,
    recoverable,
    slim,
    with_definitions,
    without_echoes,
    without_examples,
    without_keys,
)
from modtools.schemas.tool_list import ToolSchema, tools_of

POINT = {
    "type": "object",
    "properties": {"latitude": {"type": "number", "minimum": -90}, "longitude": {"type": "number", "minimum": -180}},
    "required": ["latitude", "longitude"],
}
FAT = ToolSchema(
    "plan_route",
    "Plan a route between two points. Returns an error where there is none.\n\nExamples:\nplan_route(start=...)\n"
    "plan_route(end=...)\n\nRoads that are closed are left out. For example, a pass in winter is closed. Toll roads count.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plan_routeArguments",
        "type": "object",
        "properties": {
            "start": POINT,
            "end": POINT,
            "title": {"type": "string", "description": "The title", "title": "Title"},
            "country": {"enum": [f"country-{i}" for i in range(40)], "description": "where (e.g. country-3) to start"},
            "speed": {"type": "number", "default": None, "examples": [50, 80]},
        },
        "required": ["start", "end"],
    },
)


def count(text: str) -> int:
    return len(text) // 3


def test_a_saving_is_the_difference_of_two_counts():
    savings = recoverable([FAT], count)
    assert {saving.kind for saving in savings} == {EXAMPLES, KEYS, TWICE, LONG_ENUM, ECHOES}
    assert [saving.tokens for saving in savings] == sorted((s.tokens for s in savings), reverse=True)
    changes = {EXAMPLES: without_examples, KEYS: without_keys, ECHOES: without_echoes, TWICE: with_definitions}
    for saving in savings:
        if saving.kind in changes:
            assert saving.tokens == count(FAT.text) - count(changes[saving.kind](FAT).text)
    assert next(s for s in savings if s.kind == LONG_ENUM).where == "country, 40 values"
    assert "start" in next(s for s in savings if s.kind == TWICE).where


def test_examples_go_and_the_rest_of_a_description_stays():
    slimmer = without_examples(FAT)
    assert slimmer.description == (
        "Plan a route between two points. Returns an error where there is none.\nRoads that are closed are left out. Toll roads count."
    )
    assert slimmer.schema["properties"]["country"]["description"] == "where to start"
    fenced = replace(FAT, description="Runs.\n```\ncall()\n```\nFails on error.")
    assert without_examples(fenced).description == "Runs.\nFails on error."
    kept = replace(FAT, description="Give an example of the style. The examples folder is read.")
    assert without_examples(kept).description == kept.description


def test_keys_that_say_nothing_go_and_arguments_of_that_name_stay():
    schema = without_keys(FAT).schema
    assert "$schema" not in schema and "title" not in schema and "title" in schema["properties"]
    assert schema["properties"]["title"] == {"type": "string", "description": "The title"}
    assert schema["properties"]["speed"] == {"type": "number"}
    older = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}
    assert without_keys(replace(FAT, schema=older)).schema == older  # without it, it would be read by another dialect
    odd = {"type": "object", "properties": {"a": {"enum": [{"title": "x"}], "const": {"examples": 1}}}}
    assert without_keys(replace(FAT, schema=odd)).schema == odd


def test_an_echo_goes_and_what_adds_something_stays():
    schema = {"properties": {"user_id": {"description": "The user ID"}, "city": {"description": "city of departure"}}}
    slimmer = without_echoes(replace(FAT, schema=schema)).schema["properties"]
    assert slimmer == {"user_id": {}, "city": {"description": "city of departure"}}
    assert without_echoes(FAT).description == FAT.description


def test_shared_subtrees_mean_the_same():
    shared_tool = with_definitions(FAT)
    assert (
        shared_tool.schema["properties"]["start"]
        == shared_tool.schema["properties"]["end"]
        == {"$ref": "#/$defs/start"}
    )
    for call, valid in (({"start": {"latitude": 1, "longitude": 2}, "end": {"latitude": 1, "longitude": 2}}, True),
                        ({"start": {"latitude": -91, "longitude": 2}, "end": {"latitude": 1, "longitude": 2}}, False)):  # fmt: skip
        for tool in (FAT, shared_tool):
            assert jsonschema.Draft202012Validator(tool.schema).is_valid(call) is valid
    alone = replace(FAT, schema={"type": "object", "properties": {"start": POINT}})
    assert with_definitions(alone) == alone


def test_a_slim_list_costs_less_and_has_no_new_finding():
    before, (after,) = [FAT], slim([FAT])
    assert prices([after], count)[""] < prices(before, count)[""]
    assert {finding.rule for finding in lint([after])} <= {finding.rule for finding in lint(before)}
    assert slim([after]) == [after]  # and nothing is left to take


def test_prices_are_those_of_the_lines_that_are_shown():
    tools = tools_of([{"name": "a", "description": "one"}, {"name": "b", "description": "two"}])
    assert (
        prices(tools, count)["a"] == count(tools[0].text)
        and prices(tools, len)[""] == sum(len(t.text) for t in tools) + 1
    )


def test_over_real_schemas_the_slim_ones_accept_and_refuse_the_same(shared):
    folder = shared / "data" / "maskbench-sample"
    tried = 0
    for path in sorted(folder.glob("*.json"))[::3]:
        data = json.loads(path.read_text())
        schema = data["schema"]
        if not isinstance(schema, dict):
            continue
        (slimmer,) = slim([ToolSchema("t", "", schema)])
        for test in data["tests"]:
            kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
            try:
                expected = kind(schema).is_valid(test["data"])
            except Exception:  # a schema that its own validator cannot read tells nothing
                continue
            assert kind(slimmer.schema).is_valid(test["data"]) is expected, (path.name, test)
            tried += 1
    assert tried > 200


def test_the_embedded_tokenizer_prices_the_labs_surfaces(tmp_path):
    from typer.testing import CliRunner

    from modtools.cli import app

    runner = CliRunner()
    total = {}
    for surface, exit_code in (("coarse", 1), ("fine", 0), ("code", 0)):
        done = runner.invoke(app, ["lint", "--surface", surface, "--json", str(tmp_path / "j.json")])
        assert done.exit_code == exit_code, done.output
        data = json.loads((tmp_path / "j.json").read_text())
        total[surface] = data["tokens"]["total"]
        assert all({"rule", "severity", "where", "why", "fix"} <= set(finding) for finding in data["findings"])
        errors = {finding["rule"] for finding in data["findings"] if finding["severity"] == "error"}
        assert errors == ({"catch_all", "free_form_object"} if surface == "coarse" else set())
    assert total["fine"] > total["coarse"] > 20
    source = tmp_path / "tools.json"
    source.write_text(json.dumps([{"name": FAT.name, "description": FAT.description, "inputSchema": FAT.schema}]))
    done = runner.invoke(app, ["lint", str(source), "--slim", str(tmp_path / "slim.json"), "--fail-on", "never",
                               "--json", str(tmp_path / "j.json")])  # fmt: skip
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "j.json").read_text())
    assert data["slim"]["after"] < data["slim"]["before"] == data["tokens"]["total"]
    assert [t.name for t in tools_of(json.loads((tmp_path / "slim.json").read_text()))] == ["plan_route"]


@pytest.mark.parametrize(("args", "message"), [([], "give one of"), (["--surface", "fine", "--fail-on", "x"], "--fail-on"),
                                               (["--surface", "fine", "--python", "x.py"], "give one of")])  # fmt: skip
def test_wrong_use_is_named(args, message):
    from typer.testing import CliRunner

    from modtools.cli import app

    done = CliRunner().invoke(app, ["lint", *args])
    assert message in str(done.exception)
