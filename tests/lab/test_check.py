"""The proofs about tasks hold for the shipped generator, and would notice a task that is not sound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modtools.lab.check import check_task, play
from modtools.lab.tasks import draw, task_by_id
from modtools.sandbox import strongest_level
from modtools.surfaces import build_surface

SURFACES = ("coarse", "fine", "code")


@pytest.mark.parametrize("task", draw(3, seed=0), ids=lambda task: task.id)
def test_every_task_of_the_lab_is_proven_on_every_surface(task):
    assert list(check_task(task, SURFACES, strongest_level())) == []


def test_fifteen_tasks_cover_the_strata_with_different_families():
    tasks = draw(3, seed=0)
    assert [task.c for task in tasks] == [c for c in (1, 2, 3, 5, 8) for _ in range(3)]
    for c in (1, 2, 3, 5, 8):
        assert len({task.family for task in tasks if task.c == c}) >= 2


def proofs(task, *surfaces) -> set[str]:
    return {problem.proof for problem in check_task(task, surfaces, strongest_level())}


def test_a_task_that_needs_no_change_is_noticed():
    task = task_by_id("set_value-1-0003")
    trivial = replace(task, tests={path: "import unittest\n\nclass T(unittest.TestCase):\n    def test_nothing(self):\n"
                                         "        pass\n" for path in task.tests})  # fmt: skip
    assert {"fails before", "fails with edited tests", "fails with deleted tests", "every call is needed"} <= proofs(
        trivial, "fine"
    )


def test_a_wrong_c_is_noticed():
    assert proofs(replace(task_by_id("set_value-2-0003"), c=3), "fine") == {"c calls"}


def test_a_reference_that_does_not_solve_its_task_is_noticed():
    task = task_by_id("rename-3-0003")
    path = next(path for path in task.files if not path.endswith("__init__.py"))
    broken = replace(task, files={**task.files, path: task.files[path] + "\nraise RuntimeError\n"})
    assert proofs(broken, "fine") == {"passes after the reference"}


def test_playing_counts_calls_and_withholds_what_is_dropped():
    task = task_by_id("rename-3-0003")
    assert play(task, build_surface("fine"), strongest_level())[:2] == (3, True)
    calls, passed, _ = play(task, build_surface("fine"), strongest_level(), dropped=0)
    assert not passed and calls < 3  # without the search it knows no place to edit
