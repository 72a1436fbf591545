"""The pure cores behind the widgets of the lab's notebooks."""

from __future__ import annotations

import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.teaching.crossover_explorer import EVERY, SOLVED, crossover_explorer, found_crossover, priced_tokens
from modtools.teaching.power_explorer import Choice, planned_power, power_explorer

PARTS = ("schema", "prompt", "history", "observation", "reasoning", "call")


def episode(task, surface, seed=0, c=1, success=True, turns=2, u=1, **tokens) -> dict:
    return {"arm": "a", "task": task, "surface": surface, "seed": seed, "stratum": c, "u": u, "success": success,
            "turns": [{}] * turns, "tokens": dict.fromkeys(PARTS, 0) | tokens}  # fmt: skip


def test_a_token_that_is_read_again_has_its_own_price():
    record = episode("t", "fine", turns=4, schema=400, prompt=80, history=100, observation=30, call=20)
    assert priced_tokens(record, 1) == 630
    # New: 100 of the schema, 20 of the prompt, the observations and the calls.
    assert priced_tokens(record, 0) == 100 + 20 + 30 + 20
    assert priced_tokens(record, 0.5) == (630 + 170) / 2
    assert priced_tokens(episode("t", "fine", turns=1, schema=100, prompt=20), 0) == 120


@pytest.fixture(scope="module")
def runs():
    """Fine re-reads its schema at each of c calls; code reads a short one once, and writes a long program."""
    rng, records = np.random.default_rng(0), []
    for i in range(30):
        c = (1, 2, 3, 5, 8)[i % 5]
        for seed in range(3):
            noise = rng.normal(0, 5)
            records.append(
                episode(f"t{i}", "fine", seed, c, c < 8, turns=c, u=1 + i % c, schema=100 * c, call=20 * c + noise)
            )
            records.append(episode(f"t{i}", "code", seed, c, True, turns=1, u=1 + i % c, schema=50, call=300 + noise))
    return records


def test_a_cache_moves_the_crossover_to_larger_tasks(runs):
    dear, cheap = found_crossover(runs), found_crossover(runs, read_again_price=0)
    assert dear.c_star == pytest.approx(350 / 120, abs=0.2)
    assert cheap.c_star is None and "do not cross" in cheap.reason
    assert found_crossover(runs, counted=SOLVED).curves != found_crossover(runs, counted=EVERY).curves
    with pytest.raises(UsageError, match="0 to 1"):
        found_crossover(runs, read_again_price=2)


def test_the_crossover_widget_follows_its_controls_and_says_what_is_missing(runs):
    box = crossover_explorer({"model": runs, "code alone": [r for r in runs if r["surface"] == "code"]})
    run, path, price, counted, shown = box.children
    assert "c*: 2." in shown.value or "c*: 3." in shown.value
    price.value = "nothing"
    assert "do not cross" in shown.value
    run.value = "code alone"
    assert "no episodes on the surface" in shown.value


def test_more_tasks_more_seeds_and_a_larger_effect_give_more_power(run_of_chances):
    pilot = run_of_chances
    base = planned_power(pilot, Choice("H1", 6, 2)).value
    assert base < planned_power(pilot, Choice("H1", 24, 2)).value
    assert base < planned_power(pilot, Choice("H1", 6, 10)).value
    assert base < planned_power(pilot, Choice("H1", 6, 2, effect=3)).value
    with pytest.raises(UsageError, match="no pilot tells the power of 'H3'"):
        planned_power(pilot, Choice("H3"))


def test_the_power_widget_answers_and_refuses_what_is_no_number(run_of_chances):
    box = power_explorer(run_of_chances)
    *_, effect, shown = box.children
    assert "H1" in shown.value and shown.value.count("tasks a stratum") == 3
    for wrong in ("much", "0", "nan"):
        effect.value = wrong
        assert "expected a number" in shown.value


@pytest.fixture(scope="module")
def run_of_chances():
    rng, records = np.random.default_rng(1), []
    for i in range(20):
        c = (1, 2, 3, 5, 8)[i % 5]
        for seed in range(3):
            for surface in ("coarse", "fine", "code"):
                call = 60 + 10 * c + rng.normal(0, 8)
                records.append(episode(f"t{i}", surface, seed, c, rng.random() < 0.6 - 0.04 * c, schema=100, call=call))
    return records
