"""The log-odds check: equal to the formula interface, and separation told by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

from modtools.lab.analysis import gee
from modtools.lab.analysis.gee import interaction


def logistic(x):
    return 1 / (1 + np.exp(-x))


def test_it_is_the_call_of_the_design(run):
    records = run(lambda s, c: logistic(1 - 0.3 * c * (s == "fine")), lambda s, c: 10.0, surfaces=("fine", "code"))
    table = pd.DataFrame(
        {"y": r["success"] * 1, "surface": r["surface"], "c": r["stratum"], "task": r["task"]} for r in records
    )
    fit = smf.gee("y ~ C(surface, Treatment('fine'))*c", "task", table, family=sm.families.Binomial(),
                  cov_struct=sm.cov_struct.Exchangeable()).fit(cov_type="bias_reduced")  # fmt: skip
    found = interaction(records, "code", "fine")
    assert found.outcome == "estimated" and found.tasks == 50
    assert (found.estimate, found.p) == pytest.approx((fit.params.iloc[-1], fit.pvalues.iloc[-1]), rel=1e-6, abs=1e-9)
    assert found.low < 0.3 < found.high


@pytest.mark.parametrize(
    ("on_code", "said"),
    [
        (lambda c: 1.0, "code: every episode succeeded"),
        (lambda c: 0.0, "code: no episode succeeded"),
        (lambda c: float(c <= 3), "code: no success above c=3 and no failure below c=5"),
        (lambda c: {1: 1.0, 2: 1.0, 3: 0.5}.get(c, 0.0), "code: no success above c=3 and no failure below c=3"),
        (lambda c: {1: 0.0, 2: 0.0, 3: 0.5}.get(c, 1.0), "code: no failure above c=3 and no success below c=3"),
    ],
)
def test_separation_is_an_outcome_with_its_reason(run, on_code, said):
    chance = {"fine": lambda c: 0.5, "code": on_code}
    records = run(lambda s, c: chance[s](c), lambda s, c: 10.0, surfaces=("fine", "code"))
    found = interaction(records, "code", "fine")
    assert (found.outcome, found.estimate, found.p, found.detail) == ("separated", None, None, said)


def test_degenerate_designs_are_named(run):
    few = run(lambda s, c: 0.5, lambda s, c: 10.0, tasks=4)
    assert interaction(few, "code", "fine").outcome == "too few tasks"
    level = [r | {"stratum": 2} for r in run(lambda s, c: 0.5, lambda s, c: 10.0)]
    assert interaction(level, "code", "fine").outcome == "one complexity"


@pytest.mark.parametrize(("seed", "unseen"), [(1, "not converged"), (0, "estimated")])
def test_separation_unseen_ends_in_nan_or_in_a_wrong_p(run, monkeypatch, seed, unseen):
    """Why it is looked for beforehand; a NaN that comes about in another way is an outcome as well."""
    records = run(lambda s, c: 1.0 if s == "code" else 0.5, lambda s, c: 10.0, surfaces=("fine", "code"), seed=seed)
    assert interaction(records, "code", "fine").outcome == "separated"
    monkeypatch.setattr(gee, "_separation", lambda c, y: "")
    found = interaction(records, "code", "fine")
    assert found.outcome == unseen
    if unseen == "not converged":
        assert (found.estimate, found.p) == (None, None) and "invalid value" in found.detail
    else:
        assert found.p == 0.0 and abs(found.estimate) > 20


@pytest.mark.whole
def test_type_one_error_with_tasks_that_differ(run, likely):
    found = [
        interaction(run(lambda s, c: logistic(0.5 - 0.2 * c), lambda s, c: 10.0, surfaces=("fine", "code"),
                        task_spread=0.15, seed=i), "code", "fine")
        for i in range(300)
    ]  # fmt: skip
    assert {f.outcome for f in found} == {"estimated"}
    assert likely(sum(f.p < 0.05 for f in found), 300, 0.05)
