"""An immutable catalogue snapshot: one coherent version of names, contracts and handlers.

A model's turn is tied to the snapshot it saw. A name is looked up in that snapshot and never in
"whatever is registered now", so a call cannot reach a namesake. Source: Part 05, "Use one coherent
catalogue snapshot".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from modtools.contract import Tool, digest
from modtools.errors import UsageError


@dataclass(frozen=True)
class Snapshot:
    """Tools by name, and the names that once existed.

    Attributes:
        version: grows by one with each change of the catalogue.
        tools: name -> Tool, in the order in which they are shown to the model.
        retired: name -> what happened to it, for names that are stale or revoked.
    """

    version: int
    tools: Mapping[str, Tool]
    retired: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tools: tuple[Tool, ...], version: int = 1, retired: Mapping[str, str] | None = None) -> Snapshot:
        """Build a snapshot from tools; UsageError where two share a name, or a schema is no JSON Schema."""
        by_name: dict[str, Tool] = {}
        for tool in tools:
            _check_schemas(tool)
            if tool.contract.name in by_name:
                raise UsageError(f"two tools are named {tool.contract.name!r}; names in one snapshot must differ")
            by_name[tool.contract.name] = tool
        return cls(version, by_name, dict(retired or {}))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything the model can see of the tools, with their versions."""
        return digest([[tool.contract.schema_text, tool.contract.version] for tool in self.tools.values()])

    @property
    def schema_text(self) -> str:
        """What the prompt says of the tools: one JSON object a line. Its tokens are l(s)."""
        return "\n".join(tool.contract.schema_text for tool in self.tools.values())


@lru_cache(maxsize=512)
def _schema_problem(schema_text: str) -> str:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(schema_text))
    except SchemaError as error:
        return f"{error.message[:200]} (at {'/'.join(map(str, error.path)) or 'its root'})"
    return ""


def _check_schemas(tool: Tool) -> None:
    for name, schema in (("input_schema", tool.contract.input_schema), ("output_schema", tool.contract.output_schema)):
        try:
            problem = _schema_problem(json.dumps(schema)) if schema is not None else ""
        except (TypeError, ValueError) as error:
            problem = f"it is not JSON: {error}"
        if problem:
            raise UsageError(f"tool {tool.contract.name}: {name} is no JSON Schema: {problem}")
