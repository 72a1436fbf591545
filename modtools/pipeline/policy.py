"""Authorisation: allow, deny, ask or passthrough, decided over the canonical operation and never over the raw text.

Seven levels of precedence (Part 05): immutable deny, tenant deny, resource deny, mandatory ask, session grant,
project or user allow, default. The highest level that speaks decides; within a level deny beats ask, ask beats
allow; passthrough abstains; where nobody speaks, the answer is no. So the order of rules cannot matter, and a lower
level can never lift a higher denial.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum, StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from modtools.contract import Operation, ToolContract, digest
from modtools.errors import UsageError


class Verdict(StrEnum):
    """What a rule says; `passthrough` says nothing."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    PASSTHROUGH = "passthrough"


ALLOW, DENY, ASK, PASSTHROUGH = Verdict


class Level(IntEnum):
    """Levels of precedence, the highest first."""

    IMMUTABLE_DENY = 1
    TENANT_DENY = 2
    RESOURCE_DENY = 3
    MANDATORY_ASK = 4
    SESSION_GRANT = 5
    USER_ALLOW = 6
    DEFAULT = 7

    @property
    def label(self) -> str:
        """The name in words: "tenant deny"."""
        return self.name.lower().replace("_", " ")


_STRENGTH = {DENY: 0, ASK: 1, ALLOW: 2, PASSTHROUGH: 3}
# The three highest levels can only take away, the fourth can also ask; a grant up there would lift denials.
_MAY_SAY = {
    **dict.fromkeys((Level.IMMUTABLE_DENY, Level.TENANT_DENY, Level.RESOURCE_DENY), (DENY, PASSTHROUGH)),
    Level.MANDATORY_ASK: (ASK, DENY, PASSTHROUGH),
}
_USUAL_LEVEL = {DENY: Level.RESOURCE_DENY, ASK: Level.MANDATORY_ASK}


@dataclass(frozen=True)
class Query:
    """A canonical operation to be decided, with everything that the decision is bound to.

    Attributes:
        operation: canonical: action, arguments, resources, effect, state of the resources.
        tool: qualified name.
        contract: of the tool.
        actor, tenant, workspace: on whose behalf, and where.
        catalogue: (version, digest) of the snapshot.
    """

    operation: Operation
    tool: str
    contract: ToolContract
    actor: str = "model"
    tenant: str = ""
    workspace: str = ""
    catalogue: tuple[int, str] = (0, "")

    @property
    def risk(self) -> str:
        """Of this call: the operation's own, or the contract's."""
        return self.operation.risk or self.contract.risk

    def bound_to(self, policy: Policy) -> dict[str, Any]:
        """What a decision under `policy` holds for, by name; if any of it changes, the decision is void."""
        operation = self.operation
        return {
            "actor": self.actor,
            "tenant": self.tenant,
            "workspace": self.workspace,
            "operation": operation.digest,  # action and arguments
            "resources": list(operation.resources),
            "state": operation.state,
            "tool": [self.tool, self.contract.version, self.contract.digest],
            "catalogue": list(self.catalogue),
            "policy": [policy.version, policy.digest],
        }


@dataclass(frozen=True)
class Rule:
    """One rule: a verdict for the operations that match all its shell patterns.

    Attributes:
        verdict: see Verdict.
        action: over the canonical action, e.g. "read" or "*".
        resource: over canonical resources, e.g. "workspace:*". A denial or an ask matches where *any* resource
            does, an allowance only where *all* do. A resource that ends in ":" or "/" is all that is in it, so a
            denial of any part of it matches. A denial or an ask that names a folder, "workspace:secret", holds for
            all that is in it, and one that names a resource with "[" in its name for that resource; an allowance
            has to say "workspace:src/*" and "[[]".
        level: where it stands; None for the usual one: deny at resource deny, ask at mandatory ask, else user allow.
        id: its name in decisions and approvals; without one, its words.
        actor, tenant, workspace, tool, effect, risk: patterns over the rest of the query.
    """

    verdict: Verdict
    action: str
    resource: str = "*"
    level: Level | None = None
    id: str = ""
    actor: str = "*"
    tenant: str = "*"
    workspace: str = "*"
    tool: str = "*"
    effect: str = "*"
    risk: str = "*"

    def __post_init__(self):
        if self.verdict not in _STRENGTH:
            raise UsageError(f"a rule's verdict is one of {', '.join(_STRENGTH)}, not {self.verdict!r}")
        object.__setattr__(self, "verdict", Verdict(self.verdict))
        if self.level not in (None, *Level):
            names = ", ".join(f"Level.{level.name}" for level in Level)
            raise UsageError(f"a rule's level is one of {names}, not {self.level!r}")
        level = Level(self.level or _USUAL_LEVEL.get(self.verdict, Level.USER_ALLOW))
        object.__setattr__(self, "level", level)
        may_say = _MAY_SAY.get(level, tuple(_STRENGTH))
        if self.verdict not in may_say:
            raise UsageError(f"a rule at level {level.label} says {' or '.join(may_say)}, not {self.verdict}")
        if not all(isinstance(part, str) for part in astuple(self) if part is not self.level):
            raise UsageError(f"the patterns of a rule are texts: {self}")

    @cached_property
    def name(self) -> str:
        """Its id, or its words with what narrows it, so that two different rules never share a name."""
        parts = ("actor", "tenant", "workspace", "tool", "effect", "risk")
        narrowed = [f"{part} {getattr(self, part)}" for part in parts if getattr(self, part) != "*"]
        words = ", ".join([f"{self.verdict} {self.action} {self.resource}", *narrowed])
        return self.id or f"{words} at {self.level.label}"

    @cached_property
    def precedence(self) -> tuple[int, int, str]:
        """Rules in this order: the first that speaks wins."""
        return self.level, _STRENGTH[self.verdict], self.name

    def matches(self, query: Query) -> bool:
        """Whether the rule speaks about this operation."""
        operation = query.operation
        for value, pattern in (
            (operation.action, self.action),
            (query.actor, self.actor),
            (query.tenant, self.tenant),
            (query.workspace, self.workspace),
            (query.tool, self.tool),
            (operation.effect, self.effect),
            (query.risk, self.risk),
        ):
            if pattern != "*" and not fnmatchcase(value, pattern):
                return False
        if not operation.resources:  # then it is allowed only by a rule that asks for none
            return self.verdict != ALLOW or self.resource == "*"
        if self.verdict == ALLOW:
            return all(fnmatchcase(resource, self.resource) for resource in operation.resources)
        return any(_touches(resource, self.resource) for resource in operation.resources)


def _touches(resource: str, pattern: str) -> bool:
    """Whether a pattern may match the resource, a container that it is in, or, where it is one, something in it."""
    inside = pattern if pattern.endswith((":", "/")) else f"{pattern}/"
    if fnmatchcase(resource, pattern) or fnmatchcase(resource, f"{inside}*"):
        return True
    if resource == pattern or resource.startswith(inside):  # as it is written, whatever signs of a pattern are in it
        return True
    start = re.split(r"[*?\[]", pattern)[0]
    return resource.endswith((":", "/")) and (
        start.startswith(resource) or (start != pattern and resource.startswith(start))
    )


@dataclass(frozen=True)
class Decision:
    """A verdict, why, and what it holds for.

    Attributes:
        verdict: allow, deny or ask.
        rule: the rule that won, or None: nobody spoke, or an approval was all there was.
        why: one sentence for the audit.
        matched: all rules that matched, by precedence.
        binding: digest of `Query.bound_to`; the decision is good for nothing else.
    """

    verdict: Verdict
    rule: Rule | None
    why: str
    matched: tuple[Rule, ...] = ()
    binding: str = ""

    def record(self) -> dict[str, Any]:
        """The decision as the audit keeps it."""
        return {
            "verdict": self.verdict,
            "rule": self.rule.name if self.rule else None,
            "why": self.why,
            "matched": [rule.name for rule in self.matched],
            "binding": self.binding,
        }


@dataclass(frozen=True)
class Policy:
    """A set of rules; their order never matters."""

    rules: tuple[Rule, ...]
    version: int = 1

    def __post_init__(self):
        names = [rule.name for rule in set(self.rules)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(
                f"two different rules have the id {', '.join(twice)}; an approval could not tell them apart"
            )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of rules and version, whatever the order."""
        return digest([self.version, sorted([*astuple(rule)] for rule in set(self.rules))])

    def decide(self, query: Query, extra: Sequence[Rule] = (), lifted: Collection[str] = ()) -> Decision:
        """Decide one canonical operation.

        Args:
            query: the operation with its circumstances.
            extra: rules that hold for this query alone, such as the verdicts of policy gates.
            lifted: names of the asks that a person has approved for exactly this query. An approval lifts the ask
                it names and nothing else: what is left decides, and where nothing is left the approval is the
                permission.
        """
        contract = query.contract
        asks = [Rule(ASK, "*", id=f"contract of {query.tool}")] if contract.approval == "required" else []
        rules = {*self.rules, *extra, *asks}
        matched = tuple(sorted((rule for rule in rules if rule.matches(query)), key=lambda rule: rule.precedence))
        binding = digest(query.bound_to(self))
        if len({rule.name for rule in matched}) < len(matched):
            return Decision(DENY, None, "two different rules that match have one name", matched, binding)
        approved = [rule for rule in matched if rule.verdict == ASK and rule.name in lifted]
        winner = next((rule for rule in matched if rule.verdict != PASSTHROUGH and rule not in approved), None)
        if winner:
            why = f"rule {winner.name} at {winner.level.label}" if winner.id else f"rule {winner.name}"
            return Decision(winner.verdict, winner, why, matched, binding)
        if approved:
            return Decision(ALLOW, None, f"approved: {', '.join(r.name for r in approved)}", matched, binding)
        return Decision(DENY, None, f"no rule allows {query.operation.action}", matched, binding)


# The lab's policy: everything its surfaces offer, inside the episode's workspace, and nothing else.
WORKSPACE_POLICY = Policy((Rule(ALLOW, "*", "workspace:*", id="workspace"),))
