"""The coarse surface: one tool, do(op, args), that takes a free-text operation and free-form arguments.

The schema says almost nothing, so the model has to know or guess, and the dispatcher has to be lenient. All
its leniency stands in the two tables below; what they do not list is refused by name, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modtools.contract import Effect, Failure, Operation, Tool, ToolContract, ToolFailure
from modtools.pipeline.validate import missing_argument, unknown_property, wrong_type
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
    """Map argument names through their aliases, and numbers and booleans to text. What is refused is refused in the
    words of a typed tool, so that the surfaces differ in their schemas alone.
    """
    parameters, where = _PARAMETERS[action], "arguments.args"
    written: dict[str, str] = {}  # parameter -> the name it was given under
    unknown: list[str] = []
    for name in args:
        wanted = next((p for p in parameters if name == p or name in ARG_ALIASES[p]), None)
        if wanted is None:
            unknown.append(name)
        elif wanted in written:
            what = f'"{name}" gives {wanted} a second time'
            raise ToolFailure("unknown_property", what, f"{where}.{name}", f"{wanted} once")
        else:
            written[wanted] = name
    optional = {"command": "python -m unittest"} if action == "run_tests" else {}
    missing = [p for p in parameters if p not in written and p not in optional]
    if missing:
        raise _refused(missing_argument(missing, unknown, where))
    if unknown:
        raise _refused(unknown_property(unknown, parameters, where))
    for wanted, name in written.items():
        if isinstance(args[name], (dict, list)) or args[name] is None:
            raise _refused(wrong_type(args[name], ["string"], f"{where}.{name}"))
    return optional | {wanted: _text(args[name]) for wanted, name in written.items()}


def _text(value: str | bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(failure: Failure) -> ToolFailure:
    return ToolFailure(failure.code, failure.what, failure.where, failure.expected)
