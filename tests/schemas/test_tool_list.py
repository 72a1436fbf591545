"""Tools in the shapes that people have them in."""

from __future__ import annotations

import json

import pytest

from modtools.errors import RecordError, UsageError
from modtools.schemas.tool_list import ToolSchema, read_tool_list, tools_of, tools_of_module

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
EXPECTED = [ToolSchema("read", "Reads.", SCHEMA)]


@pytest.mark.parametrize(
    "data",
    [
        [{"name": "read", "description": "Reads.", "inputSchema": SCHEMA}],
        {"tools": [{"name": "read", "description": "Reads.", "inputSchema": SCHEMA}]},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"tools": [{"name": "read", "description": "Reads.", "inputSchema": SCHEMA}]},
        },
        [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA}}],
        [{"type": "function", "name": "read", "description": "Reads.", "parameters": SCHEMA}],
        [{"name": "read", "description": "Reads.", "input_schema": SCHEMA}],
        {"name": "read", "description": "Reads.", "parameters": SCHEMA},
        {"functions": [{"name": "read", "description": "Reads.", "parameters": SCHEMA}]},
    ],
)
def test_known_shapes_are_one_list(data, tmp_path):
    assert tools_of(data) == EXPECTED
    (tmp_path / "tools.json").write_text(json.dumps(data))
    assert read_tool_list(tmp_path / "tools.json") == EXPECTED


def test_a_tool_without_arguments_or_description_is_one():
    assert tools_of([{"name": "now", "description": None}]) == [
        ToolSchema("now", "", {"type": "object", "properties": {}})
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "expected a list of tools"), ([], "at least one tool"), ("read", "at least one tool"), ([1], "an object with a name"),
        ([{"name": ""}], "an object with a name"), ([{"name": "a", "parameters": []}], "its schema is no object"),
        ([{"name": "a", "description": 3}], "its description is no text"), ({"tools": {}}, "expected a list of tools"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_tools_is_named(data, message):
    with pytest.raises(UsageError, match=message):
        tools_of(data)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RecordError, match="does not exist"):
        read_tool_list(tmp_path / "none.json")


MODULE = '''
from enum import Enum
from typing import Annotated, Literal


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def paint(wall: str, colour: Colour, coats: int = 1, tags: list[str] | None = None, how: Literal["brush", "roll"] = "roll",
          sizes: dict[str, float] = {}, note: Annotated[str, "for the painter"] = "", either: int | str = 0, free=None):
    """Paint a wall.

    Args:
        wall: which one, by its number.
        coats (int): how many.
    """


def _private():
    pass
'''


def test_functions_become_tools_by_their_annotations_and_docstrings(tmp_path):
    (tmp_path / "m.py").write_text(MODULE)
    (tool,) = tools_of_module(tmp_path / "m.py")
    assert (tool.name, tool.description, tool.schema["required"]) == ("paint", "Paint a wall.", ["wall", "colour"])
    assert tool.schema["properties"] == {
        "wall": {"type": "string", "description": "which one, by its number."},
        "colour": {"enum": ["red", "blue"]},
        "coats": {"type": "integer", "description": "how many."},
        "tags": {"type": "array", "items": {"type": "string"}},
        "how": {"enum": ["brush", "roll"]},
        "sizes": {"type": "object", "additionalProperties": {"type": "number"}},
        "note": {"type": "string"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "free": {},
    }


@pytest.mark.parametrize(
    ("text", "message"), [("x = 1", "no public function"), ("def", "SyntaxError"), ("1 / 0", "ZeroDivisionError")]
)
def test_a_module_that_cannot_be_used_is_named(text, message, tmp_path):
    (tmp_path / "m.py").write_text(text)
    with pytest.raises(UsageError, match=message):
        tools_of_module(tmp_path / "m.py")
    with pytest.raises(UsageError, match="cannot be used"):
        tools_of_module(tmp_path / "none.py")
