"""Pack a run of the lab into the package, where `modtools lab replay` and the notebooks find it.

python course/lab/pack_recording.py runs/confirmatory confirmatory
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from modtools.lab.recording import CONFIRMATORY, PILOT, SHIPPED, pack


def main(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    name: Annotated[str, typer.Argument(help="confirmatory or pilot.")],
) -> None:
    """Replace the packed run of that name."""
    if name not in (CONFIRMATORY, PILOT):
        raise typer.BadParameter(f"{name!r}: expected {CONFIRMATORY} or {PILOT}")
    shutil.rmtree(SHIPPED / name, ignore_errors=True)
    print(f"packed {pack(run, SHIPPED / name):,} bytes into {SHIPPED / name}")


if __name__ == "__main__":
    typer.run(main)
