"""Write a tool's schema and watch two things at once: what a linter says of it, and what it costs in tokens."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

from modtools.errors import UsageError
from modtools.schemas.lint import lint
from modtools.schemas.price import prices, recoverable
from modtools.schemas.tool_list import tools_of
from modtools.teaching.explorer import explorer, table

MOST_CHARACTERS = 50_000

FIRST = """{
  "name": "manage",
  "description": "Manages things.",
  "parameters": {
    "type": "object",
    "properties": {
      "action": {"type": "string"},
      "data": {"type": "object"}
    }
  }
}"""


def editor_html(text: str, count: Callable[[str], int]) -> str:
    """Price, findings, and what could be had back, of the tools in a JSON text.

    Args:
        text: one tool or a list of them, in any shape that `tools_of` knows.
        count: tokens of a text.
    """
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{len(text)} characters: expected at most {MOST_CHARACTERS}; use `modtools lint` for longer lists"
        )
    try:
        tools = tools_of(json.loads(text), "the text")
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"this is no JSON yet: {error}") from None
    price, savings, found = prices(tools, count), recoverable(tools, count), lint(tools)
    parts = [f"<p><b>{price['']} tokens</b> at every turn; valid calls are checked by the pipeline, not here.</p>"]
    rows = [[each.severity, each.rule, each.where, each.why, each.fix] for each in found]
    parts.append(table(["", "rule", "where", "why", "fix"], rows) if rows else "<p>No findings.</p>")
    if savings:
        parts.append(table(["tokens that could go", "tool", "kind", "where"],
                           [[str(s.tokens), s.tool, s.kind, s.where] for s in savings]))  # fmt: skip
    return "".join(parts)


def schema_editor(count: Callable[[str], int], first: str = FIRST) -> Any:
    """A widget with a text box for the tools."""

    def render(tools: str) -> str:
        try:
            return editor_html(tools, count)
        except UsageError as error:
            return f"<p>{html.escape(str(error))}</p>"

    return explorer(render, tools=first)
