"""The same fault for everybody: an episode's first call that changes something is not carried out.

Who meets an error by itself has met it because of what it did, so recovery from such errors compares nothing. Here the
first call whose effect changes a file ends as `busy`, in the same words on every surface, and the files are as they
were. On the code surface a program that only looks is let through, like a read elsewhere: what a program changes is
known only when it has run, so it is run, seen, and taken back.

Recovered is who later has the files as that call would have left them, by the same call or by another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modtools.contract import Effect, Operation, Tool, ToolFailure, ToolResult
from modtools.surfaces import Surface
from modtools.surfaces.operations import Context


@dataclass
class Fault:
    """The one fault of an episode.

    Attributes:
        operation: digest of the operation that was not carried out; "" before that.
        wanted: path -> bytes, or None for no file: what it would have left of what it would have changed.
        recovered: whether the files have been like that since.
    """

    operation: str = ""
    wanted: Mapping[str, bytes | None] | None = None
    recovered: bool = False

    def look(self, folder: Path) -> None:
        """See after a call whether the operation has been made good."""
        if self.wanted is not None and not self.recovered:
            now = _files(folder)
            self.recovered = all(now.get(path) == content for path, content in self.wanted.items())


def with_fault(surface: Surface, fault: Fault) -> Surface:
    """The surface with tools that all share one fault."""
    return replace(surface, tools=tuple(_tool(tool, fault) for tool in surface.tools))


def _tool(tool: Tool, fault: Fault) -> Tool:
    def handler(operation: Operation, context: Context) -> ToolResult:
        if fault.operation or operation.effect == Effect.READ:
            return tool.handler(operation, context)
        folder = context.workspace.root
        before = _files(folder)
        result = tool.handler(operation, context)
        after = _files(folder)
        changed = {path: after.get(path) for path in {*before, *after} if before.get(path) != after.get(path)}
        if not changed:
            return result
        _restore(folder, before, changed)
        fault.operation, fault.wanted = operation.digest, changed
        raise ToolFailure("busy", "another call holds what this one needs")

    return replace(tool, handler=handler)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }


def _restore(folder: Path, before: Mapping[str, bytes], changed: Mapping[str, Any]) -> None:
    for path in changed:
        file = Path(folder) / path
        if path in before:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(before[path])
        else:
            file.unlink()
