"""The task generator: what it promises of every task, and that each count of calls is the least."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from modtools.contract import Outcome, ToolFailure
from modtools.errors import UsageError
from modtools.lab.families import FAMILIES
from modtools.lab.minimality import Line, one_search_shows
from modtools.lab.tasks import STRATA, Task, draw, generate, materialise, reference
from modtools.lab.verify import verify
from modtools.pipeline.observe import failure_text, result_text
from modtools.sandbox import strongest_level
from modtools.surfaces.operations import CANONICALISERS, MAX_MATCHES, Context, perform
from modtools.surfaces.workspace import Workspace

CELLS = [(family.name, c) for family in FAMILIES.values() for c in family.strata]
every_cell = pytest.mark.parametrize(("family", "c"), CELLS)
LEVEL = strongest_level()


def workspace_of(task: Task, folder: Path) -> Path:
    materialise(task, folder)
    return folder


def solve(task: Task, surface: str, folder: Path, dropped: int | None = None) -> int:
    """Let the reference work in a folder, one of its steps withheld; returns how many steps it took."""
    context = Context(Workspace(folder), LEVEL)
    steps = reference(task, surface)
    count, observation = 0, None
    try:
        while True:
            step = steps.send(observation)
            observation = ""
            if count != dropped:
                try:
                    result = perform(CANONICALISERS[step.action](context, **step.arguments), context)
                    observation, cut = result_text(result, limit_chars=4000)
                    assert not cut, "a reference must not need more than an observation shows"
                except ToolFailure as error:
                    observation = failure_text(error.failure, Outcome.VALIDATION_FAILED)
                assert dropped is not None or not observation.startswith("error"), observation
            count += 1
    except StopIteration:
        return count


@every_cell
def test_a_task_fails_before_passes_after_its_c_calls_and_fails_without_any_one_of_them(family, c, tmp_path):
    task = generate(family, c, seed=c)
    assert not verify(task, workspace_of(task, tmp_path / "before"), LEVEL).passed
    assert solve(task, "fine", workspace_of(task, tmp_path / "after")) == c
    assert verify(task, tmp_path / "after", LEVEL).detail == ""
    for dropped in {0, c // 2, c - 1}:  # `modtools lab check` drops every call of every task
        folder = workspace_of(task, tmp_path / f"without-{dropped}")
        solve(task, "fine", folder, dropped)
        assert not verify(task, folder, LEVEL).passed, f"call {dropped} is not needed"


@every_cell
def test_the_programs_solve_a_task_and_each_of_them_is_needed(family, c, tmp_path):
    task = generate(family, c, seed=100 + c)
    programs = solve(task, "code", workspace_of(task, tmp_path / "after"))
    assert verify(task, tmp_path / "after", LEVEL).detail == ""
    for dropped in range(programs) if programs > 1 else ():
        folder = workspace_of(task, tmp_path / f"without-{dropped}")
        solve(task, "code", folder, dropped)
        assert not verify(task, folder, LEVEL).passed


@every_cell
def test_a_task_is_a_package_of_some_size_that_its_text_and_brief_agree_on(family, c):
    for seed in range(3):
        task = generate(family, c, seed)
        assert task.id == f"{family}-{c}-{seed:04d}"
        assert 1 <= task.u <= c and task.r == c / task.u
        assert len(task.files) >= 6 and sum(text.count("\n") for text in task.files.values()) >= 120
        assert {path.split("/")[0] for path in task.files} == {task.package}
        assert not {Path(path).stem for path in task.files} & sys.stdlib_module_names
        assert all(path.startswith("tests/") for path in task.tests)
        lines = [line for text in task.files.values() for line in text.split("\n")]
        assert all(line == line.rstrip() and len(line) <= 100 for line in lines)


@every_cell
def test_the_same_seed_gives_the_same_task_and_another_seed_another(family, c):
    assert generate(family, c, 3).digest == generate(family, c, 3).digest
    assert len({generate(family, c, seed).digest for seed in range(5)}) == 5


def test_a_task_is_the_same_in_every_python_process():
    code = "from modtools.lab.tasks import generate; print(generate('fix_bug', 5, 4).digest)"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {generate("fix_bug", 5, 4).digest + "\n"}


def test_where_the_file_must_be_found_the_text_names_neither_package_nor_module():
    for task in draw(8, seed=5, strata=(2, 3, 5, 8)):
        if "path" not in task.brief:
            words = set(re.findall(r"\w+", task.text))
            assert not words & {task.package, *(Path(path).stem for path in task.files)}


def test_payloads_and_repetitions_vary_apart():
    settings = {generate("set_value", 8, seed).u for seed in range(8)}
    calls = {generate("update_callers", 8, seed).u for seed in range(12)}
    assert settings == {1, 7} and calls == {2, 7}


def test_a_draw_is_balanced_over_families_and_names_every_task_once():
    tasks = draw(5, seed=2)
    assert len(tasks) == 25 == len({task.id for task in tasks} | {task.id for task in draw(5, seed=2)})
    for c in STRATA:
        counts = Counter(task.family for task in tasks if task.c == c)
        offered = sum(c in family.strata for family in FAMILIES.values())
        assert len(counts) == min(5, offered) >= 3
        assert max(counts.values()) - min(counts.values()) <= 1
    assert not {task.digest for task in tasks} & {task.digest for task in draw(5, seed=3)}


def test_unknown_family_stratum_and_surface_are_refused_with_the_valid_ones():
    with pytest.raises(UsageError, match="set_value, rename"):
        generate("paint", 1, 0)
    with pytest.raises(UsageError, match="3, 5, 8"):
        generate("update_callers", 1, 0)
    with pytest.raises(UsageError, match="1, 2, 3, 5, 8"):
        draw(1, 0, strata=(4,))
    with pytest.raises(UsageError, match="coarse, fine, code"):
        reference(generate("rename", 2, 0), "voice")


def test_a_brief_that_knows_more_than_the_text_is_refused():
    with pytest.raises(UsageError, match="'hidden'"):
        Task("x", "rename", 2, 1, 0, "Rename a to b.", {"p/a.py": ""}, {}, {"old": "a", "new": ["hidden"]})


def test_a_folder_with_something_in_it_is_not_written_over(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        materialise(generate("rename", 2, 0), tmp_path)


def test_the_workspace_runs_its_own_tests(tmp_path):
    task = generate("rename", 3, 1)
    solve(task, "coarse", workspace_of(task, tmp_path / "w"))
    context = Context(Workspace(tmp_path / "w"), LEVEL)
    assert perform(CANONICALISERS["run_tests"](context, "python -m unittest"), context).data["exit_code"] == 0


def test_no_ordinary_search_shows_both_formulas_of_two_bugs(tmp_path):
    for seed in range(5):
        task = generate("fix_bug", 5, seed)
        folder = workspace_of(task, tmp_path / str(seed))
        solve(task, "fine", folder)
        flawed = {
            (path, line)
            for path, text in task.files.items()
            for line in set(text.splitlines()) - set((folder / path).read_text().splitlines())
        }
        assert len(flawed) == 2
        lines = [(path, line) for path in sorted(task.files) for line in task.files[path].splitlines()]
        python = "return result self def import ( ) _ = * + - . ,".split()
        for pattern in {*re.findall(r"\w+", task.text), *python, " ", "    ", " = ", "return (", ") * ", " + ", " - "}:
            shown = [(path, line) for path, line in lines if pattern in line][:MAX_MATCHES]
            assert not flawed <= set(shown), pattern


def test_one_search_is_seen_to_show_two_secrets_unless_the_list_is_cut_off_or_the_word_unknown():
    def lines(*texts: str) -> list[Line]:
        return [Line("a.py", number, text) for number, text in enumerate(texts, 1)]

    short = lines("fee(bags)", "bags*RATE")
    assert one_search_shows(short, short, known="fee bags")
    assert not one_search_shows(short, short, known="fee")
    long = lines(*["bags"] * 29, "fee(bags)", "bags*RATE")
    assert not one_search_shows(long, long[29:], known="bags")
