"""Replies of the call grammar are calls to extraction and to the validator, whatever their form."""

from __future__ import annotations

import json

import pytest

from modtools.contract import ToolContract
from modtools.errors import UsageError
from modtools.pipeline.call_grammar import FORMS, call_grammar
from modtools.pipeline.extract import extract

NODE = {"type": "object", "properties": {"in": {"$ref": "#"}, "x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"enum": [1, 2]}},
        "additionalProperties": False}  # fmt: skip
TOOLS = [
    ToolContract("fs.read", "reads", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    ToolContract("tree", "recurses", NODE),
]  # fmt: skip
GOOD = [{"name": "fs.read", "arguments": {"path": "a\n</tool_call>"}}, {"arguments": {"in": {"x": 2}}, "name": "tree"}]
BAD = [{"name": "fs.read", "arguments": {}}, {"name": "tree", "arguments": {"in": {"x": 3}}}, {"name": "none"}]
AROUND = {
    "json": ("\n", "\n"),
    "tagged": ("<tool_call>\n", "</tool_call>"),
    "prose": ("I read it:\n<tool_call>", " </tool_call>"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_the_grammar_accepts_extraction_finds_and_no_other_call_is_accepted(form):
    grammar, (before, after) = call_grammar(TOOLS, form), AROUND[form]
    for call in GOOD:
        reply = before + json.dumps(call) + after
        assert grammar.accepts(reply.encode()) and json.loads(extract(reply).text) == call
    assert not [call for call in BAD if grammar.accepts((before + json.dumps(call) + after).encode())]
    assert grammar.accepts(json.dumps(GOOD[0]).encode()) == (form == "json")


def test_the_end_of_an_episode_is_a_reply_only_on_request():
    reply = b'<tool_call>{"finish": true}</tool_call>'
    assert call_grammar(TOOLS, "tagged", finish=True).accepts(reply) and extract(reply.decode()).finish
    assert not call_grammar(TOOLS, "tagged").accepts(reply)


def test_another_form_or_no_tool_is_refused():
    with pytest.raises(UsageError, match="one of the forms json, tagged, prose"):
        call_grammar(TOOLS, "xml")
    with pytest.raises(UsageError, match="0 tools"):
        call_grammar([])
