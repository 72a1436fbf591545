"""c* against a known truth: right where the curves cross, "no crossover" where they do not, covered by its interval."""

from __future__ import annotations

import numpy as np
import pytest

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.crossover import PATHS, crossover

CODE, FINE = (900.0, 60.0, 40.0), (200.0, 150.0, 10.0)
STRATA = (1, 2, 3, 5, 8)


def code_cost(c: float, u: float, of=CODE) -> float:
    return of[0] + of[1] * u + of[2] * np.log(c / u)


def fine_cost(c: float, of=FINE) -> float:
    return of[0] + of[1] * c + of[2] * c**2


def root(path: str, low: float = 1.0, high: float = 8.0) -> float:
    """Where the true curves cross along "repeated" or "distinct", by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        u = 1 if path == "repeated" else middle
        low, high = (middle, high) if code_cost(middle, u) > fine_cost(middle) else (low, middle)
    return low


def costs(record, tasks=50, noise=0.0, seed=0, code=CODE, fine=FINE, seeds=1) -> list[dict]:
    """Tasks over the strata whose u goes through 1, about half of c, and c."""
    rng = np.random.default_rng(seed)
    records = []
    for i in range(tasks):
        c = STRATA[i % 5]
        u = (1, max(1, c // 2), c)[(i // 5) % 3]
        for surface, cost in (("code", code_cost(c, u, code)), ("fine", fine_cost(c, fine))):
            for k in range(seeds):
                records.append(record(f"t{i:03d}", surface, k, c, tokens=cost + noise * rng.standard_normal(), u=u))
    return records


@pytest.mark.parametrize("path", ["repeated", "distinct"])
def test_reference_solutions_give_the_exact_crossing(record, path):
    found = crossover(costs(record), path=path)
    assert found.outcome == "crossover" and found.cheaper_above == "code"
    assert found.c_star == pytest.approx(root(path), abs=1e-3)
    assert (found.low, found.high) == pytest.approx((found.c_star, found.c_star), abs=1e-6)
    assert found.curves["code"] == pytest.approx(dict(zip("abg", CODE)))
    assert found.curves["fine"] == pytest.approx(dict(zip("abd", FINE)))


def test_the_tasks_own_path_lies_between_the_extremes(record):
    repeated, tasks, distinct = (crossover(costs(record), path=p).c_star for p in ("repeated", "tasks", "distinct"))
    assert repeated < tasks < distinct
    # At a stratum the path is the mean over that stratum's tasks: with fine priced to cost there what code does, c* = 5.
    of = [code_cost(r["stratum"], r["u"]) for r in costs(record) if r["surface"] == "code" and r["stratum"] == 5]
    fine = (np.mean(of) - 5 * 150 - 25 * 10, 150.0, 10.0)
    assert crossover(costs(record, fine=fine)).c_star == pytest.approx(5, abs=1e-6)


def test_coverage_of_the_interval(record, likely):
    truth = root("repeated")
    found = [crossover(costs(record, noise=150, seed=i), path="repeated", draws=500) for i in range(300)]
    assert {f.outcome for f in found} == {"crossover"}
    inside = sum((f.low or -np.inf) <= truth <= (f.high or np.inf) for f in found)
    assert likely(inside, 300, 0.937)


def test_parallel_curves_have_no_crossover(record):
    level = costs(record, noise=150, code=(700, 0, 0), fine=(700, 0, 0))
    found = crossover(level)
    assert (found.outcome, found.c_star, found.low) == ("no crossover in range", None, None)
    assert "does not exclude 0" in found.reason and found.slope.low < 0 < found.slope.high
    assert found.text().startswith("no crossover in range (the slope of code - fine is")


def test_curves_that_meet_outside_the_range_have_no_crossover(record):
    for start in (5000, 10):
        found = crossover(costs(record, noise=20, code=(start, 60, 40)))
        assert (found.outcome, found.reason) == ("no crossover in range", "the curves do not cross between 1 and 8")
        assert found.slope.high < 0


def test_a_crossing_the_other_way_says_so(record):
    records = costs(record, noise=20, code=(100, 400, 40), fine=(500, 150, 10))
    assert crossover(records, path="repeated").slope.high < 0  # the path decides, not the mix of the tasks
    found = crossover(records, path="distinct")
    assert (found.outcome, found.cheaper_above) == ("crossover", "fine") and found.slope.low > 0


def test_an_interval_may_be_open_at_an_end(record):
    late = costs(record, noise=300, code=(1850, 60, 40), seed=3)
    found = crossover(late, path="repeated")
    assert found.outcome == "crossover" and found.high is None and found.low < found.c_star < 8
    assert found.drawn < 0.975 and found.text().endswith("to beyond 8)")


def test_seeds_of_a_task_are_one_cost_and_the_bootstrap_is_reproducible(record):
    records = costs(record, noise=150, seeds=3)
    assert crossover(records) == crossover(records)
    merged = {}
    for r in records:
        merged.setdefault((r["task"], r["surface"]), []).append(r)
    means = [of[0] | {"tokens": {"call": np.mean([sum(r["tokens"].values()) for r in of])}} for of in merged.values()]
    assert crossover(means).c_star == pytest.approx(crossover(records).c_star)
    assert crossover(means).low == pytest.approx(crossover(records).low)


def test_degenerate_inputs_are_named(record):
    one = costs(record, tasks=1)
    assert [crossover(one, path=path).outcome for path in PATHS] == ["curve not identified"] * 3
    repeated = [r for r in costs(record, noise=5) if r["u"] == 1]
    assert crossover(repeated).reason == "these tasks do not fix the curve of code"
    few = crossover(costs(record, tasks=9, noise=5))
    assert few.outcome == "curve not identified" and "of the bootstrap draws do not fix the curves" in few.reason
    assert set(few.curves) == {"code", "fine"}
    with pytest.raises(UsageError, match="unknown path 'u=2'"):
        crossover(one, path="u=2")
    with pytest.raises(RecordError, match="no episodes on the surface 'code'"):
        crossover([r for r in one if r["surface"] == "fine"])
    with pytest.raises(RecordError, match="no task was run on both"):
        crossover([record("a", "code"), record("b", "fine")])
    with pytest.raises(RecordError, match="the quantity is nan"):
        crossover(one, of=lambda r: float("nan"))
