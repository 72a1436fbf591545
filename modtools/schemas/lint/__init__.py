"""A linter for lists of tools: the module's seven rules, traits of a strong interface, catch-all tools, neighbours.

The rules are heuristics. What a rule is worth on a model is measured elsewhere (notebook 06), and rule 7, measure the
failures of each tool, no reading of a schema can replace.
"""

from __future__ import annotations

from collections.abc import Sequence

from modtools.schemas.lint.argument_rules import argument_findings
from modtools.schemas.lint.finding import ERROR, NOTE, SEVERITIES, WARNING, Finding
from modtools.schemas.lint.list_rules import list_findings
from modtools.schemas.lint.tool_rules import tool_findings
from modtools.schemas.tool_list import ToolSchema

__all__ = ["ERROR", "NOTE", "RULES", "SEVERITIES", "WARNING", "Finding", "lint"]

# Rule -> where it comes from: the module's rules by number; P5 for the traits of its agent-computer interface.
RULES = {
    "nested": "rule 1",
    "missing_enum": "rule 2",
    "no_description": "rule 3",
    "echo": "rule 3",
    "thin": "rule 3",
    "mixed_styles": "rule 4",
    "argument_names": "rule 4",
    "failure_unsaid": "rule 5",
    "free_form_object": "rule 6",
    "untyped": "rule 6",
    "catch_all": "P5, manage()",
    "neighbours": "P5, neighbouring tools",
    "no_paging": "P5, large results",
    "undo_unsaid": "P5, preview and commit",
    "unclear_format": "P5, hidden formatting rules",
    "unit_unsaid": "P5, hidden formatting rules",
    "text_for_a_type": "P5, poka-yoke",
    "unbounded": "P5, poka-yoke",
    "nothing_required": "P5, poka-yoke",
    "required_unknown": "JSON Schema",
    "name_twice": "protocol",
}


def lint(tools: Sequence[ToolSchema]) -> list[Finding]:
    """All findings, the gravest first, then in the order of the list."""
    found = [finding for tool in tools for finding in (*tool_findings(tool), *argument_findings(tool))]
    found += list_findings(tools)
    return sorted(dict.fromkeys(found), key=lambda finding: SEVERITIES.index(finding.severity))
