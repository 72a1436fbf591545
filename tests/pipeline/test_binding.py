"""What is bound to an execution: credentials, an idempotency key, a turn; never anything a model wrote."""

from __future__ import annotations

import threading
import time

import pytest

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Effect, Operation, Outcome, ToolContract, ToolFailure, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import AuditLog, Pipeline, Policy, Rule
from modtools.pipeline.canonical import canonical_entity
from modtools.pipeline.failures import HOST_CODES
from modtools.pipeline.hooks import HookAnswer, HookContract, HookPoint, Hooks
from pipeline.tools import OPEN, call, ends, make_pipeline, make_tool, run

KEYED = {"type": "object", "properties": {"key": {"type": "string"}, "x": {}}, "required": ["key"]}


def keyed(handler, **fields):
    """A tool whose calls are one piece of work where `key` is the same."""
    return make_tool(handler, input_schema=KEYED, idempotency_key=("key",), **fields)


def test_a_handler_gets_the_credentials_of_its_contract_and_no_others():
    got = []

    def handler(operation, context, bound):
        got.append(dict(bound.credentials))
        return ToolResult(f"the secret is {bound.credentials['mail']}")

    vault = {("ann", "acme", "mail"): "pa55word", ("ann", "acme", "bank"): "m0ney"}
    tool = make_tool(handler, takes_call=True, credentials=("mail",))
    pipeline = make_pipeline(tool, vault=lambda *names: vault.get(names, ""))
    result = run(pipeline, actor="ann", tenant="acme")
    assert got == [{"mail": "pa55word"}]
    assert "pa55word" not in result.observation.text + str(pipeline.audit.lines()) and result.observation.redacted
    assert "pa55word" not in repr(got[0]) or "pa55word" not in repr(result)


def test_without_its_credential_a_tool_is_not_run_and_a_model_cannot_supply_one():
    done = []
    tool = make_tool(lambda o, c: done.append(1), credentials=("mail",))
    pipeline = make_pipeline(tool)
    for id, text in (("r1", call()), ("r2", call(x={"mail": "mine"})), ("r3", call(credentials={"mail": "mine"}))):
        assert run(pipeline, id, text).outcome in ("unavailable_tool", "validation_failed")
    broken = make_pipeline(tool, vault=lambda *names: 1 / 0)
    assert run(broken).outcome == "unavailable_tool" and done == []


def test_work_under_one_key_is_done_once_and_the_second_call_is_told():
    done = []
    pipeline = make_pipeline(keyed(lambda o, c: done.append(1) or ToolResult("sent")))
    first, second = run(pipeline, "r1", call(key="k")), run(pipeline, "r2", call(key="k"))
    assert (first.outcome, second.outcome, done) == ("success", "success", [1])
    assert second.observation.code == "already_done" and second.observation.text == (
        "ok: request r1 did it, and it was not done again"
    )
    assert run(pipeline, "r3", call(key="other")).outcome == "success" and done == [1, 1]


def test_two_calls_with_one_key_at_once_do_the_work_once():
    started, go, done, outcomes = threading.Event(), threading.Event(), [], {}

    def handler(operation, context):
        started.set()
        go.wait(10)
        done.append(1)
        return ToolResult("sent")

    pipeline = make_pipeline(keyed(handler, concurrency="parallel"))
    ask = lambda id: outcomes.update({id: run(pipeline, id, call(key="k"))})  # noqa: E731
    threads = [threading.Thread(target=ask, args=(id,)) for id in ("a", "b")]
    for thread in threads:
        thread.start()
        started.wait(10)
    go.set()
    for thread in threads:
        thread.join()
    assert done == [1] and sorted(r.observation.code for r in outcomes.values()) == ["", "already_done"]
    assert all(ends(pipeline, id) == ["success"] for id in outcomes)


def test_a_call_that_waits_for_its_key_sees_the_end_of_the_other_on_record():
    class SlowDisk(AuditLog):
        def append(self, request, event, fields):
            if (request, event) == ("first", "terminal"):
                time.sleep(0.3)
            super().append(request, event, fields)

    for concurrency in ("parallel", "exclusive"):
        begun, outcomes = threading.Event(), {}
        handler = lambda operation, context: begun.set() or ToolResult("sent")  # noqa: E731
        pipeline = make_pipeline(keyed(handler, concurrency=concurrency), audit=SlowDisk())
        ask = lambda id: outcomes.update({id: run(pipeline, id, call(key="k"))})  # noqa: E731
        other = threading.Thread(target=ask, args=("first",))
        other.start()
        begun.wait(10)
        ask("second")
        other.join()
        assert [outcomes[id].outcome for id in ("first", "second")] == ["success", "success"]
        assert outcomes["second"].observation.code == "already_done"


def test_other_work_under_a_used_key_is_a_conflict():
    pipeline = make_pipeline(keyed(lambda o, c: ToolResult("sent")))
    run(pipeline, "r1", call(key="k", x=1))
    conflict = run(pipeline, "r2", call(key="k", x=2))
    assert (conflict.outcome, conflict.observation.code) == ("validation_failed", "idempotency_conflict")


def test_a_key_belongs_to_its_actor_and_tenant():
    done = []
    pipeline = make_pipeline(keyed(lambda o, c: done.append(1) or ToolResult("sent")))
    for number, who in enumerate([{}, {"actor": "bob"}, {"tenant": "acme"}]):
        assert run(pipeline, str(number), call(key="k"), **who).outcome == "success"
    assert done == [1, 1, 1]


ENDS = {
    "declined": (lambda: decline(), "validation_failed", "does it"),
    "broken": (lambda: 1 / 0, "unknown_outcome", "unknown_outcome"),
    "partial": (lambda: ToolResult("half", outcome=Outcome.PARTIAL, code="partial"), "partial", "partial"),
}


def decline():
    raise ToolFailure("precondition_failed", "not now")


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_key_is_free_again_only_where_nothing_was_done(how, restarted, tmp_path):
    fail, first_ends, second_ends = ENDS[how]
    calls = []

    def handler(operation, context):
        calls.append(1)
        return fail() if len(calls) == 1 else ToolResult("does it")

    pipeline = make_pipeline(keyed(handler), audit=AuditLog(tmp_path))
    assert run(pipeline, "r1", call(key="k")).outcome == first_ends
    if restarted:
        pipeline = make_pipeline(keyed(handler), audit=AuditLog(tmp_path))
    second = run(pipeline, "r2", call(key="k"))
    if second_ends == "does it":
        assert second.outcome == "success" and len(calls) == 2
    else:
        assert second.outcome == second_ends and second.observation.code == "already_done" and len(calls) == 1


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"version": "1"}, "MAJOR.MINOR.PATCH"),
        ({"effect": "fly"}, "read, write"),
        ({"idempotent": "yes"}, "true or false"),
        ({"retries": -1}, "at least 0"),
        ({"timeout_s": 0}, "positive"),
        ({"timeout_s": float("inf")}, "positive"),
        ({"concurrency": "some"}, "exclusive_per_resource"),
        ({"idempotency_key": ("absent",)}, "required arguments"),
        ({"redact": "key"}, "tuple"),
        ({"output_schema": 3}, "JSON Schema"),
        ({"input_schema": {"type": "array"}}, "object schema"),
    ],
)
def test_a_contract_with_a_wrong_semantic_is_refused_by_name(fields, what):
    with pytest.raises(UsageError, match=f"tool t: .*{what}"):
        ToolContract(**{"name": "t", "description": "", "input_schema": KEYED, **fields})


def test_a_contract_read_from_a_registry_entry_is_cautious_where_the_entry_is_silent():
    entry = {"name": "t", "description": "A tool.", "input_schema": {"type": "object"}}
    contract = ToolContract.read(entry)
    assert (contract.effect, contract.risk, contract.approval) == (Effect.WRITE, "high", "required")
    assert (contract.idempotent, contract.retries, contract.concurrency) == (False, 0, "exclusive")
    full = ToolContract.read({**entry, "effect": "external_send", "redact": ["x"], "version": "2.1.0"})
    assert full.effect is Effect.EXTERNAL_SEND and full.redact == ("x",)
    for bad, what in (({**entry, "idempotant": True}, "idempotant"), ({"name": "t"}, "description")):
        with pytest.raises(UsageError, match=what):
            ToolContract.read(bad)
    assert contract.digest != ToolContract.read({**entry, "owner": "mail team"}).digest


def test_an_effect_covers_reading_and_never_more_than_it_says():
    covered = {effect: [other for other in Effect if effect.covers(other)] for effect in Effect}
    assert covered == {
        Effect.READ: [Effect.READ],
        Effect.WRITE: [Effect.READ, Effect.WRITE],
        Effect.EXECUTE: [Effect.READ, Effect.WRITE, Effect.EXECUTE],
        Effect.DESTRUCTIVE: [Effect.READ, Effect.WRITE, Effect.DESTRUCTIVE],
        Effect.EXTERNAL_SEND: [Effect.READ, Effect.EXTERNAL_SEND],
    }


@pytest.mark.parametrize("change", ["revoke", "upgrade", "policy"])
def test_what_was_decided_must_still_hold_when_the_calls_turn_comes(change):
    holds, go, done = threading.Event(), threading.Event(), []

    def handler(operation, context):
        holds.set()
        go.wait(10)
        done.append(operation.arguments)
        return ToolResult("done")

    catalogue = Catalogue(Snapshot.of((make_tool(handler),)))
    pipeline = Pipeline(catalogue, OPEN, AuditLog())
    results = {}
    ask = lambda id: results.update({id: run(pipeline, id, call(x=id))})  # noqa: E731
    threads = [threading.Thread(target=ask, args=(id,)) for id in ("first", "second")]
    threads[0].start()
    holds.wait(10)
    threads[1].start()
    while not any(line["request"] == "second" for line in pipeline.audit.lines()):
        time.sleep(0.01)
    time.sleep(0.1)  # the second call has been decided and waits
    if change == "revoke":
        catalogue.revoke("t", "a hole")
    elif change == "upgrade":
        catalogue.upgrade(make_tool(handler, version="2.0.0"))
    else:
        pipeline.policy = Policy((*OPEN.rules, Rule("deny", "*")))
    go.set()
    for thread in threads:
        thread.join()
    assert results["first"].outcome == "success" and done == [{"x": "first"}]
    expected = ("validation_failed", "stale_version") if change == "policy" else ("unavailable_tool", "retired_tool")
    assert (results["second"].outcome, results["second"].observation.code) == expected


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_the_tries_of_the_pipeline_and_those_of_a_hook_have_one_budget(retries):
    class Again:
        contract = HookContract("again", HookPoint.TOOL_FAILURE, may=("retry",), side_effects="none")

        def run(self, event):
            return HookAnswer(retry="once more")

    class Stubborn:
        contract = HookContract("stubborn", HookPoint.PRE_TOOL_USE, may=("retry",), side_effects="none")

        def wrap(self, event, proceed):
            proceed()
            return proceed()

    for hook in (Again(), Stubborn()):
        tried = []

        def busy(operation, context):
            tried.append(1)
            raise ToolFailure("rate_limited", "too many")

        tool = make_tool(busy, effect=Effect.READ, retries=retries)
        result = run(make_pipeline(tool, hooks=Hooks((hook,))), call())
        assert result.observation.code == "rate_limited" and len(tried) == retries + 1


@pytest.mark.parametrize(("failure", "tries"), [(ToolFailure("unavailable", "down"), 2), (RuntimeError(), 1)])
def test_a_hook_may_have_a_writing_call_tried_again_only_where_its_handler_declined_before_any_effect(failure, tries):
    class Again:
        contract = HookContract("again", HookPoint.TOOL_FAILURE, may=("retry",), side_effects="none")

        def run(self, event):
            return HookAnswer(retry="once more")

    tried = []

    def fails(operation, context):
        tried.append(1)
        raise failure

    run(make_pipeline(make_tool(fails, retries=1), hooks=Hooks((Again(),))), call())
    assert len(tried) == tries


@pytest.mark.parametrize(("first", "second"), [("INV-42", "INV-４２"), (1, 1.0), ({"n": [2.0]}, {"n": [2]})])
def test_one_thing_written_in_two_ways_is_one_piece_of_work(first, second):
    done = []

    def canonicalise(arguments, context):
        key = arguments["key"]
        return Operation(
            "pay", {"key": canonical_entity(key, r"INV-\d+") if isinstance(key, str) else key}, (), Effect.WRITE
        )

    schema = {"type": "object", "properties": {"key": {}}, "required": ["key"]}
    tool = make_tool(lambda o, c: done.append(1) or ToolResult("paid"), canonicalise=canonicalise, input_schema=schema,
                     idempotency_key=("key",))  # fmt: skip
    pipeline = make_pipeline(tool)
    run(pipeline, "r1", call(key=first))
    assert run(pipeline, "r2", call(key=second)).outcome in ("success", "validation_failed") and done == [1]


def test_work_begun_under_a_key_cannot_be_announced_again():
    audit = AuditLog()
    for request in ("r1", "r2"):
        audit.append(request, "received", {})
    audit.append("r1", "executing", {"idempotency_key": "k", "operation": "o"})
    with pytest.raises(UsageError, match="was begun before"):
        audit.append("r2", "executing", {"idempotency_key": "k", "operation": "o"})


@pytest.mark.parametrize("code", sorted(HOST_CODES))
def test_what_only_the_host_can_say_a_tool_cannot(code):
    def declines(operation, context):
        raise ToolFailure(code, "so it says")

    pipeline = make_pipeline(make_tool(declines))
    result = run(pipeline)
    assert (result.outcome, result.observation.code) == ("unavailable_tool", "tool_error")
    assert f"{code}: so it says" in result.observation.text
    with pytest.raises(UsageError, match="can be approved"):
        pipeline.approve("r1", "ann")
    assert run(make_pipeline(make_tool(canonicalise=declines))).observation.code == "tool_error"
    said = lambda operation, context: ToolResult("done", code=code)  # noqa: E731
    for schema in (None, {"type": "object"}):
        assert run(make_pipeline(make_tool(said, output_schema=schema))).observation.code == "result_wrong_shape"


def test_a_result_with_an_unknown_code_and_a_schema_is_a_wrong_shape():
    tool = make_tool(lambda o, c: ToolResult("done", code="strange"), output_schema={"type": "object"})
    assert run(make_pipeline(tool)).observation.code == "result_wrong_shape"


def test_without_a_thread_the_tool_is_unavailable_and_nothing_was_done(monkeypatch):
    monkeypatch.setattr("modtools.pipeline.thread._idle", [])
    monkeypatch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no threads left")))
    assert run(make_pipeline(make_tool())).outcome == "unavailable_tool"


def test_a_model_is_told_no_name_that_its_actor_may_not_see():
    snapshot = Snapshot.of((make_tool(), make_tool(name="payroll")), audiences={"payroll": ("acme/ann",)})
    pipeline = Pipeline(snapshot, OPEN, AuditLog())
    assert "payroll" not in run(pipeline, "r1", call("nothing"), actor="bob", tenant="acme").observation.text
    assert "payroll" in run(pipeline, "r2", call("nothing"), actor="ann", tenant="acme").observation.text
    assert "Expected: no call: no tool is offered." in run(make_pipeline(), "r3", call("nothing")).observation.text
