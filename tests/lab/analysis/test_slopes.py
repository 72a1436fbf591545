"""Slopes on complexity: equal to statsmodels', right in coverage, and plain about degenerate designs."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import LOG_RATIO
from modtools.lab.analysis.slopes import slope_contrast, slope_on_c

C = np.tile([1.0, 2, 3, 5, 8], 10)


def test_it_is_statsmodels_ols_with_hc3():
    y = 0.3 - 0.05 * C + np.random.default_rng(0).standard_normal(50) * C / 10
    fit = sm.OLS(y, sm.add_constant(C)).fit(cov_type="HC3", use_t=True)
    found = slope_contrast(C, y)
    assert (found.estimate, found.p) == pytest.approx((fit.params[1], fit.pvalues[1]))
    assert (found.low, found.high) == pytest.approx(tuple(fit.conf_int()[1]))
    assert found.boot_low < found.estimate < found.boot_high
    assert found.boot_high - found.boot_low == pytest.approx(found.high - found.low, rel=0.25)


def test_records_give_the_planted_slopes(run):
    chance = {"fine": lambda c: 0.9 - 0.08 * c, "code": lambda c: 0.5}
    cost = {"fine": lambda c: 200.0 * c, "code": lambda c: 400 * c**0.3}
    records = run(lambda s, c: chance[s](c), lambda s, c: cost[s](c), tasks=200, surfaces=("fine", "code"))
    success = slope_on_c(records, "code", "fine", lambda r: float(r["success"]))
    assert success.low < 0.08 < success.high and success.p < 1e-6
    tokens = slope_on_c(records, "code", "fine", lambda r: sum(r["tokens"].values()), LOG_RATIO)
    planted = np.polyfit(C, -0.7 * np.log(C), 1)[0]
    assert tokens.low < planted < tokens.high


def test_coverage_under_unequal_spread(likely):
    rng = np.random.default_rng(7)
    repetitions = 300
    noise = [rng.standard_normal(50) * (0.1 + C / 8) for _ in range(repetitions)]
    found = [slope_contrast(C, 0.2 * C + e) for e in noise]
    assert likely(sum(f.low <= 0.2 <= f.high for f in found), repetitions, 0.95)
    assert likely(sum(slope_contrast(C, e).p < 0.05 for e in noise), repetitions, 0.05)


def test_degenerate_designs_are_named():
    assert slope_contrast(C[:2], C[:2]).outcome == "too few tasks"
    assert slope_contrast(np.ones(6), np.arange(6)).outcome == "one complexity"
    lone = slope_contrast(np.array([1.0, 1, 1, 8]), np.array([0.0, 1, 0, 1]))
    assert (lone.outcome, lone.low, lone.p) == ("one task decides", None, None)
    flat = slope_contrast(C, np.full(50, 0.1))
    assert (flat.outcome, flat.p) == ("no variation", 1.0)
    line = slope_contrast(C, 0.1 * C)
    assert (line.outcome, line.p) == ("no variation", None) and line.estimate == pytest.approx(0.1)
    with pytest.raises(UsageError, match="finite"):
        slope_contrast(C, np.full(50, np.nan))
    with pytest.raises(UsageError, match="50 complexities for 3 values"):
        slope_contrast(C, np.ones(3))
