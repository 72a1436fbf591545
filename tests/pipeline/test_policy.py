"""Authorisation: seven levels, four verdicts, and decisions that hold for one thing only."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modtools.contract import Effect, Operation, ToolContract
from modtools.errors import UsageError
from modtools.pipeline import Level, Policy, Query, Rule, Verdict
from modtools.pipeline.explain import explain, explanation_text

OPERATION = Operation("send", {"to": "a"}, ("mail:a",), Effect.EXTERNAL_SEND)
QUIET = ToolContract("send", "", {"type": "object"}, effect=Effect.EXTERNAL_SEND, approval="none")
QUERY = Query(OPERATION, "mail.send", QUIET, "ann", "acme", "w1", (3, "c"))
MAY_SAY = {
    level: ["deny", "passthrough"] if level <= 3 else ["ask", "deny", "passthrough"] if level == 4 else list(Verdict)
    for level in Level
}


@st.composite
def rules(draw):
    level = draw(st.sampled_from(Level))
    return Rule(
        draw(st.sampled_from(MAY_SAY[level])),
        draw(st.sampled_from(["*", "send", "read"])),
        draw(st.sampled_from(["*", "mail:*", "mail:b"])),
        level,
        actor=draw(st.sampled_from(["*", "ann", "bob"])),
    )


rule_sets = st.lists(rules(), max_size=6).map(tuple)
STRENGTH = {"deny": 0, "ask": 1, "allow": 2}


@settings(max_examples=300)
@given(rule_sets, st.randoms(use_true_random=False))
def test_the_order_of_rules_never_matters(given_rules, random):
    shuffled = list(given_rules)
    random.shuffle(shuffled)
    one, other = Policy(given_rules), Policy(tuple(shuffled))
    assert one.decide(QUERY) == other.decide(QUERY) and one.digest == other.digest


@settings(max_examples=300)
@given(rule_sets, rules())
def test_a_lower_level_never_lifts_a_higher_denial(given_rules, added):
    before = Policy(given_rules).decide(QUERY)
    if before.rule and before.verdict == "deny" and added.level > before.rule.level:
        assert Policy((*given_rules, added)).decide(QUERY).verdict == "deny"


@settings(max_examples=300)
@given(rule_sets)
def test_the_highest_level_that_speaks_decides_and_deny_beats_ask_beats_allow(given_rules):
    """The decision by its definition, level by level, beside the one by sorting."""
    verdict = "deny"
    for level in Level:
        said = {r.verdict for r in given_rules if r.level == level and r.matches(QUERY)} - {"passthrough"}
        if said:
            verdict = min(said, key=STRENGTH.get)
            break
    assert Policy(given_rules).decide(QUERY).verdict == verdict


@settings(max_examples=200)
@given(rule_sets, rule_sets)
def test_an_approval_lifts_the_ask_it_names_and_no_denial(given_rules, added):
    before = Policy(given_rules).decide(QUERY)
    if before.verdict == "ask":
        policy = Policy((*given_rules, *added))
        after = policy.decide(QUERY, lifted={before.rule.name})
        without = Policy(tuple(r for r in policy.rules if r != before.rule)).decide(QUERY)
        # What is left decides, denials anew; only where nobody else speaks is the approval itself the permission.
        assert after.verdict == (without.verdict if without.rule else "allow")


def test_nothing_is_allowed_by_default_and_passthrough_says_nothing():
    assert Policy(()).decide(QUERY).verdict == "deny"
    abstains = Rule("passthrough", "*", level=Level.IMMUTABLE_DENY)
    assert Policy((abstains,)).decide(QUERY).verdict == "deny"
    assert Policy((abstains, Rule("allow", "send"))).decide(QUERY).verdict == "allow"


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("verdict", Verdict)
def test_the_high_levels_can_only_take_away(level, verdict):
    if verdict in MAY_SAY[level]:
        assert Rule(verdict, "*", level=level).level == level
    else:
        with pytest.raises(UsageError, match=level.label):
            Rule(verdict, "*", level=level)


def test_a_contract_that_wants_approval_asks_even_where_a_grant_allows():
    loud = replace(QUERY, contract=replace(QUIET, approval="required"))
    granted = Policy((Rule("allow", "*", level=Level.SESSION_GRANT),))
    assert granted.decide(QUERY).verdict == "allow" and granted.decide(loud).verdict == "ask"
    assert Policy((*granted.rules, Rule("deny", "*"))).decide(loud).verdict == "deny"


NARROWED = {
    "actor": "ann",
    "tenant": "acme",
    "workspace": "w1",
    "tool": "mail.*",
    "effect": "external_send",
    "risk": "high",
}


@pytest.mark.parametrize("field", NARROWED)
def test_each_pattern_narrows_a_rule(field):
    assert Rule("allow", "*", **{field: NARROWED[field]}).matches(QUERY)
    assert not Rule("allow", "*", **{field: "other"}).matches(QUERY)


def test_a_call_may_carry_less_risk_than_its_contract():
    careful = Policy((Rule("deny", "*", risk="high"), Rule("allow", "*")))
    assert careful.decide(QUERY).verdict == "deny"
    assert careful.decide(replace(QUERY, operation=replace(OPERATION, risk="low"))).verdict == "allow"


def test_a_denial_matches_where_any_resource_does_and_an_allowance_only_where_all_do():
    both = replace(QUERY, operation=replace(OPERATION, resources=("mail:a", "mail:b")))
    assert Policy((Rule("allow", "*", "mail:a"),)).decide(both).verdict == "deny"
    assert Policy((Rule("allow", "*", "mail:*"), Rule("deny", "*", "mail:b"))).decide(both).verdict == "deny"
    assert Policy((Rule("allow", "*", "mail:*"), Rule("ask", "*", "mail:b"))).decide(both).verdict == "ask"


CHANGED = {
    "actor": replace(QUERY, actor="bob"),
    "tenant": replace(QUERY, tenant="other"),
    "workspace": replace(QUERY, workspace="w2"),
    "action": replace(QUERY, operation=replace(OPERATION, action="save")),
    "resources": replace(QUERY, operation=replace(OPERATION, resources=("mail:b",))),
    "arguments": replace(QUERY, operation=replace(OPERATION, arguments={"to": "b"})),
    "state": replace(QUERY, operation=replace(OPERATION, state="2")),
    "tool": replace(QUERY, tool="other.send"),
    "contract version": replace(QUERY, contract=replace(QUIET, version="1.0.1")),
    "contract content": replace(QUERY, contract=replace(QUIET, timeout_s=1.0)),
    "catalogue": replace(QUERY, catalogue=(4, "c")),
    "catalogue content": replace(QUERY, catalogue=(3, "d")),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_decision_is_bound_to_all_it_was_made_about(what):
    policy = Policy((Rule("allow", "*"),))
    assert policy.decide(QUERY).binding == policy.decide(replace(QUERY)).binding
    assert policy.decide(QUERY).binding != policy.decide(CHANGED[what]).binding


def test_a_decision_is_bound_to_the_policy():
    policy = Policy((Rule("allow", "*"),))
    bindings = {p.decide(QUERY).binding for p in (policy, Policy(policy.rules, 2), Policy((Rule("allow", "send"),)))}
    assert len(bindings) == 3


@pytest.mark.parametrize("changed", [{"verdict": "deny"}, {"action": "send"}, {"resource": "mail:*"}, {"actor": "ann"},
                                     {"tenant": "acme"}, {"workspace": "w1"}, {"tool": "t"}, {"effect": "write"},
                                     {"risk": "low"}, {"level": Level.SESSION_GRANT}, {"id": "other"}])  # fmt: skip
def test_a_rule_changed_under_its_id_makes_another_policy(changed):
    fields = {"verdict": "allow", "action": "*", "id": "mail"}
    one, other = Policy((Rule(**fields),)), Policy((Rule(**{**fields, **changed}),))
    assert one.digest != other.digest and one.decide(QUERY).binding != other.decide(QUERY).binding


def test_two_rules_of_one_name_cannot_be_told_apart():
    with pytest.raises(UsageError, match="id x"):
        Policy((Rule("allow", "*", id="x"), Rule("deny", "*", id="x")))
    gate = Rule("allow", "*", id="x")
    assert Policy((Rule("ask", "*", id="x"),)).decide(QUERY, [gate]).verdict == "deny"


@pytest.mark.parametrize("fields", [{"level": 9}, {"level": "high"}, {"actor": None}, {"action": 3}])
def test_a_rule_that_is_none_is_refused(fields):
    with pytest.raises(UsageError):
        Rule(**{"verdict": "allow", "action": "*", **fields})


@settings(max_examples=150)
@given(rule_sets)
def test_every_change_that_an_explanation_names_does_what_it_says(given_rules):
    policy = Policy(given_rules)
    explanation = explain(policy, QUERY)
    assert explanation.decision == policy.decide(QUERY)
    for change in explanation.changes:
        assert change.verdict != explanation.decision.verdict
        if change.what.startswith("without the rule "):
            name = change.what.removeprefix("without the rule ")
            fewer = Policy(tuple(rule for rule in policy.rules if rule.name != name))
            assert fewer.decide(QUERY).verdict == change.verdict
    for rule in explanation.decision.matched:  # nothing that would help is kept back
        fewer = Policy(tuple(other for other in policy.rules if other != rule))
        named = any(change.what == f"without the rule {rule.name}" for change in explanation.changes)
        assert named == (fewer.decide(QUERY).verdict != explanation.decision.verdict)


def test_an_explanation_reads_level_by_level():
    policy = Policy((Rule("deny", "send", level=Level.TENANT_DENY, id="no mail"), Rule("allow", "*", id="all")))
    text = explanation_text(explain(policy, QUERY))
    assert text.startswith("deny: rule no mail at tenant deny\n")
    assert "2 tenant deny     deny (no mail)  <- decides" in text and "6 user allow      allow (all)" in text
    assert (
        "- without the rule no mail: allow" in text and "- with a new session grant for send" in text.split("not:")[1]
    )


@pytest.mark.parametrize("pattern", ["workspace:secret/*", "workspace:secret.txt", "*secret*", "workspace:?ecret", "*"])
@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_a_denial_of_a_part_touches_what_works_on_the_whole(pattern, verdict):
    whole = replace(QUERY, operation=replace(OPERATION, resources=("workspace:",)))
    policy = Policy((Rule("allow", "*"), Rule(verdict, "*", pattern)))
    assert policy.decide(whole).verdict == verdict
    assert Policy((Rule("allow", "*", "workspace:a*"),)).decide(whole).verdict == "deny"


def test_a_denial_elsewhere_leaves_the_whole_alone():
    for resources in (("workspace:",), ("workspace:src/",), ("workspace:a.py",)):
        whole = replace(QUERY, operation=replace(OPERATION, resources=resources))
        policy = Policy((Rule("allow", "*"), Rule("deny", "*", "mail:*"), Rule("deny", "*", "workspace:tests/x")))
        assert policy.decide(whole).verdict == ("deny" if resources == ("workspace:",) else "allow")


@pytest.mark.parametrize("verdict", ["deny", "ask"])
@pytest.mark.parametrize(
    ("pattern", "resource"),
    [
        ("workspace:secret/", "workspace:secret/key.txt"),
        ("workspace:secret", "workspace:secret/deep/key.txt"),
        ("workspace:", "workspace:a"),
        ("workspace:sec*", "workspace:secret/key.txt"),
        ("workspace:app/[id].ts", "workspace:app/[id].ts"),
        ("workspace:app/[id]", "workspace:app/[id]/page.ts"),
    ],
)
def test_a_denial_of_a_folder_holds_for_all_that_is_in_it_and_a_name_for_itself(pattern, resource, verdict):
    operation = Operation("read", {}, (resource,), Effect.READ)
    query = Query(operation, "t", ToolContract("t", "", {"type": "object"}, approval="none"))
    policy = Policy((Rule(verdict, "*", pattern), Rule("allow", "*")))
    assert policy.decide(query).verdict == verdict


def test_a_denial_of_a_folder_leaves_its_neighbours_and_an_allowance_of_it_what_is_in_it():
    def decide(rule, resource):
        query = Query(
            Operation("read", {}, (resource,), Effect.READ),
            "t",
            ToolContract("t", "", {"type": "object"}, approval="none"),
        )
        return Policy((rule, Rule("allow", "*", "workspace:secrets*"))).decide(query).verdict

    assert decide(Rule("deny", "*", "workspace:secret"), "workspace:secrets.txt") == "allow"
    assert decide(Rule("allow", "*", "workspace:src"), "workspace:src/a.py") == "deny"
