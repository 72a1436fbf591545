"""The lifecycle on the board and in the stepper: what is drawn is what the pipeline does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modtools.contract import Outcome
from modtools.errors import UsageError
from modtools.pipeline import STAGE_OF, Step
from modtools.teaching.faults import inject
from modtools.teaching.injections import FAULTS
from modtools.teaching.lifecycle_figure import LIFECYCLE, lifecycle_figure
from modtools.teaching.lifecycle_stepper import (
    audit_lines, hook_lines, lifecycle_stepper, places, stepper_html, stepper_text, strides, strike,
)  # fmt: skip

SLOW = {"hangs", "hangs in a process", "dies in a process", "returns 100 MB", "killed"}
QUICK = [place for place in places() if place.partition(", at ")[0] not in SLOW]


def test_the_figure_names_every_step_in_order_with_every_way_to_end():
    alt = lifecycle_figure().alt
    at = [alt.index(f"{step} ({LIFECYCLE[step][0]}") for step in Step]
    assert at == sorted(at) and all(str(stage) in alt for stage in STAGE_OF.values())
    assert {end for _, ends in LIFECYCLE.values() for end in ends} | {Outcome.CANCELLED} == set(Outcome)


@pytest.mark.parametrize("tool", ["writes", "reads"])
def test_every_quick_fault_ends_a_call_only_as_the_figure_says_it_can_end_there(tool):
    always = {Outcome.CANCELLED, Outcome.UNAVAILABLE_TOOL}  # up to the execution; said beside the figure
    ended = set()
    for place in QUICK:
        row = strike(place, tool)
        stopped = [s.step for s in strides(row) if s.state in ("ended", "unwritten")]
        step = stopped[0] if stopped else Step.COMMIT
        before_the_end = step not in (Step.NORMALISE, Step.COMMIT)
        assert row.outcome in {*LIFECYCLE[step][1], *(always if before_the_end else ())}, place
        ended.add(step)
    assert len(ended) > 5


def test_every_fault_of_the_table_can_be_chosen_and_nothing_else():
    assert len(places()) == len(set(places())) == sum(map(len, FAULTS.values()))
    for place, tool in (("hangs, at parse", "writes"), ("flood", "writes"), ("none", "flies")):
        with pytest.raises(UsageError, match="hangs, at execute"):
            strike(place, tool)


def test_the_stepper_shows_where_the_fault_struck_and_where_the_call_ended():
    states = {s.step: (s.state, s.struck) for s in strides(strike("raises, at canonicalise", "writes"))}
    assert states[Step.VALIDATE] == ("passed", False)
    assert states[Step.CANONICALISE] == ("ended", True)
    assert states[Step.CLASSIFY] == states[Step.EXECUTE] == ("not reached", False)
    assert states[Step.COMMIT] == ("passed", False)
    assert not any(s.struck for s in strides(strike("none", "writes")))


def test_a_record_that_no_disk_took_is_shown_as_unwritten():
    row = strike("disk full, at commit", "writes")
    assert strides(row)[-1].state == "unwritten" and audit_lines(row) == ["received", "executing"]
    assert "work done: once" in stepper_text(row) and "its line could not be written" in stepper_html(row)
    row = strike("disk full, at extract", "writes")
    assert audit_lines(row) == [] and "<pre" in stepper_html(row) and "work done: not at all" in stepper_text(row)


def test_after_a_kill_the_stepper_shows_where_the_process_died_and_what_the_next_one_wrote():
    row = strike("killed, at execute", "writes")
    assert [s.state for s in strides(row)] == ["passed"] * 8 + ["died"] + ["not reached"] * 2
    assert audit_lines(row)[-1] == "terminal outcome=unknown_outcome code=unknown_outcome executed=True recovered=True"
    assert "nobody was left to tell it" in stepper_text(row) and "the process died here" in stepper_html(row)


def test_a_broken_invariant_and_a_hook_are_shown():
    row = strike("hook raises, at normalise", "writes")
    assert hook_lines(row) == ["hook broken: broke with RuntimeError"] and hook_lines(row)[0] in stepper_text(row)
    assert "Invariants hold" in stepper_html(row)
    assert "Invariants BROKEN: it ended 2 times" in stepper_html(replace(row, ends=2))


def test_the_stepper_escapes_what_was_said_and_cuts_what_is_long():
    row = replace(inject("none", "commit"), observation="<script>" + "x" * 50_000)
    page = stepper_html(row)
    assert "<script>" not in page and "&lt;script&gt;" in page and "(50008 characters)" in page and len(page) < 10_000


def test_changing_the_fault_or_the_tool_changes_what_the_widget_shows():
    box = lifecycle_stepper()
    fault, tool, output = box.children
    assert (fault.description, tool.description) == ("fault", "tool") and "Outcome: <b>success</b>" in output.value
    fault.value = "raises, at execute"
    assert "Outcome: <b>unknown_outcome</b>" in output.value
    tool.value = "reads"
    assert "Outcome: <b>unavailable_tool</b>" in output.value
