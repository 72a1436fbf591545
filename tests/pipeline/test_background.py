"""Background work: accepted once, heard of while it goes on, and ended by an event of its own."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from modtools.contract import Effect, Outcome, ToolResult
from modtools.errors import RecordError, UsageError
from modtools.pipeline import AuditLog, Request, verify_audit
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


KEYED = {
    "input_schema": {"type": "object", "properties": {"key": {}}, "required": ["key"]},
    "idempotency_key": ("key",),
}


@pytest.mark.parametrize("through", ["one pipeline", "another pipeline over one log", "a restart"])
@pytest.mark.parametrize("when", ["while it runs", "after its end", "after an end that could not be written"])
def test_work_under_one_key_is_begun_once(when, through, tmp_path, monkeypatch):
    done, events, go = [], queue.Queue(), threading.Event()
    work = lambda operation, context: done.append(1) or go.wait(10) and ToolResult("done")  # noqa: E731
    tool = make_tool(work, background=True, **KEYED)
    audit = AuditLog(tmp_path)
    pipeline = make_pipeline(tool, audit=audit, on_event=events.put)
    true = audit.append

    def append(request, event, fields):
        if event == "completed":
            raise RecordError("disk full")
        true(request, event, fields)

    assert run(pipeline, "r1", call(key="k")).outcome == "background_accepted"
    if when == "after an end that could not be written":
        monkeypatch.setattr(audit, "append", append)
    if when != "while it runs":
        go.set()
        heard(events)
        monkeypatch.undo()
    if through != "one pipeline":
        pipeline = make_pipeline(tool, audit=audit if "another" in through else AuditLog(tmp_path))
    cancelled_s = time.monotonic() + 0.3  # while it runs the second call waits for the first
    again = pipeline.run(Request("r2", call(key="k")), lambda: time.monotonic() > cancelled_s)
    assert again.observation.code == (
        "cancelled" if (when, "restart" in through) == ("while it runs", False) else "already_done"
    )
    go.set()
    assert done == [1] and len(ends(pipeline, "r2")) == 1


def test_a_call_told_of_work_that_goes_on_elsewhere_is_no_work_of_its_own():
    accepts = lambda operation, context: ToolResult("job 17", outcome=Outcome.BACKGROUND_ACCEPTED)  # noqa: E731
    pipeline = make_pipeline(make_tool(accepts, **KEYED))
    run(pipeline, "r1", call(key="k"))
    assert run(pipeline, "r2", call(key="k")).observation.code == "already_done"
    with pytest.raises(UsageError, match="no background work"):
        pipeline.complete("r2", ToolResult("sent"))
    assert pipeline.complete("r1", ToolResult("sent")).outcome == "success"


def test_a_host_that_breaks_on_an_event_and_a_lost_line_of_progress_stop_no_work(monkeypatch):
    done = threading.Event()

    def handler(operation, context, bound):
        bound.progress("half")
        done.set()
        return ToolResult("done")

    pipeline = make_pipeline(make_tool(handler, background=True, takes_call=True), on_event=lambda event: 1 / 0)
    true = pipeline.audit.append

    def append(request, event, fields):
        if event == "progress":
            raise RecordError("disk full")
        true(request, event, fields)

    monkeypatch.setattr(pipeline.audit, "append", append)
    run(pipeline)
    assert done.wait(10)
    until_s = time.monotonic() + 10
    while pipeline.audit.ledger.background() and time.monotonic() < until_s:
        time.sleep(0.01)
    assert pipeline.audit.lines()[-1]["outcome"] == "success"


def test_without_a_thread_the_work_ends_as_not_begun(monkeypatch):
    events = queue.Queue()
    pipeline = make_pipeline(make_tool(background=True), on_event=events.put)
    monkeypatch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no threads left")))
    assert run(pipeline).outcome == "background_accepted"
    assert heard(events).observation.code == "unavailable" and not pipeline.audit.ledger.background()


def test_what_another_system_reports_is_bounded_redacted_and_held_against_the_contract():
    accepts = lambda operation, context: ToolResult("job", outcome=Outcome.BACKGROUND_ACCEPTED)  # noqa: E731
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    pipeline = make_pipeline(make_tool(accepts, redact=("x",), output_schema=schema, observation_chars=100))
    run(pipeline, "r1", call(x="hunter2"))
    told = pipeline.complete("r1", ToolResult("used hunter2", "hunter2 " * 100, {"n": 1}))
    assert "hunter2" not in told.text and len(told.text) < 400 and told.artefact
    assert b"hunter2" not in pipeline.audit.artefact(told.artefact)
    run(pipeline, "r2", call(x="hunter2"))
    assert pipeline.complete("r2", ToolResult("done", data={"n": "one"})).outcome == "unknown_outcome"


def test_a_process_that_does_not_know_the_secrets_tells_no_words(tmp_path):
    accepts = lambda operation, context: ToolResult("job", outcome=Outcome.BACKGROUND_ACCEPTED)  # noqa: E731
    tool = make_tool(accepts, redact=("x",))
    run(make_pipeline(tool, audit=AuditLog(tmp_path)), "r1", call(x="hunter2"))
    told = make_pipeline(tool, audit=AuditLog(tmp_path)).complete("r1", ToolResult("used hunter2"))
    assert told.outcome == "success" and "hunter2" not in told.text and "withheld" in told.text
