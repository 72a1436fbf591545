"""The pure cores behind the widgets about what an interface costs."""

from __future__ import annotations

import json

import pytest

from modtools.errors import UsageError
from modtools.schemas.caching import CachePrices
from modtools.schemas.decision import Bargain, Rates
from modtools.schemas.decision_examples import example
from modtools.schemas.entropy import entropy_of
from modtools.teaching.break_even_explorer import break_even_explorer, break_even_html
from modtools.teaching.cache_explorer import cache_explorer, cache_html
from modtools.teaching.estimator_race import DISTRIBUTIONS, estimator_race, race
from modtools.teaching.schema_editor import FIRST, editor_html, schema_editor


def count(text: str) -> int:
    return len(text.split())


def test_the_verdict_turns_where_the_explorer_says_it_does():
    bargain, rates = example("m2")
    shown = break_even_html(bargain, rates)
    assert "<b>do not constrain</b>: masking spares 0.0560 and costs 0.0600" in shown and "0.08571" in shown
    assert "<b>constrain</b>" in break_even_html(Bargain(**{**bargain.__dict__, "p_free": 0.0858}), rates)
    assert "never" in break_even_html(Bargain(p_free=0.0, overhead_seconds=0.0), Rates())


def test_the_break_even_widget_follows_its_controls_and_refuses_words():
    box = break_even_explorer()
    free, masked, retries, tokens, *_, shown = box.children
    assert "do not constrain" in shown.value
    free.value = 20
    assert "<b>constrain</b>: masking spares 0.1400" in shown.value
    masked.value = 20
    assert "do not constrain" in shown.value
    tokens.value = "many"
    assert "is no number" in shown.value


def test_bias_shrinks_with_the_sample_and_plug_in_is_too_low():
    exact = entropy_of(DISTRIBUTIONS["64 kinds, alike"])
    assert exact == 6
    few, many = ({each.estimator: each for each in race("64 kinds, alike", n)} for n in (30, 3000))
    assert few["plug-in"].bias < -1.5 and abs(few["Chao-Wang-Jost"].bias) < 0.3
    assert all(abs(each.bias) < 0.05 for each in many.values())
    assert few["plug-in"].mean == pytest.approx(exact + few["plug-in"].bias)
    with pytest.raises(UsageError, match="expected one of"):
        race("no such", 30)


def test_the_race_gives_an_interval_only_where_coverage_supports_one():
    box = estimator_race()
    distribution, seen, seed, shown = box.children
    distribution.value, seen.value = "1024 kinds, alike", "30"
    assert "at least" in shown.value
    distribution.value, seen.value = "8 kinds, alike", "300"
    assert " to " in shown.value.split("With one sample")[1]


def test_the_cache_models_stand_side_by_side_and_the_first_reading_is_never_a_hit():
    free_reads = cache_html(300, 10, 1, CachePrices(1.0, 0.0))
    assert free_reads.count(">300.0<") == 2 and ">3000.0<" in free_reads  # M2's numbers agree just there
    twenty = cache_html(300, 20, 2, CachePrices(1.0, 0.0))
    assert "600.0" in twenty
    with pytest.raises(UsageError, match="never a hit"):
        cache_html(300, 10, 0, CachePrices())
    box = cache_explorer()
    tokens, calls, misses, *_, shown = box.children
    misses.value = 50
    assert "expected 1 to 10" in shown.value
    misses.value, tokens.value = 2, "no"
    assert "expected numbers" in shown.value


def test_the_editor_prices_and_lints_what_stands_in_the_box():
    shown = editor_html(FIRST, count)
    assert "catch_all" in shown and "tokens</b>" in shown
    good = {
        "name": "read_file",
        "description": "Read a text file of the workspace. Fails where the path does not exist.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "path from the root, e.g. src/a.py", "maxLength": 200}},
            "required": ["path"],
            "additionalProperties": False,
        },
    }  # fmt: skip
    assert "catch_all" not in editor_html(json.dumps(good), count)
    box = schema_editor(count)
    text, shown = box.children
    for broken, said in (('{"name": ', "no JSON yet"), ("[]", "at least one tool"), ("[" * 20000, "no JSON yet")):
        text.value = broken
        assert said in shown.value
    text.value = '{"name": "<script>", "parameters": {"type": "object"}}'
    assert "<script>" not in shown.value
