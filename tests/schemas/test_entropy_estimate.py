"""Intervals only where coverage supports them, and a lower bound that holds everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.schemas.entropy import entropy_of, plug_in
from modtools.schemas.entropy_estimate import COVERED, assemblage, estimate_entropy, lower_bound


def zipf(kinds: int) -> np.ndarray:
    p = 1 / np.arange(1, kinds + 1)
    return p / p.sum()


def test_the_interval_covers_where_it_is_given():
    truth, rng, hits, given = entropy_of(zipf(30)), np.random.default_rng(0), 0, 0
    for sample in rng.multinomial(200, zipf(30), size=60):
        found = estimate_entropy(sample, draws=200)
        if found.low is not None:
            given, hits = given + 1, hits + (found.low <= truth <= found.high)
    assert given >= 55 and hits / given >= 0.88  # 0.95 is claimed; below 0.88 of 60 has a chance under 1 %


def test_no_interval_is_given_where_most_things_were_seen_once():
    sample = np.random.default_rng(0).multinomial(50, np.full(1000, 1 / 1000))
    found = estimate_entropy(sample)
    assert found.coverage < COVERED and found.low is None and found.high is None
    assert found.text() == f"at least {found.at_least:.2f} (coverage {found.coverage:.2f})"


def test_the_lower_bound_holds_for_every_kind_of_distribution():
    rng = np.random.default_rng(0)
    for p in (np.full(1000, 1 / 1000), zipf(1000), np.array([0.97, 0.01, 0.01, 0.01]), np.array([0.5, 0.5])):
        bounds = [lower_bound(rng.multinomial(n, p)) for n in (20, 100, 1000) for _ in range(50)]
        assert np.mean([bound <= entropy_of(p) for bound in bounds]) >= 0.97
    assert lower_bound(rng.multinomial(100_000, np.full(16, 1 / 16))) > 3.8  # and says something where much was seen
    assert lower_bound([3, 2]) == 0.0 <= plug_in([3, 2])


def test_one_kind_has_no_spread_and_no_interval():
    found = estimate_entropy([30])
    assert (found.bits, found.low, found.text()) == (0.0, None, "0.00 (n=30)")


def test_the_assemblage_is_a_distribution_with_room_for_the_unseen():
    for counts in ([5, 3, 1, 1], [5, 3, 1], [4, 4], [1, 1, 1, 2, 9], [1, 1]):
        p = assemblage(counts)
        assert p.sum() == pytest.approx(1) and (p > 0).all() and len(p) >= len(counts)
    assert len(assemblage([5, 3, 2, 1, 1, 1])) > 6
    seen = assemblage([50, 30, 1, 1, 2])[:2]
    assert seen[0] == pytest.approx(50 / 84, abs=1e-3)  # what was seen often keeps its share


def test_the_same_seed_gives_the_same_interval_and_wrong_use_is_named():
    assert estimate_entropy([9, 5, 3, 2]) == estimate_entropy([9, 5, 3, 2])
    with pytest.raises(UsageError, match="choose one of plug-in, Miller-Madow, Chao-Wang-Jost"):
        estimate_entropy([3, 2], "best")
    with pytest.raises(UsageError, match="one thing was seen"):
        estimate_entropy([1])
