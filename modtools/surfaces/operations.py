"""The canonical operations on a workspace, which every surface reaches in its own way.

A surface only differs in what the model has to write. What is then done, checked and reported is this file.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field

from modtools.contract import Effect, Operation, Outcome, ToolFailure, ToolResult
from modtools.pipeline.canonical import canonical_command
from modtools.sandbox import BoxResult, Limits, run
from modtools.surfaces.workspace import Workspace

MAX_MATCHES = 30
_TESTS_EXPECTED = '"python -m unittest", alone or with test modules written with dots'


@dataclass(frozen=True)
class Context:
    """What an episode binds to its calls.

    Attributes:
        workspace: the episode's folder.
        sandbox_level: a level of modtools.sandbox, or None where no program may be run.
        limits: of each run in the sandbox.
        dump_search: search shows whole files instead of lines (an interface switch, see `surfaces.fine`).
    """

    workspace: Workspace
    sandbox_level: str | None = None
    limits: Limits = field(default_factory=Limits)
    dump_search: bool = False


def read(context: Context, path: str) -> Operation:
    """Canonical `read` of one file."""
    canonical = context.workspace.canonical(path)
    state = context.workspace.state(canonical)
    return Operation("read", {"path": canonical}, (f"workspace:{canonical}",), Effect.READ, state)


def search(context: Context, pattern: str) -> Operation:
    """Canonical `search` for a literal text in all files."""
    if not pattern or "\n" in pattern:
        what = "the pattern is empty" if not pattern else "the pattern spans lines"
        raise ToolFailure("malformed_identifier", what, "arguments.pattern", "text of one line, at least one character")
    return Operation("search", {"pattern": pattern}, ("workspace:",), Effect.READ)


def replace(context: Context, path: str, old: str, new: str) -> Operation:
    """Canonical `replace` of one occurrence in one file."""
    canonical = context.workspace.canonical(path)
    if not old:
        raise ToolFailure("precondition_failed", "the old text is empty", "arguments.old", "the exact text to replace")
    if old == new:
        raise ToolFailure("precondition_failed", "old and new text are the same", "arguments.new", "a different text")
    arguments = {"path": canonical, "old": old, "new": new}
    state = context.workspace.state(canonical)
    return Operation("replace", arguments, (f"workspace:{canonical}",), Effect.WRITE, state)


def write(context: Context, path: str, content: str) -> Operation:
    """Canonical `write` of one whole file."""
    canonical = context.workspace.canonical(path)
    arguments = {"path": canonical, "content": content}
    state = context.workspace.state(canonical)
    return Operation("write", arguments, (f"workspace:{canonical}",), Effect.WRITE, state)


def run_tests(context: Context, command: str) -> Operation:
    """Canonical `run_tests`: the command must be on the allow-list; the box holds nothing else anyway."""
    words = canonical_command(command, {"python": ("python3",)}, expected=_TESTS_EXPECTED)
    names = words[3:]
    if words[:3] != ("python", "-m", "unittest") or not all(_names_tests(name) for name in names):
        what = f'"{command[:80]}" is not allowed'
        raise ToolFailure("command_not_allowed", what, "arguments.command", _TESTS_EXPECTED)
    tests = sorted(name for name in names if name not in ("-v", "discover"))
    return Operation("run_tests", {"tests": tests}, ("workspace:",), Effect.EXECUTE)


def _names_tests(word: str) -> bool:
    return word in ("-v", "discover") or word.replace(".", "_").isidentifier()


def run_python(context: Context, code: str) -> Operation:
    """Canonical `run_python`: a program in the workspace folder."""
    if "\0" in code:
        raise ToolFailure(
            "malformed_identifier", "the code has a NUL character", "arguments.code", "Python source text"
        )
    return Operation("run_python", {"code": code}, ("workspace:",), Effect.EXECUTE)


CANONICALISERS = {f.__name__: f for f in (read, search, replace, write, run_tests, run_python)}


def perform(operation: Operation, context: Context) -> ToolResult:
    """Carry out one canonical operation.

    Raises:
        ToolFailure: where the operation is declined before anything was changed.
    """
    return _PERFORM[operation.action](context, operation)


def _read(context: Context, operation: Operation) -> ToolResult:
    path = operation.arguments["path"]
    text = context.workspace.read(path, operation.state)
    return ToolResult(f"{path}, {_count(len(lines_of(text)), 'line')}", text)


def _search(context: Context, operation: Operation) -> ToolResult:
    pattern = operation.arguments["pattern"]
    matches = [
        (path, number, line)
        for path, text in context.workspace.text_files()
        for number, line in enumerate(lines_of(text), 1)
        if pattern in line
    ]
    summary = f'{_count(len(matches), "match", "matches")} for "{pattern}"'
    if context.dump_search:
        paths = list(dict.fromkeys(path for path, _, _ in matches))
        return ToolResult(summary, "\n".join(f"--- {path}\n{context.workspace.read(path)}" for path in paths))
    shown = [f"{path}:{number}: {line}" for path, number, line in matches[:MAX_MATCHES]]
    if len(matches) > MAX_MATCHES:
        summary += f", the first {MAX_MATCHES} shown"
    return ToolResult(summary, "\n".join(shown))


def _replace(context: Context, operation: Operation) -> ToolResult:
    path, old, new = (operation.arguments[name] for name in ("path", "old", "new"))
    text = context.workspace.read(path, operation.state)
    # What the model was shown has plain line ends; a file that has the other kind throughout keeps them.
    crlf = 0 < text.count("\n") == text.count("\r\n")
    if crlf:
        text, old, new = (part.replace("\r\n", "\n") for part in (text, old, new))
    starts = _occurrences(text, old)
    if not starts:
        raise ToolFailure(
            "precondition_failed",
            f'the old text is not in "{path}"',
            "arguments.old",
            "text copied from the file; read it first",
        )
    if len(starts) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:10])
        what = f'the old text occurs {len(starts)} times in "{path}", at lines {lines}'
        raise ToolFailure("precondition_failed", what, "arguments.old", "more text around it, so that it occurs once")
    line = text.count("\n", 0, starts[0]) + 1
    changed = text[: starts[0]] + new + text[starts[0] + len(old) :]
    # With the state that the text was read in: an edit since then is not overwritten.
    context.workspace.write(path, changed.replace("\n", "\r\n") if crlf else changed, operation.state)
    return ToolResult(f"replaced at {path}:{line}")


def _occurrences(text: str, old: str) -> list[int]:
    """All places where `old` begins, overlapping ones included: each is a reading of the request."""
    starts, at = [], text.find(old)
    while at >= 0:
        starts.append(at)
        at = text.find(old, at + 1)
    return starts


def _write(context: Context, operation: Operation) -> ToolResult:
    path, content = operation.arguments["path"], operation.arguments["content"]
    context.workspace.write(path, content, operation.state)
    return ToolResult(f"wrote {path}, {_count(len(lines_of(content)), 'line')}")


def _run_tests(context: Context, operation: Operation) -> ToolResult:
    tests = operation.arguments["tests"] or ["discover", "-s", "tests", "-t", "."]
    # An isolated interpreter leaves the workspace off its path, where `python -m unittest` would have it.
    program = (
        "import sys, unittest; sys.path.insert(0, ''); unittest.main(None, argv=['python -m unittest', *sys.argv[1:]])"
    )
    box = _boxed(context, ["-c", program, *tests])
    output = re.sub(r"(Ran \d+ tests?) in [\d.]+s", r"\1", _output(context, box))  # no time that differs at each run
    if box.ended_by != "exit":
        return ToolResult(f"the tests were ended: {box.ended_by}", output, outcome=Outcome.PARTIAL, code="partial")
    data = {"exit_code": box.exit_code, "stdout": output}
    return ToolResult(
        f"the tests {'passed' if box.exit_code == 0 else 'failed'}, exit code {box.exit_code}", output, data
    )


def _run_python(context: Context, operation: Operation) -> ToolResult:
    box = _boxed(context, ["-c", operation.arguments["code"]])
    output = _output(context, box)
    if box.ended_by != "exit":
        return ToolResult(f"the program was ended: {box.ended_by}", output, outcome=Outcome.PARTIAL, code="partial")
    if box.exit_code != 0:
        summary = f"exit code {box.exit_code}"
        return ToolResult(summary, output, outcome=Outcome.PARTIAL, code="program_error")
    return ToolResult("exit code 0", output, {"stdout": box.stdout, "stderr": box.stderr})


def _boxed(context: Context, python_args: list[str]) -> BoxResult:
    if context.sandbox_level is None:
        raise ToolFailure("unavailable", "programs cannot be run here, since there is no sandbox")
    return run(python_args, context.workspace.root, level=context.sandbox_level, limits=context.limits)


def _output(context: Context, box: BoxResult) -> str:
    """What a program printed, without the paths by which machines and sandbox levels differ."""
    text = box.stdout + box.stderr
    root = str(context.workspace.root)
    # Files are named as the tools name them, so that a path in a traceback can be read.
    text = text.replace(f"{root}{os.sep}", "").replace("/workspace/", "")
    return text.replace(root, "/workspace").replace(sys.base_prefix, "/python")


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends; only "\\n" ends a line, as in editors and tracebacks."""
    return text.removesuffix("\n").split("\n") if text else []


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


_PERFORM = {
    "read": _read,
    "search": _search,
    "replace": _replace,
    "write": _write,
    "run_tests": _run_tests,
    "run_python": _run_python,
}
