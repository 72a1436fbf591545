"""What can change in a catalogue, and the one table of what each change makes stale.

Source: Part 05, "Use one coherent catalogue snapshot", which lists the six dependents and says that changes
invalidate them; which change reaches which dependent is worked out here. Three rules lie behind the table:
what carries the catalogue's version goes whole with every change; what is made of one tool goes with that
tool; a change that a dependent cannot show leaves it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ChangeKind(StrEnum):
    """The six changes of a catalogue. Each makes a new version."""

    REGISTERED = "registered"
    UPGRADED = "upgraded"
    DEPRECATED = "deprecated"
    REVOKED = "revoked"
    SERVER_LOST = "server_lost"
    POLICY_CHANGED = "policy_changed"


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        version: of the catalogue that it made.
        kind: see ChangeKind.
        names: qualified names of the tools it is about.
        detail: in words, for people and for the model whose call it stopped.
    """

    version: int
    kind: ChangeKind
    names: tuple[str, ...]
    detail: str


class Dependent(StrEnum):
    """What is derived from a catalogue and kept until a change makes it stale."""

    SCHEMA_CACHE = "schema_cache"
    PROMPT_SECTION = "prompt_section"
    DISCOVERY_INDEX = "discovery_index"
    AUTHORISATION_CACHE = "authorisation_cache"
    SUB_AGENT_CATALOGUE = "sub_agent_catalogue"
    REPLAY_MANIFEST = "replay_manifest"


KEPT, TOOLS, ALL = "-", "tools", "all"


@dataclass(frozen=True)
class Cell:
    """What a change does to a dependent.

    Attributes:
        drops: "-" nothing; "tools" the entries of the changed tools and what was made of all tools together;
            "all" every entry.
        reason: why so.
    """

    drops: str
    reason: str


_SHAPE_KEPT = Cell(KEPT, "the shape of a call is the same")
_DECISION = Cell(ALL, "a decision is bound to the version of the catalogue it was taken on")
_PART = Cell(ALL, "a part bears the version of its whole, and its calls are decided and recorded under it")
_MANIFEST = Cell(ALL, "a manifest names the catalogue's version: what was recorded on another is no replay of this")
_VERSIONED = {
    Dependent.AUTHORISATION_CACHE: _DECISION,
    Dependent.SUB_AGENT_CATALOGUE: _PART,
    Dependent.REPLAY_MANIFEST: _MANIFEST,
}

DEPENDENTS: Mapping[ChangeKind, Mapping[Dependent, Cell]] = {
    ChangeKind.REGISTERED: {
        Dependent.SCHEMA_CACHE: Cell(TOOLS, "schemas of other tools stand; a grammar of all calls lacks the new one"),
        Dependent.PROMPT_SECTION: Cell(TOOLS, "lines of other tools stand; the section lacks the new one"),
        Dependent.DISCOVERY_INDEX: Cell(TOOLS, "entries of other tools stand; lists and searches lack the new one"),
        **_VERSIONED,
    },
    ChangeKind.UPGRADED: {
        Dependent.SCHEMA_CACHE: Cell(TOOLS, "a new version may have a new schema"),
        Dependent.PROMPT_SECTION: Cell(TOOLS, "a new version may be described otherwise"),
        Dependent.DISCOVERY_INDEX: Cell(TOOLS, "a new version may be described, and so be found, otherwise"),
        **_VERSIONED,
    },
    ChangeKind.DEPRECATED: {
        Dependent.SCHEMA_CACHE: _SHAPE_KEPT,
        Dependent.PROMPT_SECTION: Cell(TOOLS, "the tool's line now says what to use instead"),
        Dependent.DISCOVERY_INDEX: Cell(TOOLS, "deprecation is part of the metadata that a search shows"),
        **_VERSIONED,
    },
    ChangeKind.REVOKED: {
        Dependent.SCHEMA_CACHE: Cell(TOOLS, "no call of the tool is valid any more"),
        Dependent.PROMPT_SECTION: Cell(TOOLS, "the tool must not be shown any more"),
        Dependent.DISCOVERY_INDEX: Cell(TOOLS, "the tool must not be found any more"),
        **_VERSIONED,
    },
    ChangeKind.SERVER_LOST: {
        Dependent.SCHEMA_CACHE: Cell(TOOLS, "a server that comes back may bring other schemas"),
        Dependent.PROMPT_SECTION: Cell(TOOLS, "the server's tools must not be shown any more"),
        Dependent.DISCOVERY_INDEX: Cell(TOOLS, "the server's tools must not be found any more"),
        **_VERSIONED,
    },
    ChangeKind.POLICY_CHANGED: {
        Dependent.SCHEMA_CACHE: _SHAPE_KEPT,
        Dependent.PROMPT_SECTION: Cell(KEPT, "the prompt describes tools; policy speaks when one is called"),
        Dependent.DISCOVERY_INDEX: Cell(KEPT, "audiences decide who finds a tool; policy decides each call"),
        **_VERSIONED,
    },
}
