"""The catalogue: the one place with state, from which snapshots are taken.

Every change makes a new snapshot with the next version, leaves the older ones as they are, and drops exactly
the derived things that `modtools.catalogue.changes.DEPENDENTS` lists. Source: Part 05, "Use one coherent
catalogue snapshot".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from modtools.catalogue.changes import DEPENDENTS, KEPT, TOOLS, Change, ChangeKind, Dependent
from modtools.catalogue.difference import check_successor, difference
from modtools.catalogue.snapshot import EVERYONE, Snapshot, check_audience, check_tool, origin
from modtools.contract import Tool
from modtools.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class _Gone:
    """The last tool of a qualified name that is offered no more."""

    tool: Tool
    detail: str
    revoked: bool


class Catalogue:
    """Registers, upgrades, deprecates, revokes; may be used by many threads at once.

    Args:
        start: the first snapshot; empty where left out.
    """

    def __init__(self, start: Snapshot | None = None):
        self._snapshot = start or Snapshot.of(())
        self._retired_before = dict(self._snapshot.retired)
        self._gone: dict[str, _Gone] = {}
        self._changes: tuple[Change, ...] = ()
        self._derived: dict[tuple[Dependent, str], Any] = {}
        self._lock = threading.Lock()

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot."""
        return self._snapshot

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change since the start, oldest first."""
        return self._changes

    # The changes. Each raises UsageError for wrong use and returns the new snapshot.

    def register(self, tool: Tool, audience: tuple[str, ...] = EVERYONE) -> Snapshot:
        """Add a tool under a name that is free, or that a lost server or an older, revoked version has left."""
        check_tool(tool)
        name = tool.qualified_name
        check_audience(name, audience)
        with self._lock:
            tools = self._snapshot.tools
            if name in tools:
                raise UsageError(
                    f"{name} is registered already ({origin(tools[name])}, {tools[name].contract.version}; now "
                    f"{origin(tool)}); upgrade it, or register under another name"
                )
            if name in self._retired_before:
                raise UsageError(f"{name} was retired: {self._retired_before[name]}; register under another name")
            if (gone := self._gone.get(name)) is not None:
                check_successor(gone.tool, tool, again=not gone.revoked)
                del self._gone[name]
            detail = f"registered at {tool.contract.version} in catalogue version {self._next}"
            audiences = {**self._snapshot.audiences, name: audience}
            return self._change(ChangeKind.REGISTERED, (name,), detail, {**tools, name: tool}, audiences)

    def upgrade(self, tool: Tool) -> Snapshot:
        """Put a higher version in a registered tool's place; its audience stays."""
        check_tool(tool)
        name = tool.qualified_name
        with self._lock:
            old = self._registered(name)
            check_successor(old, tool)
            versions = f"from {old.contract.version} to {tool.contract.version}"
            detail = f"upgraded {versions} in catalogue version {self._next}"
            return self._change(ChangeKind.UPGRADED, (name,), detail, {**self._snapshot.tools, name: tool})

    def deprecate(self, name: str, use_instead: str) -> Snapshot:
        """Keep a tool, and say everywhere what to use instead."""
        _check_text("use_instead", use_instead)
        with self._lock:
            old = self._registered(name)
            tool = replace(old, contract=replace(old.contract, deprecated=use_instead))
            detail = f"deprecated: use {use_instead} (catalogue version {self._next})"
            return self._change(ChangeKind.DEPRECATED, (name,), detail, {**self._snapshot.tools, name: tool})

    def revoke(self, name: str, why: str) -> Snapshot:
        """Withdraw a tool; its name comes back only with a higher version. A lost server's tool may be revoked too."""
        _check_text("why", why)
        with self._lock:
            gone = self._gone.get(name)
            if gone is not None and gone.revoked:
                raise UsageError(f"{name} was {gone.detail}; valid: {self._names()}")
            tool = gone.tool if gone else self._registered(name)
            detail = f"revoked: {why} (catalogue version {self._next})"
            return self._withdraw(ChangeKind.REVOKED, {name: tool}, detail)

    def lose(self, source: str, why: str) -> Snapshot:
        """Withdraw all tools of a server that is lost; it may register them again."""
        _check_text("why", why)
        with self._lock:
            lost = {name: tool for name, tool in self._snapshot.tools.items() if source and tool.source == source}
            if not lost:
                sources = sorted({tool.source for tool in self._snapshot.tools.values() if tool.source})
                raise UsageError(f"no tool comes from source {source!r}; valid: {', '.join(sources) or 'none'}")
            detail = f"lost with its server {source}: {why} (catalogue version {self._next})"
            return self._withdraw(ChangeKind.SERVER_LOST, lost, detail)

    def policy_changed(self, detail: str) -> Snapshot:
        """Note a change of policy: the tools stay, what was decided does not."""
        _check_text("detail", detail)
        with self._lock:
            detail = f"policy changed: {detail} (catalogue version {self._next})"
            return self._change(ChangeKind.POLICY_CHANGED, (), detail, self._snapshot.tools)

    # What is asked of it.

    def difference(self, seen: Snapshot, name: str) -> str:
        """What keeps a call by `name`, made on `seen`, from running now; empty where it reaches the same tool."""
        with self._lock:
            now, changes = self._snapshot, self._changes
        return difference(seen, now, changes, name)

    def derived(self, dependent: Dependent, key: str, make: Callable[[], T]) -> T:
        """make(), kept under (dependent, key) until a change makes it stale.

        Args:
            dependent: which column of DEPENDENTS it falls under.
            key: a qualified name for what is made of one tool. Any other key, such as "", is for what is made
                of many tools; it goes with each of them.
            make: reads `self.snapshot` itself, when it is called: from an older snapshot it would make what is
                stale already. It is called outside the lock, and may ask the catalogue anything.
        """
        with self._lock:
            if (dependent, key) in self._derived:
                return self._derived[dependent, key]
            version = self._snapshot.version
        value = make()
        with self._lock:
            if self._snapshot.version == version:
                return self._derived.setdefault((dependent, key), value)
        return value

    def prompt_section(self) -> str:
        """What the prompt says of the tools (see Snapshot.schema_text)."""
        return self.derived(Dependent.PROMPT_SECTION, "", lambda: self.snapshot.schema_text)

    def discoverable(self, actor: str, tenant: str) -> tuple[str, ...]:
        """The qualified names that an actor may find (see Snapshot.discoverable)."""
        key = json.dumps([tenant, actor])  # not "tenant/actor": a "/" in a name would reach another's list
        return self.derived(Dependent.DISCOVERY_INDEX, key, lambda: self.snapshot.discoverable(actor, tenant))

    def sub_agent(self, names: Iterable[str]) -> Snapshot:
        """The part that a sub-agent gets (see Snapshot.only)."""
        wanted = sorted(set(names))
        key = json.dumps(wanted)
        return self.derived(Dependent.SUB_AGENT_CATALOGUE, key, lambda: self.snapshot.only(wanted))

    def replay_manifest(self) -> Mapping[str, Any]:
        """What a recording was made on, as JSON; to be copied before it is changed.

        Returns:
            {"catalogue": version, "tools": {qualified name: {"version": ..., "contract": SHA-256}}}.
        """

        def make() -> dict[str, Any]:
            snapshot = self.snapshot
            tools = {
                name: {"version": tool.contract.version, "contract": tool.contract.digest}
                for name, tool in snapshot.tools.items()
            }
            return {"catalogue": snapshot.version, "tools": tools}

        return self.derived(Dependent.REPLAY_MANIFEST, "", make)

    # Helpers, called with the lock held.

    @property
    def _next(self) -> int:
        return self._snapshot.version + 1

    def _names(self) -> str:
        return ", ".join(self._snapshot.tools) or "no tool, as none is registered"

    def _registered(self, name: str) -> Tool:
        if name not in self._snapshot.tools:
            raise UsageError(f"no tool {name!r} is registered under that qualified name; valid: {self._names()}")
        return self._snapshot.tools[name]

    def _withdraw(self, kind: ChangeKind, tools: Mapping[str, Tool], detail: str) -> Snapshot:
        self._gone |= {name: _Gone(tool, detail, kind == ChangeKind.REVOKED) for name, tool in tools.items()}
        kept = {name: tool for name, tool in self._snapshot.tools.items() if name not in tools}
        return self._change(kind, tuple(tools), detail, kept)

    def _change(
        self,
        kind: ChangeKind,
        names: tuple[str, ...],
        detail: str,
        tools: Mapping[str, Tool],
        audiences: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Snapshot:
        """The only way to a new snapshot: it notes the change and drops what the table lists."""
        row, before = DEPENDENTS[kind], self._snapshot.tools
        self._derived = {
            (dependent, key): value
            for (dependent, key), value in self._derived.items()
            if row[dependent].drops == KEPT or (row[dependent].drops == TOOLS and key in before and key not in names)
        }
        audiences = {
            name: audience for name, audience in (audiences or self._snapshot.audiences).items() if name in tools
        }
        self._snapshot = Snapshot(self._next, tools, self._retired(tools), audiences)
        self._changes += (Change(self._snapshot.version, kind, names, detail),)
        return self._snapshot

    def _retired(self, tools: Mapping[str, Tool]) -> dict[str, str]:
        """The names that are gone, and the plain names that meant them: these must not fall to a namesake either."""
        retired: dict[str, str] = {}
        for name, gone in self._gone.items():
            plain = gone.tool.contract.name
            said = f"{retired[plain]}; " if plain in retired else ""
            retired[plain] = f"{said}{name} was {gone.detail}"
        for plain in retired:
            if left := [name for name, tool in tools.items() if tool.contract.name == plain]:
                retired[plain] += f"; call {' or '.join(left)} by its qualified name"
        retired |= {name: gone.detail for name, gone in self._gone.items()} | self._retired_before
        return {name: detail for name, detail in retired.items() if name not in tools}


def _check_text(name: str, text: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{name} {text!r}: expected some words for whoever reads what changed")
