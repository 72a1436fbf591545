"""The verifier: what does the task passes, and what only pretends to does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modtools.lab.tasks import Task, generate, materialise, reference
from modtools.lab.verify import expected_tests, verify
from modtools.sandbox import LEVELS, Limits, available_levels, strongest_level

TASK = generate("set_value", 1, seed=5)  # one line of one file, TARGET, gets another value
TARGET = TASK.brief["path"]
LEVEL = strongest_level()


def solved(task: Task, folder: Path) -> Path:
    materialise(task, folder)
    for step in reference(task, "fine"):
        file = folder / step.arguments["path"]
        file.write_text(file.read_text().replace(step.arguments["old"], step.arguments["new"]))
    return folder


def unsolved(folder: Path) -> Path:
    materialise(TASK, folder)
    return folder


@pytest.mark.parametrize("level", LEVELS)
def test_the_solution_passes_with_every_test_run_on_every_level(level, tmp_path, need):
    need(available_levels()[level] == "", f"sandbox level {level}")
    verdict = verify(TASK, solved(TASK, tmp_path / "w"), level)
    assert (verdict.passed, verdict.failed, verdict.detail) == (True, 0, "")
    assert verdict.ran == len(list(expected_tests(TASK.tests))) > 10


def test_the_workspace_itself_is_left_alone(tmp_path):
    folder = solved(TASK, tmp_path / "w")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    verify(TASK, folder, LEVEL)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_what_is_not_done_fails_and_the_verdict_says_which_test_and_why(tmp_path):
    verdict = verify(TASK, unsolved(tmp_path / "w"), LEVEL)
    assert not verdict.passed and verdict.failed == 1
    assert "::" in verdict.detail and "!=" in verdict.detail


def test_editing_or_deleting_the_tests_does_not_help(tmp_path):
    folder = unsolved(tmp_path / "w")
    for path in TASK.tests:
        (folder / path).write_text("")
    edited = verify(TASK, folder, LEVEL)
    for path in TASK.tests:
        (folder / path).unlink()
    assert not edited.passed and verify(TASK, folder, LEVEL) == edited


@pytest.mark.parametrize("path", [path for path in TASK.files if not path.endswith("__init__.py")])
def test_destroying_any_module_of_a_solved_task_fails(path, tmp_path):
    folder = solved(TASK, tmp_path / "w")
    (folder / path).write_text("")
    assert not verify(TASK, folder, LEVEL).passed
    (folder / path).unlink()
    assert not verify(TASK, folder, LEVEL).passed


PATCH = "import unittest\n"
SET = f"{TASK.brief['new']}\n"
SHOUT = """\
import os
for descriptor in range(9):
    try:
        os.write(descriptor, {said})
    except OSError:
        pass
"""
FAKE_REPORT = SHOUT.format(said=b'{"nonce": "", "results": {}, "broken": {}}\n')
PRETENCES = {
    "leaves with success": {TARGET: "import os\nos._exit(0)\n"},
    "exits with success": {TARGET: "import sys\nsys.exit(0)\n"},
    "raises KeyboardInterrupt": {TARGET: "raise KeyboardInterrupt\n"},
    "prints a report": {TARGET: FAKE_REPORT},
    "prints a report and leaves": {TARGET: FAKE_REPORT + "os._exit(0)\n"},
    "prints what no parser likes": {TARGET: SHOUT.format(said="b'[' * 200_000") + "os._exit(0)\n"},
    "assertEqual does nothing": {TARGET: PATCH + "unittest.TestCase.assertEqual = lambda *_: None\n"},
    "the code behind assertEqual is exchanged": {
        TARGET: PATCH
        + "unittest.TestCase._getAssertEqualityFunc.__code__ = (lambda *_: lambda *_, **__: None).__code__\n"
    },
    "no failure is noted": {TARGET: PATCH + "unittest.TestResult.addFailure = lambda *_: None\n"},
    "tests do not run": {TARGET: PATCH + "unittest.TestCase.run = lambda self, result: result.startTest(self)\n"},
    "tests are skipped": {TARGET: "import unittest\nraise unittest.SkipTest\n"},
    "a shadowing unittest beside the package": {"unittest.py": "import os\nos._exit(0)\n"},
    "a shadowing json in the package": {f"{TASK.package}/json.py": "import os\nos._exit(0)\n"},
    "a site file": {"sitecustomize.py": SET, "usercustomize.py": SET},
    "the package's own front sets the value": {
        f"{TASK.package}/__init__.py": f"from {TASK.package} import {Path(TARGET).stem} as target\ntarget.{SET}"
    },
    "a neighbour sets the value on import": {
        path: text + f"\nfrom . import {Path(TARGET).stem} as target\ntarget.{SET}"
        for path, text in TASK.files.items()
        if path != TARGET and not path.endswith("__init__.py")
    },
    "never ends": {TARGET: "while True:\n    pass\n"},
}


@pytest.mark.parametrize("name", PRETENCES)
def test_a_pretence_fails(name, tmp_path):
    folder = unsolved(tmp_path / "w")
    for path, text in PRETENCES[name].items():
        (folder / path).write_text(text + TASK.files[TARGET] if path == TARGET else text)
    assert not verify(TASK, folder, LEVEL, Limits(wall_s=3)).passed


def test_a_value_that_equals_everything_fails(tmp_path):
    folder = unsolved(tmp_path / "w")
    name = TASK.brief["new"].split(" = ")[0]
    impostor = f"""\
class Any(int):
    __eq__ = lambda *_: True
    __add__ = __radd__ = __mul__ = __rmul__ = lambda self, other: self


{name} = Any(0)"""
    (folder / TARGET).write_text(TASK.files[TARGET].replace(TASK.brief["old"], impostor))
    assert "equals anything" in verify(TASK, folder, LEVEL).detail


@pytest.mark.parametrize("linked", [TASK.package, TARGET])
def test_a_link_in_place_of_the_package_or_a_file_fails(linked, tmp_path):
    folder, elsewhere = unsolved(tmp_path / "w"), solved(TASK, tmp_path / "elsewhere")
    (folder / linked).rename(tmp_path / "away")
    os.symlink(elsewhere / linked, folder / linked)
    verdict = verify(TASK, folder, LEVEL)
    assert not verdict.passed and "link" in verdict.detail


def test_a_package_that_is_gone_or_huge_fails(tmp_path):
    folder = solved(TASK, tmp_path / "w")
    (folder / TASK.package / "data.bin").write_bytes(bytes(5_000_000))
    assert "larger" in verify(TASK, folder, LEVEL).detail
    (folder / TASK.package).rename(tmp_path / "away")
    assert "gone" in verify(TASK, folder, LEVEL).detail


@pytest.mark.parametrize(
    "patch",
    [
        "import json\nold = json.dumps\njson.dumps = lambda r, **k: old({**r, 'results': dict.fromkeys(r['results'], '')}, **k)\n",
        "import os, re\nold = os.write\nos.write = lambda f, b: old(f, re.sub(rb': \".*?!=.*?\"', b': \"\"', b))\n",
        "import json.encoder\njson.encoder.JSONEncoder.encode = lambda self, o: '{}'\n",
    ],
    ids=["dumps", "write", "encoder"],
)
def test_patching_what_the_report_is_written_with_does_not_help(patch, tmp_path):
    folder = unsolved(tmp_path / "w")
    (folder / TARGET).write_text(patch + (folder / TARGET).read_text())
    assert not verify(TASK, folder, LEVEL).passed
