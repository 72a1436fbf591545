"""What a run says of the hypotheses: verdicts where the plan was registered before, plain estimates elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.crossover import crossover
from modtools.lab.analysis.hypotheses import Finding, decide
from modtools.lab.analysis.pass_k import pass_k
from modtools.lab.analysis.recovery import injected, natural
from modtools.lab.interface_cost import interface_costs, interface_text
from modtools.lab.registration import NAME, SMALLEST, deviations, estimand
from modtools.lab.run import read_run
from modtools.records import read_json

FAULT_FOLDER, REFERENCE_FOLDER = "fault", "reference"
"""Where in a run folder the run with the injected fault lies, and that of the reference solutions."""

Record = Mapping[str, Any]


def findings(folder: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Everything that the planned analysis says of a run, as plain data.

    Returns:
        "confirmatory" (whether the run was made from a registration, without deviations from it), "registration",
        "deviations", "hypotheses" (name -> what became of it; without a registration its verdict is "exploratory"),
        "crossover", "reference_crossover", "interface", "recovery", "pass_k"; a part that the records do not allow says why.
    """
    folder = Path(folder)
    faulted, references = (
        read_run(folder / name)[1] if (folder / name / "manifest.json").exists() else []
        for name in (FAULT_FOLDER, REFERENCE_FOLDER)
    )
    registered = bool(manifest.get("confirmatory")) and (folder / NAME).exists()
    plan = read_json(folder / NAME) if registered else {}
    strays = deviations(plan, manifest, len(records)) if registered else []
    confirmatory = registered and not strays
    surfaces = [s for s in manifest["pinned"]["surfaces"] if any(r["surface"] == s for r in records)]
    seeds = range(1, manifest["pinned"]["plan"]["seeds"] + 1)
    return {
        "confirmatory": confirmatory,
        "registration": manifest.get("registration"),
        "deviations": strays,
        "hypotheses": {
            each.hypothesis.name: _as_data(each, confirmatory)
            for each in decide(records, faulted, plan.get("smallest", SMALLEST))
        },
        "crossover": _or_why(lambda: {**asdict(it := crossover(records)), "text": it.text()}),
        "reference_crossover": _or_why(lambda: {**asdict(it := crossover(references)), "text": it.text()})
        if references
        else {"outcome": "not computed", "text": "not computed (the references were not run)"},
        "interface": _or_why(lambda: interface_costs(manifest, records, references)),
        "recovery": {
            "injected": {name: asdict(of) for name, of in injected(faulted).items()} if faulted else {},
            "natural": {name: asdict(of) for name, of in natural(records).items()},
        },
        "pass_k": {
            name: _or_why(lambda n=name: {str(k): asdict(pass_k(records, n, k)) for k in seeds}) for name in surfaces
        },
    }


def _as_data(each: Finding, confirmatory: bool) -> dict[str, Any]:
    return {
        "claim": each.hypothesis.claim,
        "estimand": estimand(each.hypothesis),
        "verdict": each.verdict if confirmatory else "exploratory",
        "effect": asdict(each.contrast),
        "text": each.contrast.text(),
        "p_holm": each.p_holm,
        "power": each.power.value if each.power else None,
        "smallest": each.smallest,
        "check": asdict(each.check) if each.check else None,
        "notes": list(each.notes),
    }


def _or_why(of: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return of()
    except (RecordError, UsageError) as error:
        return {"outcome": "not computed", "text": f"not computed ({error})"}


def findings_text(found: Mapping[str, Any]) -> str:
    """The same as a part of the report, in Markdown."""
    if found["confirmatory"]:
        kind = "Confirmatory: the plan was registered before the run."
    elif found["registration"]:
        kind = "A plan was registered, and the run deviates from it; so what follows is exploratory."
    else:
        kind = "Exploratory: no plan was registered before the run, so these are descriptions and no tests."
    head = ["", "claim", "estimand", "estimate (95 %)", "Holm's p", "power", "verdict"]
    rows = [
        [name, each["claim"], each["estimand"], each["text"], *(_number(each[key]) for key in ("p_holm", "power")), each["verdict"]]
        for name, each in found["hypotheses"].items()
    ]  # fmt: skip
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    parts = ["## Hypotheses", kind]
    if note := found["registration"]:
        where = f"commit {note['commit']}" if note["commit"] else "no git commit"
        parts.append(f"Registered {note['registered']}, hash {note['hash']}, {where}.")
    if found["deviations"]:
        parts.append("Deviations from the plan:\n\n" + "\n".join(f"- {line}" for line in found["deviations"]))
    notes = [f"- {name}: {note}." for name, each in found["hypotheses"].items() for note in each["notes"]]
    costs = (
        f"Crossover of costs, c*: {found['crossover']['text']}. Of the reference solutions, in the same tokens: "
        f"{found['reference_crossover']['text']}."
    )
    parts += ["\n".join(lines), "\n".join(notes), costs, interface_text(found["interface"])]
    return "\n\n".join(filter(None, parts))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2g}"
