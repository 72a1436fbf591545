"""The estimators against another library, against quadrature, against known distributions, and against their own claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import digamma, gammaln, polygamma

from modtools.errors import UsageError
from modtools.schemas.entropy import (
    ESTIMATORS,
    _unseen,
    chao_wang_jost,
    counts_of,
    coverage,
    entropy_of,
    miller_madow,
    nsb,
    plug_in,
)

SAMPLES = (
    [7, 5, 3, 3, 2, 1, 1, 1],
    [1, 1, 1, 1, 1, 2],
    [1, 1, 1, 1],
    [40, 30, 20, 9, 1],
    [12, 12, 12],
    [1] * 30 + [2] * 3 + [17],
    [2, 1],
    [300, 2, 1],
)


def zipf(kinds: int) -> np.ndarray:
    p = 1 / np.arange(1, kinds + 1)
    return p / p.sum()


DISTRIBUTIONS = {
    "uniform 50": np.full(50, 1 / 50),
    "uniform 1000": np.full(1000, 1 / 1000),
    "Zipf 50": zipf(50),
    "Zipf 1000": zipf(1000),
}


@pytest.mark.parametrize("counts", SAMPLES)
def test_the_estimators_agree_with_another_library(counts):
    infomeasure = pytest.importorskip("infomeasure")
    data = [kind for kind, many in enumerate(counts) for _ in range(many)]
    for name, theirs in (
        ("plug-in", "discrete"),
        ("Miller-Madow", "miller_madow"),
        ("Chao-Wang-Jost", "chao_wang_jost"),
    ):
        expected = infomeasure.entropy(data, approach=theirs, base=2)
        assert ESTIMATORS[name](np.array(counts)) == pytest.approx(expected, abs=1e-9), name


def quadrature(counts: list[int], kinds: int) -> float:
    """NSB as its definition says it, integrated over the mean entropy's own scale by an adaptive rule."""
    n, padded = sum(counts), np.array(list(counts) + [0] * (kinds - len(counts)))

    def log_evidence(beta):
        return gammaln(kinds * beta) - gammaln(n + kinds * beta) + (gammaln(padded + beta) - gammaln(beta)).sum()

    def mean(beta):
        total = n + kinds * beta
        return digamma(total + 1) - ((padded + beta) / total * digamma(padded + beta + 1)).sum()

    def density(t):
        beta = math.exp(t)
        return beta * (kinds * polygamma(1, kinds * beta + 1) - polygamma(1, beta + 1))

    top = max(log_evidence(math.exp(t)) for t in np.linspace(-20, 15, 500))
    weights = lambda t: math.exp(log_evidence(math.exp(t)) - top) * density(t)
    options = {"limit": 500, "epsabs": 0, "epsrel": 1e-9, "points": [-8, -4, -2, 0, 2, 4, 8]}
    above = integrate.quad(lambda t: weights(t) * mean(math.exp(t)), -20, 15, **options)[0]
    return above / integrate.quad(weights, -20, 15, **options)[0] / math.log(2)


@pytest.mark.parametrize(
    ("counts", "kinds"), [([7, 5, 3, 3, 2, 1, 1, 1], 20), ([4, 2, 1], 3), ([1] * 6, 50), ([50, 3, 1], 10)]
)
def test_nsb_is_what_quadrature_gives(counts, kinds):
    assert nsb(counts, kinds) == pytest.approx(quadrature(counts, kinds), abs=2e-4)


def test_nsb_of_few_kinds_lies_near_the_truth_and_needs_their_number():
    rng = np.random.default_rng(0)
    truth = entropy_of(zipf(50))
    found = np.mean([nsb(rng.multinomial(50, zipf(50)), 50) for _ in range(60)])
    assert abs(found - truth) < 0.15  # plug-in is 0.66 too low here
    assert nsb([5], 1) == 0
    with pytest.raises(UsageError, match="3 kinds were seen, and there are 2"):
        nsb([1, 1, 1], 2)


@pytest.mark.parametrize(
    ("name", "n", "biases"),
    [
        ("uniform 50", 50, {"plug-in": -0.82, "Miller-Madow": -0.38, "Chao-Wang-Jost": 0.02}),
        ("uniform 1000", 50, {"plug-in": -4.37, "Miller-Madow": -3.68, "Chao-Wang-Jost": -0.12}),
        ("Zipf 50", 50, {"plug-in": -0.66, "Miller-Madow": -0.35, "Chao-Wang-Jost": 0.01}),
        ("Zipf 1000", 200, {"plug-in": -1.48, "Miller-Madow": -1.10, "Chao-Wang-Jost": -0.32}),
    ],
)
def test_bias_against_the_exact_entropy_is_what_an_earlier_simulation_found(name, n, biases):
    p, rng, repeats = DISTRIBUTIONS[name], np.random.default_rng(1), 300
    samples = rng.multinomial(n, p, size=repeats)
    for estimator, bias in biases.items():
        found = np.array([ESTIMATORS[estimator](sample) for sample in samples])
        error = found.std(ddof=1) / math.sqrt(repeats)
        # Two independent simulations of 300: they differ by chance, by less than 4 standard errors of the difference.
        assert found.mean() - entropy_of(p) == pytest.approx(bias, abs=4 * math.sqrt(2) * error + 0.01), estimator


def test_the_two_ways_to_the_unseen_part_are_one():
    for n, a in ((20, 0.3), (200, 0.2), (1000, 0.05), (50, 0.9), (200, 0.02), (1000, 0.006), (30, 0.1)):
        direct = float(np.sum((1 - a) ** np.arange(1, 40000) / (n - 1 + np.arange(1, 40000))))
        assert _unseen(a, n) == pytest.approx(direct, rel=1e-9)


def test_everything_seen_often_leaves_nothing_to_correct():
    many = [4000, 3000, 2000, 1000]
    assert chao_wang_jost(many) == pytest.approx(entropy_of([0.4, 0.3, 0.2, 0.1]), abs=1e-3)
    assert coverage(many) == 1 and coverage([1, 1, 2]) == 0.5
    assert plug_in([5]) == 0 and miller_madow([5]) == 0 and chao_wang_jost([5]) == 0


def test_names_do_not_matter_only_how_often():
    assert counts_of("abracadabra").tolist() == [5, 2, 2, 1, 1]
    assert counts_of([("a", 1), ("a", 1), ("b", 2)]).tolist() == [2, 1]
    assert plug_in([3, 0, 1]) == plug_in([1, 3])


@pytest.mark.parametrize("wrong", [[], [0, 0], [-1, 2], [0.5, 1], [[1, 2]], ["a"]])
def test_what_are_no_counts_is_refused(wrong):
    for estimator in ESTIMATORS.values():
        with pytest.raises(UsageError):
            estimator(wrong)
    with pytest.raises(UsageError):
        coverage(wrong)


def test_a_distribution_must_be_one():
    assert entropy_of([0.5, 0.25, 0.25, 0]) == 1.5 and entropy_of([1]) == 0
    for wrong in ([0.5, 0.4], [1.5, -0.5], [[1.0]]):
        with pytest.raises(UsageError):
            entropy_of(wrong)
