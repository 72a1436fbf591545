"""Patterns mean what ECMA-262 and JSON Schema say, and what is not regular is refused by name."""

from __future__ import annotations

import json
import random
import re

import pytest

from modtools.errors import UsageError
from modtools.masking import PatternError, compile_json_schema, compile_regex
from modtools.masking.byte_automaton import json_string
from modtools.masking.regex import pattern_dfa

PATTERNS = [
    "^(?:cat|dog)$", "[0-9]", "a|^b$|c$", "^[a-zA-Z]{2}|^[a-z]-[a-z]?$", "x{2,3}y*?", "^.$", "^[^a-c]+$", r"^\d+\.\d{2,}$",
    r"^[\w.-]+@[\w-]+\.[a-z]{2,}$", r"\\", r"^[\]\[-]$", "^(a*)*b$", "^$", "(?<year>[12]\\d{3})", r"^é+\u00ea?$",
    r"^[\x20-\x7e]{0,3}$", "^(a|ab)(c|bcd)(d*)$", "^a.{2}[^\\n]b?$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_what_python_finds(pattern):
    rng, dfa = random.Random(pattern), pattern_dfa(pattern)
    python = re.compile(pattern.replace("(?<", "(?P<").replace("$", r"\Z"), re.ASCII)
    alphabet = 'abcdxy019.-@\\[]é ê_{,}2"\t' + "".join(c for c in pattern if c.isalnum())
    for _ in range(400):
        text = "".join(rng.choices(alphabet, k=rng.randrange(8)))
        assert (dfa.label(text) is not None) == bool(python.search(text)), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_spelling_of_a_text_in_a_json_string_is_judged_alike(pattern):
    rng, dfa = random.Random(pattern), pattern_dfa(pattern)
    automaton = json_string(dfa)
    for _ in range(150):
        text = "".join(rng.choices('ab/cxy1.-@é\U0001f600\ud7ff"\\\n', k=rng.randrange(6)))
        for spelled in (json.dumps(text), json.dumps(text, ensure_ascii=False), json.dumps(text).replace("/", r"\/")):
            state = 0
            for byte in spelled.encode():
                state = automaton.row(state)[byte] if state >= 0 else state
            assert (state >= 0 and automaton.labels[state] is not None) == (dfa.label(text) is not None), spelled


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        (r"\bword", r"\\b"), ("(?=a)", r"\(\?=a"), ("(?<!a)b", r"\(\?<!"), (r"(a)\1", r"escape \\1"), ("(a", "group"),
        ("a)", r"unmatched \)"), ("[a", "class without end"), ("a{3,1}", "out of order"), ("*a", "nothing to repeat"),
        (r"\p{Script=Greek}", "Script=Greek"), ("[b-a]", "out of order"), ("a{99999}", "beyond"),
    ],
)  # fmt: skip
def test_what_is_broken_or_not_regular_is_refused_by_name(pattern, named):
    with pytest.raises(PatternError, match=named):
        compile_regex(pattern)
    with pytest.raises(Exception, match="pattern at /items"):
        compile_json_schema({"items": {"pattern": pattern}})


def test_a_whole_text_is_matched_by_compile_regex():
    grammar = compile_regex("a(bc)+|é")
    assert [grammar.accepts(t.encode()) for t in ("abc", "abcbc", "é", "a", "xabc", "abcx", "")] == [True] * 3 + [
        False
    ] * 4
    with pytest.raises(UsageError, match="matches no text"):
        compile_regex("a[]")


def test_unicode_categories_and_ecma_blanks():
    assert pattern_dfa(r"^\p{Lu}\P{L}$").label("É1") and not pattern_dfa(r"^\p{Lu}$").label("é")
    assert pattern_dfa(r"^\s$").label("\ufeff") and not pattern_dfa(r"^\w$").label("é")


def test_a_character_beyond_16_bits_is_one_character():
    grammar = compile_json_schema({"type": "string", "pattern": "^[\U0001f600-\U0001f64f]$"})
    accepted = ['"\U0001f600"', r'"\ud83d\ude00"', r'"\uD83D\uDE4F"']
    refused = ['"\U0001f5ff"', r'"\ud83d\ude50"', r'"\ud83d"', r'"\ude00"', r'"\ud83dx"']
    assert [t for t in accepted if not grammar.accepts(t.encode())] == []
    assert [t for t in refused if grammar.accepts(t.encode())] == []
