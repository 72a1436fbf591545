"""Simulated power against closed forms, against fresh experiments, and against the design's figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import LOG_RATIO, Pairs, pair
from modtools.lab.analysis.paired import mean_contrast
from modtools.lab.analysis.power import Design, achieved_power, fewest_seeds, pilot_power, power_by_seeds
from modtools.lab.analysis.slopes import slope_contrast

STRATA = np.array([1.0, 2, 3, 5, 8])


def t_power(effect: float, deviation: float, n: int, alpha: float = 0.05) -> float:
    """Of the two-sided t test of a mean, by the noncentral t distribution; the wrong side left out."""
    return float(stats.nct.sf(stats.t.ppf(1 - alpha / 2, n - 1), n - 1, effect / deviation * np.sqrt(n)))


def normal_pilot(tasks: int, seeds: int, between: float, within: float, seed: int = 0) -> Pairs:
    """Left is right plus a task's own shift; every seed adds noise on both."""
    rng = np.random.default_rng(seed)
    c = np.tile(STRATA, tasks // 5)
    shift = between * rng.standard_normal(tasks)
    left = shift[:, None] + within * rng.standard_normal((tasks, seeds))
    right = within * rng.standard_normal((tasks, seeds))
    return Pairs("code", "fine", tuple(map(str, range(tasks))), c, tuple(left), tuple(right))


def success(record) -> float:
    return float(record["success"])


@pytest.mark.parametrize("pilot_seeds", [2, 5])
@pytest.mark.parametrize("seeds", [1, 5])
def test_a_pilots_power_is_the_closed_form(pilot_seeds, seeds):
    pilot = normal_pilot(20_000, pilot_seeds, between=0.4, within=0.8)
    found = pilot_power(pilot, Design("mean", 0.25), per_stratum=10, seeds=seeds)
    assert found.tasks == 50
    assert found.value == pytest.approx(t_power(0.25, np.sqrt(0.4**2 + 2 * 0.8**2 / seeds), 50), abs=0.03)


def test_a_pilots_power_for_a_slope_is_that_of_fresh_experiments(run):
    def experiment(tasks: int, seeds: int, seed: int) -> Pairs:
        chance = {"fine": lambda c: 0.8 - 0.06 * c, "code": lambda c: 0.6 - 0.01 * c}
        records = run(lambda s, c: chance[s](c), lambda s, c: 100.0, tasks, seeds, ("fine", "code"), 0.1, seed)
        return pair(records, "code", "fine", success)

    fresh = [experiment(50, 2, seed) for seed in range(1, 201)]
    hits = np.mean([slope_contrast(e.c, e.contrasts()).p < 0.05 for e in fresh])
    found = pilot_power(experiment(300, 4, 0), Design("slope", 0.05), per_stratum=10, seeds=2)
    assert found.value == pytest.approx(hits, abs=0.1)


def test_more_seeds_help_until_the_tasks_are_what_varies():
    pilot = normal_pilot(100, 5, between=0.3, within=1.0)
    powers = power_by_seeds(pilot, Design("slope", 0.08), per_stratum=10, choices=(1, 3, 5, 10))
    values = [power.value for power in powers]
    assert values == sorted(values) and values[0] < 0.5
    chosen = fewest_seeds(powers, 0.7)
    assert chosen == next(power.seeds for power in powers if power.value >= 0.7)
    assert fewest_seeds(powers, 1.1) is None
    stiff = normal_pilot(100, 5, between=1.0, within=0.01)
    few, many = power_by_seeds(stiff, Design("mean", 0.3), per_stratum=10, choices=(1, 20))
    assert few.value == pytest.approx(many.value, abs=0.05)


def test_log_ratios_have_the_power_of_their_linear_part():
    rng = np.random.default_rng(1)
    tasks, within = 1000, 0.2
    sides = [100 * np.exp(within * rng.standard_normal((tasks, 4))) for _ in range(2)]
    pilot = Pairs("code", "fine", tuple(map(str, range(tasks))), np.tile(STRATA, tasks // 5), *map(tuple, sides))
    found = pilot_power(pilot, Design("mean", 0.1, scale=LOG_RATIO), per_stratum=6, seeds=2)
    assert found.value == pytest.approx(t_power(0.1, within, 30), abs=0.06)


def test_achieved_power_is_the_closed_form_and_spares_the_observed_effect():
    rng = np.random.default_rng(2)
    values = rng.standard_normal(60)
    values = (values - values.mean()) / values.std(ddof=1) * 0.5
    c = np.tile(STRATA, 12)
    for shift in (0.0, 3.0):
        found = achieved_power(c, values + shift, Design("mean", 0.2, alpha=0.0125))
        assert found.value == pytest.approx(t_power(0.2, 0.5, 60, 0.0125), abs=0.04)
    down = achieved_power(c, values, Design("slope", -0.08))
    error = 0.5 / np.sqrt(((c - c.mean()) ** 2).sum())
    assert down.value == pytest.approx(float(stats.nct.sf(stats.t.ppf(0.975, 58), 58, 0.08 / error)), abs=0.08)
    assert achieved_power(c, values - 2 * c, Design("slope", -0.08)).value == pytest.approx(down.value, abs=1e-9)


def test_achieved_power_is_right_on_average_for_ten_tasks():
    """Residuals of a fit are smaller than what they stand for; with ten tasks that would show (0.41 for 0.34)."""
    c, design, rng = np.tile(STRATA, 2), Design("slope", 0.25), np.random.default_rng(0)
    shown = [achieved_power(c, rng.standard_normal(10), design, 300, seed=i).value for i in range(300)]
    fresh = [slope_contrast(c, 0.25 * c + rng.standard_normal(10)) for _ in range(1000)]
    assert np.mean(shown) == pytest.approx(np.mean([f.p < 0.05 and f.estimate > 0 for f in fresh]), abs=0.045)


def test_only_the_sign_of_the_effect_counts_as_found():
    values = np.random.default_rng(4).standard_normal(50)
    found = achieved_power(np.tile(STRATA, 10), values, Design("mean", 1e-9), simulations=20_000)
    assert found.value == pytest.approx(0.025, abs=0.006)


def test_each_surfaces_noise_comes_in_with_its_own_sign():
    """Skewed noise on the right, few tasks: t then finds a positive mean and a negative one unlike often."""
    rng = np.random.default_rng(5)
    tasks = 2000
    right = tuple(rng.exponential(size=(tasks, 40)) - 1)
    pilot = Pairs("a", "b", tuple(map(str, range(tasks))), np.tile(STRATA, tasks // 5), (np.zeros(2),) * tasks, right)
    found = pilot_power(pilot, Design("mean", 0.8), per_stratum=2, seeds=1, simulations=5000)
    fresh = 0.8 - (rng.exponential(size=(5000, 10)) - 1)
    direct = {sign: np.mean([(f := mean_contrast(row)).p < 0.05 and f.estimate > 0
                             for row in (fresh if sign > 0 else 1.6 - fresh)[:1000]]) for sign in (1, -1)}  # fmt: skip
    assert abs(direct[1] - direct[-1]) > 0.1
    assert found.value == pytest.approx(direct[1], abs=0.05)


def test_it_is_reproducible_by_its_seed():
    pilot, design = normal_pilot(20, 3, 0.3, 0.5), Design("mean", 0.2)
    assert pilot_power(pilot, design, 4, 3) == pilot_power(pilot, design, 4, 3)
    assert pilot_power(pilot, design, 4, 3) != pilot_power(pilot, design, 4, 3, seed=1)
    found = pilot_power(pilot, design, 4, 3, simulations=100)
    assert found.error == pytest.approx(np.sqrt(found.value * (1 - found.value) / 100))


def test_what_cannot_be_simulated_is_refused_or_named():
    one_seed = Pairs("a", "b", ("t", "u"), np.array([1.0, 1.0]), (np.ones(1),) * 2, (np.ones(1),) * 2)
    with pytest.raises(UsageError, match="one seed"):
        pilot_power(one_seed, Design("mean", 0.1), 5, 5)
    lone = Pairs("a", "b", ("t", "u"), np.array([1.0, 2.0]), (np.ones(2),) * 2, (np.ones(2),) * 2)
    with pytest.raises(UsageError, match="one task with c=1"):
        pilot_power(lone, Design("mean", 0.1), 5, 5)
    with pytest.raises(UsageError, match="one complexity"):
        level = normal_pilot(20, 3, 0.3, 0.5)
        pilot_power(Pairs("a", "b", level.tasks, np.ones(20), level.left_values, level.right_values),
                    Design("slope", 0.1), 5, 5)  # fmt: skip
    with pytest.raises(UsageError, match="effect 0"):
        Design("mean", 0.0)
    with pytest.raises(UsageError, match="0 seeds"):
        pilot_power(normal_pilot(20, 3, 0.3, 0.5), Design("mean", 0.1), 5, 0)
    assert achieved_power(STRATA, np.ones(5), Design("mean", 0.1)) is None
    assert achieved_power(np.ones(5), STRATA, Design("slope", 0.1)) is None


@pytest.mark.whole
def test_the_designs_power_figures_come_out_again(run):
    """Binary paired differences of 10, 15 and 20 points at n = 50; McNemar's test gave .20, .39, .71."""
    rng = np.random.default_rng(3)
    for points, of_mcnemar in ((0.10, 0.20), (0.15, 0.39), (0.20, 0.71)):
        apart = rng.random((1000, 50))
        values = np.where(apart < 0.10 + points, 1.0, np.where(apart < 0.20 + points, -1.0, 0.0))
        direct = np.mean([mean_contrast(row).p < 0.05 for row in values])
        found = np.mean([achieved_power(np.ones(50), row, Design("mean", points), 400).value for row in values[:100]])
        assert found == pytest.approx(direct, abs=0.06)
        assert direct == pytest.approx(of_mcnemar, abs=0.2)  # the exact McNemar test is the more conservative
