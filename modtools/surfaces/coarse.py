"""The coarse surface: one tool, do(op, args), that takes a free-text operation and free-form arguments.

The schema says almost nothing, so the model has to know or guess, and the dispatcher has to be lenient. All
its leniency stands in the two tables below; what they do not list is refused by name, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modtools.contract import Effect, Operation, Tool, ToolContract, ToolFailure
from modtools.surfaces.operations import CANONICALISERS, Context, perform
from modtools.surfaces.surface import Surface

# canonical action -> the other names `op` may have (compared in lower case, with "_" and "-" as blanks)
OP_ALIASES: dict[str, tuple[str, ...]] = {
    "read": ("read file", "cat", "open", "open file", "show", "view", "get", "get file"),
    "search": ("search files", "search file", "grep", "find", "find text"),
    "replace": ("replace in file", "edit", "edit file", "substitute", "sed", "modify", "update"),
    "write": ("write file", "create", "create file", "save", "overwrite"),
    "run_tests": ("run tests", "run test", "test", "tests", "run unit tests"),
}
# canonical argument -> its other names
ARG_ALIASES: dict[str, tuple[str, ...]] = {
    "path": ("file", "filename", "file_name", "filepath", "file_path"),
    "pattern": ("query", "text", "string", "search"),
    "old": ("old_text", "old_string", "from", "find"),
    "new": ("new_text", "new_string", "to", "replace", "replacement"),
    "content": ("contents", "text", "data", "body"),
    "command": ("cmd",),
}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "read": ("path",),
    "search": ("pattern",),
    "replace": ("path", "old", "new"),
    "write": ("path", "content"),
    "run_tests": ("command",),
}
_OPS = {alias: action for action, aliases in OP_ALIASES.items() for alias in (action.replace("_", " "), *aliases)}

_CONTRACT = ToolContract(
    "do",
    "Do an operation on the repository.",
    {
        "type": "object",
        "properties": {"op": {"type": "string"}, "args": {"type": "object"}},
        "required": ["op", "args"],
        "additionalProperties": False,
    },
    effect=Effect.EXECUTE,
    approval="none",
)


def coarse_surface() -> Surface:
    """Build the coarse surface."""
    return Surface("coarse", (Tool(_CONTRACT, _canonicalise, perform),), _render)


def _render(action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if action == "run_tests":
        arguments = {"command": " ".join(["python -m unittest", *arguments.get("tests", ())])}
    return {"name": "do", "arguments": {"op": action, "args": dict(arguments)}}


def _canonicalise(arguments: Mapping[str, Any], context: Context) -> Operation:
    op = arguments["op"]
    action = _OPS.get(" ".join(op.lower().replace("_", " ").replace("-", " ").split()))
    if action is None:
        what = f'there is no operation "{op[:60]}"'
        raise ToolFailure("unknown_operation", what, "arguments.op", f"one of {', '.join(OP_ALIASES)}")
    return CANONICALISERS[action](context, **_loose(action, arguments["args"]))


def _loose(action: str, args: Mapping[str, Any]) -> dict[str, str]:
    """Map argument names through their aliases, and numbers and booleans to text."""
    taken: dict[str, str] = {}
    for name, value in args.items():
        wanted = next((p for p in _PARAMETERS[action] if name == p or name in ARG_ALIASES[p]), None)
        where = f"arguments.args.{name}"
        if wanted is None:
            expected = f"only {', '.join(_PARAMETERS[action])}"
            raise ToolFailure(
                "unknown_property", f'"{name}" is not an argument of {action}', "arguments.args", expected
            )
        if wanted in taken:
            raise ToolFailure("unknown_property", f'"{name}" gives {wanted} a second time', where, f"{wanted} once")
        if isinstance(value, (dict, list)) or value is None:
            raise ToolFailure("wrong_type", f'"{name}" is no text', where, "a value of type string")
        taken[wanted] = (
            value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        )
    if action == "run_tests":
        taken.setdefault("command", "python -m unittest")
    missing = [p for p in _PARAMETERS[action] if p not in taken]
    if missing:
        names = ", ".join(f'"{p}"' for p in missing)
        raise ToolFailure("missing_argument", f"{names} is missing", "arguments.args", f"a value for {names}")
    return taken
