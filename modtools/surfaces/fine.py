"""The fine surface: one typed tool an operation, as Module 2 lists them.

`replace_in_file` is a declared addition of ours. The four switches are SWE-agent's interface choices
(Yang et al., 2024), so that an ablation can turn each of them alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from modtools.contract import Effect, Operation, Tool, ToolContract
from modtools.errors import UsageError
from modtools.pipeline.observe import Wording
from modtools.surfaces.operations import CANONICALISERS, Context, perform
from modtools.surfaces.surface import Surface


@dataclass(frozen=True)
class FineSwitches:
    """The interface switches of the fine surface.

    Attributes:
        edit_command: offer replace_in_file; without it a file is changed only by writing it whole.
        search_lists: search shows path:line: text; else it dumps the files that match.
        informative_errors: errors say what, where and what was expected; else only that there was one.
        result_header: results begin with a line that sums them up.
    """

    edit_command: bool = True
    search_lists: bool = True
    informative_errors: bool = True
    result_header: bool = True


def _schema(**descriptions: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in descriptions.items()},
        "required": list(descriptions),
        "additionalProperties": False,
    }


_PATH = "relative path in the repository"

# action -> name, description, parameters. Preconditions and failure modes stand in the descriptions.
_TOOLS: dict[str, tuple[str, str, dict[str, Any], Effect, bool]] = {
    "read": (
        "read_file",
        "Show a text file. Fails if it is missing or binary.",
        _schema(path=_PATH),
        Effect.READ,
        True,
    ),
    "search": (
        "search_files",
        "List the lines of all files that contain a text, as path:line: text.",
        _schema(pattern="literal text of one line, case-sensitive"),
        Effect.READ,
        True,
    ),
    "replace": (
        "replace_in_file",
        "Replace a text that occurs exactly once in a file. Fails if it is absent or occurs more often.",
        _schema(path=_PATH, old="exact text to replace", new="text to put there"),
        Effect.WRITE,
        False,
    ),
    "write": (
        "write_file",
        "Create a file with its folders, or overwrite all of it.",
        _schema(path=_PATH, content="the whole text"),
        Effect.WRITE,
        True,
    ),
    "run_tests": (
        "run_tests",
        "Run the unit tests and show their output. Only python -m unittest is allowed.",
        _schema(command="e.g. python -m unittest"),
        Effect.EXECUTE,
        False,
    ),
}
_DUMP_DESCRIPTION = "Show the whole text of every file that contains a text."


def fine_surface(switches: FineSwitches = FineSwitches()) -> Surface:
    """Build the fine surface with the given switches."""
    actions = [action for action in _TOOLS if switches.edit_command or action != "replace"]

    def render(action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if action == "run_tests":
            arguments = {"command": " ".join(["python -m unittest", *arguments.get("tests", ())])}
        if action not in actions:
            raise UsageError(f"the fine surface has no tool for {action!r}; it has {', '.join(actions)}")
        return {"name": _TOOLS[action][0], "arguments": dict(arguments)}

    return Surface(
        "fine",
        tuple(_tool(action, switches) for action in actions),
        render,
        Wording(switches.informative_errors, switches.result_header),
        asdict(switches),
        not switches.search_lists,
    )


def _tool(action: str, switches: FineSwitches) -> Tool:
    name, description, schema, effect, idempotent = _TOOLS[action]
    if action == "search" and not switches.search_lists:
        description = _DUMP_DESCRIPTION
    contract = ToolContract(
        name,
        description,
        schema,
        effect=effect,
        idempotent=idempotent,
        concurrency="parallel" if effect == Effect.READ else "exclusive",
        approval="none",
        output_schema=_TEST_RESULT if action == "run_tests" else None,
    )

    def canonicalise(arguments: Mapping[str, Any], context: Context) -> Operation:
        return CANONICALISERS[action](context, **arguments)

    return Tool(contract, canonicalise, perform)


_TEST_RESULT = {
    "type": "object",
    "properties": {"exit_code": {"type": "integer"}, "stdout": {"type": "string"}},
    "required": ["exit_code", "stdout"],
}
