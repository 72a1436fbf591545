"""The lifecycle stepper: strike one call with a fault, for real, and see how far it came and what is left behind."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from modtools.errors import UsageError
from modtools.pipeline import STAGE_OF, Step
from modtools.teaching.explorer import code, explorer, table
from modtools.teaching.faults import FaultRow, inject, problems
from modtools.teaching.injections import FAULTS

TOOLS = {"writes": "write", "reads": "read"}
_MARKS = {
    "passed": "&#10003; passed",
    "ended": "&#10007; <b>the call ended here</b>",
    "died": "&#10007; <b>the process died here</b>",
    "unwritten": "&#10007; its line could not be written",
    "not reached": "&ndash; not reached",
}
_SHOWN = ("outcome", "code", "executed", "recovered")  # fields of an audit line that are the same on every run


@dataclass(frozen=True)
class Stride:
    """One step of the call as the stepper shows it.

    Attributes:
        step: which.
        state: "passed", "ended", "died", "unwritten" (a terminal line that no disk took) or "not reached".
        struck: whether the fault strikes here.
        found: what the step found, or why it ended the call.
    """

    step: Step
    state: str
    struck: bool
    found: str


def places() -> tuple[str, ...]:
    """What can be chosen: every fault with the step it strikes, as "hangs, at execute"."""
    return tuple(
        f"{fault}, at {step}" if fault != "none" else fault for fault, steps in FAULTS.items() for step in steps
    )


def strike(place: str, tool: str) -> FaultRow:
    """Inject a fault that `places` names into the call of a tool that "writes" or "reads".

    Raises:
        UsageError: for another place or tool.
    """
    if place not in places() or tool not in TOOLS:
        raise UsageError(
            f"no {place!r} for a tool that {tool!r}; there are {'; '.join(places())}; tools: writes, reads"
        )
    fault, _, step = place.partition(", at ")
    return inject(fault, step or "commit", TOOLS[tool])


def strides(row: FaultRow) -> list[Stride]:
    """How far the call came, step by step.

    A process that was killed takes its trace with it; what is said then is where it stood when it was killed.
    """
    lines, order = [], list(Step)
    trace = {record.step: record for record in row.result.trace} if row.result else {}
    for step in Step:
        struck = row.fault != "none" and step == row.step
        if row.result is None:
            distance = order.index(step) - order.index(Step(row.step))
            state, found = ("passed" if distance < 0 else "not reached") if distance else "died", ""
        elif step in trace:
            failed = "unwritten" if step == Step.COMMIT else "ended"
            state, found = "passed" if trace[step].passed else failed, trace[step].detail
        else:
            state, found = "not reached", ""
        lines.append(Stride(step, state, struck, found))
    return lines


def audit_lines(row: FaultRow) -> list[str]:
    """The audit's lines about this call, without times, ids and digests."""
    return [
        " ".join([line["event"], *(f"{name}={line[name]}" for name in _SHOWN if line.get(name) not in (None, ""))])
        for line in row.lines
    ]


def hook_lines(row: FaultRow) -> list[str]:
    """What each hook did, where there were any."""
    return [f"{hook.shape} {hook.name}: {hook.did}" for hook in row.result.hooks] if row.result else []


def stepper_text(row: FaultRow) -> str:
    """The call as plain lines."""
    steps = [
        f"{STAGE_OF[s.step]:9} {s.step:13} {'fault' if s.struck else '':6} {s.state:12} {s.found}".rstrip()
        for s in strides(row)
    ]
    parts = {"audit": audit_lines(row) or ["nothing"], "hooks": hook_lines(row), "the model is told": [_told(row)]}
    below = [f"{name}: {line}" for name, lines in parts.items() for line in lines]
    return "\n".join([*steps, f"outcome: {_outcome(row)}; work done: {_times(row)}", *below])


def stepper_html(row: FaultRow) -> str:
    """The call as an HTML table, with the audit, the observation and the invariants below."""
    rows = [
        [str(STAGE_OF[s.step]), f"<b>{s.step}</b>", "&#9889; strikes here" if s.struck else "", _MARKS[s.state], html.escape(s.found)]
        for s in strides(row)
    ]  # fmt: skip
    wrong = problems(row)
    checked = (
        "; ".join(wrong)
        or "one end wherever it could be written, no work twice, no effect denied, chain whole, no leak"
    )
    hooks = f"<p>The hooks:</p>{code(chr(10).join(hook_lines(row)))}" if hook_lines(row) else ""
    return (
        f"{table(['stage', 'step', 'fault', 'state', 'found'], rows, raw=True)}"
        f"<p>Outcome: <b>{_outcome(row)}</b>. Work done: <b>{_times(row)}</b>.</p>"
        f"<p>The audit:</p>{code(chr(10).join(audit_lines(row)) or 'nothing')}{hooks}"
        f"<p>The model is told:</p>{code(_told(row))}"
        f"<p>Invariants {'BROKEN' if wrong else 'hold'}: {html.escape(checked)}.</p>"
    )


def lifecycle_stepper() -> Any:
    """A widget: choose a fault with its step, and a tool that writes or reads. Each choice is injected for real."""
    struck: dict[tuple[str, str], FaultRow] = {}

    def render(fault: str, tool: str) -> str:
        if (fault, tool) not in struck:
            struck[fault, tool] = strike(fault, tool)
        return stepper_html(struck[fault, tool])

    return explorer(render, fault=places(), tool=tuple(TOOLS))


def _told(row: FaultRow) -> str:
    if row.result is None:
        return "nothing: nobody was left to tell it"
    text = row.observation
    return text if len(text) <= 300 else f"{text[:60]} ... ({len(text)} characters)"


def _outcome(row: FaultRow) -> str:
    return row.outcome or "none on record"


def _times(row: FaultRow) -> str:
    earlier = ", by the request before this one" if row.fault.endswith("used before") else ""
    return {0: "not at all", 1: "once"}.get(row.done, f"{row.done} times") + earlier
