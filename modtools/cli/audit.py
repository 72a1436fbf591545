"""Commands audit and faults: is an audit whole, and what does the pipeline make of every fault."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from modtools.cli.common import EXIT_FOUND, JsonOption, write_json

app = typer.Typer(no_args_is_help=True, help="What was asked, decided and done.",
                  epilog="Example: modtools audit verify runs/quick")  # fmt: skip


@app.callback()
def _group() -> None:
    """Keeps `verify` a command of its own while it is the only one."""


@app.command("verify", epilog="Example: modtools audit verify runs/quick --json found.json")
def verify_command(
    run: Annotated[Path, typer.Argument(help="An audit's folder, or a run's.")],
    head: Annotated[str, typer.Option(help="The head that an earlier verification printed.")] = "",
    json_file: JsonOption = None,
) -> None:
    """Verify an audit: the chain of digests, the order of events, one end a request, the artefacts. Exit 1: broken."""
    from modtools.pipeline import verify_audit

    found = verify_audit(run, head)
    print(f"{found.records} records, head {found.head}")
    if found.open:
        print(f"{len(found.open)} requests without an end, such as {found.open[0]}: the log is in use, or its process "
              "died; whoever opens it next ends them")  # fmt: skip
    print("whole" if found.broken_at is None else f"broken at line {found.broken_at}: {found.why}")
    if not head and found.broken_at is None:
        print("Lines cut off at the end would not show. Keep the head elsewhere and give it next time: --head")
    write_json(json_file, asdict(found))
    if found.broken_at is not None:
        raise typer.Exit(EXIT_FOUND)
