"""pass@k and pass^k against a count over all subsets, and against the chance they estimate."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.pass_k import pass_at_k, pass_hat_k, pass_k


@pytest.mark.parametrize(("n", "s", "k"), [(5, 2, 1), (5, 2, 3), (5, 2, 4), (5, 0, 2), (5, 5, 5), (6, 3, 2), (6, 1, 6)])
def test_they_are_shares_of_the_subsets(n, s, k):
    subsets = list(combinations([1] * s + [0] * (n - s), k))
    assert pass_at_k(n, s, k) == pytest.approx(np.mean([max(subset) for subset in subsets]))
    assert pass_hat_k(n, s, k) == pytest.approx(np.mean([min(subset) for subset in subsets]))


def test_they_are_unbiased():
    wins = np.random.default_rng(0).binomial(6, 0.4, size=20_000)
    assert np.mean([pass_at_k(6, int(s), 3) for s in wins]) == pytest.approx(1 - 0.6**3, abs=0.01)
    assert np.mean([pass_hat_k(6, int(s), 3) for s in wins]) == pytest.approx(0.4**3, abs=0.01)


def test_of_records(record):
    records = [record("a", "fine", k, success=k < 2) for k in range(4)]
    records += [record("b", "fine", k, success=True) for k in range(4)]
    found = pass_k(records, "fine", 2)
    assert found.at_k.value == pytest.approx((5 / 6 + 1) / 2) and found.hat_k.value == pytest.approx((1 / 6 + 1) / 2)
    assert found.at_k.n == 2 and found.hat_k.low < found.hat_k.value < found.hat_k.high


def test_what_has_no_answer_is_refused(record):
    with pytest.raises(UsageError, match="task a has 1 seeds on fine; pass@2 needs at least 2"):
        pass_k([record("a", "fine")], "fine", 2)
    with pytest.raises(UsageError, match="k=0"):
        pass_at_k(3, 1, 0)
    with pytest.raises(RecordError, match="no episodes on the surface 'code'"):
        pass_k([record("a", "fine")], "code", 1)
