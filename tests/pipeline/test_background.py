"""Background work: accepted once, heard of while it goes on, and ended by an event of its own."""

from __future__ import annotations

import queue
import threading

import pytest

from modtools.contract import Effect, Outcome, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import AuditLog, verify_audit
from pipeline.tools import call, ends, make_pipeline, make_tool, run


def heard(pipeline_events: queue.Queue):
    """The next event, waited for."""
    return pipeline_events.get(timeout=10)


def test_a_background_call_is_accepted_at_once_and_completes_as_an_event(tmp_path):
    go, events = threading.Event(), queue.Queue()

    def handler(operation, context, bound):
        go.wait(10)
        bound.progress("half")
        return ToolResult("all done", "the body")

    tool = make_tool(handler, background=True, takes_call=True)
    pipeline = make_pipeline(tool, audit=AuditLog(tmp_path), on_event=events.put)
    result = run(pipeline)
    assert result.outcome == "background_accepted" and result.observation.text.startswith("accepted: t goes on")
    assert events.empty()
    go.set()
    progress, completed = heard(events), heard(events)
    assert (progress.kind, progress.text) == ("progress", "half")
    assert completed.observation.outcome == "success" and completed.text == "ok: all done\nthe body"
    assert ends(pipeline, "r1") == ["background_accepted"]
    kinds = [line["event"] for line in pipeline.audit.lines()]
    assert kinds == ["received", "executing", "terminal", "progress", "completed"]
    assert verify_audit(tmp_path).broken_at is None
    with pytest.raises(UsageError, match="cannot follow"):
        pipeline.audit.append("r1", "completed", {"outcome": "success"})


@pytest.mark.parametrize(("effect", "outcome"), [(Effect.WRITE, "unknown_outcome"), (Effect.READ, "unavailable_tool")])
def test_background_work_that_breaks_completes_as_such(effect, outcome):
    events = queue.Queue()
    pipeline = make_pipeline(make_tool(lambda o, c: 1 / 0, effect=effect, background=True), on_event=events.put)
    assert run(pipeline).outcome == "background_accepted"
    assert heard(events).observation.outcome == outcome and ends(pipeline, "r1") == ["background_accepted"]


def test_background_work_that_outlives_its_time_completes_as_unknown(monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    events, go = queue.Queue(), threading.Event()
    tool = make_tool(lambda o, c: go.wait(10) and ToolResult("late"), background=True, timeout_s=0.2)
    pipeline = make_pipeline(tool, on_event=events.put)
    run(pipeline)
    assert heard(events).observation.outcome == "unknown_outcome"
    go.set()


def test_work_that_died_with_its_process_is_closed_by_the_next(tmp_path):
    go = threading.Event()
    tool = make_tool(lambda o, c: go.wait(10) and ToolResult("done"), background=True)
    assert run(make_pipeline(tool, audit=AuditLog(tmp_path))).outcome == "background_accepted"
    lines = AuditLog(tmp_path).lines()  # as a new process would find it
    completed = [line for line in lines if line["event"] == "completed"]
    assert [line["outcome"] for line in completed] == ["unknown_outcome"] and completed[0]["recovered"]
    go.set()


def test_work_of_another_system_stays_open_until_it_is_reported(tmp_path):
    accepts = lambda operation, context: ToolResult("job 17", outcome=Outcome.BACKGROUND_ACCEPTED, operation_id="17")  # noqa: E731
    result = run(make_pipeline(make_tool(accepts), audit=AuditLog(tmp_path)))
    assert result.outcome == "background_accepted" and result.observation.operation_id == "17"
    pipeline = make_pipeline(make_tool(accepts), audit=AuditLog(tmp_path))  # a restart does not end it
    assert pipeline.complete("r1", ToolResult("sent")).text == "ok: sent"
    for request in ("r1", "never made"):
        with pytest.raises(UsageError, match="no background work"):
            pipeline.complete(request, ToolResult("sent"))
    assert ends(pipeline, "r1") == ["background_accepted"]


def test_what_is_secret_stays_so_behind():
    events = queue.Queue()

    def handler(operation, context, bound):
        bound.progress(f"using {operation.arguments['x']}")
        return ToolResult(f"used {operation.arguments['x']} with {bound.credentials['mail']}")

    tool = make_tool(handler, background=True, takes_call=True, redact=("x",), credentials=("mail",))
    pipeline = make_pipeline(tool, on_event=events.put, vault=lambda actor, tenant, name: "pa55word")
    run(pipeline, text=call(x="hunter2"))
    said = heard(events).text + heard(events).text + str(pipeline.audit.lines()) + str(pipeline.audit.artefacts)
    assert "hunter2" not in said and "pa55word" not in said and "[redacted]" in said


def test_background_work_cannot_end_in_going_on():
    events = queue.Queue()
    again = lambda operation, context: ToolResult("still", outcome=Outcome.BACKGROUND_ACCEPTED)  # noqa: E731
    pipeline = make_pipeline(make_tool(again, background=True), on_event=events.put)
    run(pipeline)
    assert heard(events).observation.outcome == "unknown_outcome"
    elsewhere = make_pipeline(make_tool(again))
    run(elsewhere)
    with pytest.raises(UsageError, match="no end"):
        elsewhere.complete("r1", ToolResult("still", outcome=Outcome.BACKGROUND_ACCEPTED))
