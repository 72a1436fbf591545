"""Hooks inside the pipeline: what they may do to a real call, and what they may not."""

from __future__ import annotations

import queue
from dataclasses import replace

import pytest

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Effect, Failure, Operation, Outcome, ToolFailure, ToolResult
from modtools.pipeline import AuditLog, Level, Pipeline, Policy, Rule
from modtools.pipeline.hooks import HookAnswer, HookContract, HookPoint, Hooks, Refusal
from pipeline.tools import OPEN, call, ends, make_pipeline, make_tool, run


class Made:
    """A hook made of a contract and one method."""

    def __init__(self, method: str, work, point=HookPoint.PRE_TOOL_USE, name="made", **contract):
        self.contract = HookContract(name, point, **contract)
        setattr(self, method, work)


def counted(**fields):
    """A tool that notes the arguments it was executed with, and the notes."""
    done = []
    tool = make_tool(
        lambda operation, context: done.append(dict(operation.arguments)) or ToolResult("sent", "body"), **fields
    )
    return tool, done


BLOCK = {"may": ("block",), "ceiling": Level.RESOURCE_DENY}


def test_a_hook_that_denies_ends_the_call_before_any_effect_and_its_reason_is_told():
    tool, done = counted()
    hook = Made("run", lambda event: HookAnswer(deny="the daily limit is reached"), **BLOCK)
    pipeline = make_pipeline(tool, hooks=Hooks((hook,)))
    result = run(pipeline)
    assert (result.outcome, result.observation.code, done) == ("permission_denied", "hook_denied", [])
    assert "the daily limit is reached" in result.observation.text
    (terminal,) = [line for line in pipeline.audit.lines() if line["event"] == "terminal"]
    assert terminal["hooks"] == [["made", "block: the daily limit is reached"]] and not terminal["executed"]


@pytest.mark.case(11)
@pytest.mark.parametrize("method", ["run", "intercept", "judge", "wrap"])
def test_a_critical_hook_that_raises_fails_closed(method):
    tool, done = counted()
    hook = Made(method, lambda *told: 1 / 0, tools="t")
    result = run(make_pipeline(tool, hooks=Hooks((hook,))))
    assert (result.outcome, result.observation.code, done) == ("permission_denied", "hook_failed", [])
    assert "ZeroDivisionError" in result.observation.text and "division by" not in result.observation.text


@pytest.mark.case(11)
@pytest.mark.parametrize("method", ["run", "intercept", "judge", "wrap"])
def test_a_hook_that_calls_the_tool_it_guards_is_stopped_and_fails_closed(method):
    tool, done = counted()
    nested = []

    def calls_it(*told):
        nested.append(run(pipeline, "nested"))
        return told[1]() if method == "wrap" else None if method != "judge" else "allow"

    pipeline = make_pipeline(tool, hooks=Hooks((Made(method, calls_it, tools="t", ceiling=Level.SESSION_GRANT),)))
    result = run(pipeline, "outer")
    assert done == [] and [r.observation.code for r in nested] == ["reentrant_call"]
    assert (result.outcome, result.observation.code) == ("permission_denied", "reentrant_call")
    assert ends(pipeline, "outer") == ends(pipeline, "nested") == ["permission_denied"]


def test_a_handler_that_calls_its_own_tool_within_a_hook_is_stopped_too():
    pipelines = []
    inner = make_tool(lambda o, c: ToolResult(run(pipelines[0], "nested").observation.code), name="u")
    hook = Made("run", lambda event: run(pipelines[0], "by the hook", call("u")) and None, tools="u")
    pipelines.append(make_pipeline(inner, hooks=Hooks((hook,))))
    assert run(pipelines[0], "outer", call("u")).observation.code == "reentrant_call"


def test_a_listener_that_breaks_changes_nothing():
    tool, done = counted()
    hook = Made("notify", lambda event: 1 / 0, HookPoint.REQUEST_ENDED, failure="open")
    result = run(make_pipeline(tool, hooks=Hooks((hook,))))
    assert result.outcome == "success" and len(done) == 1 and "ZeroDivisionError" in result.hooks[0].did


def test_a_listener_hears_how_every_request_ended():
    heard = []
    hook = Made("notify", heard.append, HookPoint.REQUEST_ENDED, failure="open")
    pipeline = make_pipeline(make_tool(), policy=Policy((Rule("allow", "act", "workspace:x"),)), hooks=Hooks((hook,)))
    run(pipeline, "r1")
    pipeline.policy = Policy(())
    run(pipeline, "r2")
    assert [(event.request, event.outcome) for event in heard] == [("r1", "success"), ("r2", "permission_denied")]


def test_changed_arguments_are_validated_canonicalised_and_decided_anew():
    def canonicalise(arguments, context):
        return Operation("act", arguments, (f"workspace:{arguments.get('x')}",), Effect.WRITE)

    tool, done = counted(
        canonicalise=canonicalise, input_schema={"type": "object", "properties": {"x": {"type": "string"}}}
    )
    policy = Policy((Rule("allow", "*"), Rule("deny", "*", "workspace:secret")))
    for change, outcome in (
        ({"x": "b"}, "success"),
        ({"x": "secret"}, "permission_denied"),
        ({"x": 3}, "permission_denied"),
    ):
        hook = Made("intercept", lambda event, change=change: change, tools="t", changes=("input",))
        assert run(make_pipeline(tool, policy=policy, hooks=Hooks((hook,))), text=call(x="a")).outcome == outcome
    assert done == [{"x": "b"}]


@pytest.mark.parametrize("beyond", [{"effect": Effect.DESTRUCTIVE}, {"effect": Effect.WRITE, "risk": "high"}])
def test_changed_arguments_are_classified_anew(beyond):
    def canonicalise(arguments, context):
        fields = beyond if arguments["x"] == "all" else {"effect": Effect.WRITE}
        return Operation("act", arguments, ("workspace:x",), **fields)

    tool, done = counted(canonicalise=canonicalise, risk="medium")
    hook = Made("run", lambda event: HookAnswer(arguments={"x": "all"}), changes=("input",))
    result = run(make_pipeline(tool, hooks=Hooks((hook,))), text=call(x="one"))
    assert (result.outcome, result.observation.code, done) == ("permission_denied", "hook_failed", [])


def test_an_ask_of_a_hook_is_answered_by_an_approval_like_any_other():
    tool, done = counted()
    hook = Made("run", lambda event: HookAnswer(ask="it is Friday"), may=("ask",), ceiling=Level.MANDATORY_ASK)
    pipeline = make_pipeline(tool, hooks=Hooks((hook,)))
    assert run(pipeline, "r1").outcome == "approval_required" and done == []
    approval = pipeline.approve("r1", "ann").id
    assert run(pipeline, "r2", approvals=(approval,)).outcome == "success" and len(done) == 1


def test_no_hook_and_no_gate_lifts_a_denial():
    tool, done = counted()
    gate = Made("judge", lambda query: "allow", name="gate", ceiling=Level.SESSION_GRANT)
    hook = Made("run", lambda event: HookAnswer(context="please"), name="hook")
    for level in (Level.IMMUTABLE_DENY, Level.TENANT_DENY, Level.RESOURCE_DENY):
        policy = Policy((*OPEN.rules, Rule("deny", "act", level=level)))
        assert run(make_pipeline(tool, policy=policy, hooks=Hooks((gate, hook)))).outcome == "permission_denied"
    assert run(make_pipeline(tool, policy=Policy(()), hooks=Hooks((gate,)))).outcome == "success" and len(done) == 1


def test_an_interceptor_may_refuse_and_middleware_may_stand_in_the_way():
    tool, done = counted()
    for hook in (
        Made("intercept", lambda event: Refusal("not to ann"), tools="t", **BLOCK),
        Made("wrap", lambda event, proceed: Refusal("not now"), side_effects="none", **BLOCK),
    ):
        result = run(make_pipeline(tool, hooks=Hooks((hook,))))
        assert result.observation.code == "hook_denied" and " not " in result.observation.text and done == []


def test_a_hook_after_the_call_may_take_out_and_one_that_breaks_withholds():
    tool, _ = counted()
    shortens = Made("run", lambda event: HookAnswer(result=ToolResult("sent", "[left out]")), HookPoint.POST_TOOL_USE,
                    changes=("output",))  # fmt: skip
    breaks = Made("run", lambda event: 1 / 0, HookPoint.POST_TOOL_USE)
    assert run(make_pipeline(tool, hooks=Hooks((shortens,)))).observation.text == "ok: sent\n[left out]"
    withheld = run(make_pipeline(tool, hooks=Hooks((breaks,)))).observation
    assert "withheld" in withheld.text and "body" not in withheld.text and withheld.outcome == "success"


@pytest.mark.parametrize("data", [{"x": 1}, {}, {"id": "text"}])
def test_a_changed_result_must_keep_the_hooks_own_output_schema(data):
    tool = make_tool(lambda operation, context: ToolResult("sent", "body", {"id": 1}))
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    change = lambda event: HookAnswer(result=ToolResult("sent", "changed", data))  # noqa: E731
    hook = Made("run", change, HookPoint.POST_TOOL_USE, changes=("output",), output_schema=schema)
    observation = run(make_pipeline(tool, hooks=Hooks((hook,)))).observation
    assert "withheld" in observation.text and "changed" not in observation.text


def test_a_secret_in_a_hooks_note_is_redacted_and_that_is_said():
    tool = make_tool(redact=("x",))
    hook = Made("run", lambda event: HookAnswer(context=f"about {event.arguments['x']}"))
    observation = run(make_pipeline(tool, hooks=Hooks((hook,))), text=call(x="hunter2")).observation
    assert observation.text == "ok: done\nnote: about [redacted]" and observation.redacted


@pytest.mark.parametrize(("retries", "idempotent", "tries"), [(0, True, 1), (2, True, 3), (2, False, 1)])
def test_a_retry_that_a_hook_wants_keeps_within_the_contract(retries, idempotent, tries):
    done = []
    tool = make_tool(lambda o, c: done.append(1) or 1 / 0, retries=retries, idempotent=idempotent)
    hook = Made(
        "run", lambda event: HookAnswer(retry="again"), HookPoint.TOOL_FAILURE, may=("retry",), side_effects="none"
    )
    result = run(make_pipeline(tool, hooks=Hooks((hook,))))
    assert (
        result.outcome == "unknown_outcome"
        and len(done) >= tries
        and (tries > 1 or len(done) == 1 + retries * idempotent)
    )


def test_what_a_hook_wants_the_model_to_know_stands_below_the_result():
    hook = Made("run", lambda event: HookAnswer(context="the file is generated"))
    assert (
        run(make_pipeline(make_tool(), hooks=Hooks((hook,)))).observation.text
        == "ok: done\nnote: the file is generated"
    )


@pytest.mark.case(14)
def test_a_tool_upgraded_between_the_turn_and_the_call_is_unavailable_and_says_what_changed():
    tool, done = counted()
    catalogue = Catalogue(Snapshot.of((tool,)))
    pipeline = Pipeline(catalogue, OPEN, AuditLog())
    seen = catalogue.snapshot
    newer, done_newer = counted(version="2.0.0")
    catalogue.upgrade(newer)
    result = run(pipeline, "r1", seen=seen)
    assert result.outcome == "unavailable_tool" and "1.0.0 to 2.0.0" in result.observation.text
    assert done == done_newer == [] and run(pipeline, "r2").outcome == "success" and len(done_newer) == 1


def test_a_tool_revoked_or_lost_is_unavailable_and_an_unrelated_change_is_not():
    mail = make_tool(name="send", source="mail")
    catalogue = Catalogue(Snapshot.of((make_tool(), mail)))
    pipeline = Pipeline(catalogue, OPEN, AuditLog())
    seen = catalogue.snapshot
    catalogue.lose("mail", "no answer")
    assert run(pipeline, "r1", call("mail.send"), seen=seen).outcome == "unavailable_tool"
    assert run(pipeline, "r2", seen=seen).outcome == "success"
    catalogue.revoke("t", "a hole")
    for id, snapshot in (("r3", seen), ("r4", None)):
        assert "a hole" in run(pipeline, id, seen=snapshot).observation.text


def test_one_name_on_two_servers_is_reached_by_its_qualified_name_only():
    tools = [
        make_tool(lambda o, c, source=source: ToolResult(source), name="send_email", source=source)
        for source in ("a", "b")
    ]
    pipeline = make_pipeline(*tools)
    assert run(pipeline, "r1", call("a.send_email")).observation.text == "ok: a"
    assert run(pipeline, "r2", call("b.send_email")).observation.text == "ok: b"
    refused = run(pipeline, "r3", call("send_email"))
    assert refused.observation.code == "ambiguous_tool" and refused.outcome == "validation_failed"
    assert '"a.send_email", "b.send_email"' in refused.observation.text


def test_a_tool_that_must_run_in_a_process_and_cannot_is_refused_when_the_pipeline_is_made():
    from modtools.errors import UsageError

    with pytest.raises(UsageError, match="top level of a module"):
        make_pipeline(make_tool(lambda o, c: ToolResult("done"), runs="process"))


def test_a_declared_error_of_a_tool_keeps_its_own_code_in_words():
    def full(operation, context):
        raise ToolFailure("mailbox_full", "the mailbox is full")

    assert "tool_error: mailbox_full: the mailbox is full" in run(make_pipeline(make_tool(full))).observation.text


def ended_otherwise(done):
    return [
        replace(done, result=replace(done.result, outcome=Outcome.PARTIAL, code="partial")),
        replace(done, result=replace(done.result, operation_id="other")),
        replace(done, result=None, failure=Failure("crash", "it broke")),
        replace(done, declared=True),
        replace(done, result=replace(done.result, data={"n": "no number"})),
    ]


@pytest.mark.parametrize("way", range(5))
def test_middleware_that_may_change_the_words_cannot_change_the_end(way):
    done = []
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = make_tool(lambda o, c: done.append(1) or ToolResult("sent", data={"n": 1}), output_schema=schema)
    wrap = lambda event, proceed: ended_otherwise(proceed())[way]  # noqa: E731
    result = run(make_pipeline(tool, hooks=Hooks((Made("wrap", wrap, changes=("output",)),))))
    assert (result.outcome, result.observation.text, done) == ("success", "ok: sent", [1])
    assert "the true result is delivered" in result.hooks[0].did


def test_middleware_cannot_make_a_success_of_a_failure():
    def wrap(event, proceed):
        return replace(proceed(), failure=None, result=ToolResult("all well"))

    pipeline = make_pipeline(make_tool(lambda o, c: 1 / 0), hooks=Hooks((Made("wrap", wrap, changes=("output",)),)))
    assert run(pipeline).outcome == "unknown_outcome"


def test_middleware_may_change_the_words():
    def wrap(event, proceed):
        done = proceed()
        return replace(done, result=replace(done.result, summary="sent, they say"))

    pipeline = make_pipeline(make_tool(), hooks=Hooks((Made("wrap", wrap, changes=("output",)),)))
    assert run(pipeline).observation.text == "ok: sent, they say"


def test_a_call_that_a_hook_makes_behind_is_stopped_like_any_other():
    heard, tool = queue.Queue(), make_tool(background=True)
    nested = []

    def wrap(event, proceed):
        nested.append(run(pipeline, f"n{len(nested)}"))
        return proceed()

    pipeline = make_pipeline(tool, hooks=Hooks((Made("wrap", wrap),)), on_event=heard.put)
    run(pipeline)
    assert heard.get(timeout=10).observation.code == "reentrant_call"
    assert [each.observation.code for each in nested] == ["reentrant_call"]
