"""Commands about the machine and the checkout: doctor, model fetch, build."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modtools.cli.common import EXIT_FOUND, JsonOption, write_json
from modtools.errors import UsageError

model_app = typer.Typer(
    no_args_is_help=True, help="The embedded model, and larger ones.", epilog="Example: modtools model fetch"
)


def register(app: typer.Typer) -> None:
    """Adds the commands to the table of contents."""
    app.command(rich_help_panel="Set-up", epilog="Example: modtools doctor --json doctor.json")(doctor)
    app.add_typer(model_app, name="model", rich_help_panel="Set-up")
    app.command(rich_help_panel="Course", epilog="Example: modtools build --check")(build)


def doctor(json_file: JsonOption = None) -> None:
    """Say what this machine has, what that means, and what to do. Exit 1 where something needs doing."""
    from rich.console import Console
    from rich.table import Table

    from modtools.teaching.doctor import checks

    found = checks()
    table = Table("", "", box=None, pad_edge=False)
    for header in ("found", "what it means"):
        table.add_column(header, overflow="fold")
    for check in found:
        table.add_row("ok" if check.ok else "[bold red]!![/]", check.name, check.value, check.advice)
    Console().print(table)
    write_json(json_file, {"checks": [asdict(check) for check in found]})
    if not all(check.ok for check in found):
        raise typer.Exit(EXIT_FOUND)


@model_app.command("fetch", epilog="Example: modtools model fetch")
def model_fetch(json_file: JsonOption = None) -> None:
    """Put the embedded model into the cache. A verified file is never fetched again."""
    from modtools.models.fetch import fetch

    fetched = fetch()
    write_json(json_file, {"path": str(fetched.path), "sha256": fetched.sha256})


@model_app.command("list", epilog="Example: modtools model list")
def model_list(json_file: JsonOption = None) -> None:
    """Larger models for a GPU that --model takes by a short name. None is fetched without --allow-download."""
    from modtools.models.larger import larger_models

    models = larger_models().values()
    for each in models:
        tried = "" if each.tried else " Not tried here."
        size = f"{each.parameters_billion:g} billion parameters, {each.weights_gb:.1f} GB of weights in 16 bits"
        print(f"{each.name}: {each.id} ({each.licence}). {size}.{tried} It {each.note}.")
    write_json(json_file, {"models": [asdict(each) | {"weights_gb": each.weights_gb} for each in models]})


def build(
    names: Annotated[list[str] | None, typer.Argument(metavar="[LESSON]...", help="Build only these.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Build nothing; exit 1 where a notebook differs.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Build the notebooks from their sources, in a checkout of the repository."""
    from modtools.teaching import build as builder

    root, built, differences = Path.cwd(), [], []
    if check and names:
        raise UsageError("build --check looks at all notebooks; leave the names out")
    if check:
        differences = builder.check(root)
        for difference in differences:
            print(difference)
    else:
        for path in builder.build(root, names or ()):
            built.append(path.relative_to(root).as_posix())
    ignored = builder.ignored(root)
    for entry in ignored:
        cells = f": {', '.join(entry.cells)}" if entry.cells else ""
        print(f"{entry.notebook}: output unchecked in {len(entry.cells)} of {entry.code_cells} code cells{cells}")
    write_json(
        json_file,
        {
            "built": built,
            "differences": [asdict(difference) for difference in differences],
            "ignored": [asdict(entry) for entry in ignored],
        },
    )
    if differences:
        raise typer.Exit(EXIT_FOUND)
