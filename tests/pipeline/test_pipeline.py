"""The pipeline as a whole: one terminal result for whatever goes in and whatever the tool does."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modtools.catalogue import Snapshot
from modtools.contract import Effect, Operation, Outcome, Tool, ToolContract, ToolFailure, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Rule, Step, Wording

OPEN = Policy((Rule("allow", "*"),))
SCHEMA = {"type": "object", "properties": {"x": {}}}


def tool(
    handler=lambda operation, context: ToolResult("done"), effect=Effect.READ, canonicalise=None, **fields
) -> Tool:
    contract = ToolContract(
        fields.pop("name", "t"), "A tool.", fields.pop("input_schema", SCHEMA), effect=effect,
        approval=fields.pop("approval", "none"), **fields,
    )  # fmt: skip
    plain = lambda arguments, context: Operation("act", arguments, ("workspace:x",), effect)  # noqa: E731
    return Tool(contract, canonicalise or plain, handler)


def pipeline(*tools: Tool, policy=OPEN, audit=None, retired=None, wording=Wording()) -> Pipeline:
    return Pipeline(Snapshot.of(tools, retired=retired), policy, audit or AuditLog(), wording=wording)


def call(name="t", **arguments) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def run(pipe: Pipeline, text: str = call(), **fields):
    return pipe.run(Request("r1", text, **fields))


def terminal_lines(audit: AuditLog) -> list[dict]:
    return [line for line in audit.lines() if line["event"] == "terminal"]


def test_a_call_passes_every_step_in_order():
    result = run(pipeline(tool()))
    assert [record.step for record in result.trace] == list(Step) and all(record.passed for record in result.trace)
    assert result.outcome == Outcome.SUCCESS and result.observation.text == "ok: done"


def test_audit_and_observation_are_two_products():
    audit = AuditLog()
    result = run(pipeline(tool(), audit=audit), call(x="the argument"))
    received, executing, terminal = audit.lines()
    assert [received["event"], executing["event"], terminal["event"]] == ["received", "executing", "terminal"]
    assert terminal["outcome"] == "success" and terminal["operation"] == result.operation.digest
    assert "the argument" not in json.dumps(audit.lines()) and terminal["raw"] not in result.observation.text
    assert audit.artefacts[terminal["raw_artefact"]].decode() == call(x="the argument")


names = st.sampled_from(["t", "", "T", "unknown", "finish"])
texts = st.one_of(
    st.text(max_size=60),
    st.builds(lambda n, a: json.dumps({"name": n, "arguments": a}), names, st.dictionaries(st.text(), st.text())),
    st.builds(lambda t, i: t[:i] + t[i + 1 :], st.just(call(x="y")), st.integers(0, 50)),
)


@settings(max_examples=200)
@given(texts, st.sampled_from(["stop", "length", "lost"]))
def test_any_text_has_exactly_one_terminal_result(text, finish_reason):
    audit = AuditLog()
    result = run(pipeline(tool(), audit=audit), text, finish_reason=finish_reason)
    assert isinstance(result.outcome, Outcome) and result.observation.text
    assert [line["outcome"] for line in terminal_lines(audit)] == [result.outcome]


HANDLER_ENDS = {
    "returns": (lambda: ToolResult("done"), "success", "success"),
    "raises": (lambda: 1 / 0, "unavailable_tool", "unknown_outcome"),
    "exits": (lambda: exit(3), "unavailable_tool", "unknown_outcome"),
    "returns rubbish": (lambda: {"a": 1}, "unavailable_tool", "unknown_outcome"),
    "declines": (lambda: fail("precondition_failed"), "validation_failed", "validation_failed"),
    "is limited": (lambda: fail("rate_limited"), "unavailable_tool", "unavailable_tool"),
    "stops half-way": (lambda: ToolResult("3 of 5", outcome=Outcome.PARTIAL, code="partial"), "partial", "partial"),
    "goes on behind": (lambda: ToolResult("op 17", outcome=Outcome.BACKGROUND_ACCEPTED), "background_accepted",
                       "background_accepted"),
    "cannot tell": (lambda: ToolResult("?", outcome=Outcome.UNKNOWN_OUTCOME, code="unknown_outcome"), "unknown_outcome",
                    "unknown_outcome"),
    "hangs": (lambda: time.sleep(60), "timeout", "unknown_outcome"),
}  # fmt: skip


def fail(code: str):
    raise ToolFailure(code, "not now", "arguments.x", "later")


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
@pytest.mark.parametrize("ends", HANDLER_ENDS)
def test_however_a_handler_ends_there_is_one_result(ends, effect, monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    behave, for_reading, for_writing = HANDLER_ENDS[ends]
    audit = AuditLog()
    result = run(pipeline(tool(lambda o, c: behave(), effect, timeout_s=0.2), audit=audit))
    assert result.outcome == (for_reading if effect == Effect.READ else for_writing)
    assert [line["outcome"] for line in terminal_lines(audit)] == [result.outcome]


def test_the_text_of_a_handlers_exception_stays_out_of_the_observation():
    def leak(operation, context):
        raise RuntimeError("password=hunter2")

    assert "hunter2" not in run(pipeline(tool(leak))).observation.text


@pytest.mark.case(3)
def test_a_tools_own_error_is_shown_and_not_measured_against_the_output_schema():
    def broken(operation, context):
        raise ToolFailure("tool_error", "the mailbox is full", expected="an empty mailbox")

    result = run(pipeline(tool(broken, output_schema={"type": "object", "required": ["id"]})))
    assert "the mailbox is full" in result.observation.text and result.observation.code == "tool_error"


def test_a_result_that_breaks_its_contract_is_no_success():
    result = run(pipeline(tool(output_schema={"type": "object", "required": ["id"]})))
    assert result.outcome == Outcome.UNAVAILABLE_TOOL and "'id' is a required property" in result.observation.text


@pytest.mark.case(12)
def test_a_result_of_5_mb_is_bounded_and_kept_whole(tmp_path):
    body = "start" + "x" * 5_000_000 + "end"
    audit = AuditLog(tmp_path)
    result = run(pipeline(tool(lambda o, c: ToolResult("much", body)), audit=audit))
    assert result.outcome == Outcome.SUCCESS and result.observation.code == "result_too_large"
    assert (
        len(result.observation.text) < 4300 and "start" in result.observation.text and "end" in result.observation.text
    )
    assert (tmp_path / "artefacts" / result.observation.artefact).read_text() == body


@pytest.mark.case(8)
def test_an_example_call_in_prose_is_an_observation():
    result = run(pipeline(tool()), 'To send mail one would write {"name": "send_mail", "arguments": {}} here.')
    assert result.outcome == Outcome.VALIDATION_FAILED and result.observation.code == "example_call"


def test_a_name_never_registered_and_a_retired_one_end_differently():
    pipe = pipeline(tool(), retired={"old": "replaced by t in version 2"})
    unknown, retired = pipe.run(Request("a", call("nope"))), pipe.run(Request("b", call("old")))
    assert unknown.outcome == Outcome.VALIDATION_FAILED and '"t"' in unknown.observation.text
    assert retired.outcome == Outcome.UNAVAILABLE_TOOL and "replaced by t" in retired.observation.text


def test_policy_sees_the_canonical_operation_and_not_the_text():
    seen = []

    def canonicalise(arguments, context):
        return Operation("read", {"x": "secret"}, ("workspace:secret",), Effect.READ)

    denied = Policy((Rule("allow", "*"), Rule("deny", "read", "workspace:secret")))
    result = run(
        pipeline(tool(lambda o, c: seen.append(o), canonicalise=canonicalise), policy=denied), call(x="harmless")
    )
    assert result.outcome == Outcome.PERMISSION_DENIED and seen == []


def test_what_no_rule_allows_is_denied_and_the_order_of_rules_never_matters():
    rules = (Rule("allow", "act"), Rule("ask", "act"), Rule("deny", "act"))
    assert run(pipeline(tool(), policy=Policy(()))).outcome == Outcome.PERMISSION_DENIED
    for policy in (Policy(rules), Policy(rules[::-1])):
        assert run(pipeline(tool(), policy=policy)).outcome == Outcome.PERMISSION_DENIED
    assert run(pipeline(tool(), policy=Policy(rules[:2]))).outcome == Outcome.APPROVAL_REQUIRED


def test_a_contract_that_says_nothing_needs_approval():
    bare = ToolContract("t", "A tool.", SCHEMA)
    assert (bare.effect, bare.idempotent, bare.concurrency, bare.approval) == (
        Effect.WRITE,
        False,
        "exclusive",
        "required",
    )
    assert run(pipeline(replace(tool(), contract=bare))).outcome == Outcome.APPROVAL_REQUIRED


def test_a_call_may_not_do_more_than_its_contract_says():
    def sly(arguments, context):
        return Operation("act", arguments, (), Effect.EXECUTE)

    assert run(pipeline(tool(canonicalise=sly))).outcome == Outcome.PERMISSION_DENIED


@pytest.mark.parametrize("at", range(1, 12))
def test_cancelled_at_any_step_there_is_one_result(at):
    asked = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) >= at

    audit = AuditLog()
    done = []
    result = pipeline(tool(lambda o, c: done.append(1) or ToolResult("done"), Effect.WRITE), audit=audit).run(
        Request("r", call()), cancelled
    )
    assert len(terminal_lines(audit)) == 1
    # On a slow machine the tool may be asked about while it still runs.
    assert result.outcome in ((Outcome.SUCCESS, Outcome.UNKNOWN_OUTCOME) if done else (Outcome.CANCELLED,))


def test_cancelled_while_a_writing_tool_runs_the_outcome_is_unknown():
    started, release = threading.Event(), threading.Event()

    def slow(operation, context):
        started.set()
        release.wait(10)
        return ToolResult("late")

    result = pipeline(tool(slow, Effect.WRITE)).run(Request("r", call()), started.is_set)
    release.set()
    assert result.outcome == Outcome.UNKNOWN_OUTCOME


def test_a_request_id_is_used_once():
    pipe = pipeline(tool())
    run(pipe)
    with pytest.raises(UsageError, match="made before"):
        run(pipe)


def test_redacted_arguments_reach_neither_audit_nor_artefact_nor_observation():
    audit = AuditLog()
    secret = tool(redact=("x",), input_schema={"type": "object", "properties": {"x": {"enum": ["right"]}}})
    pipe = pipeline(secret, audit=audit)
    for number, text in enumerate([call(x="right"), call(x="hunter2"), '{"name": "t", "arguments": {"x": "hunter2"']):
        result = pipe.run(Request(str(number), text))
        assert "hunter2" not in result.observation.text
    kept = b"".join(audit.artefacts.values()).decode() + json.dumps(audit.lines())
    assert "hunter2" not in kept and "[redacted]" in kept


def test_bare_errors_say_only_that_there_was_one():
    bare = run(pipeline(tool(), wording=Wording(informative_errors=False)), call("nope"))
    assert bare.observation.text == "error: validation_failed" and bare.observation.code == "unknown_tool"


def test_without_a_header_only_the_body_is_shown():
    body = pipeline(tool(lambda o, c: ToolResult("sum", "the body")), wording=Wording(result_header=False))
    assert run(body).observation.text == "the body"


def test_terminal_escapes_in_results_do_not_reach_the_model():
    result = run(pipeline(tool(lambda o, c: ToolResult("a\x1b[31mb", "c\x00d\x1b[2Je\r\nf"))))
    assert result.observation.text == "ok: ab\ncde\nf"
