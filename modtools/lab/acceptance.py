"""What the lab has to fulfil before anybody decides on it: ticked from the run itself, and the memo that decides.

The criteria are Module 2's, with the corrections of the course (sixty tasks, registration with a commit, pilot apart).
What a run cannot show of itself is "open" and says what would close it. The memo is a draft: its evidence is filled in
from the run, and its four fields are the reader's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.errors import RecordError
from modtools.lab.metrics import token_parts
from modtools.lab.registration import NAME
from modtools.records import read_json, write_whole

MEMO = "memo.md"
FIELDS = ("Decision", "Evidence", "Cost and risk", "Revision condition")
DRAFT = "(yours to write)"
LEAST_TASKS, LEAST_SEEDS = 60, 5


@dataclass(frozen=True)
class Criterion:
    """One criterion.

    Attributes:
        name: in words.
        met: True, False, or None where the run cannot show it.
        why: what was found, or what would close it.
    """

    name: str
    met: bool | None
    why: str


def acceptance(
    folder: Path, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]], found: Mapping[str, Any]
) -> list[Criterion]:
    """Tick the criteria.

    Args:
        folder: of the run.
        manifest, records: of it.
        found: what `findings` says of it.
    """
    folder, pinned = Path(folder), manifest["pinned"]
    plan, tasks = pinned["plan"], pinned["tasks"]
    registration = read_json(folder / NAME) if (folder / NAME).exists() else {}
    note = found["registration"] or {}
    planned = len(tasks) * len(plan["surfaces"]) * plan["seeds"]
    asked = registration.get("seeds_for_power")
    named = [name for name, each in found["hypotheses"].items() if each["p_holm"] is not None]
    without = [name for name, each in found["hypotheses"].items() if each["effect"]["low"] is None]
    return [
        Criterion(f"at least {LEAST_TASKS} tasks", len(tasks) >= LEAST_TASKS, f"{len(tasks)} tasks"),
        _file(folder, "checked.json", "every task fails before and passes after", "failures",
              "modtools lab check --json RUN/checked.json with the plan's --per-stratum and --task-seed"),
        Criterion("the plan was registered, and committed, before the run", bool(note.get("commit")),
                  f"commit {note['commit']}" if note.get("commit") else "no commit in the manifest"),
        Criterion("pilot and run have no task in common",
                  not set(registration.get("pilot_tasks", ())) & set(tasks) if registration else None,
                  f"{len(registration.get('pilot_tasks', ()))} pilot tasks" if registration else "nothing was registered"),
        Criterion("the surfaces differ in nothing else", set(pinned["surfaces"]) == set(plan["surfaces"]),
                  "one manifest pins model, tasks, policy, budget and decoding for all of them"),
        Criterion(f"at least {LEAST_SEEDS} seeds, or as many as the power simulation asks for",
                  plan["seeds"] >= max(LEAST_SEEDS, asked or 0), f"{plan['seeds']} seeds, {asked or 'none'} asked for"),
        Criterion("the run is whole", len(records) == planned, f"{len(records)} of {planned} episodes"),
        Criterion("every effect has an interval", not without, f"none for {', '.join(without)}" if without else "all four"),
        Criterion("Holm's correction over H1 to H4", len(named) == 4, f"adjusted: {', '.join(named) or 'none'}"),
        Criterion("the interaction of surface and complexity is told", found["hypotheses"]["H1"]["effect"]["estimate"]
                  is not None, found["hypotheses"]["H1"]["text"]),
        _costs(records),
        _file(folder, "replayed.json", "a replay gives the same numbers", "differences",
              "modtools lab replay RUN --out AGAIN --compare RUN/replayed.json"),
        _memo(folder),
    ]  # fmt: skip


def _file(folder: Path, name: str, criterion: str, key: str, how: str) -> Criterion:
    """A criterion that another command writes down: met where its list of failures is there and empty."""
    if not (folder / name).exists():
        return Criterion(criterion, None, how)
    wrong = read_json(folder / name).get(key)
    if not isinstance(wrong, list):
        return Criterion(criterion, False, f"{name} has no list of {key}")
    return Criterion(criterion, not wrong, f"{len(wrong)} {key}")


def _costs(records: Sequence[Mapping[str, Any]]) -> Criterion:
    try:
        parts = token_parts(records)
    except RecordError as error:
        return Criterion("costs are told by part", False, str(error))
    return Criterion("costs are told by part", True, f"{', '.join(parts)} sum to the total of every episode")


def _memo(folder: Path) -> Criterion:
    path = folder / MEMO
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    missing = [name for name in FIELDS if f"## {name}\n" not in text]
    drafts = text.count(DRAFT)
    why = f"{MEMO} lacks {', '.join(missing)}" if missing else f"{drafts} fields are still to be written"
    return Criterion(
        "the memo has its four fields", not missing and not drafts, why if missing or drafts else "all four"
    )


def write_memo(folder: Path, found: Mapping[str, Any]) -> Path:
    """Write a draft of the memo, where there is none yet; what somebody has written is never touched."""
    path = Path(folder) / MEMO
    if path.exists():
        return path
    said = "\n".join(
        f"- {name}: {each['claim']}: {each['verdict']}, {each['text']}." for name, each in found["hypotheses"].items()
    )
    kind = (
        "registered before the run"
        if found["confirmatory"]
        else "exploratory; a decision should wait for a registered run"
    )
    parts = {
        "Decision": f"{DRAFT} Which surface, for which tasks and which model?",
        "Evidence": f"The run is {kind}.\n\n{said}\n\nCrossover of costs: {found['crossover']['text']}.\n\n{DRAFT} Which of "
        "these carry the decision?",
        "Cost and risk": f"{DRAFT} What does it cost in tokens and in failures, and what can go wrong that no task shows?",
        "Revision condition": f"{DRAFT} Which measurement would change the decision?",
    }
    write_whole(
        path, "# Decision memo\n\n" + "\n\n".join(f"## {name}\n\n{text}" for name, text in parts.items()) + "\n"
    )
    return path


def acceptance_text(criteria: Sequence[Criterion]) -> str:
    """The ticked list in Markdown."""
    marks = {True: "met", False: "NOT met", None: "open"}
    lines = [f"| {each.name} | {marks[each.met]} | {each.why} |" for each in criteria]
    return "\n".join(["| criterion | | what was found |", "| --- | --- | --- |", *lines])
