"""Whether a task is done: its unit tests, pristine, run over the workspace's package in a box.

Only the package's folder is taken from the workspace, so neither edited tests nor a file that shadows the
standard library comes along; `__init__.py`, a mere docstring, is pristine too. Exactly the expected tests must
have run and passed, in a report that carries a nonce.

What this does not prove: the package runs in the process that tests it, so code written for the purpose can
forge a result. It can find the nonce among the runner's frames, install an import hook, return values
that compare equal to numbers only, or recognise the tests' inputs. An earlier exit, a fake report, a patched
unittest or builtin, and a value that equals everything are caught.
"""

from __future__ import annotations

import ast
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from modtools import sandbox
from modtools.lab.tasks import Task
from modtools.sandbox import Limits

MAX_PACKAGE_BYTES = 4_000_000
_RUNNER = Path(__file__).with_name("boxed_tests.py")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification.

    Attributes:
        passed: every expected test ran and passed, and no other ran.
        ran: tests that ran.
        failed: expected tests that did not pass, those included that did not run.
        detail: one line, "" where passed.
    """

    passed: bool
    ran: int
    failed: int
    detail: str


class _Unfit(Exception):
    """The workspace's package cannot be tested."""


def verify(task: Task, workspace: Path, level: str, limits: Limits = Limits()) -> Verdict:
    """Test a copy of the workspace's package; the workspace stays as it is.

    Args:
        task: gives the tests.
        workspace: a folder with the package; no program may be running in it.
        level: a level of modtools.sandbox.
        limits: of the run.

    Raises:
        UsageError, MissingPieceError: as modtools.sandbox.run does.
    """
    expected = set(expected_tests(task.tests))
    with tempfile.TemporaryDirectory(prefix="modtools-verify-") as folder:
        try:
            _copy_package(Path(workspace, task.package), Path(folder, task.package))
            for path, text in task.files.items():
                if path.endswith("/__init__.py"):
                    Path(folder, path).write_text(text, encoding="utf-8")
        except (_Unfit, OSError) as unfit:  # whatever a program left there, it is a verdict and no crash
            return Verdict(False, 0, len(expected), f"the package cannot be tested: {unfit}"[:300])
        nonce = secrets.token_hex(16)
        job = json.dumps({"nonce": nonce, "package": task.package, "tests": dict(task.tests)})
        program = _RUNNER.read_text(encoding="utf-8")
        box = sandbox.run(["-c", program], Path(folder), level=level, limits=limits, stdin=job.encode())
    report = _report(box.stdout, nonce)
    if report is None:
        ending = f"ended by {box.ended_by}, exit code {box.exit_code}"
        return Verdict(False, 0, len(expected), f"no report from the tests: {ending}")
    results: dict[str, str] = report["results"]
    reasons = [f"{path}: {why}" for path, why in report["broken"].items()]
    reasons += [f"{test}: {why}" for test, why in results.items() if why]
    reasons += [f"{test}: unexpected" for test in results.keys() - expected]
    failed = sum(results.get(test, "did not run") != "" for test in expected)
    passed = failed == 0 and results.keys() == expected
    return Verdict(passed, len(results), failed, "" if passed else (reasons or ["tests are missing"])[0])


def expected_tests(tests: Mapping[str, str]) -> Iterator[str]:
    """The ids "path::Class.method" of the tests that these sources define."""
    for path, source in tests.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                names = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
                yield from (f"{path}::{node.name}.{name}" for name in names if name.startswith("test"))


def _copy_package(source: Path, target: Path) -> None:
    """Copy regular files; a link could lead out of the workspace, so one is reason enough to stop."""
    if source.is_symlink() or not source.is_dir():
        raise _Unfit(f"the folder {source.name} is gone or is a link")
    room_bytes = MAX_PACKAGE_BYTES
    waiting = [(source, target)]
    while waiting:
        here, there = waiting.pop()
        there.mkdir()
        for entry in os.scandir(here):
            if entry.is_symlink():
                raise _Unfit(f"{entry.name} in {here.name} is a link")
            if entry.is_dir() and entry.name != "__pycache__":
                waiting.append((Path(entry.path), there / entry.name))
            elif entry.is_file():
                room_bytes -= entry.stat().st_size
                if room_bytes < 0:
                    raise _Unfit(f"the package is larger than {MAX_PACKAGE_BYTES} bytes")
                (there / entry.name).write_bytes(Path(entry.path).read_bytes())


def _report(stdout: str, nonce: str) -> dict | None:
    """The one line that the runner printed, or None where it is missing, doubled or another's."""
    try:
        report = json.loads(stdout)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(report, dict) and report.get("nonce") == nonce
    return report if ours and all(isinstance(report.get(part), dict) for part in ("results", "broken")) else None
