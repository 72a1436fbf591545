"""What all tests share: the course data beside the checkout, the rule for missing pieces, nbval's settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("MODTOOLS_SHARED", ROOT.parent / "shared"))
_shared_was_used = pytest.StashKey[bool]()


def pytest_collectstart(collector):
    """A figure is compared by its alt text, never by its HTML; stderr holds the machine's own noise."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr", "text/html")


@pytest.fixture(scope="session")
def need() -> Callable[[bool, str], None]:
    """need(present, what): where `what` is missing, skips on a user's machine and fails under CI."""

    def need(present: bool, what: str) -> None:
        if not present and os.environ.get("CI"):
            pytest.fail(f"missing under CI: {what}", pytrace=False)
        elif not present:
            pytest.skip(f"missing here: {what}")

    return need


@pytest.fixture
def shared(request) -> Path:
    """The folder of shared course data; tests that need it are skipped where it does not exist."""
    if not SHARED.is_dir():
        pytest.skip("no shared data: neither MODTOOLS_SHARED nor a folder shared beside the checkout")
    request.config.stash[_shared_was_used] = True
    return SHARED


def pytest_sessionfinish(session):
    """Under CI a whole run that leaves shared data unused is a failure."""
    whole_run = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if os.environ.get("CI") and whole_run and SHARED.is_dir() and _shared_was_used not in session.config.stash:
        session.config.get_terminal_writer().line(f"\nshared data at {SHARED} were not used by any test", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
