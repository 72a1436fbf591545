"""Commands audit and faults: is an audit whole, and what does the pipeline make of every fault."""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from modtools.cli.common import EXIT_FOUND, EXIT_STOPPED, JsonOption, write_json

app = typer.Typer(no_args_is_help=True, help="What was asked, decided and done.",
                  epilog="Example: modtools audit verify runs/quick")  # fmt: skip


@app.callback()
def _group() -> None:
    """Keeps `verify` a command of its own while it is the only one."""


def faults(
    json_file: JsonOption = None,
    fault: Annotated[str, typer.Option(help="Only this one, such as 'disk full'.")] = "",
) -> None:
    """Inject every fault into a call, for real, and print how it ended. Exit 1: an end missing or doubled, or worse."""
    from rich.console import Console
    from rich.progress import Progress

    from modtools.teaching.faults import fault_table, problems

    console = Console()
    try:
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("faults")
            rows = fault_table(fault, lambda done, total: bar.update(task, completed=done, total=total))
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(EXIT_STOPPED) from None
    # What is short in columns, what is long on lines of its own: so it can be read on 80 columns.
    for place, group in groupby(rows, lambda row: f"{row.fault}, at {row.step}"):
        console.print(f"\n[bold]{place}[/]", highlight=False)
        for row in group:
            told = row.observation.splitlines()[0] if row.observation else "nothing"
            told = told if len(told) <= 200 else f"{told[:197]}..."
            print(f"  a tool that {row.effect}s: {row.outcome or 'no outcome'}, work done: {row.done}")
            for name, text in (("audit", row.audit), ("told", told)):
                head = f"    {name:6}"
                print(fill(text, min(console.width, 120), initial_indent=head, subsequent_indent=" " * len(head)))
    print()
    wrong = [f"{row.fault} at {row.step} ({row.effect}s): {problem}" for row in rows for problem in problems(row)]
    print("\n".join(wrong) or f"{len(rows)} faults: each request ended as it must, and every audit is whole")
    shown = ("fault", "step", "effect", "outcome", "audit", "observation", "done", "ends", "whole")
    write_json(json_file, {"rows": [{name: getattr(row, name) for name in shown} for row in rows], "problems": wrong})
    if wrong:
        raise typer.Exit(EXIT_FOUND)


@app.command("verify", epilog="Example: modtools audit verify runs/quick --json found.json")
def verify_command(
    run: Annotated[Path, typer.Argument(help="An audit's folder, or a run's.")],
    head: Annotated[str, typer.Option(help="The head that an earlier verification printed.")] = "",
    json_file: JsonOption = None,
) -> None:
    """Verify an audit: the chain of digests, the order of events, one end a request, the artefacts. Exit 1: broken."""
    from modtools.errors import UsageError
    from modtools.pipeline import verify_audit

    if json_file and json_file.resolve().name in ("audit.jsonl", "artefacts.jsonl"):
        raise UsageError(f"--json {json_file} would overwrite an audit; name another file")
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
