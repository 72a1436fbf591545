"""Proving the tasks: each fails before, passes after its reference on every surface, and cannot be cheated.

For every task and surface the reference is played through the real pipeline, as calls a model would write.
Then the proofs by omission: nothing done, the tests edited, the tests deleted, and for each call of the
reference the same run without it, its observation withheld. All of these must fail, so c is what it claims.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from modtools.lab.tasks import Task, materialise, reference
from modtools.lab.verify import verify
from modtools.pipeline import AuditLog, Request
from modtools.surfaces import Surface, build_surface


@dataclass(frozen=True)
class Problem:
    """A proof that failed.

    Attributes:
        task, surface: of the proof ("-" where it concerns no surface).
        proof: which one.
        detail: what was found.
    """

    task: str
    surface: str
    proof: str
    detail: str


def check_task(task: Task, surfaces: Sequence[str], sandbox_level: str) -> Iterator[Problem]:
    """Yield the proofs that fail; none for a sound task.

    Args:
        task: to be proven.
        surfaces: names of surfaces.
        sandbox_level: for programs and the verifier.
    """
    for proof, spoil in _SPOILED.items():
        with task_folder(task) as folder:
            spoil(folder)
            if verify(task, folder, sandbox_level).passed:
                yield Problem(task.id, "-", proof, "the verifier passes without the change")
    for name in surfaces:
        surface = build_surface(name)
        calls, passed, detail = play(task, surface, sandbox_level)
        if not passed:
            yield Problem(task.id, name, "passes after the reference", detail)
            continue
        if name != "code" and calls != task.c:
            yield Problem(task.id, name, "c calls", f"the reference makes {calls} calls, c is {task.c}")
        for dropped in range(calls):
            _, passed, _ = play(task, surface, sandbox_level, dropped)
            if passed:
                yield Problem(task.id, name, "every call is needed", f"it passes without call {dropped + 1} of {calls}")


def play(task: Task, surface: Surface, sandbox_level: str, dropped: int | None = None) -> tuple[int, bool, str]:
    """Play a reference through the pipeline.

    Args:
        task: with its reference.
        surface: on which to play it.
        sandbox_level: for programs and the verifier.
        dropped: index of a call that is not made and whose observation is withheld.

    Returns:
        (calls the reference made, whether the verifier passes afterwards, what failed).
    """
    with task_folder(task) as folder:
        transcript = transcribe(task, surface, folder, sandbox_level, dropped)
        failed = [text for _, text in transcript if text.startswith("error")]
        if failed and dropped is None:
            return len(transcript), False, f"a call of the reference failed: {failed[0]}"
        verdict = verify(task, folder, sandbox_level)
        return len(transcript), verdict.passed, verdict.detail


def transcribe(
    task: Task, surface: Surface, folder: Path, sandbox_level: str, dropped: int | None = None
) -> list[tuple[str, str]]:
    """Play a reference in a folder and return its calls with their observations, as texts."""
    pipeline = surface.pipeline(folder, sandbox_level, AuditLog())
    solution = reference(task, surface.name)
    transcript: list[tuple[str, str]] = []
    try:
        step = next(solution)
        while True:
            text = json.dumps(surface.render(step.action, step.arguments), ensure_ascii=False)
            observation = ""
            if len(transcript) != dropped:
                observation = pipeline.run(Request(str(len(transcript)), text)).observation.text
            transcript.append((text, observation))
            step = solution.send(observation)
    except StopIteration:
        return transcript


def _delete_tests(folder: Path) -> None:
    shutil.rmtree(folder / "tests")


def _empty_tests(folder: Path) -> None:
    for path in (folder / "tests").glob("*.py"):
        path.write_text("")


# What must not be enough. The verifier restores the tests, so neither of the last two can help.
_SPOILED: dict[str, Callable[[Path], None]] = {
    "fails before": lambda folder: None,
    "fails with edited tests": _empty_tests,
    "fails with deleted tests": _delete_tests,
}


@contextmanager
def task_folder(task: Task) -> Iterator[Path]:
    """A temporary folder with the task in it."""
    folder = Path(tempfile.mkdtemp(prefix="modtools-task-"))
    try:
        materialise(task, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
