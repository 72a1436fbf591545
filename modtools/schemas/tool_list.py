"""Lists of tools as people have them: MCP, OpenAI, Anthropic, the kit's contracts, or the functions of a Python module."""

from __future__ import annotations

import ast
import enum
import importlib.util
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.errors import UsageError
from modtools.records import read_json

_SCHEMA_KEYS = ("inputSchema", "input_schema", "parameters", "schema")
_PLAIN = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}


@dataclass(frozen=True)
class ToolSchema:
    """One tool as a model is shown it.

    Attributes:
        name, description: as written.
        schema: JSON Schema of the arguments, an object.
    """

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The tool as one line of JSON, which is what its price is counted on."""
        shown = {"name": self.name, "description": self.description, "parameters": self.schema}
        return json.dumps(shown, ensure_ascii=False, separators=(", ", ": "))


def read_tool_list(path: Path) -> list[ToolSchema]:
    """The tools of a JSON file.

    Raises:
        RecordError: where it cannot be read.
        UsageError: where it holds no tools; the message says which shapes are known.
    """
    return tools_of(read_json(path), str(path))


def tools_of(data: Any, where: str = "the list") -> list[ToolSchema]:
    """Tools from plain data: a list of them, or an object with "tools" or "functions" (also within "result").

    Raises:
        UsageError: as `read_tool_list`.
    """
    while isinstance(data, Mapping) and "name" not in data and data.get("type") != "function":
        key = next((key for key in ("tools", "functions", "result") if key in data), None)
        if key is None:
            raise UsageError(f"{where}: expected a list of tools, or an object with one under 'tools'")
        data = data[key]
    entries = [data] if isinstance(data, Mapping) else data
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        raise UsageError(f"{where}: expected a list with at least one tool")
    return [_tool(entry, f"{where}, tool {number}") for number, entry in enumerate(entries, 1)]


def _tool(entry: Any, where: str) -> ToolSchema:
    if isinstance(entry, Mapping) and isinstance(entry.get("function"), Mapping):
        entry = entry["function"]
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise UsageError(f"{where}: expected an object with a name")
    schema = next((entry[key] for key in _SCHEMA_KEYS if key in entry), {"type": "object", "properties": {}})
    if not isinstance(schema, Mapping):
        raise UsageError(
            f"{where} ({entry['name']}): its schema is no object; expected one under {', '.join(_SCHEMA_KEYS)}"
        )
    description = entry.get("description") or ""
    if not isinstance(description, str):
        raise UsageError(f"{where} ({entry['name']}): its description is no text")
    return ToolSchema(entry["name"], description, schema)


def tools_of_module(path: Path) -> list[ToolSchema]:
    """The public functions of a Python file as tools: name, docstring, and a schema from the annotations.

    The file is executed, as an import would.

    Raises:
        UsageError: where it cannot be run, or has no public function of its own.
    """
    path = Path(path)
    try:
        names = [
            node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
        ]
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a file of somebody's does when it is run
        raise UsageError(f"{path} cannot be used: {type(error).__name__}: {error}") from None
    public = [getattr(module, name) for name in names if not name.startswith("_")]
    if not public:
        raise UsageError(f"{path} defines no public function")
    return [tool_of_function(function) for function in public]


def tool_of_function(function: Callable[..., Any]) -> ToolSchema:
    """A function as a tool. A parameter's description is its line "name: ..." in the docstring."""
    text = inspect.getdoc(function) or ""
    hints = typing.get_type_hints(function)
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        properties[name] = _schema_of(hints.get(name, Any))
        lines = [line.strip() for line in text.splitlines()]
        said = next((line.split(":", 1)[1].strip() for line in lines if line.split(":", 1)[0].split(" (")[0] == name and ":" in line), "")  # fmt: skip
        if said:
            properties[name] = {**properties[name], "description": said}
        if parameter.default is parameter.empty:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    head = text.split("\n\nArgs:")[0].split("\n\nParameters")[0].strip()
    return ToolSchema(function.__name__, head, schema)


def _schema_of(hint: Any) -> dict[str, Any]:
    """JSON Schema of an annotation; {} where it says nothing."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        words = [each for each in inner[1:] if isinstance(each, str)]
        return {**_schema_of(inner[0]), **({"description": words[0]} if words else {})}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        kinds = [_schema_of(each) for each in inner if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [each.value for each in hint]}
    if origin is list or origin is Sequence:
        return {"type": "array", **({"items": _schema_of(inner[0])} if inner else {})}
    if origin in (dict, Mapping):
        return {"type": "object", **({"additionalProperties": _schema_of(inner[1])} if len(inner) == 2 else {})}
    return {}
