"""What a run says of the hypotheses: verdicts where the plan was registered before, plain estimates elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from modtools.errors import RecordError
from modtools.lab.analysis import HYPOTHESES, verdicts
from modtools.lab.analysis.crossover import costs, crossover
from modtools.lab.analysis.gee import gee_check
from modtools.lab.analysis.pass_k import pass_table
from modtools.lab.analysis.recovery import injected, natural
from modtools.lab.registration import NAME, deviations
from modtools.lab.run import read_run
from modtools.records import read_json

FAULT_FOLDER = "fault"
"""Where in a run folder the run with the injected fault lies."""

Record = Mapping[str, Any]


def findings(folder: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Everything that the planned analysis says of a run, as plain data.

    Returns:
        "confirmatory" (whether the run was made from a registration, without deviations in what was registered),
        "deviations", "hypotheses" (name -> verdict with its effect; without a registration the verdict is
        "exploratory"), "gee", "crossover", "recovery", "pass_k"; a part that the records do not allow says why.
    """
    folder = Path(folder)
    fault = folder / FAULT_FOLDER
    faulted = read_run(fault)[1] if (fault / "manifest.json").exists() else []
    registered = bool(manifest.get("confirmatory")) and (folder / NAME).exists()
    strays = deviations(read_json(folder / NAME), manifest, len(records)) if registered else []
    surfaces = [s for s in manifest["pinned"]["surfaces"] if any(r["surface"] == s for r in records)]
    said = verdicts(records, faulted)
    if not registered:
        said = [replace(each, verdict="exploratory") if each.effect else each for each in said]
    return {
        "confirmatory": registered and not strays,
        "registration": manifest.get("registration"),
        "deviations": strays,
        "hypotheses": {
            each.hypothesis: {**asdict(each), "claim": hypothesis.claim, "estimand": hypothesis.estimand}
            for each, hypothesis in zip(said, HYPOTHESES, strict=True)
        },
        "gee": _or_why(lambda: asdict(gee_check(records))),
        "crossover": _or_why(lambda: asdict(crossover(costs(records)))),
        "recovery": {
            "injected": {name: injected(faulted, name).as_data() for name in surfaces} if faulted else {},
            "natural": {name: natural(records, name).as_data() for name in surfaces},
        },
        "pass_k": {name: {str(k): list(v) for k, v in pass_table(records, name).items()} for name in surfaces},
    }


def _or_why(of: Any) -> dict[str, Any]:
    try:
        return of()
    except RecordError as error:
        return {"outcome": "not computed", "why": str(error)}


def findings_text(found: Mapping[str, Any]) -> str:
    """The same as a part of the report, in Markdown."""
    kind = "Confirmatory: the plan was registered before the run." if found["confirmatory"] else (
        "Exploratory: no plan was registered before the run, so these are descriptions and no tests."
        if not found["registration"]
        else "A plan was registered, and the run deviates from it; what follows is exploratory."
    )  # fmt: skip
    rows = []
    for name, each in found["hypotheses"].items():
        effect = each["effect"]
        interval = f" ({effect['low']:.3g} to {effect['high']:.3g})" if effect and effect["low"] is not None else ""
        shown = f"{effect['value']:.3g}{interval}" if effect else "none"
        p, power = (f"{each[key]:.2g}" if each[key] is not None else "none" for key in ("p_holm", "power"))
        verdict = each["verdict"] if effect else f"{each['verdict']}: {each['why']}"
        rows.append(f"| {name} | {each['claim']} | {each['estimand']} | {shown} | {p} | {power} | {verdict} |")
    head = [
        "| | claim | estimand | estimate (95 %) | Holm's p | power | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    parts = ["## Hypotheses", kind]
    if found["registration"]:
        note = found["registration"]
        where = f"commit {note['commit']}" if note["commit"] else "no git commit"
        parts.append(f"Registered {note['registered']}, hash {note['hash']}, {where}.")
    if found["deviations"]:
        parts.append("Deviations from the plan:\n\n" + "\n".join(f"- {line}" for line in found["deviations"]))
    return "\n\n".join(
        [*parts, "\n".join([*head, *rows]), _crossover_text(found["crossover"]), _gee_text(found["gee"])]
    )


def _crossover_text(cross: Mapping[str, Any]) -> str:
    if cross["outcome"] == "not computed":
        return f"Crossover: not computed, since {cross['why']}."
    if cross["at"] is None:
        return f"Crossover of costs: no crossover in range; cheaper in total tokens: {cross['cheaper']}."
    return f"Crossover of costs: from c = {cross['at']:.1f} ({cross['low']:.1f} to {cross['high']:.1f}) on, code is cheaper."


def _gee_text(gee: Mapping[str, Any]) -> str:
    if gee["outcome"] != "fitted":
        return f"Logistic check of H1: {gee['outcome']}{', since ' + gee['why'] if 'why' in gee else ''}."
    return (
        f"Logistic check of H1: interaction {gee['value']:.3g} ({gee['low']:.3g} to {gee['high']:.3g}) in log-odds a call, "
        f"p {gee['p']:.2g}, {gee['episodes']} episodes of {gee['tasks']} tasks."
    )
