"""Authorisation: allow, deny or ask, decided over the canonical operation and never over the raw text.

This is the simple form: one list of rules, no precedence levels yet. Deny beats ask, ask beats allow, and
what no rule allows is denied. A contract that asks for approval turns an allow into an ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from modtools.contract import Operation, ToolContract, digest
from modtools.errors import UsageError

ALLOW, DENY, ASK = "allow", "deny", "ask"
_STRENGTH = {DENY: 0, ASK: 1, ALLOW: 2}


@dataclass(frozen=True)
class Rule:
    """One rule: a verdict for operations whose action and every resource match.

    Attributes:
        verdict: "allow", "deny" or "ask".
        action: a shell pattern over the canonical action, e.g. "read" or "*".
        resource: a shell pattern over canonical resources, e.g. "workspace:*". A denial matches where *any*
            resource does, an allowance only where *all* do.
    """

    verdict: str
    action: str
    resource: str = "*"

    def __post_init__(self):
        if self.verdict not in _STRENGTH:
            raise UsageError(f"a rule's verdict is one of {', '.join(_STRENGTH)}, not {self.verdict!r}")

    def matches(self, operation: Operation) -> bool:
        """Whether the rule speaks about this operation."""
        hits = [fnmatchcase(resource, self.resource) for resource in operation.resources]
        if not hits:  # an operation that names no resource is allowed only by a rule that asks for none
            hits = [self.verdict != ALLOW or self.resource == "*"]
        matched = all(hits) if self.verdict == ALLOW else any(hits)
        return fnmatchcase(operation.action, self.action) and matched


@dataclass(frozen=True)
class Decision:
    """A verdict and why.

    Attributes:
        verdict: "allow", "deny" or "ask".
        rule: the rule that won, or None for the default denial.
        why: one sentence for the audit.
    """

    verdict: str
    rule: Rule | None
    why: str


@dataclass(frozen=True)
class Policy:
    """A set of rules; their order never matters."""

    rules: tuple[Rule, ...]
    version: int = 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 of rules and version."""
        return digest([self.version, sorted([r.verdict, r.action, r.resource] for r in self.rules)])

    def decide(self, operation: Operation, contract: ToolContract) -> Decision:
        """Decide one canonical operation of one tool."""
        matching = sorted(
            (rule for rule in self.rules if rule.matches(operation)),
            key=lambda r: (_STRENGTH[r.verdict], r.action, r.resource),
        )
        if not matching:
            return Decision(DENY, None, f"no rule allows {operation.action}")
        rule = matching[0]
        if rule.verdict == ALLOW and contract.approval == "required":
            return Decision(ASK, rule, f"the contract of {contract.name} requires an approval")
        return Decision(rule.verdict, rule, f"rule {rule.verdict} {rule.action} {rule.resource}")


# The lab's policy: everything its surfaces offer, inside the episode's workspace, and nothing else.
WORKSPACE_POLICY = Policy((Rule(ALLOW, "*", "workspace:*"),))
