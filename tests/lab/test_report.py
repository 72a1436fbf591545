"""Metrics and report: intervals only where the data support them, and words that fit the numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from modtools.errors import RecordError
from modtools.lab import metrics
from modtools.lab.plan import Plan
from modtools.lab.report import finding, success_table, summary, write_report
from modtools.lab.run import read_run, run
from modtools.models.scripted import ScriptedModel
from modtools.sandbox import strongest_level


def record(task: str, success: bool = False, surface: str = "fine", calls: int = 2, seed: int = 0, **fields) -> dict:
    tokens = dict.fromkeys(("schema", "prompt", "history", "observation", "reasoning", "call"), 10)
    turns = [{"usage": {"prompt_tokens": 40, "completion_tokens": 20}}]
    base = {"arm": "a", "task": task, "surface": surface, "seed": seed, "stratum": 1, "success": success, "calls": calls,
            "tokens": tokens, "turns": turns, "stages": {}, "codes": {}, "ended_by": "finish"}  # fmt: skip
    return base | fields


def test_success_has_wilsons_interval():
    estimate = metrics.success([record(f"t{i}", i < 3) for i in range(10)])
    # Wilson's closed form, written out: (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n).
    z, n, p = 1.959963984540054, 10, 0.3
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low, high = ((p + z**2 / (2 * n) - half) / (1 + z**2 / n), (p + z**2 / (2 * n) + half) / (1 + z**2 / n))
    assert (estimate.value, estimate.n) == (0.3, 10)
    assert estimate.low == pytest.approx(low) and estimate.high == pytest.approx(high)


def test_repeated_seeds_of_a_task_do_not_count_as_independent():
    once = metrics.success([record(f"t{i}", i < 5) for i in range(10)])
    copied = metrics.success([record(f"t{i}", i < 5, seed=seed) for i in range(10) for seed in range(20)])
    assert copied.value == once.value
    assert copied.high - copied.low > 0.8 * (once.high - once.low)  # twenty copies tell no more than one


def test_one_task_gives_no_interval():
    assert metrics.mean([record("t")], lambda r: r["calls"]) == metrics.Estimate(2.0, None, None, 1)
    assert metrics.mean([record("t")], lambda r: r["calls"]).text(1) == "2.0 (n=1)"


def test_stage_shares_are_shares_of_requests():
    records = [record("a", calls=3, stages={"extract": 3}), record("b", calls=1, stages={})]
    shares = metrics.stage_shares(records)
    assert shares["extract"].value == 0.75 and shares["parse"].value == 0.0
    assert shares["extract"].low < 0.75 <= shares["extract"].high


def test_no_requests_is_no_share():
    assert metrics.stage_shares([record("a", calls=0)])["extract"].text() == "none"


def test_cost_parts_that_do_not_sum_are_an_error():
    broken = record("a", turns=[{"usage": {"prompt_tokens": 41, "completion_tokens": 20}}])
    with pytest.raises(RecordError, match="sum to 60, its turns used 61"):
        metrics.token_parts([broken])


@pytest.fixture(scope="module")
def talked(tmp_path_factory):
    """A run of a model that only talks: a floor."""
    out = tmp_path_factory.mktemp("talked")
    run(Plan(per_stratum=1), ScriptedModel(lambda messages: "I see.", name="talker"), out, strongest_level())
    return out


def test_a_floor_is_called_a_floor_and_says_where_calls_die(talked):
    said = finding(summary(*read_run(talked)))
    assert "floor" in said and "'extract'" in said and "100%" in said


def test_the_report_has_tables_figures_with_alt_text_and_html(talked):
    path = write_report(talked, *read_run(talked))
    text = path.read_text()
    header, rows = success_table(summary(*read_run(talked)))
    assert header[:2] == ["surface", "c=1"] and [row[0] for row in rows] == ["coarse", "fine", "code"]
    assert "Exploratory" in text and "none_found" in text
    for name in ("success", "died", "cost"):
        assert (talked / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"](<figures/{name}.png>)" in text
    assert "coarse: extract 1.00, parse 0.00" in text  # the alt text holds the numbers
    page = (talked / "report.html").read_text()
    assert page.count("<table>") == text.count("\n| ---") and 'alt="Success at complexity' in page


def test_a_run_without_episodes_says_what_to_do(talked):
    manifest, _ = read_run(talked)
    with pytest.raises(RecordError, match="modtools lab run"):
        summary(manifest, [])


@pytest.mark.parametrize("lines", range(1, 15))
def test_an_unfinished_run_can_be_reported_at_any_point(talked, lines, tmp_path):
    manifest, records = read_run(talked)
    text = write_report(tmp_path, manifest, records[:lines]).read_text()
    assert f"{lines} episodes" in text
    missing = lines % 3 != 0 and lines > 2  # some surface lacks a stratum that another has
    assert bool(re.search("no episode(?!s| succeeded)", text)) == missing  # in the figure's words
