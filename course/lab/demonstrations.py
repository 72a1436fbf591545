"""Demonstrations from which the tool-use adapter learns: reference solutions played through the real pipeline.

Three kinds of things are shown, in equal number on every surface:
- how a task is solved, by the reference solution, its calls written as the surface wants them;
- how an error is mended: before some steps a slip is put in (a broken call, a wrong path, a text that is not there, a
  program without an import, a tool that is busy), its real observation is shown, and then the right call. The slip
  itself is not learnt from;
- on the fine surface, other settings: its switches, and other styles of naming.
A fifth of all demonstrations are single calls on random lists of tools (see `single_calls`).

The family `families.HELD_OUT` is never shown. Seeds start at FIRST_SEED, where no lab and no test draws.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from modtools.contract import Failure, Outcome
from modtools.lab.check import task_folder
from modtools.lab.families import FAMILIES
from modtools.lab.prompt import first_messages
from modtools.lab.tasks import Task, generate, reference
from modtools.models import Message
from modtools.pipeline import FINISH, AuditLog, Request
from modtools.pipeline.observe import failure_text
from modtools.surfaces import SURFACES, FineSwitches, Surface, build_surface
from modtools.surfaces.operations import CANONICALISERS, Context, perform
from modtools.surfaces.workspace import Workspace

FIRST_SEED = 10_000_000
SLIPS = 0.4  # share of demonstrations with a slip
SLIP_TRIES = 8  # slips that do more than fail are drawn anew
OTHER_SETTINGS = 0.3  # share of the fine surface's demonstrations


@dataclass(frozen=True)
class Turn:
    """One message, and whether the model is to learn to write it."""

    message: Message
    learn: bool = False


Demonstration = tuple[Turn, ...]
"""A conversation that begins with the system message and ends with a reply of the model."""


def demonstrations(held_out: str, sandbox_level: str, seed: int = 0) -> Iterator[tuple[str, Demonstration]]:
    """Demonstrations of tasks without end, each with its name "task/surface"; surfaces take turns.

    Args:
        held_out: the family that is never shown.
        sandbox_level: for programs.
        seed: another seed, other demonstrations.
    """
    cells = [(family, c) for family in FAMILIES.values() if family.name != held_out for c in family.strata]
    for number in count():
        rng = Random(f"{seed}/{number}")
        family, c = rng.choice(cells)
        task = generate(family.name, c, FIRST_SEED + 1_000_000 * seed + number)
        for name in SURFACES:
            slip = rng.random() < SLIPS
            surface = varied(rng) if name == "fine" and rng.random() < OTHER_SETTINGS else build_surface(name)
            tries = (demonstrate(task, surface, rng, slip, sandbox_level) for _ in range(SLIP_TRIES))
            yield (
                f"{task.id}/{name}",
                next(filter(None, tries), None) or demonstrate(task, surface, rng, False, sandbox_level),
            )


def varied(rng: Random) -> Surface:
    """The fine surface with other switches, or with other names for its tools."""
    if rng.random() < 0.5:
        off = rng.choice(("edit_command", "search_lists", "informative_errors", "result_header"))
        return build_surface("fine", replace(FineSwitches(), **{off: False}))
    return renamed(build_surface("fine"), rng.choice(tuple(STYLES)))


STYLES: dict[str, Callable[[str], str]] = {
    "camelCase": lambda name: re.sub(r"_(.)", lambda match: match[1].upper(), name),
    "PascalCase": lambda name: "".join(word.capitalize() for word in name.split("_")),
    "kebab-case": lambda name: name.replace("_", "-"),
    "with a prefix": lambda name: f"repo_{name}",
    "verb alone": lambda name: name.split("_")[0],
}


def renamed(surface: Surface, style: str) -> Surface:
    """The surface with its tools named in another style."""
    name = STYLES[style]
    tools = tuple(
        replace(tool, contract=replace(tool.contract, name=name(tool.contract.name))) for tool in surface.tools
    )

    def render(action: str, arguments: Any) -> dict[str, Any]:
        call = surface.render(action, arguments)
        return {**call, "name": name(call["name"])}

    return replace(surface, tools=tools, render=render, switches={**(surface.switches or {}), "names": style})


def demonstrate(task: Task, surface: Surface, rng: Random, slip: bool, sandbox_level: str) -> Demonstration | None:
    """Play a task's reference with at most one slip; None where the slip did more than fail."""
    with task_folder(task) as folder:
        pipeline, plain = surface.pipeline(folder, sandbox_level, AuditLog()), Context(Workspace(folder), sandbox_level)
        turns = [Turn(message) for message in first_messages(task, surface)]

        def run(text: str, learn: bool = True) -> str:
            observation = pipeline.run(Request(str(len(turns)), text)).observation.text
            turns.extend((Turn(Message("assistant", text), learn), Turn(Message("user", observation))))
            return observation

        try:
            _play(task, surface, folder, plain, _slipping(run, turns, folder, rng) if slip else run)
        except SlipDidMore:
            return None
        if slip and all(turn.learn for turn in turns if turn.message.role == "assistant"):
            return None
    return (*turns, Turn(Message("assistant", FINISH), learn=True))


def _play(task: Task, surface: Surface, folder: Path, plain: Context, run: Callable[[str], str]) -> None:
    """Play the reference. It is told what the surface at its default settings would have shown."""
    solution = reference(task, surface.name)
    step = next(solution)
    while True:
        shown = _as_default(step, surface, plain)
        calls = [(step.action, dict(step.arguments))]
        if step.action == "replace" and not (surface.switches or {}).get("edit_command", True):
            calls = _by_writing(folder, **step.arguments)
        for action, arguments in calls:
            observation = run(json.dumps(surface.render(action, arguments), ensure_ascii=False))
        try:
            step = solution.send(shown if shown is not None else observation)
        except StopIteration:
            return


def _as_default(step: Any, surface: Surface, plain: Context) -> str | None:
    """What a search shows with every switch on; None where the surface's own observation will do."""
    if not surface.dump_search or step.action != "search":
        return None
    result = perform(CANONICALISERS["search"](plain, **step.arguments), plain)
    return f"ok: {result.summary}\n{result.body}"


def _by_writing(folder: Path, path: str, old: str, new: str) -> list[tuple[str, dict[str, str]]]:
    """The two calls that change a file where there is no edit command."""
    text = (folder / path).read_text(encoding="utf-8")
    return [("read", {"path": path}), ("write", {"path": path, "content": text.replace(old, new, 1)})]


def _slipping(run: Callable[..., str], turns: list[Turn], folder: Path, rng: Random) -> Callable[[str], str]:
    """`run` with one slip before one of the first calls; a slip that changes a file or does not fail is taken back."""
    due = [rng.randrange(3)]

    def slipped(text: str) -> str:
        due[0] -= 1
        if due[0] == -1:
            wrong = slip_of(text, rng)
            if wrong is None:
                due[0] = 0  # this call has no such slip; the next one
            elif wrong == text:  # a tool that is busy: the same call, not carried out
                name = json.loads(text)["name"]
                busy = Failure("rate_limited", f"too many calls of {name} for now")
                told = failure_text(busy, Outcome.UNAVAILABLE_TOOL)
                turns.extend((Turn(Message("assistant", text)), Turn(Message("user", told))))
            else:
                before, length = _state(folder), len(turns)
                told = run(wrong, learn=False)
                if _state(folder) != before or not told.startswith("error"):
                    raise SlipDidMore(wrong)
                assert len(turns) == length + 2
        return run(text)

    return slipped


class SlipDidMore(Exception):
    """A slip that changed a file, or did not fail."""


def _state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def slip_of(text: str, rng: Random) -> str | None:
    """A call as it may go wrong; the very same call where the tool is to be busy; None where this kind does not fit."""
    call = json.loads(text)
    kind = rng.choice(("form", "form", "content", "content", "content", "content", "busy"))
    if kind == "busy":
        return text
    if kind == "form":
        return _wrong_form(text, call, rng)
    if "code" in call["arguments"]:
        return _wrong_program(call, rng)
    return _wrong_content(call, rng)


def _wrong_form(text: str, call: dict[str, Any], rng: Random) -> str:
    """A reply that the pipeline refuses before it looks at the workspace."""
    arguments = call["arguments"].get("args", call["arguments"])
    name = next(iter(arguments))
    broken = {
        "unbalanced": text[:-1],
        "trailing comma": text[:-2] + ",}}",
        "prose": f"I will call {call['name']} now.",
        "tool": json.dumps({**call, "name": rng.choice(("edit", "python", "open_file", "bash"))}),
        "argument": _put(call, {("target" if key == name else key): value for key, value in arguments.items()}),
        "missing": _put(call, {key: value for key, value in arguments.items() if key != name}),
    }
    return broken[rng.choice(tuple(broken))]


def _put(call: dict[str, Any], arguments: dict[str, Any]) -> str:
    """The call with other arguments, wherever its surface keeps them."""
    inner = call["arguments"]
    inner = {**inner, "args": arguments} if "args" in inner else arguments
    return json.dumps({**call, "arguments": inner}, ensure_ascii=False)


def _wrong_content(call: dict[str, Any], rng: Random) -> str | None:
    """A well-formed call for a file or a text that is not there."""
    arguments = call["arguments"].get("args", call["arguments"])
    ways = []
    if "path" in arguments and "content" not in arguments:
        path = arguments["path"]
        ways += [{"path": path.split("/")[-1]}, {"path": path.removesuffix(".py")}]
    if "old" in arguments:
        old = arguments["old"]
        ways += [
            {"old": way}
            for way in (old.replace(" = ", "="), old.replace("(", " (", 1), old + ":", f"{old}  #")
            if way != old
        ]
    return _put(call, {**arguments, **rng.choice(ways)}) if ways else None


def _wrong_program(call: dict[str, Any], rng: Random) -> str | None:
    """A program that breaks before it has changed anything."""
    code = call["arguments"]["code"]
    imports = re.findall(r"^(?:import|from) .*\n", code, re.MULTILINE)
    ways = [code.replace(line, "", 1) for line in imports]
    ways += [code.replace(")", "", 1)]
    if paths := re.findall(r'Path\("(\w+/\w+\.py)"\)\n.*read_text', code):
        ways.append(code.replace(paths[0], paths[0].split("/")[1], 1))
    wrong = rng.choice(ways)
    return _put(call, {"code": wrong}) if wrong != code else None
