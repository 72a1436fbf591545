"""Why a decision came out as it did, and what would change it: found by deciding again, never by guessing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from modtools.pipeline.policy import ALLOW, ASK, Decision, Level, Policy, Query, Rule, Verdict


@dataclass(frozen=True)
class Change:
    """One change, and the verdict it would bring.

    Attributes:
        what: in words.
        verdict: of the same query after it.
    """

    what: str
    verdict: Verdict


@dataclass(frozen=True)
class Explanation:
    """A decision with its reasons.

    Attributes:
        decision: as made.
        levels: (level, the rules that spoke there) for each level, the highest first.
        changes: what would change the verdict. No single rule taken away or added, and no approval, that is not
            listed here would.
        futile: what one might try and what would not help.
    """

    decision: Decision
    levels: tuple[tuple[Level, tuple[Rule, ...]], ...]
    changes: tuple[Change, ...]
    futile: tuple[str, ...]


def explain(policy: Policy, query: Query, extra: Sequence[Rule] = (), lifted: Collection[str] = ()) -> Explanation:
    """Explain how `policy.decide` decides; the arguments are the same."""
    decision = policy.decide(query, extra, lifted)
    tried = [*_without(policy, query, extra, lifted, decision), *_with(policy, query, extra, lifted, decision)]
    changes = tuple(change for change in tried if change.verdict != decision.verdict)
    futile = tuple(change.what for change in tried if change.verdict == decision.verdict)
    levels = tuple((level, tuple(rule for rule in decision.matched if rule.level == level)) for level in Level)
    return Explanation(decision, levels, changes, futile)


def _without(
    policy: Policy, query: Query, extra: Sequence[Rule], lifted: Collection[str], decision: Decision
) -> list[Change]:
    """Each rule that matched, taken away."""
    changes = []
    for rule in decision.matched:
        fewer = replace(policy, rules=tuple(other for other in policy.rules if other != rule))
        if rule in policy.rules or rule in extra:
            after = fewer.decide(query, [other for other in extra if other != rule], lifted)
            changes.append(Change(f"without the rule {rule.name}", after.verdict))
        else:  # it comes from the contract
            lenient = replace(query, contract=replace(query.contract, approval="none"))
            changes.append(
                Change("with a contract that asks for no approval", policy.decide(lenient, extra, lifted).verdict)
            )
    return changes


def _with(
    policy: Policy, query: Query, extra: Sequence[Rule], lifted: Collection[str], decision: Decision
) -> list[Change]:
    """A person's approval of each ask, and grants at the two levels that can give one."""
    changes = []
    for rule in decision.matched:
        if rule.verdict == ASK and rule.name not in lifted:
            after = policy.decide(query, extra, {*lifted, rule.name})
            changes.append(Change(f"with a person's approval of {rule.name}", after.verdict))
    if decision.verdict != ALLOW:
        for level in (Level.SESSION_GRANT, Level.USER_ALLOW):
            grant = Rule(ALLOW, query.operation.action, level=level, id=f"a new {level.label}")
            after = policy.decide(query, [*extra, grant], lifted)
            changes.append(Change(f"with {grant.name} for {query.operation.action}", after.verdict))
    return changes


def explanation_text(explanation: Explanation) -> str:
    """The explanation as plain lines."""
    decision = explanation.decision
    lines = [f"{decision.verdict}: {decision.why}", ""]
    for level, rules in explanation.levels:
        said = ", ".join(f"{rule.verdict} ({rule.name})" for rule in rules) or "-"
        mark = "  <- decides" if decision.rule in rules else ""
        lines.append(f"{level:d} {level.label:15} {said}{mark}")
    lines += ["", "What would change it:"]
    lines += [f"- {change.what}: {change.verdict}" for change in explanation.changes] or ["- no single change"]
    if explanation.futile:
        lines += ["What would not:", *(f"- {what}" for what in explanation.futile)]
    return "\n".join(lines)
