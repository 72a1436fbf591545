"""What a linter says, and the nodes of a schema that it walks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modtools.schemas.tool_list import ToolSchema

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        rule: its name.
        severity: "error" (a call can hardly be right), "warning" (a model is likely to be misled), "note" (worth a look).
        where: tool, and the argument within it.
        why: what is wrong with it, in a sentence.
        fix: what to write instead.
    """

    rule: str
    severity: str
    where: str
    why: str
    fix: str


@dataclass(frozen=True)
class Argument:
    """A place in a tool's schema.

    Attributes:
        tool: whose.
        path: names from the root; "[]" for the items of an array.
        schema: what stands there.
        required: whether its object demands it.
    """

    tool: ToolSchema
    path: tuple[str, ...]
    schema: Mapping[str, Any]
    required: bool

    @property
    def name(self) -> str:
        """The last name of its path that is one."""
        return next((part for part in reversed(self.path) if part != "[]"), "")

    @property
    def where(self) -> str:
        """For a finding."""
        return f"{self.tool.name}, argument {'.'.join(self.path)}" if self.path else self.tool.name

    @property
    def description(self) -> str:
        """Its description, "" where it has none."""
        text = self.schema.get("description", "")
        return text if isinstance(text, str) else ""

    def is_a(self, *kinds: str) -> bool:
        """Whether its type is one of these, null apart."""
        said = self.schema.get("type")
        types = {said} if isinstance(said, str) else set(said or ()) if isinstance(said, Sequence) else set()
        return bool(types - {"null"}) and types - {"null"} <= set(kinds)


def arguments(tool: ToolSchema) -> Iterator[Argument]:
    """Every argument of a tool, nested ones too; references within the schema are followed, once each on a way."""
    yield from _inside(tool, (), tool.schema, ())


def _inside(tool: ToolSchema, path: tuple[str, ...], schema: Any, followed: tuple[str, ...]) -> Iterator[Argument]:
    schema, followed = resolved(schema, tool.schema, followed)
    if not isinstance(schema, Mapping):
        return
    properties, required = schema.get("properties"), schema.get("required", ())
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            shown, _ = resolved(inner, tool.schema, followed)
            if isinstance(shown, Mapping):
                yield Argument(tool, (*path, name), shown, isinstance(required, Sequence) and name in required)
            yield from _inside(tool, (*path, name), inner, followed)
    if isinstance(schema.get("items"), Mapping):
        items, _ = resolved(schema["items"], tool.schema, followed)
        if isinstance(items, Mapping) and path:
            yield Argument(tool, (*path, "[]"), items, True)
        yield from _inside(tool, (*path, "[]"), schema["items"], followed)
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(key, ()) if isinstance(schema.get(key), Sequence) else ():
            yield from _inside(tool, path, branch, followed)


def resolved(schema: Any, root: Mapping[str, Any], followed: tuple[str, ...] = ()) -> tuple[Any, tuple[str, ...]]:
    """A schema with its local `$ref` followed; one that is no local one, or was followed before, gives {}."""
    while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        reference = schema["$ref"]
        if reference in followed or not reference.startswith("#/"):
            return {}, followed
        followed, target = (*followed, reference), root
        for part in reference[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}} if isinstance(target, Mapping) else {}
    return schema, followed


def words(text: str) -> list[str]:
    """The words of a name or text, in lower case: read_file, readFile, read-file and "Read file" are alike."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return re.findall(r"[a-z]+|[0-9]+", spaced.lower())
