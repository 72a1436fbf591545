"""Three surfaces side by side: the reference solution of one task, played on each, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from modtools.lab.check import task_folder, transcribe
from modtools.lab.tasks import Task
from modtools.surfaces import SURFACES, build_surface
from modtools.teaching.explorer import code, explorer, table

Transcripts = Mapping[str, list[tuple[str, str]]]


def reference_transcripts(task: Task, sandbox_level: str) -> dict[str, list[tuple[str, str]]]:
    """surface -> [(call, observation), ...] of the task's reference, through the real pipeline."""
    transcripts = {}
    for name in SURFACES:
        with task_folder(task) as folder:
            transcripts[name] = transcribe(task, build_surface(name), folder, sandbox_level)
    return transcripts


def readable(call: str) -> str:
    """A call as its tool's name and its arguments, one below the other; programs keep their lines."""
    parsed = json.loads(call)
    lines = [parsed["name"]]
    waiting = list(parsed["arguments"].items())
    while waiting:
        name, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting = [(f"{name}.{inner}", item) for inner, item in value.items()] + waiting
        else:
            lines.append(f"{name}:\n{value}" if "\n" in value else f"{name}: {value}")
    return "\n".join(lines)


def side_by_side_html(transcripts: Transcripts, step: int) -> str:
    """What each surface says at one step: its call and the observation, or that it is done."""
    cells = []
    for calls in transcripts.values():
        if step <= len(calls):
            call, observation = calls[step - 1]
            head = f"call {step} of {len(calls)}, {len(call)} characters"
            cells.append(f"{head}{code(readable(call))}<br>observation{code(observation)}")
        else:
            cells.append(f"done after {len(calls)}")
    return table(list(transcripts), [cells], raw=True)


def side_by_side(tasks: Mapping[str, Task], sandbox_level: str) -> Any:
    """A widget: choose a task, move through the steps, compare the surfaces."""
    played: dict[str, dict[str, list[tuple[str, str]]]] = {}

    def render(task: str, step: int) -> str:
        if task not in played:
            played[task] = reference_transcripts(tasks[task], sandbox_level)
        said = code(tasks[task].text)
        return f"{said}{side_by_side_html(played[task], step)}"

    longest = max(task.c for task in tasks.values())
    return explorer(render, task=tuple(tasks), step=range(1, longest + 1))
