"""Commands of the lab: register a plan, and run it. Tasks and recorded runs have files of their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from modtools.cli.common import EXIT_STOPPED, JsonOption, write_json
from modtools.errors import MissingPieceError, UsageError

app = typer.Typer(no_args_is_help=True, help="Lab 2: three tool surfaces, the same tasks, a real model.",
                  epilog="Example: modtools lab run --preset quick --out runs/quick")  # fmt: skip

SandboxOption = Annotated[
    str,
    typer.Option(metavar="LEVEL", help="strongest, bubblewrap, landlock, or rlimits_only (which is not a sandbox)."),
]
SurfacesOption = Annotated[str, typer.Option(help="Some of coarse, fine, code, with commas.")]
TasksOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Your own tasks, as `lab import` wrote them, in place of drawn ones."),
]


@app.command("run", epilog="Example: modtools lab run --model embedded --per-stratum 3 --seeds 1 --out runs/first")
def run_command(
    out: Annotated[Path, typer.Option(help="The run folder; an unfinished run in it is resumed.")],
    model: Annotated[
        str,
        typer.Option(
            help="embedded, embedded-base, scripted (plays the references), replay:DIR, server:URL, or a hub id or "
            "folder."
        ),
    ] = "embedded",
    registered: Annotated[
        Path | None, typer.Option(help="Run this registered plan, and its sub-experiment with the injected fault.")
    ] = None,
    preset: Annotated[str, typer.Option(help="quick: one task a stratum, one seed, a short budget.")] = "",
    surfaces: SurfacesOption = "coarse,fine,code",
    per_stratum: Annotated[int | None, typer.Option(help="Tasks a stratum; 3 where not given.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Repetitions of each task; 1 where not given.")] = None,
    task_seed: Annotated[int, typer.Option(help="Seed from which the tasks are drawn.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of the sampling; 0 takes the likeliest token.")] = 0.0,
    inject_fault: Annotated[
        bool, typer.Option("--inject-fault", help="The first call of each episode that changes something fails.")
    ] = False,
    tasks: TasksOption = None,
    server_model: Annotated[str, typer.Option(help="Its name there, where server:URL offers several.")] = "",
    tokenizer: Annotated[str, typer.Option(help="Folder or hub id of the tokenizer of a model on a server.")] = "",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16; chosen by a probe where empty.")] = "",
    allow_download: Annotated[
        bool, typer.Option(help="A hub id that is not in the local cache may be fetched.")
    ] = False,
    sandbox: SandboxOption = "strongest",
    json_file: JsonOption = None,
) -> None:
    """Run the lab: every task on every surface. Stop it anywhere; the same command goes on."""
    from modtools.lab.own_tasks import read_set
    from modtools.lab.plan import QUICK, Plan
    from modtools.lab.registration import read_registration

    said = (preset, per_stratum, seeds, task_seed, temperature, inject_fault, tasks)
    if registered and said != ("", None, None, 0, 0.0, False, None):
        raise UsageError("--registered says what is run; leave the preset, numbers, seeds, tasks and temperature to it")
    if tasks and (preset, per_stratum, task_seed) != ("", None, 0):
        raise UsageError("--tasks are run as they are; leave --preset, --per-stratum and --task-seed out")
    if preset not in ("", "quick"):
        raise UsageError(f"there is no preset {preset!r}; expected quick")
    if preset and (per_stratum, seeds) != (None, None):
        raise UsageError("--preset says how many tasks and seeds; leave --per-stratum and --seeds out, or the preset")
    per_stratum, seeds = (3 if per_stratum is None else per_stratum), (1 if seeds is None else seeds)
    if temperature == 0 and seeds > 1:
        print("note: at temperature 0 the seeds repeat each other; give --temperature, e.g. 0.7", file=sys.stderr)
    size = QUICK if preset else Plan(per_stratum=per_stratum, seeds=seeds)
    own = read_set(tasks) if tasks else ()
    chosen = {"task_seed": task_seed, "temperature": temperature, "inject_fault": inject_fault, "own": own}
    plan = replace(size, surfaces=names_of(surfaces), **chosen)
    level = level_of(sandbox)
    registration = read_registration(registered) if registered else None
    plan = registration.plan if registration else _sized(plan, model)
    asked = {"dtype": dtype, "allow_download": allow_download, "model": server_model, "tokenizer": tokenizer}
    loaded = _loaded(model, plan, level, **asked)
    if registration and loaded.digest != registration.data["pinned"]["model"]:
        raise UsageError(f"{registered} is a plan for {registration.data['model']}, and --model {model} is another one")
    further = _further(registration, loaded, level) if registration else ()
    run_and_report(plan, loaded, out, level, json_file, registration, further)


@app.command(
    "preregister",
    epilog="Example: modtools lab preregister --per-stratum 12 --seeds 5 --temperature 0.7 --out plans/lab2",
)
def preregister_command(
    out: Annotated[Path, typer.Option(help="A new folder for the plan; commit it before the run.")],
    model: Annotated[str, typer.Option(help="As for `lab run`.")] = "embedded",
    per_stratum: Annotated[int, typer.Option(help="Tasks a stratum.")] = 12,
    seeds: Annotated[int, typer.Option(help="Repetitions of each task on each surface.")] = 5,
    fault_seeds: Annotated[int, typer.Option(help="Repetitions with the injected fault.")] = 1,
    task_seed: Annotated[int, typer.Option(help="Seed from which the tasks are drawn.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of the sampling.")] = 0.7,
    tasks: TasksOption = None,
    pilot: Annotated[Path | None, typer.Option(help="A pilot's run folder, on other tasks, for the power.")] = None,
    sandbox: SandboxOption = "strongest",
    json_file: JsonOption = None,
) -> None:
    """Write down tasks, hypotheses, tests and seeds before the data; `lab run --registered` then follows the plan."""
    from modtools.lab.own_tasks import read_set
    from modtools.lab.plan import Plan
    from modtools.lab.registration import power_lines, register
    from modtools.lab.run import read_run

    own = read_set(tasks) if tasks else ()
    plan = _sized(
        Plan(per_stratum=per_stratum, seeds=seeds, task_seed=task_seed, temperature=temperature, own=own), model
    )
    level = level_of(sandbox)
    manifest, records = read_run(pilot) if pilot else ({"pinned": {"tasks": {}}}, [])
    loaded = _loaded(model, plan, level)
    made = register(plan, loaded, out, level, records, list(manifest["pinned"]["tasks"]), fault_seeds)
    for line in power_lines(made.data):
        print(line)
    print(f"registered in {out}, hash {made.hash}")
    print("Commit the folder now, then: modtools lab run --registered " f"{out} --out RUN")  # fmt: skip
    write_json(
        json_file, {"hash": made.hash, "power": made.data["power"], "seeds_for_power": made.data["seeds_for_power"]}
    )


def _further(registration: Any, model: Any, level: str) -> list[tuple[str, Any, Any]]:
    """The sub-runs of a registered run: with the injected fault, and the references counted in the model's tokens."""
    from modtools.lab.findings import FAULT_FOLDER, REFERENCE_FOLDER
    from modtools.lab.reference_model import reference_model

    plan = registration.reference_plan
    return [
        (FAULT_FOLDER, registration.fault_plan, model),
        (REFERENCE_FOLDER, plan, reference_model(plan, level, counted_by=model)),
    ]


def _sized(plan: Any, model: str) -> Any:
    """The plan; a script's tokens are short pieces, so its programs need more of them than a model's would."""
    return replace(plan, budget=replace(plan.budget, reply_tokens=4000)) if model == "scripted" else plan


def _loaded(spec: str, plan: Any, level: str, **asked: Any) -> Any:
    from modtools.lab.reference_model import reference_model
    from modtools.models import load_model

    if spec == "scripted":
        if any(asked.values()):
            raise UsageError(
                "--model scripted plays the references; it takes neither --dtype nor any other option of a model"
            )
        return reference_model(plan, level)
    return load_model(spec, **{name: value for name, value in asked.items() if value})


def run_and_report(
    plan: Any,
    model: Any,
    out: Path,
    level: str,
    json_file: Path | None,
    registration: Any = None,
    further: Sequence[tuple[str, Any, Any]] = (),
) -> None:
    """Run a plan, then what belongs to it as (sub-folder, plan, model), and report."""
    from modtools.lab.progress import shown_progress
    from modtools.lab.run import read_run, run

    try:
        with shown_progress() as show:
            run(plan, model, out, level, show, registration)
        for name, plan_of_it, model_of_it in further:
            print(f"now the run in {out / name}")
            with shown_progress() as show:
                run(plan_of_it, model_of_it, out / name, level, show)
    except KeyboardInterrupt:
        print(f"stopped; what has ended is in {out}, and the same command goes on from there")
        raise typer.Exit(EXIT_STOPPED) from None
    report_of(out, *read_run(out), json_file)


def report_of(folder: Path, manifest: dict, records: list, json_file: Path | None) -> None:
    """Write the report of a run, and print what matters of it."""
    from rich.console import Console
    from rich.table import Table

    from modtools.lab.findings import findings
    from modtools.lab.report import finding, success_table, summary, write_report

    path = write_report(folder, manifest, records)
    data = summary(manifest, records) | findings(folder, manifest, records)
    header, rows = success_table(data)
    table = Table(*header, title=f"{manifest['model']['name']}: episodes solved, with 95 % intervals")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(finding(data), highlight=False)
    if data["registration"]:
        console.print(", ".join(f"{n}: {h['verdict']}" for n, h in data["hypotheses"].items()), highlight=False)
    print(f"sandbox {manifest['pinned']['sandbox_level']}; report: {path}")
    write_json(json_file, data)


def names_of(surfaces: str) -> tuple[str, ...]:
    """The surfaces that --surfaces names."""
    from modtools.surfaces import SURFACES

    names = tuple(name.strip() for name in surfaces.split(",") if name.strip())
    if not names or not set(names) <= set(SURFACES):
        raise UsageError(f"--surfaces {surfaces!r}: expected some of {', '.join(SURFACES)}, with commas")
    return names


def level_of(sandbox: str) -> str:
    """The level to use; a weaker one than the strongest is taken only by name."""
    from modtools.sandbox import available_levels, strongest_level

    if sandbox == "strongest":
        return strongest_level()
    levels = available_levels()
    if sandbox not in levels:
        raise UsageError(f"--sandbox {sandbox!r}: expected strongest, {', '.join(levels)}")
    if levels[sandbox]:
        raise MissingPieceError(f"sandbox level {sandbox} cannot be started here: {levels[sandbox]}")
    return sandbox
