"""Paired comparisons: equal to scipy's, right in coverage, and plain about data that support no test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.by_task import LOG_RATIO, pair
from modtools.lab.analysis.paired import compare, holm, mean_contrast


def success(record) -> float:
    return float(record["success"])


def tokens(record) -> float:
    return sum(record["tokens"].values())


def test_it_is_the_paired_t_test_on_task_means(run):
    records = run(lambda s, c: {"fine": 0.7, "code": 0.5}.get(s, 0.2), lambda s, c: 100.0, tasks=20)
    means = {
        s: [
            np.mean([r["success"] for r in records if r["surface"] == s and r["task"] == f"t{i:03d}"])
            for i in range(20)
        ]
        for s in ("fine", "code")
    }
    expected = stats.ttest_rel(means["fine"], means["code"])
    interval = expected.confidence_interval(0.95)
    found = compare(records, "fine", "code", success)
    assert found.outcome == "estimated" and found.n == 20
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.estimate == pytest.approx(np.mean(means["fine"]) - np.mean(means["code"]))


def test_the_bootstrap_is_scipys_over_tasks():
    values = np.random.default_rng(3).exponential(size=40)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    ours = mean_contrast(values)
    assert (ours.boot_low, ours.boot_high) == pytest.approx((theirs.low, theirs.high), abs=0.03)
    assert mean_contrast(values) == ours and mean_contrast(values, seed=1) != ours


def test_a_tasks_seeds_count_once(run, record):
    records = run(lambda s, c: 0.5, lambda s, c: 100.0, tasks=10, seeds=1)
    copied = [r | {"seed": k} for r in records for k in range(20)]
    assert compare(copied, "fine", "code", success) == compare(records, "fine", "code", success)


def test_log_ratios_are_of_the_means_over_seeds(record):
    records = [record(t, s, k, tokens=v) for t in "ab" for s, k, v in
               (("code", 0, 10), ("code", 1, 30), ("fine", 0, 5), ("fine", 1, 5))]  # fmt: skip
    assert pair(records, "code", "fine", tokens).contrasts(LOG_RATIO) == pytest.approx([np.log(4)] * 2)


def test_coverage_and_type_one_error_of_student_t(likely):
    rng = np.random.default_rng(5)
    n, repetitions, truth = 30, 300, 0.1
    found = [mean_contrast((rng.random(n) < 0.5) - (rng.random(n) < 0.4) * 1.0) for _ in range(repetitions)]
    assert likely(sum(f.low <= truth <= f.high for f in found), repetitions, 0.952)
    null = [mean_contrast(rng.exponential(size=n) - 1 + rng.standard_normal(n)).p < 0.05 for _ in range(repetitions)]
    assert likely(sum(null), repetitions, 0.05)


@pytest.mark.whole
def test_the_coverage_figures_of_the_design_come_out_again():
    rng = np.random.default_rng(6)
    repetitions = 1500
    for n, of_t, of_boot in ((30, 0.952, 0.934), (50, 0.961, 0.946)):
        found = [mean_contrast((rng.random(n) < 0.6) * 1.0 - (rng.random(n) < 0.5), seed=i) for i in range(repetitions)]
        assert np.mean([f.low <= 0.1 <= f.high for f in found]) == pytest.approx(of_t, abs=0.02)
        assert np.mean([f.boot_low <= 0.1 <= f.boot_high for f in found]) == pytest.approx(of_boot, abs=0.02)


def test_one_task_has_an_estimate_and_no_test():
    found = mean_contrast(np.array([0.4]))
    assert (found.outcome, found.estimate, found.low, found.p) == ("too few tasks", 0.4, None, None)
    assert found.text() == "0.40 (too few tasks, n=1)"


def test_equal_differences_get_the_sign_flip_test():
    found = mean_contrast(np.full(6, 0.1 + 0.2))
    assert (found.outcome, found.low, found.p) == ("no variation", None, 2 / 2**6)
    assert mean_contrast(np.zeros(6)).p == 1.0


def test_holm_by_hand_and_a_missing_member_keeps_its_place():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.01, None, 0.03, 0.005]) == [pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.02)]
    assert holm([]) == []
    with pytest.raises(UsageError, match="nan"):
        holm([0.01, float("nan")])


def test_records_that_cannot_be_paired_are_named(record):
    one = [record("t", "fine"), record("t", "code")]
    with pytest.raises(RecordError, match="no episodes on the surface 'coarse'"):
        compare(one, "coarse", "fine", success)
    with pytest.raises(RecordError, match="t/fine/0 stands twice"):
        compare([*one, one[0]], "code", "fine", success)
    with pytest.raises(RecordError, match="t/code/0: the quantity is nan"):
        compare(one, "code", "fine", lambda r: float("nan"))
    with pytest.raises(RecordError, match="several arms"):
        compare([*one, record("t", "fine", arm="b")], "code", "fine", success)
    with pytest.raises(RecordError, match="no task was run on both"):
        compare([record("t", "fine"), record("u", "code")], "code", "fine", success)
    with pytest.raises(RecordError, match="c=1 and with c=2"):
        compare([record("t", "fine"), record("t", "code", c=2)], "code", "fine", success)
    with pytest.raises(RecordError, match="task t on code: the mean is 0"):
        compare([record("t", "fine"), record("t", "code", tokens=0)], "code", "fine", tokens, LOG_RATIO)
    with pytest.raises(UsageError, match="finite"):
        mean_contrast(np.array([1.0, np.inf]))


def test_what_could_not_be_paired_is_told(record):
    records = [record("t", "fine"), record("t", "code"), record("t", "code", 1), record("u", "fine")]
    pairs = pair(records, "code", "fine", success)
    assert (pairs.tasks, pairs.unpaired, pairs.uneven) == (("t",), ("u",), ("t",))
