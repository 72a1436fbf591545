"""A surface: the tools a model sees, and how it would write a canonical operation with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modtools.catalogue.snapshot import Snapshot
from modtools.contract import Tool, digest
from modtools.pipeline.observe import Wording


@dataclass(frozen=True)
class Surface:
    """One of the three tool surfaces.

    Attributes:
        name: "coarse", "fine" or "code".
        tools: in the order in which the prompt lists them.
        render: (action, canonical arguments) -> the call that asks for it, as {"name": ..., "arguments": ...};
            UsageError where the surface cannot say it.
        wording: how results and errors are worded on it.
        switches: the settings it was built with, for the manifest.
        dump_search: whether its searches show whole files.
    """

    name: str
    tools: tuple[Tool, ...]
    render: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    wording: Wording = Wording()
    switches: Mapping[str, Any] | None = None
    dump_search: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """Its tools as a catalogue snapshot."""
        return Snapshot.of(self.tools)

    @property
    def digest(self) -> str:
        """SHA-256 of what the model sees of it and of its switches."""
        return digest([self.name, self.snapshot.digest, dict(self.switches or {})])
