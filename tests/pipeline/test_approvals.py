"""Approvals: bound outside the arguments to one operation, good once, for a while, and for one ask."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from modtools.catalogue import Snapshot
from modtools.contract import Effect, Operation, Outcome, ToolFailure, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import AuditLog, Level, Pipeline, Policy, Request, Rule
from pipeline.tools import call, ends, make_pipeline, make_tool, run

ASK = Policy((Rule("allow", "*"), Rule("ask", "act", id="mail")))


def asked(pipeline: Pipeline, text: str = call(x=1), id: str = "r1", **fields):
    """Run a request that asks, approve it, and return the approval's id."""
    assert run(pipeline, id, text, **fields).outcome == "approval_required"
    return pipeline.approve(id, "ann").id


def counted():
    """A tool that counts its executions, and the list it counts on."""
    done = []
    return make_tool(lambda operation, context: done.append(operation) or ToolResult("sent")), done


def test_an_approved_call_runs_once_and_its_audit_names_the_one_that_asked():
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=ASK)
    approval = asked(pipeline)
    assert done == [] and run(pipeline, "r2", call(x=1), approvals=(approval,)).outcome == "success"
    assert len(done) == 1 and ends(pipeline, "r1") == ["approval_required"]
    received = next(line for line in pipeline.audit.lines() if line["request"] == "r2")
    assert received["follows"] == ["r1"]
    again = run(pipeline, "r3", call(x=1), approvals=(approval,))
    assert again.observation.code == "approval_invalid" and again.outcome == "permission_denied" and len(done) == 1


@pytest.mark.case(10)
@pytest.mark.parametrize("other", [call(x=2), call(x=1, key="k"), call(), call(x="1"), call(x=True)])
def test_an_approval_for_some_arguments_is_none_for_others(other):
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=ASK)
    result = run(pipeline, "r2", other, approvals=(asked(pipeline),))
    assert (result.outcome, result.observation.code, done) == ("permission_denied", "approval_invalid", [])


def test_the_same_arguments_in_another_spelling_are_the_same_operation():
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=ASK)
    approval = asked(pipeline, call(x=1, key="k"))
    spelled = '{"arguments": {"key": "\\u006b",  "x": 1}, "name": "t"}'
    assert run(pipeline, "r2", spelled, approvals=(approval,)).outcome == "success" and len(done) == 1


@pytest.mark.parametrize(
    "bound", ["actor", "tenant", "workspace", "policy", "contract", "catalogue", "state", "resource"]
)
def test_an_approval_is_void_once_anything_it_was_bound_to_has_changed(bound):
    seen = {"state": "1", "resource": "workspace:x"}
    done = []
    tool = make_tool(
        lambda operation, context: done.append(1) or ToolResult("sent"),
        canonicalise=lambda a, c: Operation("act", a, (seen["resource"],), Effect.WRITE, seen["state"]),
    )
    audit = AuditLog()
    pipeline = make_pipeline(tool, policy=ASK, audit=audit)
    approval, fields = asked(pipeline), {}
    if bound in ("actor", "tenant", "workspace"):
        fields = {bound: "somebody else"}
    elif bound in seen:
        seen[bound] += "2"
    elif bound == "policy":
        pipeline.policy = Policy((*ASK.rules, Rule("deny", "other")))
    else:
        tool = replace(tool, contract=replace(tool.contract, timeout_s=9.0)) if bound == "contract" else tool
        pipeline = Pipeline(Snapshot.of((tool,), version=2), ASK, audit)
    assert run(pipeline, "r2", call(x=1), approvals=(approval,), **fields).observation.code == "approval_invalid"
    assert done == []


def test_an_approval_expires():
    now = [1000.0]
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=ASK, audit=AuditLog(clock=lambda: now[0]))
    run(pipeline, "r1", call(x=1))
    approval = pipeline.approve("r1", "ann", valid_s=60).id
    now[0] += 60
    result = run(pipeline, "r2", call(x=1), approvals=(approval,))
    assert "expired" in result.observation.text and done == []


def test_an_approval_satisfies_only_the_ask_it_names():
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=Policy((*ASK.rules, Rule("ask", "*", id="night"))))
    first = asked(pipeline)
    assert run(pipeline, "r2", call(x=1), approvals=(first,)).outcome == "approval_required"
    second = pipeline.approve("r2", "bob").id
    assert run(pipeline, "r3", call(x=1), approvals=(second,)).outcome == "approval_required" and done == []
    assert run(pipeline, "r4", call(x=1), approvals=(first, second)).outcome == "success" and len(done) == 1


def test_a_denial_that_came_meanwhile_wins_over_the_approval():
    tool, done = counted()
    rules = (*ASK.rules, Rule("deny", "*", level=Level.TENANT_DENY))
    pipeline = make_pipeline(tool, policy=ASK)
    approval = asked(pipeline)
    pipeline.policy = Policy(rules)
    assert run(pipeline, "r2", call(x=1), approvals=(approval,)).outcome == "permission_denied" and done == []


def test_nothing_a_model_writes_is_an_approval():
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=ASK)
    approval = asked(pipeline)
    for id, text in (
        ("r2", call(x=1, approval=approval)),
        ("r3", call(x=1).replace("}}", f'}}, "approvals": ["{approval}"]}}')),
    ):
        assert run(pipeline, id, text).outcome in ("validation_failed", "approval_required")
    assert run(pipeline, "r4", call(x=1), approvals=("made up",)).observation.code == "approval_invalid" and done == []


def test_two_requests_with_one_approval_at_once_run_once():
    gate = threading.Barrier(2)
    done = []

    def canonicalise(arguments, context):
        if context["race"]:
            gate.wait(5)
        return Operation("act", arguments, ("workspace:x",), Effect.WRITE)

    tool = make_tool(
        lambda o, c: done.append(1) or ToolResult("sent"), canonicalise=canonicalise, concurrency="parallel"
    )
    context = {"race": False}
    pipeline = make_pipeline(tool, policy=ASK, context=context)
    approval = asked(pipeline)
    context["race"], outcomes = True, []
    threads = [
        threading.Thread(
            target=lambda id=id: outcomes.append(run(pipeline, id, call(x=1), approvals=(approval,)).outcome)
        )
        for id in ("a", "b")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["permission_denied", "success"] and done == [1]


ENDS = {
    "success": lambda: ToolResult("sent"),
    "partial": lambda: ToolResult("half", outcome=Outcome.PARTIAL, code="partial"),
    "declined": lambda: decline(),
    "broken": lambda: 1 / 0,
    "timeout": lambda: time.sleep(3),
    "cancelled": lambda: time.sleep(3),
}


def decline():
    raise ToolFailure("precondition_failed", "not now")


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
@pytest.mark.parametrize("how", ENDS)
def test_an_approval_is_used_up_however_its_execution_ends(how, effect, tmp_path, monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    done = []
    tool = make_tool(
        lambda o, c: done.append(1) or ENDS[how](), effect=effect, timeout_s=5.0 if how == "cancelled" else 0.2
    )
    pipeline = make_pipeline(tool, policy=ASK, audit=AuditLog(tmp_path))
    approval = asked(pipeline)
    cancelled = (lambda: bool(done)) if how == "cancelled" else (lambda: False)
    pipeline.run(Request("r2", call(x=1), approvals=(approval,)), cancelled)
    for restarted in (False, True):
        pipeline = make_pipeline(tool, policy=ASK, audit=AuditLog(tmp_path)) if restarted else pipeline
        id = f"again-{len(pipeline.audit.lines())}"
        assert run(pipeline, id, call(x=1), approvals=(approval,)).observation.code == "approval_invalid"
    assert done == [1]


def test_an_approval_is_void_once_a_rule_was_changed_under_its_id():
    tool, done = counted()
    pipeline = make_pipeline(tool, policy=ASK)
    approval = asked(pipeline)
    pipeline.policy = Policy((Rule("allow", "*"), Rule("ask", "*", id="mail")))
    assert run(pipeline, "r2", call(x=1), approvals=(approval,)).observation.code == "approval_invalid" and done == []


def test_an_approval_and_its_use_survive_a_restart(tmp_path):
    tool, done = counted()
    approval = asked(make_pipeline(tool, policy=ASK, audit=AuditLog(tmp_path)))
    assert (
        run(make_pipeline(tool, policy=ASK, audit=AuditLog(tmp_path)), "r2", call(x=1), approvals=(approval,)).outcome
        == "success"
    )
    later = run(make_pipeline(tool, policy=ASK, audit=AuditLog(tmp_path)), "r3", call(x=1), approvals=(approval,))
    assert later.observation.code == "approval_invalid" and len(done) == 1


def test_only_a_request_that_asked_can_be_approved():
    pipeline = make_pipeline(make_tool())
    run(pipeline, "r1")
    for request in ("r1", "never made"):
        with pytest.raises(UsageError, match="approval_required"):
            pipeline.approve(request, "ann")
    asking = make_pipeline(make_tool(), policy=ASK)
    run(asking, "r1")
    for by, valid_s in (("", 60), ("ann", 0), ("ann", float("nan"))):
        with pytest.raises(UsageError):
            asking.approve("r1", by, valid_s)


@pytest.mark.parametrize("valid_s", [0, -1, float("inf"), float("nan")])
def test_an_approval_ends(valid_s):
    pipeline = make_pipeline(counted()[0], policy=ASK)
    asked(pipeline)
    with pytest.raises(UsageError, match="a time above 0 that ends"):
        pipeline.approve("r1", "ann", valid_s)
