"""What all commands share: exit codes and the option --json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from modtools import records

EXIT_FOUND, EXIT_MISSING, EXIT_STOPPED = 1, 2, 130

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures to FILE as JSON.")]


def write_json(path: Path | None, data: Any) -> None:
    """Writes what `--json` asks for; does nothing where it was not given."""
    if path is not None:
        records.write_json(path, data)
