"""Registering a plan before its data: what will be run, what is expected, and how it will be analysed.

`register` writes three files into a folder: registration.json, the plan as data; registration.md, the same for people;
registration.sha256, the digest of the first. Commit them before the run: the commit then proves the order. Without git
the hash file, put where others can see it, does. A run that is made from a registration holds a copy of it, and only
the report of such a run may call itself confirmatory.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from modtools.contract import digest
from modtools.errors import RecordError
from modtools.lab.analysis import HYPOTHESES
from modtools.lab.analysis.power import least_seeds
from modtools.lab.plan import Plan, differences, manifest_of, plan_of, setting_of
from modtools.models import Model
from modtools.records import read_json, write_whole

NAME = "registration.json"
WANTED_POWER = 0.8

# What of a manifest's pinned part a registration holds; the rest says where it ran, and may differ.
_REGISTERED = ("plan", "model", "decoding", "surfaces", "policy", "tasks")

RULES = {
    "unit": "the task; its seeds are averaged first, and surfaces are compared within it",
    "tests": "Student's t for mean differences, least squares with HC3 errors for slopes; two-sided, level 0.05",
    "beside": "percentile bootstrap over tasks; for H1 a logistic model with all episodes (GEE, bias-reduced errors)",
    "multiplicity": "Holm over H1 to H4; a hypothesis that cannot be tested stays in the family",
    "separation": "where a surface always or never succeeds, the logistic check is reported as separated, and the slope "
    "of per-task differences stands alone",
    "costs": "code a + b u + g log(c / u), fine a + b c + d c^2, in total tokens a task; c* with a percentile interval "
    "over tasks, or no crossover in range where the slope of the difference on c is not told from 0",
    "exclusions": "none; an episode that ends by its budget or a full context has failed",
    "verdicts": "supported or contradicted where Holm's p is below 0.05, by the sign; else undecided, with the power",
}


@dataclass(frozen=True)
class Registration:
    """A plan on file.

    Attributes:
        folder: where it lies.
        data: registration.json.
        hash: SHA-256 of that file's canonical JSON.
        commit: the git commit that holds the file as it is; "" where there is none.
    """

    folder: Path
    data: Mapping[str, Any]
    hash: str
    commit: str

    @property
    def plan(self) -> Plan:
        """The plan of the run; RecordError where its tasks can no longer be made."""
        return plan_of(self.data)

    @property
    def fault_plan(self) -> Plan:
        """The plan of the sub-experiment with the injected fault."""
        return replace(self.plan, inject_fault=True, seeds=self.data["fault_seeds"])

    def note(self) -> dict[str, str]:
        """What a run's manifest says of it."""
        return {"hash": self.hash, "commit": self.commit, "registered": self.data["utc"]}


def register(
    plan: Plan,
    model: Model,
    out: Path,
    sandbox_level: str,
    pilot: Sequence[Mapping[str, Any]] = (),
    pilot_tasks: Sequence[str] = (),
    fault_seeds: int = 1,
) -> Registration:
    """Write a registration.

    Args:
        plan: of the run.
        model: that will be run.
        out: a new or empty folder.
        sandbox_level: for programs and the verifier.
        pilot: records of a pilot run on other tasks, for the power.
        pilot_tasks: their ids.
        fault_seeds: repetitions in the sub-experiment with the injected fault.

    Raises:
        RecordError: where the folder holds one already, or the pilot was run on tasks of the plan.
    """
    out = Path(out)
    if (out / NAME).exists():
        raise RecordError(f"{out} holds a registration already, and it is never overwritten; give another --out")
    pinned = manifest_of(plan, setting_of(plan, model, sandbox_level), model)["pinned"]
    if shared := sorted(set(pilot_tasks) & set(pinned["tasks"])):
        raise RecordError(f"the pilot was run on tasks of the plan, such as {shared[0]}; give another --task-seed")
    family = [each for each in HYPOTHESES if not each.faulted]
    seeds, tried = least_seeds(pilot, family, len(pinned["tasks"]), wanted=WANTED_POWER) if pilot else (None, [])
    data = {
        "pinned": json.loads(json.dumps({name: pinned[name] for name in _REGISTERED})),
        "model": model.name,
        "fault_seeds": fault_seeds,
        "hypotheses": [
            {name: getattr(each, name) for name in ("name", "claim", "estimand", "predicted", "smallest")}
            for each in HYPOTHESES
        ],
        "rules": RULES,
        "pilot_tasks": sorted(pilot_tasks),
        "power": [asdict(each) for each in tried],
        "seeds_for_power": seeds,
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    write_whole(out / NAME, json.dumps(data, indent=2) + "\n")
    write_whole(out / "registration.md", _markdown(data))
    write_whole(out / "registration.sha256", f"{digest(data)}\n")
    return read_registration(out)


def read_registration(folder: Path) -> Registration:
    """The registration in a folder.

    Raises:
        RecordError: where there is none, or it is not what its hash file says.
    """
    folder = Path(folder)
    data = read_json(folder / NAME)
    try:
        kept = (folder / "registration.sha256").read_text().strip()
    except OSError:
        kept = ""
    if not isinstance(data, dict) or digest(data) != kept:
        raise RecordError(f"{folder / NAME} is not the plan that was registered: its hash file says something else")
    return Registration(folder, data, kept, _commit(folder))


def deviations(registration: Mapping[str, Any], manifest: Mapping[str, Any], episodes: int) -> list[str]:
    """In what a run differs from its registration, one line each; an unfinished run is one too."""
    pinned = registration["pinned"]
    found = differences(pinned, {name: manifest["pinned"].get(name) for name in pinned})
    plan = pinned["plan"]
    planned = len(pinned["tasks"]) * len(plan["surfaces"]) * plan["seeds"]
    return found + ([f"{episodes} of {planned} episodes were run"] if episodes < planned else [])


def _commit(folder: Path) -> str:
    """The commit that last changed the file, where git holds it just as it lies here."""

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("log", "-1", "--format=%H", "--", NAME)
    return commit if commit and not git("status", "--porcelain", "--", NAME) else ""


def _markdown(data: Mapping[str, Any]) -> str:
    pinned, plan = data["pinned"], data["pinned"]["plan"]
    rows = [f"| {h['name']} | {h['claim']} | {h['estimand']} | {'+' if h['predicted'] > 0 else '-'} | {h['smallest']:g} |"
            for h in data["hypotheses"]]  # fmt: skip
    power = [
        f"| {p['hypothesis']} | {p['tasks']} | {p['seeds']} | "
        + (f"{p['power']:.2f} |" if p["power"] is not None else f"{p['why']} |")
        for p in data["power"]
    ]
    parts = [
        "# The plan, registered before the run",
        f"Written {data['utc']}. Model {data['model']}, digest {pinned['model'][:16]}. {len(pinned['tasks'])} tasks "
        f"(task seed {plan['task_seed']}), surfaces {', '.join(plan['surfaces'])}, {plan['seeds']} seeds, temperature "
        f"{plan['temperature']:g}. The sub-experiment with the injected fault: the same tasks, {data['fault_seeds']} seed(s).",
        "## Hypotheses",
        "\n".join(
            [
                "| | claim | estimand | predicted sign | smallest effect of interest |",
                "| --- | --- | --- | --- | --- |",
                *rows,
            ]
        ),
        "## Rules",
        "\n".join(f"- *{name}*: {text}." for name, text in data["rules"].items()),
        "## Power",
        "\n".join(["| | tasks | seeds | power |", "| --- | --- | --- | --- |", *power])
        if power
        else "No pilot was given, so none was simulated.",
    ]
    return "\n\n".join(parts) + "\n"
