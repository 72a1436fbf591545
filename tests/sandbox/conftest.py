"""A workspace and a way to run code in it, once for each level.

The level "rlimits_only" is the control: where an escape is tried, it must succeed there, or the test proves nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
import uuid
from pathlib import Path

import pytest

from modtools.sandbox import LEVELS, Limits, available_levels, run


def start_or_skip(level: str) -> str:
    """The level, if it can be started; a machine of the continuous integration has to be able to."""
    if reason := available_levels()[level]:
        if os.environ.get("CI") and sys.platform == "linux":
            pytest.fail(f"{level} must be available here: {reason}")
        pytest.skip(f"{level}: {reason}")
    return level


@pytest.fixture(params=LEVELS[:-1])
def level(request) -> str:
    """Each level that is a sandbox."""
    return start_or_skip(request.param)


@pytest.fixture(params=LEVELS)
def level_or_control(request) -> str:
    """Each level, the control included."""
    return start_or_skip(request.param)


@pytest.fixture
def folder() -> Path:
    """A folder that every user may enter and write to (pytest's own is closed to the box's user)."""
    path = Path(tempfile.mkdtemp(prefix="modtools-test-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def workspace(folder) -> Path:
    path = folder / "workspace"
    path.mkdir()
    return path


class Box:
    """Runs code in the workspace; `marker` is in the command line of each process of such a run."""

    def __init__(self, workspace: Path):
        self.workspace, self.marker = workspace, uuid.uuid4().hex

    def __call__(self, level: str, code: str, *, stdin: bytes = b"", read_only=(), **limits):
        code = f"# {self.marker}\n{textwrap.dedent(code)}"
        return run(["-c", code], self.workspace, level=level, limits=Limits(**limits), stdin=stdin, read_only=read_only)

    def processes(self) -> list[str]:
        """Command lines of the run's processes that are alive, as the host sees them."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if self.marker in command:
                found.append(command)
        return found


@pytest.fixture
def box(workspace) -> Box:
    return Box(workspace)
