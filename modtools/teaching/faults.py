"""The fault table: each fault is injected for real into one call, and what came out is written down.

One tool, `send`, which leaves a mark for each time its work was done; it either has effects or only reads. Faults come
from outside the pipeline (a caller that cancels, a full disk, a death) and from what is plugged into it (a policy, a
vault, hooks, a handler). Used by `modtools faults`, by a notebook and by the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modtools.catalogue import Catalogue
from modtools.contract import Effect, Operation, Tool, ToolContract, ToolFailure, ToolResult
from modtools.errors import RecordError, UsageError
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Result, Rule, Step, verify_audit

CALL = '{"name": "send", "arguments": {"to": "ann"}}'
_SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
_OPEN = Policy((Rule("allow", "*", id="open"),))
_HANG_S = 0.3


@dataclass(frozen=True)
class FaultRow:
    """What one fault led to.

    Attributes:
        fault, step: which, and where.
        effect: "write" or "read": what the tool does.
        outcome: how the request ended; two of them where two calls raced.
        audit: the events on record, and whether the chain is whole.
        observation: what the model is told, or "-" where nobody was left to tell it.
        done: how often the tool's work was done.
        result: the last request's result, or None.
    """

    fault: str
    step: str
    effect: str
    outcome: str
    audit: str
    observation: str
    done: int
    result: Result | None = field(default=None, repr=False, compare=False)


@dataclass
class Rig:
    """One call about to be made, with everything that a fault can take hold of.

    Attributes:
        folder: of the audit and of the tool's marks.
        contract: of the tool.
        policy, audit, named: as for Pipeline.
        handler, canonicalise: of the tool.
        cancelled: as for `Pipeline.run`.
        before: called with catalogue and pipeline, between the model's turn and the call; may make other calls.
    """

    folder: Path
    contract: ToolContract
    audit: AuditLog
    policy: Any = _OPEN
    handler: Callable[..., Any] | None = None
    canonicalise: Callable[..., Any] | None = None
    cancelled: Callable[[], bool] = lambda: False
    before: Callable[[Catalogue, Pipeline], Mapping[str, Any]] = lambda catalogue, pipeline: {}
    named: dict[str, Any] = field(default_factory=dict)

    def mark(self, *_: Any) -> ToolResult:
        """The tool's work: leaves one mark."""
        with open(self.folder / "done", "a") as file:
            file.write("x")
        return ToolResult("sent")

    def done(self) -> int:
        """How often the work was done."""
        marks = self.folder / "done"
        return len(marks.read_text()) if marks.exists() else 0

    def run(self) -> Result:
        """Make the call."""
        effect = self.contract.effect
        plain = lambda arguments, context: Operation("send", arguments, ("mail:ann",), effect)  # noqa: E731
        tool = Tool(self.contract, self.canonicalise or plain, self.handler or self.mark)
        catalogue = Catalogue((tool,))
        seen = catalogue.snapshot
        pipeline = Pipeline(catalogue, self.policy, self.audit, **self.named)
        fields = self.before(catalogue, pipeline)
        return pipeline.run(Request("r", CALL, seen=seen, **fields), self.cancelled)


def fault_table(progress: Callable[[int, int], None] = lambda done, total: None) -> list[FaultRow]:
    """Inject every fault at every step it can strike, into a tool with effects and into one that reads.

    Args:
        progress: told (rows done, rows in all).
    """
    chosen = [(fault, step, effect) for fault, steps in FAULTS.items() for step in steps for effect in ("write", "read")]
    rows = []
    for fault, step, effect in chosen:
        rows.append(inject(fault, step, effect))
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
        rig = _rig(folder, effect)
        FAULTS[fault][step](rig)
        result = rig.run()
        return _row(fault, step, effect, folder, rig, result)


def _rig(folder: Path, effect: str) -> Rig:
    fields = {"effect": Effect(effect), "approval": "none", "timeout_s": _HANG_S, "idempotent": effect == "read"}
    return Rig(folder, ToolContract("send", "Send a letter.", _SCHEMA, **fields), AuditLog(folder))


def _row(fault: str, step: str, effect: str, folder: Path, rig: Rig, result: Result | None) -> FaultRow:
    said = result.observation.text if result else "-"
    lines = [line for line in rig.audit.lines() if line["request"] == "r"] if not result else rig.audit.lines()
    found = verify_audit(folder) if (folder / "audit.jsonl").exists() else None
    chain = "no log" if not found else "chain whole" if found.broken_at is None else f"broken at {found.broken_at}"
    events = " ".join(line["event"] for line in lines if line["request"] == "r") or "nothing"
    ends = [line["outcome"] for line in lines if line["request"] == "r" and line["event"] == "terminal"]
    outcome = str(result.outcome) if result else ", ".join(ends)
    return FaultRow(fault, step, effect, outcome, f"{events}; {chain}", said, rig.done(), result)
