"""Hooks: five shapes whose powers differ, a contract of twelve parts, and how several act together."""

from __future__ import annotations

import contextvars
import threading
import time
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modtools.contract import Effect, Failure, Operation, Outcome, ToolContract, ToolResult
from modtools.errors import UsageError
from modtools.pipeline.hooks.composition import Hooks
from modtools.pipeline.hooks.answer import HookAnswer, Refusal
from modtools.pipeline.hooks.contract import Event, HookContract, HookPoint
from modtools.pipeline.hooks.shapes import SHAPES, shape_of
from modtools.pipeline.policy import ALLOW, ASK, DENY, PASSTHROUGH, Level, Policy, Query, Rule

PRE, POST, FAILURE, ENDED = HookPoint
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "token": {}}}
READS = ToolContract("t", "A tool.", SCHEMA, effect=Effect.READ, approval="none", retries=1, redact=("token",))
WRITES = replace(READS, effect=Effect.WRITE)
PATH = {"path": "a"}
METHOD = {"listener": "notify", "hook": "run", "interceptor": "intercept", "middleware": "wrap", "policy gate": "judge"}
OWN_POINT = {"listener": ENDED}
NEVER = threading.Event()  # nobody sets it: what waits for it hangs


def hook(answer=None, name="h", shape="hook", **parts):
    """A hook of one shape; `answer` is its method, or what that returns."""
    parts = {"point": OWN_POINT.get(shape, PRE), "ceiling": Level.RESOURCE_DENY} | parts
    if shape == "listener":
        parts = {"failure": "open"} | parts
    method = answer if callable(answer) else lambda *given: answer
    return SimpleNamespace(contract=HookContract(name, **parts), **{METHOD[shape]: method})


def event(point=PRE, **parts) -> Event:
    parts = {"contract": READS, "arguments": dict(PATH)} | parts
    return Event(point, "r1", "model", "acme", "t", **parts)


def query(**parts) -> Query:
    operation = Operation("read", PATH, ("workspace:a",), Effect.READ)
    return Query(**({"operation": operation, "tool": "t", "contract": READS} | parts))


def raises(error):
    def method(*given):
        raise error

    return method


def hangs(*given):
    NEVER.wait()


def before(*hooks, **parts):
    return Hooks(hooks, **parts).before(event())


# Contracts and shapes


@pytest.mark.parametrize(
    ("part", "value", "named"),
    [
        ("name", "", "text"),
        ("point", "pre_compact", "tool_failure"),
        ("tools", None, "text"),
        ("input_schema", {"type": "objekt"}, "JSON Schema"),
        ("output_schema", "object", "mapping"),
        ("changes", ("inputs",), "output"),
        ("changes", "input", "tuple"),
        ("may", ("deny",), "block"),
        ("may", ([],), "block"),
        ("ceiling", 9, "7"),
        ("order", 1.5, "whole number"),
        ("conflicts", "", "text"),
        ("timeout_s", 0, "above 0"),
        ("timeout_s", float("inf"), "3600"),
        ("failure", "shut", "closed, open"),
        ("side_effects", "some", "idempotent"),
        ("trace_fields", ("secret",), "arguments"),
        ("reentry", "allow", "refuse, skip"),
    ],
)
def test_a_contract_says_what_would_have_been_valid(part, value, named):
    with pytest.raises(UsageError, match=named):
        HookContract(**({"name": "h", "point": PRE} | {part: value}))


def test_a_contract_that_says_nothing_gives_no_power_and_is_cautious():
    contract = HookContract("h", PRE)
    assert contract.powers == set() and contract.ceiling == Level.DEFAULT
    said = (contract.failure, contract.conflicts, contract.side_effects, contract.reentry)
    assert said == ("closed", "refuse", "external", "refuse")


@pytest.mark.parametrize(
    "part", [{"may": ("block",)}, {"may": ("ask",)}, {"may": ("cancel",)}, {"changes": ("input",)}]
)
def test_a_critical_hook_cannot_be_made_to_fail_open(part):
    with pytest.raises(UsageError, match="closed"):
        HookContract("h", PRE, failure="open", **part)


def test_a_hook_with_powers_cannot_be_gone_round_by_a_call_from_within():
    with pytest.raises(UsageError, match="refuse"):
        HookContract("h", POST, changes=("output",), reentry="skip")


MAY_HAVE = {
    ("listener", ENDED): set(),
    ("hook", PRE): {"input", "block", "ask", "cancel"},
    ("hook", POST): {"output", "retry"},
    ("hook", FAILURE): {"retry"},
    ("interceptor", PRE): {"input", "block"},
    ("middleware", PRE): {"output", "block", "retry"},
    ("policy gate", PRE): {"block", "ask"},
}


@pytest.mark.parametrize("shape", METHOD)
@pytest.mark.parametrize("point", HookPoint)
@pytest.mark.parametrize("power", ["input", "output", "block", "ask", "cancel", "retry"])
def test_a_shape_is_refused_a_power_or_a_point_that_it_does_not_have(shape, point, power):
    where = "changes" if power in ("input", "output") else "may"
    level = Level.MANDATORY_ASK if (shape, power) == ("policy gate", "ask") else Level.RESOURCE_DENY
    critical = power in ("block", "ask", "cancel", "input")
    failure = "closed" if critical or shape != "listener" else "open"
    made = hook(shape=shape, point=point, ceiling=level, tools="t", failure=failure, **{where: (power,)})
    if power in MAY_HAVE.get((shape, point), ()):
        assert shape_of(made) == shape
    else:
        with pytest.raises(UsageError, match="expected|it can have"):
            shape_of(made)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (hook(shape="listener", failure="closed"), "fail closed"),
        (hook(shape="policy gate", failure="open"), "fail|closed"),
        (hook(shape="policy gate", may=("ask",), ceiling=Level.TENANT_DENY), "mandatory ask or lower"),
        (hook(may=("block",), ceiling=Level.SESSION_GRANT), "resource deny or higher"),
        (hook(may=("ask",), ceiling=Level.SESSION_GRANT), "mandatory ask or higher"),
        (hook(shape="interceptor"), "qualified name"),
        (hook(output_schema={}), "output_schema"),
        (hook(shape="middleware", changes=("output",), output_schema={}), "output_schema"),
        (SimpleNamespace(contract=HookContract("h", PRE)), "no hook"),
        (SimpleNamespace(contract=HookContract("h", PRE), run=print, judge=print), "hook and policy gate"),
        (SimpleNamespace(contract="all powers", run=print), "HookContract"),
    ],
)
def test_what_fits_no_shape_is_refused_at_registration(made, why):
    with pytest.raises(UsageError, match=why):
        Hooks([made])


def test_names_are_unique_and_resolvers_known():
    with pytest.raises(UsageError, match="two hooks have the name h"):
        Hooks([hook(), hook(shape="listener")])
    with pytest.raises(UsageError, match="refuse, merge"):
        Hooks([hook(conflicts="newest")], resolvers={"merge": print})


def test_hooks_cannot_be_changed_and_a_contract_counts_as_it_was_registered():
    late = hook(HookAnswer(deny="no"), failure="open", ceiling=Level.DEFAULT)
    hooks = Hooks([late])
    with pytest.raises(FrozenInstanceError):
        hooks.hooks = ()
    late.contract = HookContract("h", PRE, may=("block",), ceiling=Level.IMMUTABLE_DENY)
    assert hooks.before(event()).failure is None


def test_every_hook_gets_a_copy_of_its_own():
    seen = []

    def scribble(told):
        seen.append(dict(told.arguments))
        told.arguments["path"] = "/etc/passwd"
        told.contract.input_schema["properties"].clear()

    original = event()
    Hooks([hook(scribble, "a"), hook(scribble, "b")]).before(original)
    Hooks([hook(scribble, shape="listener")]).ended(replace(original, point=ENDED))
    assert seen == [PATH] * 3 and original.arguments == PATH and original.contract.input_schema["properties"]


# Before


def test_a_hook_has_the_powers_that_its_contract_lists_and_no_others():
    uses = {
        "block": HookAnswer(deny="no"),
        "ask": HookAnswer(ask="sure?"),
        "cancel": HookAnswer(cancel="enough"),
        "input": HookAnswer(arguments={"path": "b"}),
    }
    effect = {
        "block": lambda b: b.failure.code == "hook_denied" and b.denials == ("h: no",),
        "ask": lambda b: b.failure is None and b.asks == (Rule(ASK, "*", level=Level.MANDATORY_ASK, id="hook h"),),
        "cancel": lambda b: b.failure.code == "cancelled" and b.cancelled == ("h: enough",),
        "input": lambda b: b.failure is None and b.arguments == {"path": "b"},
    }
    for power, answer in uses.items():
        for listed in uses:
            where = {"changes": ("input",)} if listed == "input" else {"may": (listed,)}
            found = before(hook(answer, **where))
            if power == listed:
                assert effect[power](found), power
            else:
                assert found.failure.code == "hook_failed" and f"used {power}" in found.failure.what
        ignored = before(hook(answer, failure="open"))
        assert ignored.failure is None and ignored.arguments is None and not ignored.asks + ignored.denials
        assert f"used {power}" in ignored.trace[0].did


def test_an_empty_reason_is_a_reason():
    assert before(hook(HookAnswer(deny=""), may=("block",))).failure.code == "hook_denied"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, None),
        (Refusal("not this"), "hook_denied"),
        ({"path": "b"}, None),
        (HookAnswer(ask="sure?"), "hook_failed"),
        (HookAnswer(context="hello"), "hook_failed"),
    ],
)
def test_an_interceptor_alters_or_refuses_and_can_say_nothing_else(answer, code):
    made = hook(answer, shape="interceptor", tools="t", changes=("input",), may=("block",))
    found = before(made)
    assert (found.failure and found.failure.code) == code
    assert found.arguments == (answer if isinstance(answer, dict) else None) and not found.context
    other = replace(event(), tool="u")
    assert Hooks([made]).before(other).trace == ()


FOUR = [
    hook(HookAnswer(deny="no"), "deny", may=("block",), order=9),
    hook(HookAnswer(ask="sure?"), "ask", may=("ask",), order=1),
    hook(HookAnswer(cancel="enough"), "cancel", may=("cancel",), order=0),
    hook(HookAnswer(arguments={"path": "b"}, context="hello"), "change", changes=("input",), order=2),
]


def test_a_denial_stays_whatever_others_say_and_all_are_heard():
    found = before(*FOUR)
    assert found.failure == Failure("hook_denied", "deny: no") and found.arguments is None
    assert found.cancelled == ("cancel: enough",) and [rule.id for rule in found.asks] == ["hook ask"]
    assert [entry.name for entry in found.trace] == ["cancel", "ask", "change", "deny"]
    assert before(*FOUR[1:]).failure.code == "cancelled"
    assert before(*FOUR[1:], hook(raises(ValueError()), "broken")).failure.code == "hook_failed"


def test_asks_add_up_and_an_approval_of_one_leaves_the_other():
    asks = before(*(hook(HookAnswer(ask="?"), name, may=("ask",)) for name in "ab")).asks
    policy = Policy((Rule(ALLOW, "*"),))
    assert policy.decide(query(), extra=asks, lifted={"hook a"}).rule.id == "hook b"
    assert policy.decide(query(), extra=asks, lifted={"hook a", "hook b"}).verdict == ALLOW


def test_context_adds_up_within_a_budget_and_says_what_was_left_out():
    texts = [
        hook(HookAnswer(context=char * n), char, order=i) for i, (char, n) in enumerate([("a", 6), ("b", 9), ("c", 4)])
    ]
    assert before(*texts, context_chars=10).context == "aaaaaa\ncccc\n(left out, too long: 9 characters of b)"
    assert before(*texts, context_chars=19).context == "aaaaaa\nbbbbbbbbb\ncccc"


def change(path, name, **parts):
    return hook(HookAnswer(arguments={"path": path}), name, changes=("input",), **parts)


def test_changes_that_differ_fail_closed_and_equal_ones_agree():
    found = before(change("b", "x"), change("c", "y"))
    assert found.failure == Failure("hook_failed", "x and y want different changes") and found.arguments is None
    assert before(change("b", "x"), change("b", "y")).arguments == {"path": "b"}
    assert before(change("b", "x"), change("a", "changes nothing")).arguments == {"path": "b"}


def test_a_resolver_gets_all_proposals_if_everybody_names_it():
    def longest(told, proposals):
        assert told.arguments == PATH
        return max(proposals.values(), key=lambda made: len(made["path"]))

    resolvers = {"longest": longest, "hangs": hangs, "rubbish": lambda *given: "b"}
    x, y = change("bbb", "x", conflicts="longest"), change("cc", "y", conflicts="longest")
    assert before(x, y, resolvers=resolvers).arguments == {"path": "bbb"}
    assert before(x, change("c", "z"), resolvers=resolvers).failure.code == "hook_failed"
    two_ways = before(x, change("c", "z", conflicts="hangs"), resolvers=resolvers)
    assert two_ways.failure == Failure("hook_failed", "x and z want different changes")
    for name in ("hangs", "rubbish"):
        pair = [change(path, path, conflicts=name, timeout_s=0.05) for path in ("b", "c")]
        found = before(*pair, resolvers=resolvers)
        assert found.failure.code == "hook_failed" and found.arguments is None


@pytest.mark.parametrize(
    "answer",
    [
        raises(ValueError("secret text")), raises(SystemExit(0)), raises(KeyboardInterrupt()), hangs, "yes", 1, True,
        HookAnswer(deny=1), HookAnswer(context=b""), HookAnswer(arguments=[1]), HookAnswer(arguments={"x": float("nan")}),
        HookAnswer(arguments={1: 2}), HookAnswer(arguments={"x": object()}), HookAnswer(result=ToolResult("r")),
    ],
)  # fmt: skip
def test_what_breaks_hangs_or_returns_rubbish_fails_as_its_contract_says(answer):
    closed = hook(answer, changes=("input",), may=("block",), timeout_s=0.05)
    found = before(closed)
    assert found.failure.code == "hook_failed" and found.arguments is None
    assert "secret text" not in f"{found}"
    assert before(hook(answer, failure="open", timeout_s=0.05)).failure is None


def test_schemas_of_input_and_output_are_kept():
    path = {"type": "object", "properties": {"path": {"maxLength": 1}}}
    keeps = change("b", "h", input_schema=path, output_schema=path)
    assert before(keeps).arguments == {"path": "b"}
    assert "input schema" in Hooks([keeps]).before(event(arguments={"path": "long"})).failure.what
    assert "output schema" in before(change("long", "h", output_schema=path)).failure.what


def test_the_context_of_the_caller_reaches_a_hook_and_not_back():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("outer")
    seen = []
    before(hook(lambda told: seen.append(variable.get()) or variable.set("inner") and None))
    assert seen == ["outer"] and variable.get() == "outer"


def test_a_trace_entry_shows_the_named_fields_and_never_a_redacted_value():
    secret = {"path": "a", "token": ["s3cret", True]}
    everything = tuple(Event.__dataclass_fields__)
    told = event(arguments=secret, operation=Operation("read", secret, ("vault:s3cret",), Effect.READ))
    made = hook(HookAnswer(deny="s3cret is wrong", context="s3cret"), may=("block",), trace_fields=everything)
    found = Hooks([made]).before(told)
    fields = found.trace[0].fields
    assert fields["arguments"] == '{"path":"a","token":"[redacted]"}' and fields["contract"] == "t 1.0.0"
    assert "s3cret" not in f"{found}" and "result" not in fields
    assert [*before(hook()).trace[0].fields] == ["request", "tool"]
    assert found.trace[0].shape == "hook" and found.trace[0].did.startswith("block: ")


answers = st.builds(
    HookAnswer,
    deny=st.sampled_from([None, None, "no"]),
    ask=st.sampled_from([None, "sure?"]),
    cancel=st.sampled_from([None, None, "enough"]),
    arguments=st.sampled_from([None, None, {"path": "b"}, {"path": "c"}]),
    context=st.sampled_from(["", "xxx", "yyyyy"]),
)
several = st.lists(st.tuples(answers, st.integers(0, 2), st.booleans()), min_size=2, max_size=4)


@settings(max_examples=40, deadline=None)
@given(several, st.randoms(use_true_random=False))
def test_the_order_of_registration_never_matters(drawn, random):
    made = [
        hook(
            answer, f"h{i}", order=order, **({"changes": ("input",), "may": ("block", "ask", "cancel")} if full else {})
        )
        for i, (answer, order, full) in enumerate(drawn)
    ]
    shuffled = random.sample(made, len(made))
    one, other = (before(*order, context_chars=8) for order in (made, shuffled))
    timeless = [replace(b, trace=tuple(replace(t, duration_s=0) for t in b.trace)) for b in (one, other)]
    assert timeless[0] == timeless[1]
    denied = [answer for answer, _, full in drawn if full and answer.deny]
    assert len(one.denials) == len(denied) and (not denied or one.failure.code == "hook_denied")


# Policy gates


def gate(answer, name="g", ceiling=Level.SESSION_GRANT, may=("block", "ask"), **parts):
    return hook(answer, name, "policy gate", ceiling=ceiling, may=may, **parts)


@pytest.mark.parametrize("verdict", [ALLOW, DENY, ASK, PASSTHROUGH])
def test_a_gate_speaks_at_its_ceiling_about_this_operation_alone(verdict):
    rules, trace, failure = Hooks([gate((verdict, "because"))]).gate_rules(query())
    (rule,) = rules
    assert (rule.verdict, rule.level, rule.id, failure) == (verdict, Level.SESSION_GRANT, "gate g", None)
    assert trace[0].did == f"{verdict}: because" and rule.matches(query())
    other = Operation("read", PATH, ("workspace:b",), Effect.READ)
    for different in ({"operation": other}, {"actor": "x"}, {"tenant": "x"}, {"workspace": "x"}, {"tool": "x"}):
        assert not rule.matches(query(**different))


def test_a_pattern_in_a_resource_is_no_pattern_in_the_gates_rule():
    starred = query(operation=Operation("read", PATH, ("workspace:[a]*",), Effect.READ))
    (rule,) = Hooks([gate(ALLOW)]).gate_rules(starred).rules
    assert rule.matches(starred) and not rule.matches(query())


def test_a_gate_never_lifts_what_stands_above_it():
    rules = Hooks([gate(ALLOW)]).gate_rules(query()).rules
    assert Policy(()).decide(query(), extra=rules).verdict == ALLOW
    for above in (Rule(DENY, "*"), Rule(ASK, "*"), Rule(DENY, "*", level=Level.TENANT_DENY)):
        assert Policy((above,)).decide(query(), extra=rules).verdict == above.verdict


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (raises(ValueError("secret text")), {}),
        (hangs, {"timeout_s": 0.05}),
        ("perhaps", {}),
        (None, {}),
        ((ALLOW, 1), {}),
        ([ALLOW], {}),
        (ASK, {"may": ("block",)}),
        (ALLOW, {"ceiling": Level.RESOURCE_DENY, "may": ("block",)}),
        (ALLOW, {"input_schema": {"required": ["absent"]}}),
    ],
)
def test_a_gate_that_fails_or_oversteps_ends_the_call_whatever_its_level(answer, parts):
    rules, trace, failure = Hooks([gate(answer, **parts)]).gate_rules(query())
    assert rules == () and failure.code == "hook_failed" and "secret text" not in trace[0].did + failure.what


# Middleware


def layer(wrap, name="m", **parts):
    return hook(wrap, name, "middleware", **({"side_effects": "none"} | parts))


def around(*layers, contract=READS, proceed=None, **parts):
    """The Around, and how often the tool ran."""
    ran = []

    def execute():
        ran.append(1)
        return ToolResult(f"run {len(ran)}", data={"n": len(ran)})

    return Hooks(layers).around(event(contract=contract), proceed or execute, **parts), len(ran)


def test_middleware_is_nested_by_order_and_hands_the_result_through():
    calls = []

    def wrap(name):
        def method(told, proceed):
            calls.append(f"{name} in")
            result = proceed()
            calls.append(f"{name} out")
            return result

        return method

    found, ran = around(layer(wrap("inner"), "a", order=2), layer(wrap("outer"), "b", order=1))
    assert calls == ["outer in", "inner in", "inner out", "outer out"]
    assert ran == found.tries == 1 and found.value.summary == "run 1" and found.failure is None
    assert around()[0].value.summary == "run 1"


def twice(told, proceed):
    proceed()
    return proceed()


def replaced(told, proceed):
    return replace(proceed(), summary="better")


def scribbles(told, proceed):
    result = proceed()
    result.data["n"] = "forged"
    return result


def after_proceed(then):
    def wrap(told, proceed):
        proceed()
        return then() if callable(then) else then

    return wrap


@pytest.mark.parametrize(
    ("wrap", "parts", "summary", "failure", "ran"),
    [
        # power or no power: a second try
        (twice, {"may": ("retry",)}, "run 2", None, 2),
        (twice, {}, "run 1", None, 1),
        # another result
        (replaced, {"changes": ("output",)}, "better", None, 1),
        (replaced, {}, "run 1", None, 1),
        (after_proceed("a text"), {"changes": ("output",)}, "run 1", None, 1),
        (after_proceed(None), {}, "run 1", None, 1),
        (scribbles, {}, "run 1", None, 1),
        # not calling proceed
        (lambda told, proceed: Refusal("closed today"), {"may": ("block",)}, None, "hook_denied", 0),
        (lambda told, proceed: ToolResult("forged"), {"may": ("block",)}, None, "hook_denied", 0),
        (lambda told, proceed: ToolResult("forged"), {}, None, "hook_failed", 0),
        (lambda told, proceed: ToolResult("forged"), {"changes": ("output",)}, None, "hook_failed", 0),
        # breaking before and after
        (raises(ValueError()), {}, None, "hook_failed", 0),
        (raises(SystemExit()), {"may": ("block",)}, None, "hook_failed", 0),
        (hangs, {"timeout_s": 0.05}, None, "hook_failed", 0),
        (raises(ValueError()), {"failure": "open"}, "run 1", None, 1),
        (hangs, {"failure": "open", "timeout_s": 0.05}, "run 1", None, 1),
        (after_proceed(raises(ValueError())), {"may": ("block",)}, "run 1", None, 1),
        (after_proceed(hangs), {"timeout_s": 0.05}, "run 1", None, 1),
        # what it expects
        (replaced, {"input_schema": {"required": ["absent"]}}, None, "hook_failed", 0),
    ],
)  # fmt: skip
def test_middleware_power_by_power(wrap, parts, summary, failure, ran):
    found, times = around(layer(wrap, **parts))
    assert (found.value and found.value.summary) == summary and times == ran == found.tries
    assert (found.failure and found.failure.code) == failure and len(found.trace) == 1
    assert found.value is None or found.value.data == {"n": times}


def test_a_breach_after_the_effect_is_traced():
    assert "used output" in around(layer(replaced))[0].trace[0].did
    assert "ValueError" in around(layer(after_proceed(raises(ValueError()))))[0].trace[0].did
    assert "does not list retry" in around(layer(twice))[0].trace[0].did


def thrice(told, proceed):
    proceed(), proceed()
    return proceed()


def test_tries_are_limited_by_the_contract_of_the_tool_for_all_layers_together():
    retrying = {"may": ("retry",)}
    assert around(layer(thrice, **retrying))[1] == 2
    assert around(layer(twice, "a", **retrying), layer(twice, "b", **retrying))[1] == 2
    assert around(layer(twice, **retrying), contract=replace(READS, retries=0))[1] == 1
    assert around(layer(twice, **retrying), tries=1)[1] == 1


def test_only_what_may_be_done_twice_is_tried_again():
    retrying = layer(twice, "a", may=("retry",))
    assert around(retrying, contract=WRITES)[1] == 1
    assert around(retrying, contract=replace(WRITES, idempotent=True))[1] == 2
    assert around(retrying, contract=WRITES, untouched=lambda result: result.summary == "run 1")[1] == 2
    inner = lambda told, proceed: proceed()  # noqa: E731
    assert around(retrying, layer(inner, "b", side_effects="idempotent"))[1] == 2
    found, ran = around(retrying, layer(inner, "b", side_effects="external"))
    assert ran == 1 and "b would have external effects again" in found.trace[-1].did


def test_a_refusal_from_within_stays_whatever_the_outer_layer_makes_of_it():
    def swallows(told, proceed):
        for _ in range(2):
            try:
                proceed()
            except Exception:
                continue
        return ToolResult("forged")

    asked = []
    refuses = layer(lambda told, proceed: asked.append(1) or Refusal("closed"), "b", may=("block",))
    found, ran = around(layer(swallows, "a", changes=("output",), may=("block",)), refuses)
    assert found.failure == Failure("hook_denied", "b: closed") and (ran, len(asked)) == (0, 1)


def test_a_layer_left_behind_cannot_execute_anything_later():
    go_on, ended = threading.Event(), threading.Event()

    def late(told, proceed):
        go_on.wait()
        try:
            proceed()
        finally:
            ended.set()

    found, _ = around(layer(late, timeout_s=0.05), proceed=lambda: pytest.fail("it was executed"))
    go_on.set()
    assert ended.wait(10) and found.failure.code == "hook_failed"


def test_the_time_of_the_tool_is_not_the_time_of_its_middleware():
    def slow():
        time.sleep(0.6)
        return ToolResult("slow")

    found, _ = around(layer(lambda told, proceed: proceed(), timeout_s=0.4), proceed=slow)
    assert found.value.summary == "slow" and "proceed" == found.trace[0].did


def test_the_tool_runs_in_the_callers_thread_and_an_interrupt_reaches_the_caller():
    threads = []
    around(layer(lambda told, proceed: proceed()), proceed=lambda: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()]
    with pytest.raises(KeyboardInterrupt):
        around(layer(lambda told, proceed: proceed()), proceed=raises(KeyboardInterrupt()))


# After, and the end

RESULT = ToolResult("found", "password: 1234", {"n": 1}, operation_id="op")
POSTED = event(POST, result=RESULT)


def redactor(name="h", body="password: *", **parts):
    return hook(lambda told: HookAnswer(result=replace(told.result, body=body)), name, point=POST, **parts)


def test_a_hook_changes_the_result_only_if_its_contract_says_so():
    changes = {"changes": ("output",)}
    assert Hooks([redactor(**changes)]).after(POSTED).result == replace(RESULT, body="password: *")
    assert Hooks([redactor("a", **changes), redactor("b", **changes)]).after(POSTED).result.body == "password: *"
    assert Hooks([redactor(failure="open")]).after(POSTED).result == RESULT
    assert Hooks([redactor()]).after(POSTED).withheld
    assert Hooks([]).after(POSTED).result == RESULT and RESULT.body == "password: 1234"


@pytest.mark.parametrize(
    "broken",
    [
        [hook(raises(ValueError("1234")), point=POST)],
        [hook(hangs, point=POST, timeout_s=0.05)],
        [hook("rubbish", point=POST)],
        [redactor("a", "x", changes=("output",)), redactor("b", "y", changes=("output",))],
        [hook(HookAnswer(result=replace(RESULT, outcome=Outcome.PARTIAL)), point=POST, changes=("output",))],
        [hook(HookAnswer(result=replace(RESULT, operation_id="other")), point=POST, changes=("output",))],
        [redactor("a", changes=("output",)), hook(raises(ValueError()), "b", point=POST)],
    ],
)
def test_a_broken_redactor_does_not_leak(broken):
    after = Hooks(broken).after(POSTED)
    assert after.withheld and after.result.summary.startswith("the result is withheld: ")
    assert "1234" not in f"{after}" and "found" not in after.result.summary and not after.result.data
    assert (after.result.outcome, after.result.operation_id) == (RESULT.outcome, RESULT.operation_id)


def test_a_changed_result_keeps_the_schema_of_the_tool():
    strict = replace(READS, output_schema={"type": "object", "required": ["n"]})
    bare = hook(lambda told: HookAnswer(result=replace(told.result, data={})), point=POST, changes=("output",))
    assert Hooks([bare]).after(replace(POSTED, contract=strict)).withheld
    assert Hooks([bare]).after(POSTED).result.data == {}


def test_results_that_differ_go_to_the_resolver():
    parts = {"changes": ("output",), "conflicts": "shortest"}
    shortest = lambda told, proposals: min(proposals.values(), key=lambda made: len(made.body))  # noqa: E731
    hooks = Hooks([redactor("a", "xxx", **parts), redactor("b", "y", **parts)], {"shortest": shortest})
    assert hooks.after(POSTED).result.body == "y"


FAILED = event(FAILURE, failure=Failure("rate_limited", "too many calls"))


@pytest.mark.parametrize(
    ("contract", "tries", "others", "granted"),
    [
        (READS, 1, [], True),
        (READS, 2, [], False),
        (replace(READS, retries=0), 1, [], False),
        (WRITES, 1, [], False),
        (replace(WRITES, idempotent=True), 1, [], True),
        (READS, 1, [hook(raises(ValueError()), "x", point=FAILURE, side_effects="none")], False),
        (READS, 1, [hook(raises(ValueError()), "x", point=FAILURE, side_effects="none", failure="open")], True),
        (READS, 1, [hook(None, "x", point=FAILURE, side_effects="external")], False),
        (READS, 1, [layer(twice, "x", side_effects="external")], False),
        (READS, 1, [layer(twice, "x", side_effects="idempotent")], True),
    ],
)
def test_a_retry_needs_a_budget_and_a_call_that_may_be_repeated(contract, tries, others, granted):
    wish = hook(HookAnswer(retry="later"), point=FAILURE, may=("retry",), side_effects="none")
    after = Hooks([wish, *others]).after(replace(FAILED, contract=contract), tries)
    did = next(entry.did for entry in after.trace if entry.name == "h")
    assert after.retry is granted and did.startswith("retry: later (granted" if granted else "retry: later (not")
    assert not Hooks(others).after(replace(FAILED, contract=contract), tries).retry


@pytest.mark.parametrize("method", [print, raises(SystemExit(1)), hangs, lambda told: Refusal("no")])
def test_whatever_a_listener_does_changes_nothing(method):
    told = []
    last = hook(lambda told_event: told.append(told_event.outcome), "z", "listener")
    done = event(ENDED, outcome=Outcome.SUCCESS, result=RESULT)
    trace = Hooks([hook(method, shape="listener", timeout_s=0.05), last]).ended(done)
    assert [entry.name for entry in trace] == ["h", "z"] and told == [Outcome.SUCCESS]
    assert all(isinstance(entry.did, str) for entry in trace)


def test_each_method_takes_events_of_its_own_point():
    hooks = Hooks([])
    for method, wrong in [(hooks.before, POST), (hooks.after, PRE), (hooks.ended, FAILURE)]:
        with pytest.raises(UsageError, match="expected"):
            method(event(wrong))


# Re-entrancy. The pipeline, as far as it matters here: ask whether a hook would be entered again, then the hooks.


def nested_call(hooks: Hooks, tool="t") -> str:
    for point in HookPoint:
        if hooks.reentrant(point, tool):
            return "reentrant_call"
    found = hooks.before(replace(event(), tool=tool))
    return found.failure.code if found.failure else "ran"


def calling(tool="t", direct=False):
    """A method that makes a nested call and swallows what comes of it; and what came of it."""
    seen, hooks = [], []

    def method(*given):
        seen.append(hooks[0].before(event()).failure.code if direct else nested_call(hooks[0], tool))

    return method, seen, hooks


@pytest.mark.parametrize("direct", [False, True])
def test_a_hook_that_calls_the_tool_it_guards_is_stopped_and_has_failed(direct):
    method, seen, hooks = calling(direct=direct)
    hooks.append(Hooks([hook(method, tools="t")]))
    found = hooks[0].before(event())
    assert seen == ["reentrant_call"] and found.failure.code == "reentrant_call"
    assert hooks[0].reentrant(PRE, "t") == ""
    assert nested_call(hooks[0]) == "reentrant_call", "and again, afresh"


def test_a_hook_that_raises_fails_closed():
    assert before(hook(raises(OSError()), may=("block",))).failure.code == "hook_failed"


def test_a_hook_may_call_another_tool_than_the_one_it_guards():
    method, seen, hooks = calling("other")
    hooks.append(Hooks([hook(method, tools="t")]))
    assert hooks[0].before(event()).failure is None and seen == ["ran"]


def test_a_call_of_another_tool_that_leads_back_is_stopped_too():
    method, seen, hooks = calling("other")
    back, seen_back, hooks_back = calling("t")
    hooks.append(Hooks([hook(method, "a", tools="t"), hook(back, "b", tools="other")]))
    hooks_back.append(hooks[0])
    assert hooks[0].before(event()).failure.code == "reentrant_call"
    assert seen_back == ["reentrant_call"]


def test_a_hook_without_powers_can_let_its_own_calls_pass_by():
    method, seen, hooks = calling()
    hooks.append(Hooks([hook(method, reentry="skip")]))
    assert hooks[0].before(event()).failure is None and seen == ["ran"]


def test_a_gate_and_a_middleware_that_call_their_own_tool_are_stopped():
    method, seen, hooks = calling()
    hooks.append(Hooks([gate(method)]))
    rules, _, failure = hooks[0].gate_rules(query())
    assert failure.code == "reentrant_call" and rules == ()

    def wrap(told, proceed):
        method()
        return proceed()

    hooks[:] = [Hooks([layer(wrap)])]
    found = hooks[0].around(event(), lambda: pytest.fail("it was executed"))
    assert found.failure.code == "reentrant_call" and seen == ["reentrant_call"] * 2


def test_the_tool_inside_a_middleware_may_make_calls_of_its_own():
    hooks = Hooks([layer(lambda told, proceed: proceed())])
    found = hooks.around(event(), lambda: nested_call(hooks))
    assert found.value == "ran" and found.failure is None


def test_a_post_hook_and_a_listener_that_call_their_own_tool_are_stopped():
    method, seen, hooks = calling()
    hooks.append(Hooks([hook(method, "p", point=POST), hook(method, "l", "listener")]))
    assert hooks[0].after(POSTED).withheld
    (entry,) = hooks[0].ended(event(ENDED))
    assert seen == ["reentrant_call"] * 2 and "called what it stands before" in entry.did


def test_a_listener_that_ends_requests_of_its_own_is_not_told_of_them():
    inner, hooks = [], []
    hooks.append(Hooks([hook(lambda told: inner.extend(hooks[0].ended(told)), "l", "listener")]))
    hooks[0].ended(event(ENDED))
    assert [entry.did for entry in inner] == ["would be entered again by a call of its own"]


def test_every_shape_has_a_row_in_the_table():
    assert {shape: {*points} for shape, (_, points) in SHAPES.items()} == {
        shape: {point for other, point in MAY_HAVE if other == shape} for shape in METHOD
    }


def test_a_trace_names_the_text_that_a_hook_added_for_the_model():
    asked = Hooks((hook(HookAnswer(context="be brief"), "a"), hook(None, "b"))).before(event())
    assert [trace.did for trace in asked.trace] == ["8 characters of context", "nothing"]
