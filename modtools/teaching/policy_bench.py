"""The policy bench: switch rules on and off, choose a call, and see level by level what is decided and why.

Every verdict and every "what if" comes from `modtools.pipeline.explain`, which decides again with the change made.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping
from typing import Any

from modtools.contract import Effect, Operation, ToolContract
from modtools.errors import UsageError
from modtools.pipeline import Level, Policy, Query, Rule
from modtools.pipeline.explain import Explanation, explain, explanation_text
from modtools.pipeline.policy import ALLOW, ASK, DENY, PASSTHROUGH
from modtools.teaching.explorer import explorer, table

RULES: Mapping[str, Rule] = {
    rule.id: rule
    for rule in (
        Rule(DENY, "*", "file:payments/*", Level.IMMUTABLE_DENY, "nobody touches payment files"),
        Rule(DENY, "send", "mail:customers/*", Level.TENANT_DENY, "acme writes to no customer today", tenant="acme"),
        Rule(DENY, "*", "mail:customers/b-7", Level.RESOURCE_DENY, "batch b-7 is disputed"),
        Rule(ASK, "send", "mail:*", Level.MANDATORY_ASK, "a person looks before a high risk", risk="high"),
        Rule(ALLOW, "send", "mail:*", Level.SESSION_GRANT, "this session may send"),
        Rule(ALLOW, "*", "file:*", Level.USER_ALLOW, "ann works with files", actor="ann"),
        Rule(DENY, "*", "file:exports/*", Level.USER_ALLOW, "the project freezes its exports"),
        Rule(PASSTHROUGH, "*", "*", Level.USER_ALLOW, "a plugin abstains"),
        Rule(ALLOW, "*", "*", Level.DEFAULT, "a plugin allows everything"),
    )
}
"""One rule or more for each level, by name."""


def _query(tool: str, operation: Operation) -> Query:
    contract = ToolContract(tool, "", {"type": "object"}, effect=operation.effect, approval="none")
    return Query(operation, tool, contract, "ann", "acme", "w1", (1, ""))


def _send(resource: str, risk: str) -> Query:
    return _query(
        "send_reminders", Operation("send", {"to": resource}, (f"mail:{resource}",), Effect.EXTERNAL_SEND, risk=risk)
    )


def _read(path: str) -> Query:
    return _query("read_file", Operation("read", {"path": path}, (f"file:{path}",), Effect.READ, risk="low"))


CALLS: Mapping[str, Query] = {
    "send the reminders of batch b-7": _send("customers/b-7", "high"),
    "send the reminders of batch b-8": _send("customers/b-8", "high"),
    "send a reminder to the test account": _send("test/ann", "low"),
    "read exports/july.csv": _read("exports/july.csv"),
    "read payments/config.json": _read("payments/config.json"),
}
"""The calls to decide, each a canonical operation of ann, tenant acme."""

_MARKS = {ALLOW: "✓", DENY: "✗", ASK: "?", PASSTHROUGH: "–"}


def judge(enabled: Collection[str], call: str, approved: bool = False) -> Explanation:
    """Decide a call under some of the rules.

    Args:
        enabled: keys of RULES.
        call: a key of CALLS.
        approved: whether a person has approved every ask.

    Raises:
        UsageError: for a rule or a call that is not on the bench.
    """
    if unknown := {*enabled} - {*RULES} | {call} - {*CALLS}:
        raise UsageError(
            f"the bench has no {', '.join(sorted(unknown))}; rules: {', '.join(RULES)}; calls: {', '.join(CALLS)}"
        )
    lifted = [rule.name for rule in RULES.values() if rule.verdict == ASK] if approved else []
    return explain(Policy(tuple(RULES[name] for name in RULES if name in enabled)), CALLS[call], lifted=lifted)


def bench_text(enabled: Collection[str], call: str, approved: bool = False) -> str:
    """The decision as plain lines."""
    return explanation_text(judge(enabled, call, approved))


def bench_html(enabled: Collection[str], call: str, approved: bool = False) -> str:
    """The decision as a table of levels, with what would change it and what would not."""
    explanation = judge(enabled, call, approved)
    decision, operation = explanation.decision, CALLS[call].operation
    rows, decided = [], False
    for level, rules in explanation.levels:
        decides = decision.rule in rules
        said = "decides" if decides else "too low to be heard" if decided and rules else "" if rules else "silent"
        if rules and not decides and not decided:
            said = "lifted by the approval" if any(rule.verdict == ASK for rule in rules) else "abstains"
        decided = decided or decides
        names = "<br>".join(
            f"{_MARKS[r.verdict]} {r.verdict}: {html.escape(r.name)}{' &larr; <b>this one</b>' * (r == decision.rule)}"
            for r in rules
        )
        rows.append([f"{level:d} {level.label}", names, f"<b>{said}</b>" if decides else said])
    changes = _lines([f"{change.what}: {change.verdict}" for change in explanation.changes] or ["no single change"])
    futile = _lines(explanation.futile)
    return (
        f"<p>{html.escape(f'{operation.action} {operation.resources[0]} ({operation.effect}, {CALLS[call].risk} risk)')}: "
        f"<b>{_MARKS[decision.verdict]} {decision.verdict}</b>, {html.escape(decision.why)}</p>"
        f"{table(['level', 'rules that match', ''], rows, raw=True)}"
        f"{table(['what would change it', 'what would not'], [[changes, futile]], raw=True)}"
    )


def policy_bench() -> Any:
    """The widget: the call, whether a person approved, a box to tick for each rule, and the decision below."""

    def render(call: str, a_person_has_approved: bool, **rules: bool) -> str:
        return bench_html([name for name, on in rules.items() if on], call, a_person_has_approved)

    return explorer(render, call=tuple(CALLS), a_person_has_approved=False, **dict.fromkeys(RULES, True))


def _lines(texts: Collection[str]) -> str:
    return "<br>".join(map(html.escape, texts))
