"""Which levels this machine can start: found by starting them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from modtools.errors import MissingPieceError, ModtoolsError
from modtools.sandbox.box import run
from modtools.sandbox.limits import LEVELS


def available_levels() -> dict[str, str]:
    """Level -> "" where it can be started here, else the reason why not. Tried once a process."""
    return {level: _why_not(level) for level in LEVELS}


def strongest_level(allow_rlimits_only: bool = False) -> str:
    """The first of LEVELS that can be started here.

    Args:
        allow_rlimits_only: whether to fall back on "rlimits_only", which is not a sandbox.

    Raises:
        MissingPieceError: none can be started; says what was tried, why each failed, and what to do.
    """
    allowed = LEVELS if allow_rlimits_only else LEVELS[:-1]
    for level in allowed:
        if not _why_not(level):
            return level
    tried = "; ".join(f"{level}: {_why_not(level)}" for level in allowed)
    raise MissingPieceError(
        f"no sandbox can be started here ({tried}). Use Linux with bubblewrap (apt install bubblewrap) or a kernel "
        "of 5.13 or later, or ask for the level 'rlimits_only', which bounds time and memory but is not a sandbox"
    )


@cache
def _why_not(level: str) -> str:
    with tempfile.TemporaryDirectory(prefix="modtools-") as workspace:
        try:
            result = run(["-c", "print('started')"], Path(workspace), level=level)
        except (ModtoolsError, OSError) as error:
            return str(error)
    return "" if result.stdout == "started\n" else f"a first run ended with {result}"
