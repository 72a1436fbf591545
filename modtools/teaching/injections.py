"""The faults of the fault table: each takes hold of a rig, which is one call about to be made, and spoils something."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Effect, Operation, Tool, ToolContract, ToolResult
from modtools.errors import RecordError
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Result, Rule, Step
from modtools.pipeline.hooks import Event, HookContract, HookPoint, Hooks

CALL = '{"name": "send", "arguments": {"to": "ann"}}'
_SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
_OPEN = Policy((Rule("allow", "*", id="open"),))
_HANG_S = 0.3


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
        catalogue = Catalogue(Snapshot.of((tool,)))
        seen = catalogue.snapshot
        pipeline = Pipeline(catalogue, self.policy, self.audit, **self.named)
        fields = self.before(catalogue, pipeline)
        return pipeline.run(Request("r", CALL, seen=seen, **fields), self.cancelled)


def make_rig(folder: Path, effect: str) -> Rig:
    """A call in which nothing is wrong yet."""
    fields = {"effect": Effect(effect), "approval": "none", "timeout_s": _HANG_S, "idempotent": effect == "read"}
    return Rig(folder, ToolContract("send", "Send a letter.", _SCHEMA, **fields), AuditLog(folder))


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
    rig.handler = lambda operation, context: (rig.mark(), time.sleep(3600))


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


def _race_for_one_key(rig: Rig) -> None:
    """The other call is in its handler when this one comes, and ends only once this one waits."""
    rig.contract = replace(rig.contract, idempotency_key=("to",), timeout_s=5.0)

    def handler(operation: Operation, context: Any) -> ToolResult:
        until_s = time.monotonic() + 4
        while "r" not in rig.audit.ledger.open and time.monotonic() < until_s:
            time.sleep(0.005)
        time.sleep(0.05)
        return rig.mark()

    def before(catalogue: Catalogue, pipeline: Pipeline) -> dict[str, Any]:
        threading.Thread(target=pipeline.run, args=(Request("other", CALL),), daemon=True).start()
        while rig.audit.ledger.open.get("other") != "executing":
            time.sleep(0.005)
        return {}

    rig.handler, rig.before = handler, before


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


# Handlers that run in a process of their own are found by name, so they stand at the top level.


def _leave_mark(folder: str) -> None:
    with open(Path(folder) / "done", "a") as file:
        file.write("x")


def _exit_in_process(operation: Operation, context: str) -> ToolResult:
    _leave_mark(context)
    os._exit(3)


def _hang_in_process(operation: Operation, context: str) -> ToolResult:
    _leave_mark(context)
    time.sleep(3600)
    return ToolResult("late")


def _in_process(handler: Callable[..., ToolResult]) -> Callable[[Rig], None]:
    def fault(rig: Rig) -> None:
        rig.contract = replace(rig.contract, runs="process", timeout_s=3.0)
        rig.handler, rig.named = handler, {"context": str(rig.folder)}

    return fault


FAULTS: dict[str, dict[str, Callable[[Rig], None]]] = {
    "none": {"commit": lambda rig: None},
    "cancelled": {
        **{str(step): _cancel_at(step) for step in list(Step)[:9]},
        "normalise": _cancel_while_it_runs,
    },
    "raises": {
        "canonicalise": lambda rig: setattr(rig, "canonicalise", _raise),
        "authorise": lambda rig: setattr(rig, "policy", _BrokenPolicy()),
        "bind": lambda rig: (
            setattr(rig, "contract", replace(rig.contract, credentials=("mail",))),
            setattr(rig, "named", {"vault": _raise}),
        ),
        "execute": _break_after_work,
    },
    "hangs": {"execute": _hang},
    "hangs in a process": {"execute": _in_process(_hang_in_process)},
    "dies in a process": {"execute": _in_process(_exit_in_process)},
    "returns rubbish": {"execute": _return({"sent": True})},
    "returns the wrong shape": {"normalise": _wrong_shape},
    "returns 100 MB": {"normalise": _return(lambda: ToolResult("much", "x" * 100_000_000))},
    "disk full": {
        "extract": _full_after(0),
        "bind": _full_after(1),
        "normalise": _no_room_for_artefacts,
        "commit": _full_after(2),
    },
    "killed": dict.fromkeys(("extract", "bind", "execute", "commit"), lambda rig: None),  # from outside, see `faults`
    "stale": {"resolve": _catalogue_change(_upgrade)},
    "revoked": {"resolve": _catalogue_change(lambda catalogue: catalogue.revoke("send", "a security hole"))},
    "two calls race": {"bind": _race_for_one_key},
    "approval used before": {"authorise": _approval_twice},
    "hook raises": {
        "authorise": _hooked(_Broken("run", HookPoint.PRE_TOOL_USE)),
        "execute": _hooked(_Broken("wrap", HookPoint.PRE_TOOL_USE)),
        "normalise": _hooked(_Broken("run", HookPoint.POST_TOOL_USE)),
        "commit": _hooked(_Broken("notify", HookPoint.REQUEST_ENDED, failure="open")),
    },
    "gate raises": {"authorise": _hooked(_Broken("judge", HookPoint.PRE_TOOL_USE, may=("block",)))},
    "hook calls its tool": {"authorise": _reenters},
}
"""Fault -> step -> how to inject it."""
