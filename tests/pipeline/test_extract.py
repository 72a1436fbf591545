"""Extraction: which text is the call, and what is refused instead of guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modtools.pipeline.extract import FINISH, extract

CALL = '{"name": "read_file", "arguments": {"path": "a"}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"  {CALL}\n\n",
        f"I look at the file first.\n{CALL}",
        f"Let me see.\n```json\n{CALL}\n```\n",
        f"```\n{CALL}",
        f"<think>maybe {CALL}\n{CALL}</think>\n{CALL}",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}</tool_call> and that is all.",
        f"A set is written {{1, 2}} and a dict {{'a': 1}}.\n{CALL}",
        f'For example {{"name": "x"}} would be a call.\n{CALL}',
        f"An open brace {{ in prose.\n{CALL}",
    ],
)
def test_the_one_call_is_found(text):
    found = extract(text)
    assert found.failure is None and found.text == CALL
    assert text[slice(*found.span)] == CALL


@pytest.mark.parametrize(
    ("text", "finish_reason", "code"),
    [
        ("", "stop", "none_found"),
        ("I cannot do that.", "stop", "none_found"),
        ("def f(x):\n    return {x}", "stop", "none_found"),
        ("word " * 50, "length", "none_found"),
        (f"{CALL}{CALL}", "stop", "several_calls"),
        (f"{CALL}\n\n{CALL}", "stop", "several_calls"),
        (f"{CALL}, {CALL}", "stop", "several_calls"),
        (f"```json\n{CALL}\n```\nand then\n```json\n{CALL}\n```", "stop", "several_calls"),
        (f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>", "stop", "several_calls"),
        (f"{CALL}\n{FINISH}", "stop", "several_calls"),
        (f"A call looks like {CALL} in this format.", "stop", "example_call"),
        (f"```json\n{CALL}\n```\nThis would read the file.", "stop", "example_call"),
        (f"Calling {CALL}", "stop", "example_call"),
        ("```python\nspec = {'name': 'x'}\nprint(spec)\n```", "stop", "example_call"),
        (CALL[:30], "length", "truncated"),
        (f"<tool_call>{CALL[:30]}", "length", "truncated"),
        ("<tool_call>\n", "length", "truncated"),
        (CALL[:30], "lost", "chunk_lost"),
        ("<think>I never stop", "length", "none_found"),
        (f"[{CALL}]", "stop", "wrong_wrapper"),
        ('{"tool": "read_file", "path": "a"}', "stop", "wrong_wrapper"),
        ('{"name": "read_file", "parameters": {"path": "a"}}', "stop", "wrong_wrapper"),
        ('{"name": "read_file", "path": "a"}', "stop", "wrong_wrapper"),
        ('{"finish": "yes"}', "stop", "wrong_wrapper"),
        ('{"finish": 1}', "stop", "wrong_wrapper"),
        ('{"finish": true, "name": "x"}', "stop", "wrong_wrapper"),
        ('read_file(path="a")', "stop", "wrong_wrapper"),
        ("<function=read_file>{}</function>", "stop", "wrong_wrapper"),
        ("Action: read_file\nAction Input: a", "stop", "wrong_wrapper"),
        ("<tool_call>read_file a</tool_call>", "stop", "wrong_wrapper"),
    ],
)
def test_everything_else_is_refused_by_name(text, finish_reason, code):
    found = extract(text, finish_reason, ["read_file"])
    assert found.failure is not None and found.failure.code == code
    assert found.text == "" and not found.finish


@pytest.mark.case(7)
def test_two_calls_back_to_back_are_one_refusal_and_never_half_a_call():
    found = extract('{"a":1}{"a":2}')
    assert found.failure.code == "several_calls" and "2 calls" in found.failure.what


def test_finish_is_read_in_the_same_places():
    for text in (FINISH, f"All done.\n{FINISH}\n", f"```json\n{FINISH}\n```", f"<tool_call>{FINISH}</tool_call>"):
        assert extract(text).finish


@pytest.mark.parametrize("marker", ["<think>", "</think>", "<tool_call>", "</tool_call>", "```", "[", FINISH, CALL])
def test_markers_inside_an_argument_are_just_text(marker):
    call = json.dumps({"name": "write_file", "arguments": {"path": "a", "content": f"x {marker} y\n{marker}"}})
    for text in (call, f"Now.\n```json\n{call}\n```", f"<tool_call>{call}</tool_call>"):
        assert extract(text).text == call


@pytest.mark.parametrize("surplus", ["}", "]", ",", " }", "}}"])
def test_what_stands_too_much_behind_a_call_is_left_to_the_parser(surplus):
    assert extract(CALL + surplus).text == CALL + surplus


names = st.text(st.characters(codec="utf-8", exclude_characters='"\\'), min_size=1, max_size=8)
plain = st.none() | st.integers() | st.text(max_size=12)
values = st.recursive(plain, lambda v: st.lists(v, max_size=3) | st.dictionaries(names, v, max_size=3), max_leaves=8)


@given(
    st.dictionaries(names, values, max_size=4), st.sampled_from(["", "I think.\n", "<think>{</think>\n", "```json\n"])
)
def test_any_call_survives_its_surroundings(arguments, before):
    call = json.dumps({"name": "t", "arguments": arguments})
    after = "\n```" if before.startswith("```") else "\n"
    assert json.loads(extract(before + call + after).text) == {"name": "t", "arguments": arguments}


pieces = st.sampled_from(["{", "}", "[", "]", '"', "'", "\\", "\n", "```", "<tool_call>", "</tool_call>", "<think>", CALL,
                          '{"name":', FINISH, "read_file(", ",", " ", "a", "\ud800", "é"])  # fmt: skip


@given(st.lists(pieces, max_size=30).map("".join), st.sampled_from(["stop", "length", "lost"]))
def test_any_text_gives_exactly_one_of_call_finish_and_failure(text, finish_reason):
    found = extract(text, finish_reason, ["read_file"])
    assert [bool(found.text), found.finish, found.failure is not None].count(True) == 1
    if found.text:
        assert text[slice(*found.span)] == found.text


@pytest.mark.parametrize("text", ["{}" * 190_000, "{" * 390_000, "\n" * 390_000, '{"' * 190_000, '{"x":1}\n' * 40_000])
def test_hostile_text_is_read_in_linear_time(text):
    # A quadratic search would need minutes here; the suite's own time is the witness, not a stopwatch.
    assert extract(text, "stop", ["read_file"]).failure is not None


@given(st.sampled_from(["", "read it:\n", "<think>\nhm\n</think>\n", "```json\n"]), st.sampled_from(["", "\n", "\n```", " \n\n"]),
       st.dictionaries(st.text(max_size=5), st.text(max_size=12), max_size=3))  # fmt: skip
def test_a_reply_that_is_a_call_alone_is_taken_as_one_with_words_before_it(before, after, arguments):
    call = json.dumps({"name": "t", "arguments": arguments})
    alone, among = extract(call), extract(before + call + after)
    assert alone.value == among.value == {"name": "t", "arguments": arguments}
    assert (
        json.loads(alone.text) == json.loads(among.text) and (before + call + after)[slice(*among.span)] == among.text
    )
