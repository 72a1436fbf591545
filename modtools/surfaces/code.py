"""The code surface: one tool, run_python(code), in a sandbox whose folder is the workspace.

Inside the program errors are Python's own; the pipeline only says that it ended with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modtools.contract import Effect, Operation, Tool, ToolContract
from modtools.errors import UsageError
from modtools.surfaces.operations import Context, perform, run_python
from modtools.surfaces.surface import Surface

_CONTRACT = ToolContract(
    "run_python",
    "Run a Python program in the repository folder and show what it prints. Standard library only, no network.",
    {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "the program"}},
        "required": ["code"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {"stdout": {"type": "string"}, "stderr": {"type": "string"}},
        "required": ["stdout", "stderr"],
    },
    effect=Effect.EXECUTE,
    approval="none",
)


def code_surface() -> Surface:
    """Build the code surface."""
    return Surface("code", (Tool(_CONTRACT, _canonicalise, perform),), _render)


def _render(action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if action != "run_python":
        raise UsageError(f"the code surface says everything as a program; it has no tool for {action!r}")
    return {"name": "run_python", "arguments": dict(arguments)}


def _canonicalise(arguments: Mapping[str, Any], context: Context) -> Operation:
    return run_python(context, **arguments)
