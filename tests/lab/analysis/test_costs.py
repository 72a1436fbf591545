"""Cost parts that sum, and curves that are least squares."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from modtools.errors import RecordError
from modtools.lab.analysis.costs import cost_parts, fit_curve, task_costs, weighted_fits
from modtools.lab.episode import TOKEN_PARTS


def used(prompt: int, reply: int) -> list:
    return [{"usage": {"prompt_tokens": prompt, "completion_tokens": reply}}]


def test_the_parts_sum_to_the_total(record):
    records = [record(t, s, tokens=v, turns=used(v - 10, 10)) for t in "abc" for s, v in (("fine", 90), ("code", 60))]
    records[0]["tokens"]["history"] += 30
    records[0]["turns"] += used(20, 10)
    table = cost_parts(records)
    assert set(table) == {"code", "fine"} and list(table["fine"]) == [*TOKEN_PARTS, "total"]
    for parts in table.values():
        assert sum(parts[part].value for part in TOKEN_PARTS) == pytest.approx(parts["total"].value)
    assert (table["fine"]["total"].value, table["fine"]["history"].value) == (100, 10)
    records[1]["turns"] = used(1, 1)
    with pytest.raises(RecordError, match="episode a/code: cost parts sum to 60"):
        cost_parts(records)


def test_curves_are_ordinary_least_squares(record):
    rng = np.random.default_rng(0)
    records = [
        record(f"{c}{u}{i}", s, k, c, tokens=rng.uniform(100, 900), u=u)
        for c in (1, 2, 3, 5, 8) for u in sorted({1, c}) for i in range(3) for s in ("fine", "code") for k in (0, 1)
    ]  # fmt: skip
    for surface, names in (("code", "abg"), ("fine", "abd")):
        costs = task_costs(records, surface)
        c, u = costs.c, costs.u
        x = np.column_stack([np.ones(len(c)), u, np.log(c / u)] if surface == "code" else [np.ones(len(c)), c, c * c])
        expected = sm.OLS(costs.cost, x).fit().params
        assert fit_curve(costs) == pytest.approx(dict(zip(names, expected)))
        weights = rng.integers(0, 4, size=(3, len(c)))
        found = weighted_fits(costs.design(), costs.cost, weights)
        for row, weight in zip(found, weights):
            assert row == pytest.approx(sm.WLS(costs.cost, x, weights=weight).fit().params)
    seeds = [sum(r["tokens"].values()) for r in records if r["task"] == costs.tasks[0] and r["surface"] == "fine"]
    assert costs.cost[0] == pytest.approx(np.mean(seeds))


def test_a_curve_the_tasks_do_not_fix_is_none(record):
    repeated = [record(str(c), "code", c=c, u=1, tokens=10 * c) for c in (1, 2, 3, 5, 8)]  # u is 1 throughout
    assert fit_curve(task_costs(repeated, "code")) is None
    two_strata = [record(str(c), "fine", c=c, tokens=10 * c) for c in (1, 2)]
    assert fit_curve(task_costs(two_strata, "fine")) is None


def test_payloads_must_fit(record):
    with pytest.raises(RecordError, match="task t: u=3, c=2"):
        task_costs([record("t", "code", c=2, u=3)], "code")
    with pytest.raises(RecordError, match="task t: u=2, c=2; expected one u"):
        task_costs([record("t", "code", c=2, u=1), record("t", "fine", c=2, u=2)], "code")
    with pytest.raises(RecordError, match="no episodes on the surface 'code'"):
        task_costs([], "code")
