"""The planned analysis: right where the truth is known, and clear where there is nothing to say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis import HYPOTHESES, verdicts
from modtools.lab.analysis.crossover import Costs, costs, crossover, curves
from modtools.lab.analysis.gee import gee_check
from modtools.lab.analysis.hypotheses import achieved_power
from modtools.lab.analysis.paired import Differences, differences, holm, mean_effect, per_task, slope_effect
from modtools.lab.analysis.pass_k import pass_at_k, pass_hat_k, pass_table
from modtools.lab.analysis.power import least_seeds, simulate
from modtools.lab.analysis.recovery import injected, natural

STRATA = (1, 2, 3, 5, 8)
H1, H2, H3, H4 = HYPOTHESES


def episode(task, surface, seed, c, success=True, call=100.0, history=500.0, **more):
    tokens = {"schema": 100, "prompt": 50, "history": history, "observation": 80, "reasoning": 0, "call": call}
    return {"task": task, "surface": surface, "seed": seed, "stratum": c, "u": 1, "success": success,
            "tokens": tokens, "turns": [], **more}  # fmt: skip


def run(rng, tasks=50, seeds=5, slope=0.0, overhead=0.0, log_slope=0.0, surfaces=("coarse", "fine", "code")):
    """A run in which the effects are known: tasks differ from each other, surfaces by what is asked for."""
    records = []
    for number in range(tasks):
        c, ease = STRATA[number % 5], rng.normal(0, 0.15)
        for name in surfaces:
            chance = 0.5 + ease + (slope * (c - 3.8) if name == "code" else 0)
            cost = 1000 * np.exp(rng.normal(0, 0.2) + (log_slope * (c - 3.8) if name == "code" else 0))
            for seed in range(seeds):
                call = 100 + rng.normal(0, 20) + (overhead if name == "coarse" else 0)
                success = bool(rng.random() < np.clip(chance, 0.02, 0.98))
                records.append(episode(f"t{number}", name, seed, c, success, call, cost))
    return records


def within(share: float, expected: float, repetitions: int) -> bool:
    """Whether a simulated share is what one expects, up to four standard errors."""
    return abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / repetitions) + 0.01


def test_seeds_are_averaged_within_a_task_before_surfaces_are_compared():
    records = [episode("a", "code", seed, 2, seed < 3) for seed in range(4)]
    records += [episode("a", "fine", seed, 2, seed < 1) for seed in range(4)]
    found = differences(records, "code", "fine", lambda record: float(record["success"]))
    assert found.values.tolist() == [0.5] and per_task(records, "code", lambda r: r["success"]) == {"a": 0.75}


@pytest.mark.parametrize("gone", [lambda r: r["surface"] == "code", lambda r: r["task"] == "t3" and r["surface"] == "fine",
                                  lambda r: r["seed"] == 0 and r["surface"] == "code", lambda r: True])  # fmt: skip
def test_what_was_not_run_on_both_surfaces_is_not_compared(gone):
    records = [record for record in run(np.random.default_rng(0), 8) if not gone(record)]
    with pytest.raises(RecordError, match="finish the run first"):
        differences(records, "code", "fine", lambda record: float(record["success"]))


def test_the_mean_is_students_and_the_slope_least_squares():
    rng = np.random.default_rng(1)
    c, values = np.array([STRATA[i % 5] for i in range(40)], float), rng.normal(0.1, 1, 40)
    found = Differences(tuple(map(str, range(40))), c, values)
    test = stats.ttest_1samp(values, 0)
    effect = mean_effect(found)
    assert effect.value == pytest.approx(values.mean()) and effect.p == pytest.approx(test.pvalue)
    assert (effect.low, effect.high) == pytest.approx(tuple(test.confidence_interval()))
    import statsmodels.api as sm

    fitted = sm.OLS(values, sm.add_constant(c)).fit(cov_type="HC3", use_t=True)
    effect = slope_effect(found)
    assert effect.value == pytest.approx(fitted.params[1]) and effect.p == pytest.approx(fitted.pvalues[1])
    assert (effect.low, effect.high) == pytest.approx(tuple(fitted.conf_int()[1]))
    assert effect.boot_low < effect.value < effect.boot_high


def test_intervals_cover_the_truth_and_nothing_is_found_where_nothing_is():
    rng, repetitions = np.random.default_rng(2), 300
    covered, found, slopes = 0, 0, 0
    c = np.array([STRATA[i % 5] for i in range(50)], float)
    for _ in range(repetitions):
        values = rng.integers(-5, 6, 50) / 5 + 0.1  # a share of five seeds, minus another
        effect = mean_effect(Differences((), c, values), boot=False)
        covered += effect.low <= 0.1 <= effect.high
        slope = slope_effect(Differences((), c, values), boot=False)
        found += slope.p < 0.05
        tilted = slope_effect(Differences((), c, values + 0.3 * c), boot=False)
        slopes += tilted.low <= 0.3 <= tilted.high
    assert within(covered / repetitions, 0.95, repetitions)
    assert within(found / repetitions, 0.05, repetitions) and within(slopes / repetitions, 0.95, repetitions)


def test_where_tasks_do_not_differ_there_is_no_interval():
    same = Differences(("a", "b", "c", "d"), np.array([1.0, 2, 3, 5]), np.full(4, 0.5))
    for effect in (mean_effect(same), slope_effect(same)):
        assert (effect.low, effect.p, effect.boot_low) == (None, None, None)
    with pytest.raises(RecordError, match="different complexity"):
        slope_effect(replace(same, c=np.full(4, 3.0), values=np.arange(4.0)))


def test_holm_is_stepwise_and_keeps_what_was_not_tested_in_the_family():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02, None, None, None]) == [pytest.approx(0.08), None, None, None]
    assert holm([]) == []


def test_effects_that_are_there_are_supported_and_those_turned_round_contradicted():
    effects = {"slope": 0.08, "overhead": 40.0, "log_slope": -0.15}
    found = {v.hypothesis: v for v in verdicts(run(np.random.default_rng(3), **effects))}
    assert [found[name].verdict for name in ("H1", "H2", "H4")] == ["supported"] * 3
    assert found["H3"].verdict == "not tested" and "0 episodes" in found["H3"].why
    turned = {name: -value for name, value in effects.items()}
    found = {v.hypothesis: v for v in verdicts(run(np.random.default_rng(4), **turned))}
    assert [found[name].verdict for name in ("H1", "H2", "H4")] == ["contradicted"] * 3


def test_where_there_is_nothing_the_verdict_is_undecided_and_tells_the_power():
    found = {v.hypothesis: v for v in verdicts(run(np.random.default_rng(5), tasks=25))}
    assert found["H2"].verdict == "undecided" and 0 <= found["H2"].power <= 1 and "power for 10 was" in found["H2"].why


def test_recovery_is_compared_where_the_fault_struck_on_both():
    records = []
    for number in range(30):
        for name in ("fine", "coarse"):
            for seed in range(2):
                struck = not (name == "coarse" and number < 5)
                fault = (
                    {"turn": 1, "operation": "d", "recovered": name == "fine" or number % 3 == 0} if struck else None
                )
                records.append(episode(f"t{number}", name, seed, STRATA[number % 5], fault=fault))
    found = H3.of(records)
    assert len(found.tasks) == 25 and found.values.mean() == pytest.approx(np.mean([n % 3 > 0 for n in range(5, 30)]))
    verdict = verdicts(records, records)[2]
    assert verdict.verdict == "supported" and verdict.effect.n == 25
    of = injected(records, "coarse")
    assert of.met.value == pytest.approx(25 / 30) and of.recovered.value == pytest.approx(
        np.mean([n % 3 == 0 for n in range(5, 30)])
    )


def test_natural_errors_are_met_made_good_and_completed_apart():
    turns = [[("success",)], [("partial",), ("success",)], [("validation_failed",), ("timeout",)]]
    records = [
        episode("t", "fine", seed, 2, seed == 1, turns=[{"outcome": o} for (o,) in each] + [{"outcome": "finished"}])
        for seed, each in enumerate(turns)
    ]
    of = natural(records, "fine")
    assert (of.met.value, of.recovered.value, of.completed.value) == pytest.approx((2 / 3, 0.5, 0.5))


def test_the_power_of_a_plan_is_what_simulating_it_says():
    pilot = run(np.random.default_rng(6), tasks=40, seeds=3)
    few, many = (simulate(pilot, H2, tasks=30, seeds=seeds, draws=150) for seeds in (1, 8))
    assert few.power < many.power <= 1
    nothing = simulate(pilot, replace(H2, smallest=0.0001), tasks=30, seeds=3, draws=300)
    assert nothing.power < 0.08  # half of 5 %, since only the predicted direction counts
    assert simulate(pilot, H2, 30, 3, draws=50) == simulate(pilot, H2, 30, 3, draws=50)
    assert "finish the run" in simulate([r for r in pilot if r["surface"] != "coarse"], H2, 30, 3).why
    with pytest.raises(UsageError, match="at least 4"):
        simulate(pilot, H2, 2, 1)


def test_the_least_number_of_seeds_has_the_wanted_power():
    pilot = run(np.random.default_rng(7), tasks=30, seeds=3)
    seeds, tried = least_seeds(pilot, [replace(H2, smallest=11.0)], tasks=40, most=6)
    assert seeds and tried[-1].power >= 0.8 and all(each.power < 0.8 for each in tried[:-1])
    assert least_seeds(pilot, [replace(H2, smallest=0.01)], tasks=40, most=2)[0] is None


def test_achieved_power_is_that_of_the_smallest_effect_whatever_the_data_show():
    one, other = (H2.of(run(np.random.default_rng(8), overhead=overhead)) for overhead in (0.0, 500.0))
    assert achieved_power(H2, one) == pytest.approx(achieved_power(H2, other), abs=0.1)
    flat = Differences(("a",) * 5, np.ones(5), np.ones(5))
    assert achieved_power(H2, flat) is None


def test_the_logistic_check_finds_the_interaction_and_names_separation():
    records = run(np.random.default_rng(9), slope=0.1)
    check = gee_check(records)
    assert check.outcome == "fitted" and check.low > 0 and check.p < 0.05 and check.tasks == 50
    always = [{**r, "success": True} if r["surface"] == "code" else r for r in records]
    assert gee_check(always).outcome == "separated" and gee_check(always).value is None
    with pytest.raises(RecordError, match="was not run"):
        gee_check([r for r in records if r["surface"] != "code"])


def known_costs(rng, tasks=60, noise=50.0, code=(2000.0, 100.0, 50.0), fine=(500.0, 300.0, 40.0)):
    c = np.array([STRATA[i % 5] for i in range(tasks)], float)
    u = np.maximum(1, np.round(c * rng.random(tasks)))
    truth = Costs(c, u, np.zeros(tasks), np.zeros(tasks))
    on_code = code[0] + code[1] * u + code[2] * np.log(c / u)
    on_fine = fine[0] + fine[1] * c + fine[2] * c**2
    return replace(truth, code=on_code + rng.normal(0, noise, tasks), fine=on_fine + rng.normal(0, noise, tasks))


def test_two_curves_that_meet_are_found_to_meet_there():
    found = known_costs(np.random.default_rng(10))
    cross = crossover(found)
    exact = crossover(known_costs(np.random.default_rng(10), noise=0.0))
    assert exact.code == pytest.approx((2000, 100, 50)) and exact.fine == pytest.approx((500, 300, 40))
    assert cross.outcome == "crossover" and cross.low <= exact.at <= cross.high and cross.share > 0.95
    on_code, on_fine = curves(found, np.array([exact.at]), exact.code, exact.fine)
    assert on_code[0] == pytest.approx(on_fine[0], rel=0.01)


def test_curves_that_do_not_meet_have_no_crossover():
    dear = crossover(known_costs(np.random.default_rng(11), code=(9000.0, 100.0, 0.0)))
    cheap = crossover(known_costs(np.random.default_rng(11), code=(100.0, 10.0, 0.0)))
    assert (dear.outcome, dear.cheaper, dear.at) == ("no crossover in range", "fine", None)
    assert (cheap.outcome, cheap.cheaper) == ("no crossover in range", "code")
    alike = crossover(known_costs(np.random.default_rng(12), 20, 4000.0, (2500.0, 0.0, 0.0), (2500.0, 0.0, 0.0)))
    assert alike.outcome == "no crossover in range"


def test_costs_come_from_records_and_need_enough_of_them():
    found = costs(run(np.random.default_rng(13), 20, log_slope=-0.1))
    assert found.code.shape == (20,) and set(found.c) == set(map(float, STRATA))
    with pytest.raises(RecordError, match="at least 6 of 3"):
        crossover(found.of(np.array([0, 5, 10])))


def test_pass_at_k_and_pass_hat_k_are_what_drawing_tries_gives():
    from itertools import combinations

    tries = [1, 1, 0, 0, 0, 1]
    for k in (1, 2, 4):
        drawn = list(combinations(tries, k))
        assert pass_at_k(6, 3, k) == pytest.approx(np.mean([any(each) for each in drawn]))
        assert pass_hat_k(6, 3, k) == pytest.approx(np.mean([all(each) for each in drawn]))
    table = pass_table([episode("a", "fine", s, 1, s < 2) for s in range(4)], "fine")
    assert table[1] == pytest.approx((0.5, 0.5)) and table[4] == pytest.approx((1.0, 0.0)) and len(table) == 4
    with pytest.raises(UsageError):
        pass_at_k(3, 4, 1)
