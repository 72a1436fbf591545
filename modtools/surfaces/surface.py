"""A surface: the tools a model sees, and how it would write a canonical operation with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from modtools.catalogue.snapshot import Snapshot
from modtools.contract import Tool, digest
from modtools.pipeline import WORKSPACE_POLICY, AuditLog, Pipeline, Wording
from modtools.surfaces.operations import Context
from modtools.surfaces.workspace import Workspace


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

    @cached_property
    def snapshot(self) -> Snapshot:
        """Its tools as a catalogue snapshot."""
        return Snapshot.of(self.tools)

    @property
    def digest(self) -> str:
        """SHA-256 of what the model sees of it and of its switches."""
        return digest([self.name, self.snapshot.digest, dict(self.switches or {})])

    def pipeline(self, folder: Path, sandbox_level: str | None, audit: AuditLog) -> Pipeline:
        """The pipeline over a workspace folder, as this surface offers it: its tools, wording and search."""
        context = Context(Workspace(folder), sandbox_level, dump_search=self.dump_search)
        return Pipeline(self.snapshot, WORKSPACE_POLICY, audit, context, self.wording)
