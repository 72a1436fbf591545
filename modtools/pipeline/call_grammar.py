"""The grammar of the replies that extraction reads as one call of a tool: for masks over a model's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modtools.contract import ToolContract
from modtools.errors import UsageError
from modtools.masking import Grammar, compile_grammar

FORMS = {
    "json": "blank call blank",
    "tagged": '"<tool_call>" blank call blank "</tool_call>"',
    "prose": 'until("<tool_call>") "<tool_call>" blank call blank "</tool_call>"',
}


def call_grammar(
    tools: Sequence[ToolContract], form: str = "json", finish: bool = False, whitespace: int = 64
) -> Grammar:
    """The replies that call one of some tools with valid arguments.

    Args:
        tools: what may be called.
        form: "json", the call alone; "tagged", between <tool_call> tags; "prose", any text before those. Prose may
            still hold what extraction refuses, a second call for instance.
        finish: whether the message that ends an episode may stand for the call.
        whitespace: blanks in a row, as in compile_json_schema.

    Raises:
        UsageError: no tool, or another form.
        GrammarError: a schema that cannot be compiled; BudgetError: or not within the budget.
    """
    if form not in FORMS or not tools:
        raise UsageError(f"{len(tools)} tools, form {form!r}: expected a tool, and one of the forms {', '.join(FORMS)}")
    calls = {tool.name: _call(tool) for tool in tools}
    options = [f"json({name})" for name in calls]
    options += ['json({"const": {"finish": true}})'] if finish else []
    text = f"reply = {FORMS[form]}\ncall = {' | '.join(options)}\nblank = /[ \\t\\n\\r]{{0,{whitespace}}}/"
    return compile_grammar(text, calls, whitespace)


def _call(tool: ToolContract) -> dict[str, Any]:
    # With an $id of its own the schema of the arguments remains the root of its references.
    arguments = {"$id": "arguments", **tool.input_schema}
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
