"""Commands about tasks: prove them, and bring your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from modtools.cli.common import EXIT_FOUND, JsonOption, write_json
from modtools.cli.lab import SandboxOption, SurfacesOption, app, level_of, names_of


@app.command("check", epilog="Example: modtools lab check rename-5-0017")
def check_command(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASKS]...", help="Ids, or files of own tasks; all drawn ones if none."),
    ] = None,
    per_stratum: Annotated[int, typer.Option(help="Tasks a stratum, where no ids are given.")] = 3,
    task_seed: Annotated[int, typer.Option(help="Seed from which the tasks are drawn.")] = 0,
    surfaces: SurfacesOption = "coarse,fine,code",
    sandbox: SandboxOption = "strongest",
    json_file: JsonOption = None,
) -> None:
    """Prove tasks: fail before, pass after the reference on each surface, need every call. Exit 1 where one fails."""
    from modtools.lab.own_tasks import read_set
    from modtools.lab.tasks import draw, task_by_id

    chosen = [] if tasks else draw(per_stratum, task_seed)
    for name in tasks or ():
        chosen += read_set(Path(name)) if Path(name).is_file() else [task_by_id(name)]
    names, level = names_of(surfaces), level_of(sandbox)
    problems = _prove(chosen, names, level)
    data = {"tasks": [t.id for t in chosen], "surfaces": list(names), "failures": [asdict(p) for p in problems]}
    write_json(json_file, data)
    if problems:
        raise typer.Exit(EXIT_FOUND)


@app.command("import", epilog="Example: modtools lab import course/own_tasks --out runs/own.jsonl")
def import_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="One sub-folder a task; course/own_tasks shows how.")],
    out: Annotated[Path, typer.Option(help="The file to write, for `lab run --tasks FILE`.")],
    sandbox: SandboxOption = "strongest",
    json_file: JsonOption = None,
) -> None:
    """Read your own tasks, prove them on every surface, and pack them into a file. Exit 1 where one is not proven.

    A task's reference.py is run in this process: import only what you would run.
    """
    from collections import Counter

    from modtools.lab.own_tasks import read_tasks, write_set
    from modtools.surfaces import SURFACES

    tasks = read_tasks(folder)
    problems = _prove(tasks, SURFACES, level_of(sandbox))
    strata = dict(sorted(Counter(task.c for task in tasks).items()))
    data = {"tasks": [t.id for t in tasks], "strata": strata, "failures": [asdict(p) for p in problems]}
    write_json(json_file, data)
    if problems:
        print(f"nothing was written: mend the tasks in {folder}")
        raise typer.Exit(EXIT_FOUND)
    write_set(tasks, out)
    print(f"wrote {out}: {', '.join(f'{many} with c={c}' for c, many in strata.items())}")
    print(f"now: modtools lab run --tasks {out} --out RUN")


def _prove(tasks: Sequence[Any], names: Sequence[str], level: str) -> list[Any]:
    from rich.progress import track

    from modtools.lab.check import check_task

    problems: list[Any] = []
    for task in track(tasks, description="proving tasks"):
        problems += check_task(task, names, level)
    for problem in problems:
        print(f"{problem.task} on {problem.surface}: not proven: {problem.proof}: {problem.detail}")
    print(f"{len(tasks)} tasks on {', '.join(names)}: {len(problems)} proofs failed (sandbox {level})")
    return problems
