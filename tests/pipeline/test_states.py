"""The five states of a capability are asked one by one: no state says anything of another."""

from __future__ import annotations

from itertools import permutations

import pytest

from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Operation, Outcome, Tool, ToolContract, ToolResult
from modtools.pipeline.audit import AuditLog
from modtools.pipeline.states import State, capability_states


def tool(name: str, source: str = "mail") -> Tool:
    contract = ToolContract(name, "Acts.", {"type": "object"})
    return Tool(
        contract, lambda a, c: Operation("act", a, (), contract.effect), lambda o, c: ToolResult("done"), source
    )


ALLOW, DENY, ASK = ({"verdict": verdict, "why": f"rule 7 says {verdict}"} for verdict in ("allow", "deny", "ask"))


def ended(outcome="success", executed=True, decision=ALLOW, name="mail.send", actor="ann", tenant="acme") -> AuditLog:
    """An audit of one call, r1, as the pipeline writes it."""
    audit = AuditLog()
    audit.append("r1", "received", {"actor": actor, "tenant": tenant})
    if executed:
        audit.append("r1", "executing", {"tool": name})
    audit.append("r1", "terminal", {"tool": name, "outcome": outcome, "executed": executed, "decision": decision})
    return audit


def facts(audience=("*",), shown=("mail.send",), revoked=False, audit=None, request="r1", actor="ann"):
    made = Catalogue(Snapshot.of((tool("send"), tool("list")), audiences={"mail.send": audience}))
    turn = made.snapshot.only(shown)
    if revoked:
        made.revoke("mail.send", "it leaked")
    return capability_states(made, turn, audit or AuditLog(), actor, "acme", "mail.send", request)


R, D, V, A, E = State
CASES = {
    "all five": (facts(audit=ended()), {R, D, V, A, E}),
    "none": (facts((), (), True, ended("permission_denied", False, DENY)), set()),
    "registered only": (facts((), (), audit=ended("permission_denied", False, DENY)), {R}),
    "found, not loaded into the turn": (facts(shown=(), audit=ended("permission_denied", False, DENY)), {R, D}),
    "shown, and the call denied": (facts(audit=ended("permission_denied", False, DENY)), {R, D, V}),
    "revoked after the turn saw it": (facts(revoked=True, audit=ended("permission_denied", False, DENY)), {V}),
    "carried out, then revoked, and gone from a later turn": (facts(shown=(), revoked=True, audit=ended()), {A, E}),
    "allowed, and cancelled before it began": (facts((), (), audit=ended("cancelled", False)), {R, A}),
    "carried out against the decision": (facts((), (), audit=ended(decision=DENY)), {R, E}),
}

# The metadata of what is not in the catalogue are in no catalogue: what is discoverable is registered. It is
# the only pair of which the first cannot be without the second.
IMPOSSIBLE = {(State.DISCOVERABLE, State.REGISTERED)}


@pytest.mark.parametrize("case", CASES)
def test_each_state_holds_by_its_own_evidence(case):
    found, expected = CASES[case]
    assert list(found) == list(State)
    assert {state for state, fact in found.items() if fact.holds} == expected
    assert {state for state, fact in found.items() if fact.holds is None} == set()


@pytest.mark.parametrize("one, other", list(permutations(State, 2)))
def test_no_state_implies_another(one, other):
    apart = [case for case, (found, _) in CASES.items() if found[one].holds and found[other].holds is False]
    assert bool(apart) == ((one, other) not in IMPOSSIBLE)


def test_every_fact_names_its_evidence():
    found = facts(audit=ended())
    assert [found[state].why for state in State] == [
        "Catalogue version 1 holds mail.send 1.0.0.",
        "The audience of mail.send in catalogue version 1 covers acme/ann.",
        "The turn's snapshot, catalogue version 1, shows the schema of mail.send.",
        "The decision about request r1 is allow: rule 7 says allow.",
        "The terminal line of request r1 says success, and that the handler was started.",
    ]
    found = facts(("umbra/*",), ("mail.list",), True, ended("approval_required", False, ASK))
    assert {fact.holds for fact in found.values()} == {False}
    assert [found[state].why for state in State] == [
        "Catalogue version 2 does not hold mail.send: revoked: it leaked (catalogue version 2).",
        "No audience in catalogue version 2 opens mail.send to acme/ann.",
        "The turn's snapshot, catalogue version 1, does not show mail.send.",
        "The decision about request r1 is ask: rule 7 says ask.",
        "The terminal line of request r1 says approval_required, and that the handler was not started.",
    ]


def call_facts(audit: AuditLog, request="r1", actor="ann"):
    found = facts(audit=audit, request=request, actor=actor)
    return found[State.AUTHORISED], found[State.EXECUTED]


@pytest.mark.parametrize(
    "audit, request_id, actor, why",
    [
        (ended(), None, "ann", "No call was made."),
        (ended(), "r2", "ann", "The audit has no request r2."),
        (ended(), "r1", "bob", "The audit has request r1 as a call of acme/ann."),
        (ended(tenant="umbra"), "r1", "ann", "The audit has request r1 as a call of umbra/ann."),
        (ended(name="mail.list"), "r1", "ann", "The audit has request r1 as a call of mail.list."),
        (ended("validation_failed", False, None, None), "r1", "ann", "The audit names no tool for request r1."),
    ],
)
def test_without_a_call_of_this_actor_and_tool_nothing_is_known(audit, request_id, actor, why):
    authorised, executed = call_facts(audit, request_id, actor)
    assert (authorised.holds, executed.holds) == (None, None)
    assert authorised.why == executed.why == why


def test_a_call_refused_before_any_decision_has_none():
    authorised, executed = call_facts(ended("validation_failed", False, None))
    assert authorised.holds is None and "no decision" in authorised.why
    assert executed.holds is False


def test_a_handler_that_was_started_need_not_have_come_to_a_known_end():
    audit = AuditLog()
    audit.append("r1", "received", {"actor": "ann", "tenant": "acme"})
    audit.append("r1", "executing", {"tool": "mail.send"})
    authorised, executed = call_facts(audit)
    assert (authorised.holds, executed.holds) == (None, None), "that it runs does not say that it may"
    assert "no terminal line" in executed.why


@pytest.mark.parametrize(
    "outcome, holds",
    [
        ("success", True),
        ("partial", True),
        ("timeout", True),
        ("unknown_outcome", False),
        ("background_accepted", None),
    ],
)
def test_of_a_started_handler_the_outcome_says_whether_its_end_is_known(outcome, holds):
    authorised, executed = call_facts(ended(outcome))
    assert authorised.holds is True and executed.holds is holds and outcome in executed.why


def test_a_request_closed_after_a_death_says_what_is_left_to_say(tmp_path):
    audit = AuditLog(tmp_path)
    audit.append("r1", "received", {"actor": "ann", "tenant": "acme"})
    audit.append("r1", "executing", {"tool": "mail.send", "decision": ALLOW})
    authorised, executed = call_facts(AuditLog(tmp_path))
    assert (authorised.holds, executed.holds) == (True, False) and Outcome.UNKNOWN_OUTCOME in executed.why


def test_a_terminal_line_that_does_not_say_whether_the_handler_was_started_leaves_it_open():
    audit = AuditLog()
    audit.append("r1", "received", {"actor": "ann", "tenant": "acme"})
    audit.append("r1", "terminal", {"tool": "mail.send", "outcome": "cancelled"})
    assert call_facts(audit)[1].holds is None
