"""The state inspector and the policy bench: their pure cores, and the shells around them."""

from __future__ import annotations

import itertools

import pytest

from modtools.errors import UsageError
from modtools.pipeline import Level
from modtools.pipeline.states import State
from modtools.teaching.explorer import explorer
from modtools.teaching.matrix_figure import matrix_figure
from modtools.teaching.policy_bench import CALLS, RULES, bench_html, bench_text, judge, policy_bench
from modtools.teaching.state_inspector import (
    CHOICES, every_inspection, inspect, state_inspector, states_html, states_text,
)  # fmt: skip

B7, B8, TEST, EXPORT, PAYMENTS = CALLS
TENANT = next(name for name, rule in RULES.items() if rule.level == Level.TENANT_DENY)
ASK = next(name for name, rule in RULES.items() if rule.level == Level.MANDATORY_ASK)


@pytest.mark.parametrize(
    ("choices", "pattern", "outcome"),
    [
        ({}, "yes yes yes yes yes", "success"),
        ({"audience": "another tenant"}, "yes no yes yes yes", "success"),
        ({"turn": "does not show it"}, "yes yes no ? no", "validation_failed"),
        ({"policy": "denies"}, "yes yes yes no no", "permission_denied"),
        ({"policy": "asks"}, "yes yes yes no no", "approval_required"),
        ({"call": "breaks on the way"}, "yes yes yes yes no", "unknown_outcome"),
        ({"call": "is not made"}, "yes yes yes ? ?", ""),
        ({"revoked": "before the call"}, "no no yes ? no", "unavailable_tool"),
        ({"revoked": "after the call"}, "no no yes yes yes", "success"),
    ],
)
def test_each_choice_shows_in_the_states_that_have_evidence_of_it(choices, pattern, outcome):
    inspection = inspect(**choices)
    assert [{True: "yes", False: "no", None: "?"}[holds] for holds in inspection.pattern] == pattern.split()
    assert inspection.outcome == outcome
    assert bool(outcome) == bool(inspection.told)


def test_only_what_the_catalogue_and_the_pipeline_guarantee_can_be_inferred():
    inspections = list(every_inspection())
    never_apart = {
        (one, other)
        for one, other in itertools.permutations(State, 2)
        if all(i.facts[other].holds for i in inspections if i.facts[one].holds)
    }
    assert never_apart == {
        (State.DISCOVERABLE, State.REGISTERED),
        (State.AUTHORISED, State.MODEL_VISIBLE),
        (State.EXECUTED, State.MODEL_VISIBLE),
        (State.EXECUTED, State.AUTHORISED),
    }


def test_an_unknown_choice_is_refused_with_the_valid_ones():
    for wrong in ({"policy": "permits"}, {"polic": "allows"}):
        with pytest.raises(UsageError, match="policy: allows, denies, asks"):
            inspect(**wrong)


def test_text_and_html_of_the_states_say_the_same():
    inspection = inspect(policy="asks")
    for fact in inspection.facts.values():
        assert fact.why in " ".join(states_text(inspection).split())
        assert fact.why.replace("'", "&#x27;") in states_html(inspection)
    assert "approval_required" in states_text(inspection) and "approval_required" in states_html(inspection)
    assert "No call was made" in states_html(inspect(call="is not made"))


def test_the_inspector_follows_its_choices():
    box = state_inspector()
    assert [child.description for child in box.children[:-1]] == list(CHOICES)
    box.children[list(CHOICES).index("call")].value = "breaks on the way"
    assert "unknown_outcome" in box.children[-1].value


@pytest.mark.parametrize(
    ("off", "call", "approved", "verdict"),
    [
        ((), B8, False, "deny"),
        ((TENANT,), B8, False, "ask"),
        ((TENANT,), B8, True, "allow"),
        ((TENANT,), B7, True, "deny"),
        ((TENANT, ASK), B8, False, "allow"),
        ((), TEST, False, "allow"),
        ((), EXPORT, False, "deny"),
        ((), PAYMENTS, True, "deny"),
        (tuple(RULES), TEST, True, "deny"),
    ],
)
def test_the_bench_decides_under_the_rules_that_are_on(off, call, approved, verdict):
    enabled = [name for name in RULES if name not in off]
    assert judge(enabled, call, approved).decision.verdict == verdict
    assert bench_text(enabled, call, approved).startswith(f"{verdict}: ")
    assert f"{verdict}</b>" in bench_html(enabled, call, approved)


def test_the_bench_names_the_rule_that_decides_and_those_too_low_to_be_heard():
    page = bench_html(RULES, B8)
    assert f"✗ deny: {TENANT} &larr; <b>this one</b>" in page and page.count("this one") == 1
    assert page.count("too low to be heard") == 4 and page.count("silent") == 2
    lifted = bench_html(RULES.keys() - {TENANT}, B8, approved=True)
    assert "lifted by the approval" in lifted
    abstaining = bench_html(["a plugin abstains", "a plugin allows everything"], TEST)
    assert "abstains</td>" in abstaining and "✓ allow: a plugin allows everything &larr;" in abstaining


def test_every_change_that_the_bench_shows_comes_true():
    found = judge(RULES, B8)
    assert f"without the rule {TENANT}: ask" in bench_html(RULES, B8)
    for name in RULES:
        after = judge(RULES.keys() - {name}, B8).decision.verdict
        listed = [change.verdict for change in found.changes if change.what == f"without the rule {name}"]
        assert listed == ([after] if after != found.decision.verdict else [])


def test_the_bench_covers_every_level_and_every_verdict():
    assert {rule.level for rule in RULES.values()} == set(Level)
    assert {rule.verdict for rule in RULES.values()} == {"allow", "deny", "ask", "passthrough"}


def test_what_is_not_on_the_bench_is_refused():
    for rules, call in ((["no such rule"], B7), ([], "no such call")):
        with pytest.raises(UsageError, match="the bench has no no such"):
            judge(rules, call)


def test_ticking_a_rule_off_changes_the_decision():
    box = policy_bench()
    ticks = {child.description: child for child in box.children[2:-1]}
    assert list(ticks) == list(RULES) and all(tick.value for tick in ticks.values())
    call, approved, output = box.children[0], box.children[1], box.children[-1]
    call.value = B8
    assert "✗ deny" in output.value
    ticks[TENANT].value = False
    assert "<b>? ask</b>" in output.value
    approved.value = True
    assert "<b>✓ allow</b>" in output.value


def test_true_or_false_is_a_box_to_tick_with_its_name():
    box = explorer(lambda **values: str(values), with_a_mask=True)
    assert box.children[0].description == "with a mask"
    box.children[0].value = False
    assert box.children[-1].value == "{'with_a_mask': False}"


def test_a_matrix_writes_every_word_and_shades_it():
    cells = {"one": {"a": "all", "b": "-"}, "two": {"a": "-", "b": "7"}}
    figure = matrix_figure(cells, {"all": 0.4}, "words", default=0.1)
    (axes,) = figure.drawing.axes
    assert [text.get_text() for text in axes.texts] == ["all", "-", "-", "7"]
    assert [round(1 - box.get_facecolor()[0], 3) for box in axes.patches] == [0.4, 0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("cells", "shades"), [({}, {}), ({"one": {"a": ""}, "two": {"b": ""}}, {}), ({"one": {"a": ""}}, {"": 0.9})]
)
def test_a_matrix_that_cannot_be_read_is_refused(cells, shades):
    with pytest.raises(UsageError):
        matrix_figure(cells, shades, "words")
