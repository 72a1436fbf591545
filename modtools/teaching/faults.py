"""The fault table: each fault is injected for real into one call, and what came out is written down.

One tool, `send`, which leaves a mark for each time its work was done; it either has effects or only reads. Faults come
from outside the pipeline (a caller that cancels, a full disk, a death) and from what is plugged into it (a policy, a
vault, hooks, a handler): see `injections`. Used by `modtools faults`, by a notebook and by the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modtools.errors import UsageError
from modtools.pipeline import AuditLog, Result, verify_audit
from modtools.teaching.injections import FAULTS, Rig, make_rig


@dataclass(frozen=True)
class FaultRow:
    """What one fault led to.

    Attributes:
        fault, step: which, and where.
        effect: "write" or "read": what the tool does.
        outcome: how the request ended.
        audit: the events on record, and whether the chain is whole.
        observation: what the model is told, or "-" where nobody was left to tell it.
        done: how often the tool's work was done.
        ends: terminal lines of the request on record.
        whole: whether the audit's chain is.
        result: the last request's result, or None.
        lines: the audit's lines about the request.
    """

    fault: str
    step: str
    effect: str
    outcome: str
    audit: str
    observation: str
    done: int
    ends: int
    whole: bool
    result: Result | None = field(default=None, repr=False, compare=False)
    lines: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)


def fault_table(only: str = "", progress: Callable[[int, int], None] = lambda done, total: None) -> list[FaultRow]:
    """Inject every fault at every step it can strike, into a tool with effects and into one that reads.

    Args:
        only: one fault, or "" for all.
        progress: told (rows done, rows in all).

    Raises:
        UsageError: for a fault that there is not.
    """
    if only and only not in FAULTS:
        raise UsageError(f"no fault {only!r}; there are {', '.join(FAULTS)}")
    chosen = [
        (fault, step, effect)
        for fault, steps in FAULTS.items()
        for step in steps
        for effect in ("write", "read")
        if only in ("", fault)
    ]
    rows = []
    for place in chosen:
        rows.append(inject(*place))
        progress(len(rows), len(chosen))
    return rows


def inject(fault: str, step: str, effect: str = "write") -> FaultRow:
    """Inject one fault into one call and write down what came out.

    Raises:
        UsageError: for a fault, a step or an effect that there is not; it lists what there is.
    """
    if fault not in FAULTS or step not in FAULTS[fault] or effect not in ("write", "read"):
        there = "; ".join(f"{name}: {', '.join(steps)}" for name, steps in FAULTS.items())
        raise UsageError(f"no fault {fault!r} at {step!r} for a tool that {effect}s; there are {there}")
    with tempfile.TemporaryDirectory(prefix="modtools-fault-") as name:
        folder = Path(name)
        if fault == "killed":
            return _after_death(step, effect, folder)
        rig = make_rig(folder, effect)
        FAULTS[fault][step](rig)
        result = rig.run()
        return _row(fault, step, effect, folder, rig, result)


def problems(row: FaultRow) -> list[str]:
    """What must not be, whatever the fault: an end missing or doubled, work done twice or hidden, a leak."""
    nothing_written = row.fault == "disk full" and row.step in ("extract", "bind", "commit")
    hidden = row.done and row.effect == "write" and row.outcome not in ("success", "partial", "unknown_outcome")
    found = {
        "the audit is broken": not row.whole,
        f"it ended {row.ends} times": row.ends != (0 if nothing_written else 1),
        f"the work was done {row.done} times": row.done > 1 or (row.outcome == "success" and row.done != 1),
        "the work was done, and the outcome denies it": hidden and row.fault != "approval used before",
        "the text of an exception is told": "no model may see" in row.observation,
    }
    return [problem for problem, holds in found.items() if holds]


def _row(fault: str, step: str, effect: str, folder: Path, rig: Rig, result: Result | None) -> FaultRow:
    lines = [line for line in rig.audit.lines() if line["request"] == "r"]
    ends = [line["outcome"] for line in lines if line["event"] == "terminal"]
    whole = not (folder / "audit.jsonl").exists() or verify_audit(folder).broken_at is None
    events = " ".join(line["event"] for line in lines) or "nothing"
    return FaultRow(
        fault,
        step,
        effect,
        str(result.outcome) if result else ", ".join(ends),
        f"{events}; chain {'whole' if whole else 'broken'}",
        result.observation.text if result else "-",
        rig.done(),
        len(ends),
        whole,
        result,
        tuple(lines),
    )


# Death from outside: a child makes the call, says when it is at the place, and waits to be killed.

_PLACES = {
    "extract": "after received",
    "bind": "after executing",
    "execute": "in the handler",
    "commit": "before terminal",
}


def _after_death(step: str, effect: str, folder: Path) -> FaultRow:
    """Kill a process at a place, open its log as the next process would, and see how the request ended."""
    code = "import sys; from modtools.teaching.faults import wait_at; wait_at(*sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", code, str(folder), _PLACES[step], effect]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        reached = child.stdout.read(1)
        child.kill()
    if reached != b".":
        raise UsageError(f"the process that was to be killed {_PLACES[step]} ended before it came there")
    rig = make_rig(folder, effect)  # opening the log closes what the dead process left open
    return _row("killed", step, effect, folder, rig, None)


def wait_at(folder: str, place: str, effect: str) -> None:
    """Make the call, and at the place say so on standard output and wait to be killed."""

    def stop() -> None:
        os.write(1, b".")
        time.sleep(3600)

    class Log(AuditLog):
        def append(self, request: str, event: str, fields: Mapping[str, Any]) -> None:
            if place == f"before {event}":
                stop()
            super().append(request, event, fields)
            if place == f"after {event}":
                stop()

    rig = make_rig(Path(folder), effect)
    rig.contract, rig.audit = replace(rig.contract, timeout_s=3600), Log(Path(folder))
    if place == "in the handler":
        rig.handler = lambda operation, context: (rig.mark(), stop())
    rig.run()
