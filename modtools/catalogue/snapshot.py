"""An immutable catalogue snapshot: one coherent version of names, contracts and handlers.

A model's turn is tied to the snapshot it saw. A name is looked up in that snapshot and never in
"whatever is registered now", so a call cannot reach a namesake. Source: Part 05, "Use one coherent
catalogue snapshot".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from modtools.contract import Tool, digest
from modtools.errors import UsageError

EVERYONE = ("*",)


@dataclass(frozen=True)
class Snapshot:
    """Tools by qualified name, and the names that once existed.

    Attributes:
        version: grows by one with each change of the catalogue.
        tools: qualified name -> Tool, in the order in which they are shown to the model.
        retired: name -> what changed, for names that are stale or revoked.
        audiences: qualified name -> shell patterns over "tenant/actor", who may see the tool's metadata: "acme/*",
            or "*" for everyone. A tool that is missing here is for everyone.
        part: whether this is a part of the catalogue, which tools registered later do not enter.
    """

    version: int
    tools: Mapping[str, Tool]
    retired: Mapping[str, str] = field(default_factory=dict)
    audiences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    part: bool = False

    def __post_init__(self):
        for name in ("tools", "retired", "audiences"):  # copies that nobody can write to
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @classmethod
    def of(
        cls,
        tools: Iterable[Tool],
        version: int = 1,
        retired: Mapping[str, str] | None = None,
        audiences: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Snapshot:
        """Build a snapshot from tools.

        Raises:
            UsageError: where two tools share a qualified name, a schema is no JSON Schema, or an audience is for
                no tool or no tuple of patterns.
        """
        by_name: dict[str, Tool] = {}
        for tool in tools:
            check_tool(tool)
            name = tool.qualified_name
            if name in by_name:
                raise UsageError(
                    f"two tools are named {name!r} ({origin(by_name[name])}; {origin(tool)}); "
                    "names in one snapshot must differ"
                )
            by_name[name] = tool
        for name, audience in (audiences or {}).items():
            if name not in by_name:  # a misspelt name must not leave its tool open to everyone
                raise UsageError(f"an audience for {name!r}, which is no tool; there are {', '.join(by_name)}")
            check_audience(name, audience)
        return cls(version, by_name, retired or {}, audiences or {})

    def find(self, name: str) -> tuple[Tool, ...]:
        """The tools that a call by `name` may mean: none, one, or several, among which nobody picks.

        A qualified name means its own tool only. A plain name means every tool that bears it, but a name that
        was retired means none of them: it never falls to a namesake.
        """
        if name in self.tools:
            return (self.tools[name],)
        if name in self.retired:
            return ()
        return tuple(tool for tool in self.tools.values() if tool.contract.name == name)

    def only(self, names: Iterable[str]) -> Snapshot:
        """The part of this snapshot that a sub-agent gets, under the same version.

        Args:
            names: qualified names of tools; also retired names, whose fate the part then still tells.

        Raises:
            UsageError: for any other name.
        """
        wanted = set(names)
        if unknown := wanted - {*self.tools, *self.retired}:
            raise UsageError(
                f"catalogue version {self.version} has no {', '.join(sorted(unknown))}; "
                f"there are {', '.join(self.tools) or 'no tools'}"
            )
        tools, retired, audiences = (
            {name: value for name, value in mapping.items() if name in wanted}
            for mapping in (self.tools, self.retired, self.audiences)
        )
        return Snapshot(self.version, tools, retired, audiences, part=True)

    def discoverable(self, actor: str, tenant: str) -> tuple[str, ...]:
        """The qualified names whose metadata this actor may see; a search looks at no others.

        Tenant and actor are matched apart, so that no "/" in either reaches another tenant's tools.
        """
        return tuple(
            name
            for name in self.tools
            if any(_matches(pattern, actor, tenant) for pattern in self.audiences.get(name, EVERYONE))
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything the model can see of the tools, with their versions."""
        return digest([[_shown(tool), tool.contract.version] for tool in self.tools.values()])

    @property
    def schema_text(self) -> str:
        """What the prompt says of the tools: one JSON object a line, under qualified names. Its tokens are l(s)."""
        return "\n".join(_shown(tool) for tool in self.tools.values())


def _shown(tool: Tool) -> str:
    contract = tool.contract
    if not tool.source and not contract.deprecated:
        return contract.schema_text
    shown = {**json.loads(contract.schema_text), "name": tool.qualified_name}
    if contract.deprecated:
        shown["description"] = f"{contract.description} Deprecated; use instead: {contract.deprecated}".strip()
    return json.dumps(shown, ensure_ascii=False)


def _matches(pattern: str, actor: str, tenant: str) -> bool:
    for_tenant, _, for_actor = ("*/*" if pattern == "*" else pattern).partition("/")
    return fnmatchcase(tenant, for_tenant) and fnmatchcase(actor, for_actor)


def origin(tool: Tool) -> str:
    """Where a tool comes from, for messages: "a.b" + "c" and "a" + "b.c" have one qualified name."""
    return f"{tool.contract.name!r} of {f'source {tool.source!r}' if tool.source else 'the host'}"


def check_audience(name: str, audience: tuple[str, ...]) -> None:
    """UsageError where `audience` is no tuple of patterns "tenant/actor" or "*"."""
    if not isinstance(audience, tuple) or not all(isinstance(p, str) and (p == "*" or "/" in p) for p in audience):
        raise UsageError(f'tool {name}: audience {audience!r}; expected a tuple of patterns like "acme/*", or "*"')


def check_tool(tool: Tool) -> None:
    """UsageError where the source is no name (look-alikes and blanks mislead), or a schema is no JSON Schema."""
    if tool.source and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", tool.source):
        raise UsageError(
            f"tool {tool.contract.name}: source {tool.source!r}; expected a letter, then up to 63 letters, digits, "
            "'_', '-' or '.'"
        )
    for name, schema in (("input_schema", tool.contract.input_schema), ("output_schema", tool.contract.output_schema)):
        try:
            problem = _schema_problem(json.dumps(schema)) if schema is not None else ""
        except (TypeError, ValueError) as error:
            problem = f"it is not JSON: {error}"
        if problem:
            raise UsageError(f"tool {tool.contract.name}: {name} is no JSON Schema: {problem}")


@lru_cache(maxsize=512)
def _schema_problem(schema_text: str) -> str:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    schema = json.loads(schema_text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.message[:200]} (at {'/'.join(map(str, error.path)) or 'its root'})"
    whole = DRAFT202012.create_resource(schema)
    return _lost_reference(whole, Registry().resolver_with_root(whole))


def _lost_reference(part: Any, resolver: Any) -> str:
    """The first reference in a schema that leads nowhere within it, in words, or "". Nothing is ever fetched."""
    from referencing.exceptions import Unresolvable

    for keyword in ("$ref", "$dynamicRef") if isinstance(part.contents, dict) else ():
        reference = part.contents.get(keyword, "#")
        try:
            resolver.lookup(reference)
        except Unresolvable:
            return f"{keyword} {reference[:100]!r} leads nowhere in it; what it means must stand in the schema itself"
    below = ((each, resolver.in_subresource(each)) for each in part.subresources())
    return next(filter(None, (_lost_reference(*each) for each in below)), "")
