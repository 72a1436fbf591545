"""Broken tools, schemas, policies and callers: still one terminal result, and nothing done that was not decided."""

from __future__ import annotations

import json
import re

import pytest

from modtools.catalogue import Snapshot
from modtools.contract import Effect, Operation, Outcome, Tool, ToolContract, ToolFailure, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Rule
from modtools.pipeline.redact import scrub
from modtools.pipeline.validate import check_result

OPEN = Policy((Rule("allow", "*"),))
CALL = '{"name": "t", "arguments": {"x": 1}}'


def operation(arguments=None, resources=("workspace:x",), effect=Effect.WRITE) -> Operation:
    return Operation("act", arguments or {}, resources, effect)


def make(canonicalise=lambda a, c: operation(a), handler=lambda o, c: ToolResult("done"), policy=OPEN, **fields):
    schema = fields.pop("input_schema", {"type": "object", "properties": {"x": {}}})
    contract = ToolContract("t", "", schema, effect=Effect.WRITE, approval="none", **fields)
    return Pipeline(Snapshot.of((Tool(contract, canonicalise, handler),)), policy, AuditLog())


def one_end(pipeline: Pipeline, text: str = CALL, **named):
    """Run one request and see that its audit has exactly one end, the one that was returned."""
    result = pipeline.run(Request("r", text), **named)
    ends = [line["outcome"] for line in pipeline.audit.lines() if line["event"] == "terminal"]
    assert ends == [result.outcome] and result.outcome in list(Outcome)
    return result


def throw(error):
    raise error


@pytest.mark.parametrize(
    "canonicalise",
    [
        lambda a, c: throw(SystemExit(1)),
        lambda a, c: throw(ValueError("x")),
        lambda a, c: None,
        lambda a, c: Operation("act", a, None, Effect.READ),
        lambda a, c: Operation(None, a, (), Effect.READ),
        lambda a, c: Operation("act", a, (), "fly"),
        lambda a, c: Operation("act", {"x": object()}, (), Effect.READ),
        lambda a, c: throw(ToolFailure("no_such_code", "x")),
    ],
)
def test_a_broken_canonicaliser_ends_the_call_before_anything_is_done(canonicalise):
    done = []
    result = one_end(make(canonicalise, lambda o, c: done.append(1)))
    assert result.outcome == Outcome.UNAVAILABLE_TOOL and done == []


@pytest.mark.parametrize(
    "handler",
    [
        lambda o, c: ToolResult("s", None),
        lambda o, c: ToolResult(None),
        lambda o, c: ToolResult("s", data=[1]),
        lambda o, c: ToolResult("s", outcome="nope"),
        lambda o, c: ToolResult("s", outcome=Outcome.PERMISSION_DENIED),
        lambda o, c: ToolResult("s", code="no_such_code"),
        lambda o, c: throw(KeyboardInterrupt()),
    ],
)
def test_a_broken_result_leaves_the_outcome_of_a_writing_tool_open(handler):
    assert one_end(make(handler=handler)).outcome == Outcome.UNKNOWN_OUTCOME


def test_an_outcome_that_is_open_never_invites_a_retry():
    observation = one_end(make(handler=lambda o, c: 1 / 0)).observation
    assert "look before you try again" in observation.text and not observation.retryable


def test_a_tools_own_error_code_keeps_its_message():
    result = one_end(make(handler=lambda o, c: throw(ToolFailure("mailbox_full", "the mailbox is full"))))
    assert result.observation.code == "tool_error" and "the mailbox is full" in result.observation.text


def test_a_policy_that_breaks_denies():
    class Broken:
        version, digest = 1, "0"

        def decide(self, operation, contract):
            raise RuntimeError

    done = []
    result = one_end(make(handler=lambda o, c: done.append(1), policy=Broken()))
    assert result.outcome != Outcome.SUCCESS and done == []


@pytest.mark.parametrize("verdict", ["ALLOW", "maybe", ""])
def test_a_rule_without_a_proper_verdict_is_refused(verdict):
    with pytest.raises(UsageError, match="verdict"):
        Rule(verdict, "*")


def test_an_operation_without_resources_needs_a_rule_that_asks_for_none():
    bare = lambda a, c: operation(a, resources=())  # noqa: E731
    assert one_end(make(bare, policy=Policy((Rule("allow", "*", "workspace:*"),)))).outcome == "permission_denied"
    assert one_end(make(bare, policy=OPEN)).outcome == "success"
    assert (
        one_end(make(bare, policy=Policy((*OPEN.rules, Rule("deny", "*", "secret:*"))))).outcome == "permission_denied"
    )


def test_a_caller_that_cannot_say_whether_it_cancels_counts_as_cancelling():
    assert one_end(make(), cancelled=lambda: 1 / 0).outcome == Outcome.CANCELLED


def test_an_interrupt_ends_the_request_and_goes_on():
    pipeline = make(lambda a, c: throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(Request("r", CALL))
    assert [line["outcome"] for line in pipeline.audit.lines() if line["event"] == "terminal"] == ["cancelled"]


def test_what_a_handler_does_to_its_arguments_changes_neither_audit_nor_result():
    pipeline = make(
        lambda a, c: (a.update(y=2), operation({"x": a["x"]}))[1], lambda o, c: (o.arguments.clear(), ToolResult(""))[1]
    )
    result = one_end(pipeline)
    _, executing, terminal = pipeline.audit.lines()
    assert executing["operation"] == terminal["operation"] == operation({"x": 1}).digest
    assert result.call.arguments == {"x": 1}


@pytest.mark.parametrize(
    "schema", [{"type": "strange"}, {"required": "x"}, {"properties": []}, {"enum": 3}, {"pattern": "\\p{L}"}]
)
def test_a_schema_that_is_none_is_refused_when_the_catalogue_is_made(schema):
    with pytest.raises(UsageError, match="tool t: input_schema is no JSON Schema"):
        make(input_schema={"type": "object", "properties": {"x": {}}} | ({"properties": {"x": schema}}))


@pytest.mark.parametrize(
    "reference", ["#/nowhere", "http://127.0.0.1:9/x", "file:///etc/hostname", "other.json", "#there"]
)
@pytest.mark.parametrize("where", ["input_schema", "output_schema"])
def test_a_reference_out_of_the_schema_is_refused_and_never_followed(reference, where):
    schema = {"type": "object", "properties": {"x": {"anyOf": [{"$ref": reference}, {"type": "null"}]}}}
    with pytest.raises(UsageError, match="leads nowhere in it"):
        make(**{where: schema})
    with pytest.raises(Exception, match=re.escape(reference)):  # nor where a schema comes in by another way
        check_result(schema, {"x": "text"})


def test_a_reference_within_the_schema_and_a_value_that_looks_like_one_are_fine():
    properties = {"x": {"$ref": "#/$defs/word"}, "$ref": {"const": {"$ref": "http://127.0.0.1:9/x"}}}
    schema = {"type": "object", "$defs": {"word": {"type": "string"}}, "properties": properties}
    assert one_end(make(input_schema=schema), '{"name": "t", "arguments": {"x": "text"}}').outcome == Outcome.SUCCESS


def test_a_request_that_is_no_text_is_a_usage_error():
    with pytest.raises(UsageError, match="type str"):
        Request("r", None)


def test_terminal_escapes_in_a_reply_do_not_come_back():
    for text in ('{"name": "\\u001b[31mx\\u0007", "arguments": {}}', "<function=\x1b[2Jx>"):
        observation = one_end(make(), text).observation.text
        assert "\x1b" not in observation and "\x07" not in observation


SECRETS = {
    "plain": ({"token": {"type": "string"}}, {"token": "hunter2"}),
    "nested": ({"o": {"type": "object", "properties": {"token": {"maxLength": 2}}}}, {"o": {"token": "hunter2"}}),
    "refused by the root": ({"token": {}, "maxProperties": {}}, {"token": "hunter2", "a": 1, "b": 2}),
    "wrong type": ({"token": {"type": "integer"}}, {"token": 'hunter2 "quoted"\n'}),
}


@pytest.mark.parametrize("case", SECRETS)
@pytest.mark.parametrize("echo", ["body", "summary", "failure"])
def test_a_redacted_value_never_leaves_the_pipeline(case, echo):
    properties, arguments = SECRETS[case]
    answers = {
        "body": lambda o, c: ToolResult("", f"you sent {json.dumps(o.arguments)}" * 200),
        "summary": lambda o, c: ToolResult(f"you sent {o.arguments}"),
        "failure": lambda o, c: throw(ToolFailure("tool_error", f"cannot use {o.arguments}")),
    }
    schema = {"type": "object", "properties": properties, "not": {"required": ["a"]}}
    pipeline = make(handler=answers[echo], input_schema=schema, redact=("token",))
    result = one_end(pipeline, json.dumps({"name": "t", "arguments": arguments}))
    kept = (
        result.observation.text + json.dumps(pipeline.audit.lines()) + str(pipeline.audit.artefacts) + str(result.trace)
    )
    assert "hunter2" not in kept


def test_a_secret_spelled_with_escapes_or_repeated_in_prose_is_not_kept():
    text = 'The token is hunter2.\n{"name": "t", "arguments": {"token": "\\u0068unter2"}}'
    pipeline = make(input_schema={"type": "object", "properties": {"token": {}}}, redact=("token",))
    one_end(pipeline, text)
    kept = str(pipeline.audit.artefacts)
    assert "hunter2" not in kept and "u0068unter2" not in kept and "[redacted]" in kept


@pytest.mark.parametrize(
    "text",
    ['t(token="hunter2")', '{"name": "t", "arguments": {"token": "hunter2"', '{"name": "t", "token": "hunter2"}'],
)
def test_of_a_reply_that_cannot_be_parsed_nothing_is_quoted_where_something_is_secret(text):
    pipeline = make(redact=("token",))
    result = one_end(pipeline, text)
    assert "hunter2" not in result.observation.text + str(pipeline.audit.artefacts) + json.dumps(pipeline.audit.lines())


LONG = "SECRET-" + "0123456789" * 12


@pytest.mark.parametrize("schema", [{"maxLength": 20}, {"enum": ["a"]}, {"pattern": "^x$"}, {"type": "integer"},
                                    {"anyOf": [{"const": 1}, {"maxLength": 3}]}, {"format": "date"}])  # fmt: skip
def test_a_failure_that_quotes_the_beginning_of_a_secret_quotes_none_of_it(schema):
    pipeline = make(input_schema={"type": "object", "properties": {"token": schema}}, redact=("token",))
    result = one_end(pipeline, json.dumps({"name": "t", "arguments": {"token": LONG}}))
    assert result.outcome != "success"
    assert "SECR" not in result.observation.text + json.dumps(pipeline.audit.lines()) + str(result.trace)


@pytest.mark.parametrize("before", range(1950, 2010, 7))
def test_a_secret_at_the_place_where_a_text_is_cut_is_not_told(before):
    handler = lambda o, c: throw(ToolFailure("unavailable", "y" * before + o.arguments["token"]))  # noqa: E731
    pipeline = make(handler=handler, input_schema={"type": "object", "properties": {"token": {}}}, redact=("token",))
    assert "SECR" not in one_end(pipeline, json.dumps({"name": "t", "arguments": {"token": LONG}})).observation.text


def test_the_canonical_form_of_a_secret_is_secret_too():
    pipeline = make(
        lambda a, c: operation({"to": a["to"].lower()}),
        lambda o, c: ToolResult(f"sent to {o.arguments['to']}"),
        input_schema={"type": "object", "properties": {"to": {}}},
        redact=("to",),
    )
    result = one_end(pipeline, '{"name": "t", "arguments": {"to": "Ann@EXAMPLE.org"}}')
    assert result.observation.text == "ok: sent to [redacted]" and result.observation.redacted


def test_what_only_begins_like_a_secret_is_left_alone():
    assert scrub('the "them" of theory', ("theorem",)) == 'the "them" of theory'
    assert (
        scrub('a "theo..." and "theo" and theorem', ("theorem",)) == 'a "[redacted]..." and "[redacted]" and [redacted]'
    )


PEM = "-----BEGIN KEY-----\r\nhunter2hunter2\r\n-----END KEY-----"
CUT = "hunter2" * 20


@pytest.mark.parametrize("secret", [PEM, CUT, "two words\nand more of them"])
def test_a_secret_that_was_cut_or_put_on_one_line_is_still_one(secret):
    def said(text):
        def handler(operation, context):
            raise ToolFailure("precondition_failed", text)

        return handler

    def result(text):
        return lambda operation, context: ToolResult(text, text, operation_id=text, next_page=text)

    schema = {"type": "object", "properties": {"token": {}}}
    call = json.dumps({"name": "t", "arguments": {"token": secret}})
    spellings = (secret, secret.replace("\r", ""), " ".join(secret.split()), json.dumps(secret))
    for handler in [way(text) for way in (said, result) for text in spellings]:
        pipeline = make(handler=handler, input_schema=schema, redact=("token",))
        ended = one_end(pipeline, call)
        told = ended.observation.text + ended.observation.operation_id + str(ended.trace) + str(ended.failure)
        kept = told + str(pipeline.audit.lines()) + str(pipeline.audit.artefacts)
        assert "hunter2" not in kept and "and more" not in kept and "[redacted]" in told
    named = json.dumps({"name": "x" * 150 + secret, "arguments": {"token": secret}})
    pipeline = make(input_schema=schema, redact=("token",))
    ended = one_end(pipeline, named)
    assert "hunter2" not in ended.observation.text + str(pipeline.audit.lines()) + str(ended.trace)


def test_names_under_a_redacted_name_are_redacted():
    schema = {"type": "object", "properties": {"headers": {}}}
    pipeline = make(
        handler=lambda o, c: ToolResult(f"sent {list(o.arguments['headers'])}"),
        input_schema=schema,
        redact=("headers",),
    )
    ended = one_end(pipeline, '{"name": "t", "arguments": {"headers": {"tok-4711": true}}}')
    assert "tok-4711" not in ended.observation.text + str(pipeline.audit.artefacts)


def test_a_key_that_stands_twice_in_a_reply_is_not_quoted_where_something_is_secret():
    pipeline = make(redact=("token",))
    ended = one_end(pipeline, '{"name": "t", "arguments": {"hunter2": 1, "hunter2": 2}}')
    assert ended.observation.code == "duplicate_key"
    assert "hunter2" not in ended.observation.text + str(ended.trace) + str(ended.failure) + str(pipeline.audit.lines())


def test_half_a_character_does_not_reach_the_model():
    ended = one_end(make(handler=lambda o, c: ToolResult("a\ud83db", "c\udc00d")))
    assert ended.observation.text == "ok: ab\ncd" and ended.observation.text.encode()
