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
    chosen = [
        (fault, step, effect) for fault, steps in FAULTS.items() for step in steps for effect in ("write", "read")
    ]
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


# The faults. Each takes hold of the rig before the call is made; "killed" goes its own way.


def _cancel_at(step: Step) -> Callable[[Rig], None]:
    """The caller cancels before this step; it is asked once before each."""

    def fault(rig: Rig) -> None:
        asked = iter(range(1, 1000))
        rig.cancelled = lambda: next(asked) > list(Step).index(step)

    return fault


def _cancel_while_it_runs(rig: Rig) -> None:
    running: list[bool] = []

    def handler(operation: Operation, context: Any) -> ToolResult:
        running.append(True)
        rig.mark()
        time.sleep(_HANG_S)
        return ToolResult("sent")

    rig.handler, rig.cancelled = handler, lambda: bool(running)


def _raise(*_: Any) -> Any:
    raise RuntimeError("a text that no model may see")


def _break_after_work(rig: Rig) -> None:
    rig.handler = lambda operation, context: (rig.mark(), _raise())


class _BrokenPolicy:
    version, digest = 1, ""
    decide = staticmethod(_raise)


def _hang(rig: Rig) -> None:
    rig.handler = lambda operation, context: (rig.mark(), time.sleep(4 * _HANG_S), ToolResult("late"))[-1]


def _return(value: Any) -> Callable[[Rig], None]:
    def fault(rig: Rig) -> None:
        rig.handler = lambda operation, context: (rig.mark(), value() if callable(value) else value)[-1]

    return fault


def _wrong_shape(rig: Rig) -> None:
    rig.contract = replace(rig.contract, output_schema={"type": "object", "required": ["id"]})


class _FullDisk(AuditLog):
    """An audit whose disk takes no more from the nth line on."""

    room = 0

    def append(self, request: str, event: str, fields: Mapping[str, Any]) -> None:
        if self.ledger.records >= self.room:
            raise RecordError("no space left on device")
        super().append(request, event, fields)


def _full_after(lines: int) -> Callable[[Rig], None]:
    def fault(rig: Rig) -> None:
        rig.audit = _FullDisk(rig.folder)
        rig.audit.room = lines

    return fault


def _no_room_for_artefacts(rig: Rig) -> None:
    rig.handler = lambda operation, context: (rig.mark(), ToolResult("much", "x" * 10_000))[-1]
    (rig.folder / "artefacts").rmdir()
    (rig.folder / "artefacts").write_text("a file where the folder was: nothing can be kept in it")


def _same_key_twice(rig: Rig) -> None:
    rig.contract = replace(rig.contract, idempotency_key=("to",))

    def before(catalogue: Catalogue, pipeline: Pipeline) -> dict[str, Any]:
        pipeline.run(Request("earlier", CALL))
        return {}

    rig.before = before


def _approval_twice(rig: Rig) -> None:
    rig.policy = Policy((Rule("ask", "*", id="mail"),))

    def before(catalogue: Catalogue, pipeline: Pipeline) -> dict[str, Any]:
        pipeline.run(Request("asking", CALL))
        approval = pipeline.approve("asking", "the operator").id
        pipeline.run(Request("earlier", CALL, approvals=(approval,)))
        return {"approvals": (approval,)}

    rig.before = before


def _catalogue_change(change: Callable[[Catalogue], Any]) -> Callable[[Rig], None]:
    def fault(rig: Rig) -> None:
        rig.before = lambda catalogue, pipeline: change(catalogue) and {} or {}

    return fault


def _upgrade(catalogue: Catalogue) -> Any:
    tool = catalogue.snapshot.tools["send"]
    return catalogue.upgrade(replace(tool, contract=replace(tool.contract, version="2.0.0")))


def _hooked(hook: Any) -> Callable[[Rig], None]:
    def fault(rig: Rig) -> None:
        rig.named = {"hooks": Hooks((hook,))}

    return fault


class _Broken:
    """A hook of any shape that raises."""

    def __init__(self, method: str, point: HookPoint, **contract: Any):
        self.contract = HookContract("broken", point, **contract)
        setattr(self, method, _raise)


def _reenters(rig: Rig) -> None:
    class Hook:
        contract = HookContract("curious", HookPoint.PRE_TOOL_USE)

        def run(self, event: Event) -> None:
            pipelines[0].run(Request("nested", CALL))

    pipelines: list[Pipeline] = []
    rig.named = {"hooks": Hooks((Hook(),))}
    rig.before = lambda catalogue, pipeline: pipelines.append(pipeline) or {}
