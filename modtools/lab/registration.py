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
from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.by_task import DIFFERENCE, pair
from modtools.lab.analysis.hypotheses import HYPOTHESES, Hypothesis
from modtools.lab.analysis.power import SLOPE, Design, fewest_seeds, power_by_seeds
from modtools.lab.plan import Plan, differences, manifest_of, plan_of, setting_of
from modtools.models import Model
from modtools.records import read_json, write_whole

NAME = "registration.json"
WANTED_POWER = 0.8
MOST_SEEDS = 10
SMALLEST = {"H1": 0.04, "H2": 10.0, "H3": 0.1, "H4": 0.05}
"""The smallest effects of interest: H1 share of successes a call, H2 tokens a task, H3 share, H4 log ratio a call."""

# What of a manifest's pinned part a registration holds; the rest says where it ran, and may differ.
_REGISTERED = ("plan", "model", "decoding", "surfaces", "policy", "tasks")

RULES = {
    "unit": "the task; its seeds are averaged first, and surfaces are compared within it",
    "tests": "Student's t for mean differences, least squares with HC3 errors for slopes; two-sided, level 0.05",
    "beside": "percentile bootstrap over tasks; for H1 a logistic model with all episodes (GEE, bias-reduced errors)",
    "multiplicity": "Holm over H1 to H4; a hypothesis that cannot be tested stays in the family",
    "separation": "where a surface always or never succeeds, the logistic check is reported as separated, and the slope "
    "of per-task differences stands alone",
    "power": "of each test at the smallest effect of interest, at the level 0.05 / 4 that Holm asks of the first",
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

    @property
    def reference_plan(self) -> Plan:
        """The plan by which the reference solutions' own costs are counted: once each, with room for long programs."""
        return replace(self.plan, seeds=1, temperature=0.0, budget=replace(self.plan.budget, reply_tokens=4000))

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
    power = [_power(each, pilot, plan.per_stratum) for each in HYPOTHESES if not each.injected] if pilot else []
    enough = [each["fewest_seeds"] for each in power if not each["why"]]
    data = {
        "pinned": json.loads(json.dumps({name: pinned[name] for name in _REGISTERED})),
        "model": model.name,
        "fault_seeds": fault_seeds,
        "hypotheses": [
            {"name": each.name, "claim": each.claim, "estimand": estimand(each), "predicted": each.predicted}
            for each in HYPOTHESES
        ],
        "smallest": SMALLEST,
        "rules": RULES,
        "pilot_tasks": sorted(pilot_tasks),
        "power": power,
        "seeds_for_power": max(enough) if enough and None not in enough else None,
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    write_whole(out / NAME, json.dumps(data, indent=2) + "\n")
    write_whole(out / "registration.md", _markdown(data))
    write_whole(out / "registration.sha256", f"{digest(data)}\n")
    return read_registration(out)


def estimand(each: Hypothesis) -> str:
    """What a hypothesis estimates, in words."""
    names = {"call_tokens": "call overhead, tokens", "recovered_share": "recovery after the injected fault"}
    what = names.get(each.quantity.__name__, each.quantity.__name__.replace("_", " "))
    sign = "-" if each.scale == DIFFERENCE else "/"
    contrast = f"per-task {each.scale} {each.left} {sign} {each.right} in {what}"
    return f"slope on c of the {contrast}" if each.kind == SLOPE else contrast


def _power(each: Hypothesis, pilot: Sequence[Mapping[str, Any]], per_stratum: int) -> dict[str, Any]:
    """The power for each number of seeds, and the fewest that reach the wanted one; or why it cannot be told."""
    found: dict[str, Any] = {"hypothesis": each.name, "powers": [], "fewest_seeds": None, "why": ""}
    try:
        design = Design(each.kind, each.predicted * SMALLEST[each.name], 0.05 / len(HYPOTHESES), each.scale)
        pairs = pair(pilot, each.left, each.right, each.quantity)
        tried = power_by_seeds(pairs, design, per_stratum, range(1, MOST_SEEDS + 1))
    except (RecordError, UsageError) as error:
        return {**found, "why": str(error)}
    return {**found, "powers": [asdict(power) for power in tried], "fewest_seeds": fewest_seeds(tried, WANTED_POWER)}


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


def recorded_registration(folder: Path, manifest: Mapping[str, Any]) -> Registration | None:
    """What a run was registered as, from its own folder; None for a run that was not.

    Raises:
        RecordError: where the folder's copy is not the plan whose hash the manifest holds.
    """
    note = manifest.get("registration")
    if not note:
        return None
    data = read_json(Path(folder) / NAME)
    if digest(data) != note["hash"]:
        raise RecordError(f"{Path(folder) / NAME} is not the plan that the run's manifest names by its hash")
    return Registration(Path(folder), data, note["hash"], note["commit"])


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
    rows = [f"| {h['name']} | {h['claim']} | {h['estimand']} | {'+' if h['predicted'] > 0 else '-'} | "
            f"{data['smallest'][h['name']]:g} |" for h in data["hypotheses"]]  # fmt: skip
    power = [f"- {line}." for line in power_lines(data)]
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
        "\n".join(power) if power else "No pilot was given, so none was simulated.",
    ]
    return "\n\n".join(parts) + "\n"


def power_lines(data: Mapping[str, Any]) -> list[str]:
    """The power of each hypothesis by the number of seeds, a line each."""
    lines = []
    for each in data["power"]:
        shown = ", ".join(f"{power['seeds']}: {power['value']:.2f}" for power in each["powers"])
        enough = f"{WANTED_POWER:g} from {each['fewest_seeds']} seeds on" if each["fewest_seeds"] else (
            f"{WANTED_POWER:g} not reached"
        )  # fmt: skip
        lines.append(f"{each['hypothesis']}: {each['why'] or f'power by seeds {shown}; {enough}'}")
    return lines
