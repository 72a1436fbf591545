"""An immutable catalogue snapshot: one coherent version of names, contracts and handlers.

A model's turn is tied to the snapshot it saw. A name is looked up in that snapshot and never in
"whatever is registered now", so a call cannot reach a namesake. Source: Part 05, "Use one coherent
catalogue snapshot".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        """Build a snapshot from tools; UsageError where two tools share a name."""
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if tool.contract.name in by_name:
                raise UsageError(f"two tools are named {tool.contract.name!r}; names in one snapshot must differ")
            by_name[tool.contract.name] = tool
        return cls(version, by_name, dict(retired or {}))

    @property
    def digest(self) -> str:
        """SHA-256 over everything the model can see of the tools, with their versions."""
        return digest([[tool.contract.schema_text, tool.contract.version] for tool in self.tools.values()])

    @property
    def schema_text(self) -> str:
        """What the prompt says of the tools: one JSON object a line. Its tokens are l(s)."""
        return "\n".join(tool.contract.schema_text for tool in self.tools.values())
