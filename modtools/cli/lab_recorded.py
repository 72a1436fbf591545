"""Commands about runs on file: report one, replay one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from modtools.cli.common import EXIT_FOUND, JsonOption, write_json
from modtools.cli.lab import SandboxOption, app, level_of, report_of, run_and_report


@app.command("report", epilog="Example: modtools lab report runs/quick")
def report_command(
    run_folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")], json_file: JsonOption = None
) -> None:
    """Write report.md, report.html and the figures of a run, finished or not."""
    from modtools.lab.run import read_run

    report_of(run_folder, *read_run(run_folder), json_file)


@app.command("replay", epilog="Example: modtools lab replay --out runs/again")
def replay_command(
    out: Annotated[Path, typer.Option(help="Where the replayed run goes.")],
    run_folder: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A recorded run; the one that modtools ships if none.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there in what the two differ. Exit 1: in something.")
    ] = None,
    sandbox: SandboxOption = "strongest",
    json_file: JsonOption = None,
) -> None:
    """Run a recorded run again without a model: its replies through extraction, pipeline and verifier anew."""
    from modtools.lab.findings import FAULT_FOLDER, REFERENCE_FOLDER
    from modtools.lab.plan import check_recorded_with, differences, plan_of
    from modtools.lab.recording import shipped_run
    from modtools.lab.registration import recorded_registration
    from modtools.models import load_model
    from modtools.records import read_json

    recorded = run_folder or shipped_run()
    manifest = read_json(recorded / "manifest.json")
    further = [
        (name, plan_of(read_json(recorded / name / "manifest.json")), load_model(f"replay:{recorded / name}"))
        for name in (FAULT_FOLDER, REFERENCE_FOLDER)
        if (recorded / name / "manifest.json").exists()
    ]
    plan = plan_of(manifest)
    check_recorded_with(manifest)
    registration = recorded_registration(recorded, manifest)
    model = load_model(f"replay:{recorded}")
    run_and_report(plan, model, out, level_of(sandbox), json_file, registration, further)
    if compare:
        found = differences(_numbers(recorded), _numbers(out))
        print("\n".join(found) or "the replay gives the same numbers")
        write_json(compare, {"run": str(recorded), "differences": found})
        if found:
            raise typer.Exit(EXIT_FOUND)


def _numbers(folder: Path) -> dict[str, Any]:
    """Everything that a report says of a run, but for the model's name."""
    from modtools.lab.findings import findings
    from modtools.lab.report import summary
    from modtools.lab.run import read_run

    manifest, records = read_run(folder)
    said = summary(manifest, records) | findings(folder, manifest, records)
    return {name: value for name, value in said.items() if name != "model"}
