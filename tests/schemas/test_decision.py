"""The decision rule: the printed digits, the general form by hand and by simulation, and what turns it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.schemas.decision import (
    CONSTRAIN,
    DO_NOT,
    Bargain,
    Rates,
    decide,
    decide_under_uncertainty,
    failure_cost,
    share_draws,
    sides,
)
from modtools.schemas.decision_examples import PRINTED, example


def test_the_printed_digits():
    m2, e21 = PRINTED["m2"], PRINTED["e21"]
    assert (round(m2.left, 3), round(m2.right(), 3), m2.verdict()) == (0.056, 0.075, DO_NOT)
    assert round(m2.break_even(), 3) == 0.107
    at_a_fifth = replace(m2, p_f=0.20)
    assert round(at_a_fifth.left, 2) == 0.14 and at_a_fifth.verdict() == CONSTRAIN
    assert (round(e21.left, 4), round(e21.right(), 4), e21.verdict()) == (0.0450, 0.1075, DO_NOT)
    assert round(e21.break_even(), 3) == 0.358
    # Without the base call, which both sides pay.
    assert round(m2.right(False), 3) == 0.060 and round(m2.break_even(False), 3) == 0.086
    assert round(e21.right(False), 3) == 0.100


@pytest.mark.parametrize("name", ["m2", "e21"])
def test_the_examples_in_one_unit_are_the_printed_ones_without_the_base_call(name):
    bargain, rates = example(name)
    decision = decide(bargain, rates)
    assert decision.left == pytest.approx(PRINTED[name].left, abs=1e-9)
    assert decision.right == pytest.approx(PRINTED[name].right(False))
    assert decision.break_even["p_free"] == pytest.approx(PRINTED[name].break_even(False), abs=1e-4)
    with pytest.raises(UsageError, match="choose one of m2, e21"):
        example("m3")


@pytest.mark.parametrize(
    ("first", "again", "retries", "expected"),
    [
        (0.2, None, 1, 0.2 * 3 + 0.04 * 10),
        (0.2, None, 3, (0.2 + 0.04 + 0.008) * 3 + 0.0016 * 10),
        (0.2, 0.5, 2, (0.2 + 0.1) * 3 + 0.05 * 10),
        (1.0, None, 4, 4 * 3 + 10),
        (0.0, None, 5, 0.0),
        (0.3, None, 0, 0.3 * 10),
        (0.2, 0.0, 5, 0.2 * 3),
    ],
)
def test_the_cost_of_failing_by_hand(first, again, retries, expected):
    assert failure_cost(first, again, retries, 3, 10) == pytest.approx(expected)


def test_the_cost_of_failing_is_what_a_simulation_of_attempts_costs():
    rng, first, again, retries, retry, loss = np.random.default_rng(0), 0.4, 0.7, 3, 2.0, 9.0
    fails = rng.random((200_000, retries + 1)) < np.array([first, *[again] * retries])
    alive = np.cumprod(fails, axis=1)
    cost = alive[:, :retries].sum(axis=1) * retry + alive[:, -1] * loss
    assert failure_cost(first, again, retries, retry, loss) == pytest.approx(cost.mean(), abs=4 * cost.std() / 447)


def test_a_masked_retry_pays_its_mask_and_both_arms_may_fail():
    bargain = Bargain(p_free=0.3, p_masked=0.1, retries=1, retry_seconds=2, lost_successes=5, mask_seconds_a_token=0.01,
                      tokens_a_call=20, compile_seconds=6, calls_a_grammar=3, overhead_tokens=4, quality_successes=0.02)  # fmt: skip
    left, right = sides(bargain, Rates(second=1, token=0.1, success=10))
    assert left == pytest.approx((0.3 * 2 + 0.09 * 50) - (0.1 * 2.2 + 0.01 * 50))
    assert right == pytest.approx(6 / 3 + 0.4 + 0.2 + 0.2)


def test_retries_that_fail_and_a_lost_call_turn_the_sources_verdict():
    bargain, rates = example("m2")
    assert decide(bargain, rates).verdict == DO_NOT
    stubborn = replace(bargain, p_free_again=0.9, retries=3, lost_successes=1)
    assert decide(stubborn, rates).verdict == CONSTRAIN


def test_every_break_even_lies_where_the_two_sides_are_equal_and_every_slope_is_a_difference():
    bargain = Bargain(p_free=0.2, p_masked=0.05, p_free_again=0.5, p_masked_again=0.3, retries=2, retry_seconds=1,
                      retry_tokens=100, lost_successes=0.5, compile_seconds=0.4, calls_a_grammar=5, overhead_seconds=0.02,
                      overhead_tokens=3, mask_seconds_a_token=0.001, tokens_a_call=30, quality_successes=0.01)  # fmt: skip
    rates = Rates(second=0.1, token=0.0005, success=1.0, unit="euros")
    decision = decide(bargain, rates)
    assert decision.unit == "euros" and {"p_free", "quality_successes", "compile_seconds"} <= set(decision.break_even)
    for name, value in decision.break_even.items():
        left, right = sides(replace(bargain, **{name: value}), rates)
        assert left == pytest.approx(right, abs=1e-7), name
        assert (
            decide(replace(bargain, **{name: value * 1.01 + 1e-3}), rates).verdict
            != decide(
                replace(bargain, **{name: max(0, value * 0.99 - 1e-3) if value > 0 else value * 1.01 - 1e-3}), rates
            ).verdict
        ), name
    numbers = {each.name for each in fields(bargain)} - {"retries"}
    assert set(decision.sensitivity) == numbers
    for name, slope in decision.sensitivity.items():
        now, step = getattr(bargain, name), 1e-4
        above, below = (np.subtract(*sides(replace(bargain, **{name: now + d}), rates)) for d in (step, -step))
        assert slope == pytest.approx((above - below) / (2 * step), rel=1e-3, abs=1e-9), name
    assert decision.sensitivity["p_free"] > 0 > decision.sensitivity["p_masked"]


def test_what_cannot_turn_the_verdict_has_no_break_even():
    decision = decide(Bargain(p_free=0, retry_seconds=1, overhead_seconds=0.1), Rates())
    assert decision.verdict == DO_NOT and "retry_seconds" not in decision.break_even


def test_uncertain_rates_are_carried_through():
    bargain, rates = Bargain(p_free=0.5, retry_seconds=1, overhead_seconds=0.2), Rates()
    few = decide_under_uncertainty(bargain, rates, {"p_free": share_draws(2, 10)})
    many = decide_under_uncertainty(bargain, rates, {"p_free": share_draws(400, 1000)})
    assert 0.3 < few.constrain_share < 0.7 and few.low < 0 < few.high  # 0.2 is the break-even
    assert many.constrain_share > 0.99 and many.low > 0 and many.high - many.low < few.high - few.low
    assert decide_under_uncertainty(bargain, rates, {"p_free": np.array([0.3])}).surplus == pytest.approx(0.1)


@pytest.mark.parametrize(
    "uncertain", [{}, {"p_free": np.array([])}, {"p_free": np.zeros(2), "p_masked": np.zeros(3)}, {"p": np.zeros(2)}]
)
def test_draws_that_do_not_fit_are_refused(uncertain):
    with pytest.raises(UsageError):
        decide_under_uncertainty(Bargain(0.1), Rates(), uncertain)


@pytest.mark.parametrize(
    "wrong",
    [
        {"p_free": 1.2}, {"p_free": -0.1}, {"p_free": float("nan")}, {"p_free": 0.1, "p_masked_again": 2},
        {"p_free": 0.1, "retries": -1}, {"p_free": 0.1, "retries": 1.5}, {"p_free": 0.1, "calls_a_grammar": 0},
        {"p_free": 0.1, "retry_seconds": -1}, {"p_free": 0.1, "compile_seconds": float("inf")},
    ],
)  # fmt: skip
def test_inputs_out_of_range_are_named(wrong):
    with pytest.raises(UsageError):
        Bargain(**wrong)
    with pytest.raises(UsageError):
        share_draws(3, 2)
