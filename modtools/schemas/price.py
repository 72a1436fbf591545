"""What a list of tools costs in tokens, and which of them could be had back.

A surface is read at every turn that no cache spares, so its tokens are the dearest of a session. Four kinds can often
go: tutorials and examples inside descriptions; keys that no model is helped by; subtrees that stand there twice and one
definition would share; and enumerations so long that free text with a check is cheaper. Each saving is the difference
of two counts by one tokenizer, never an estimate. What a saving may cost, it says.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from modtools.schemas.lint.finding import words
from modtools.schemas.tool_list import ToolSchema

Count = Callable[[str], int]

EXAMPLES, KEYS, TWICE, LONG_ENUM, ECHOES = "examples", "unused keys", "repeated subtrees", "long enumerations", "echoes"
KINDS = {
    EXAMPLES: "examples and tutorials in descriptions; a model that relies on them may call worse",
    KEYS: "title, examples, $schema, $comment and the like, which say nothing that a call needs",
    TWICE: "subtrees that one definition under $defs would share; some clients do not follow $ref",
    LONG_ENUM: "enumerations whose values free text could give; the schema then no longer checks them",
    ECHOES: "descriptions that repeat their argument's name",
}
SAFE = (KEYS, ECHOES, EXAMPLES)
"""The kinds that `slim` takes out: they change no language of valid calls, and no client needs to follow a reference."""

_UNUSED = ("title", "examples", "example", "$comment", "deprecated", "readOnly", "writeOnly")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"  # what a schema without $schema is read as
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LONG_ENUM = 20  # values from which an enumeration may be dearer than it is worth
_LEAST_SUBTREE = 60  # characters from which a subtree is worth sharing
_TUTORIAL = re.compile(
    r"```.*?(?:```|\Z)"  # a fenced block
    r"|<examples?>.*?</examples?>"
    r"|(?:^|\n)[ \t]*#*[ \t]*(?:examples?|usage|sample calls?)[ \t]*:?[ \t]*\n(?:[^\n]*\S[^\n]*(?:\n|\Z))+"  # a section
    r"|(?:(?<=[.!?])\s+|^|\n)(?:for example|for instance|(?:examples?|example usage):(?=[ \t]*\S))[^\n]*?(?:[.!?](?=\s|\Z)|(?=\n)|\Z)"
    r"|\s*\((?:e\.g\.|for example|such as)[^()]*\)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Saving:
    """Tokens of a tool that could be had back.

    Attributes:
        tool, kind: whose, and one of KINDS.
        where: arguments, or what is shared.
        tokens: spared, by the tokenizer that counted.
    """

    tool: str
    kind: str
    where: str
    tokens: int


def prices(tools: Sequence[ToolSchema], count: Count) -> dict[str, int]:
    """Tool -> tokens of its line, and under "" those of the whole list as it is shown, one line a tool."""
    return {tool.name: count(tool.text) for tool in tools} | {"": count("\n".join(tool.text for tool in tools))}


def recoverable(tools: Sequence[ToolSchema], count: Count) -> list[Saving]:
    """What could be had back, the largest saving first."""
    found = [saving for tool in tools for saving in _savings(tool, count)]
    return sorted((saving for saving in found if saving.tokens > 0), key=lambda saving: -saving.tokens)


def slim(tools: Sequence[ToolSchema]) -> list[ToolSchema]:
    """The same tools without what SAFE names; every call that was valid is valid, and no other.

    Whether a model calls them as well is not said here: measure it.
    """
    return [without_echoes(without_keys(without_examples(tool))) for tool in tools]


def _savings(tool: ToolSchema, count: Count) -> Iterator[Saving]:
    before = count(tool.text)
    for kind, change in ((EXAMPLES, without_examples), (KEYS, without_keys), (ECHOES, without_echoes)):
        after = change(tool)
        if after != tool:
            yield Saving(tool.name, kind, ", ".join(_differences(tool, after)[:4]), before - count(after.text))
    shared = with_definitions(tool)
    if shared != tool:
        names = ", ".join(list(shared.schema["$defs"])[:4])
        yield Saving(tool.name, TWICE, f"$defs: {names}", before - count(shared.text))
    for path, values in _enums(tool.schema):
        if len(values) > _LONG_ENUM:
            after = replace(tool, schema=_at(tool.schema, path, lambda node: _as_text(node)))
            yield Saving(tool.name, LONG_ENUM, f"{_named(path)}, {len(values)} values", before - count(after.text))


def without_examples(tool: ToolSchema) -> ToolSchema:
    """Descriptions without fenced blocks, example sections and example sentences."""
    return _described(tool, lambda text, name: re.sub(r"\s+\n|\n{3,}", "\n", _TUTORIAL.sub("", text)).strip())


def without_echoes(tool: ToolSchema) -> ToolSchema:
    """Arguments without descriptions that say no word beyond the argument's name."""
    little = {
        "the",
        "a",
        "an",
        "of",
        "to",
        "for",
        "this",
        "value",
        "name",
        "string",
        "number",
        "id",
        "integer",
        "boolean",
    }

    def shorter(text: str, name: str | None) -> str:
        if name is None or not text:
            return text
        said = {word.rstrip("s") for word in words(text)}
        return (
            "" if said <= {word.rstrip("s") for word in words(name)} | {word.rstrip("s") for word in little} else text
        )

    return _described(tool, shorter)


def without_keys(tool: ToolSchema) -> ToolSchema:
    """The schema without keys that say nothing about valid calls."""

    def strip(node: Any, is_map: bool) -> Any:
        if isinstance(node, Mapping):
            kept = {k: v for k, v in node.items() if is_map or not _says_nothing(k, v)}
            return {k: strip(v, not is_map and k in _MAPS) if k not in ("enum", "const", "default") or is_map else v
                    for k, v in kept.items()}  # fmt: skip
        return [strip(item, False) for item in node] if isinstance(node, list) else node

    return replace(tool, schema=strip(tool.schema, False))


def _says_nothing(key: str, value: Any) -> bool:
    return key in _UNUSED or (key == "default" and value is None) or (key == "$schema" and value == _DIALECT)


def with_definitions(tool: ToolSchema) -> ToolSchema:
    """Subtrees that stand in a schema more than once moved to $defs, the largest first; the tool itself where none do."""
    seen: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for path, node in _subtrees(tool.schema):
        text = json.dumps(node, sort_keys=True)
        if len(text) >= _LEAST_SUBTREE:
            seen[text].append(path)
    twice = sorted((text for text, paths in seen.items() if len(paths) > 1), key=len, reverse=True)
    schema, definitions = tool.schema, dict(tool.schema.get("$defs", {}))
    for text in twice:
        paths = [path for path in seen[text] if _get(schema, path) == json.loads(text)]
        if len(paths) > 1:
            name = next(
                name for i in range(len(definitions) + 1) if (name := f"{paths[0][-1]}{i or ''}") not in definitions
            )
            definitions[name] = json.loads(text)
            for path in paths:
                schema = _at(schema, path, lambda node, n=name: {"$ref": f"#/$defs/{n}"})
    return replace(tool, schema={**schema, "$defs": definitions}) if schema != tool.schema else tool


def _described(tool: ToolSchema, change: Callable[[str, str | None], str]) -> ToolSchema:
    """The tool with every description changed; a description of an argument is given with the argument's name."""

    def walk(node: Any, is_map: bool, name: str | None) -> Any:
        if isinstance(node, list):
            return [walk(item, False, name) for item in node]
        if not isinstance(node, Mapping):
            return node
        made = {}
        for key, value in node.items():
            if key == "description" and isinstance(value, str) and not is_map:
                if text := change(value, name):
                    made[key] = text
            elif key in ("enum", "const", "default", "examples") and not is_map:
                made[key] = value
            else:
                made[key] = walk(value, not is_map and key in _MAPS, key if is_map else name)
        return made

    return replace(tool, description=change(tool.description, None), schema=walk(tool.schema, False, None))


def _subtrees(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every schema within a schema, with its path; what lies under $defs is shared already."""
    if not isinstance(schema, Mapping):
        return
    if path and isinstance(schema, Mapping):
        yield path, schema
    for key, value in schema.items():
        if key in ("properties", "patternProperties") and isinstance(value, Mapping):
            for name, inner in value.items():
                yield from _subtrees(inner, (*path, key, name))
        elif key in ("items", "additionalProperties"):
            yield from _subtrees(value, (*path, key))


def _enums(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list]]:
    for where, node in _subtrees(schema, path):
        if isinstance(node.get("enum"), list):
            yield where, node["enum"]


def _as_text(node: Mapping[str, Any]) -> dict[str, Any]:
    few = ", ".join(str(value) for value in node["enum"][:3])
    said = f"{node.get('description', '')} such as {few}".strip()
    return {**{k: v for k, v in node.items() if k != "enum"}, "description": said}


def _get(schema: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        schema = schema.get(part) if isinstance(schema, Mapping) else None
    return schema


def _at(schema: Mapping[str, Any], path: tuple[str, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy of a schema with the node at a path changed."""
    if not path:
        return change(schema)
    return {**schema, path[0]: _at(schema[path[0]], path[1:], change)}


def _named(path: tuple[str, ...]) -> str:
    return ".".join(part for part in path if part not in ("properties", "items")) or "the arguments"


def _differences(before: ToolSchema, after: ToolSchema) -> list[str]:
    """Where two versions of a tool differ, by the names of arguments."""
    places = ["the description"] if before.description != after.description else []
    later = dict(_subtrees(after.schema))
    for path, node in _subtrees(before.schema):
        own = {k: v for k, v in node.items() if k not in ("properties", "items", "additionalProperties")}
        theirs = later.get(path, {})
        if own != {
            k: v for k, v in theirs.items() if k in own or k not in ("properties", "items", "additionalProperties")
        }:
            places.append(_named(path))
    return list(dict.fromkeys(places)) or ["the arguments"]
