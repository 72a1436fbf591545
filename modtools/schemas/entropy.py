"""Estimators of Shannon entropy in bits, from how often each kind of thing was seen.

A sample tells too little about rare kinds, so the plug-in value is too low, and by bits where most kinds were seen
once. The others correct for it in different ways; none can, where coverage is poor. Sources: Miller (1955); Chao, Wang
and Jost, Methods in Ecology and Evolution 4 (2013) 1091; Nemenman, Shafee and Bialek, arXiv physics/0108025.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil, log

import numpy as np

from modtools.errors import UsageError

_SERIES_FROM = 5.0  # -n ln(1-A) from which the series is short; below, the closed form loses two digits at most
_NSB_GRID = 4001


def counts_of(seen: Iterable[Hashable]) -> np.ndarray:
    """How often each different thing was seen, largest first; shape (kinds,)."""
    return np.array(sorted(Counter(seen).values(), reverse=True), dtype=np.int64)


def checked_counts(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Counts as an array without zeros.

    Raises:
        UsageError: where they are no whole numbers, one is negative, or nothing was seen.
    """
    array = np.asarray(counts)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any():
        raise UsageError(f"counts {array.tolist()!r:.60}: expected a list of whole numbers, none of them negative")
    array = array[array > 0].astype(np.int64)
    if not len(array):
        raise UsageError("no counts: an entropy needs at least one thing that was seen")
    return array


def coverage(counts: Sequence[int] | np.ndarray) -> float:
    """Good's coverage 1 - f1/n: an estimate of the probability of all kinds that were seen."""
    array = checked_counts(counts)
    return float(1 - (array == 1).sum() / array.sum())


def plug_in(counts: Sequence[int] | np.ndarray) -> float:
    """The entropy of the relative frequencies, in bits: the maximum-likelihood value, too low on average."""
    array = checked_counts(counts)
    p = array / array.sum()
    return float(max(0.0, -(p * np.log2(p)).sum()))


def miller_madow(counts: Sequence[int] | np.ndarray) -> float:
    """Plug-in plus (kinds seen - 1) / 2n nats, the first term of its bias; in bits."""
    array = checked_counts(counts)
    return plug_in(array) + (len(array) - 1) / (2 * array.sum() * log(2))


def chao_wang_jost(counts: Sequence[int] | np.ndarray) -> float:
    """Chao, Wang and Jost's estimator, in bits: what was seen, unbiased, plus an estimate of what was not.

    The second part rests on how many kinds were seen once and twice.
    """
    from scipy.special import digamma

    array = checked_counts(counts)
    n = int(array.sum())
    inner = array[array < n]
    seen = float((inner / n * (digamma(n) - digamma(inner))).sum())
    once, twice = int((array == 1).sum()), int((array == 2).sum())
    if not once:
        return seen / log(2)
    if n == 1:
        raise UsageError("one thing was seen once: no entropy can be estimated from that")
    if twice:
        a = 2 * twice / ((n - 1) * once + 2 * twice)
    else:
        a = 2 / ((n - 1) * (once - 1) + 2)
    return (seen + once / n * _unseen(a, n)) / log(2)


def _unseen(a: float, n: int) -> float:
    """(1-a)^(1-n) (-ln a - sum over r < n of (1-a)^r / r), which is the sum over j >= 1 of (1-a)^j / (n-1+j)."""
    if a == 1:
        return 0.0
    if -n * np.log1p(-a) < _SERIES_FROM:
        r = np.arange(1, n)
        return float((1 - a) ** (1 - n) * (-log(a) - ((1 - a) ** r / r).sum()))
    j = np.arange(1, ceil(40 / -np.log1p(-a)) + 2)
    return float(((1 - a) ** j / (n - 1 + j)).sum())


def nsb(counts: Sequence[int] | np.ndarray, kinds: int) -> float:
    """Nemenman, Shafee and Bialek's Bayesian estimate, in bits: a mixture of Dirichlet priors that is flat in entropy.

    Args:
        counts: of the kinds seen.
        kinds: how many there are in all, which must be known.

    Raises:
        UsageError: where more kinds were seen than there are.
    """
    from scipy.special import digamma, gammaln, polygamma

    array = checked_counts(counts)
    if kinds < len(array):
        raise UsageError(f"{len(array)} kinds were seen, and there are {kinds}; give at least as many as were seen")
    if kinds == 1:
        return 0.0
    n = int(array.sum())
    values, times = np.unique(array, return_counts=True)
    values, times = np.append(values, 0), np.append(times, kinds - len(array))
    t = np.linspace(log(1e-9), log(1e7), _NSB_GRID)  # log of the Dirichlet parameter
    beta = np.exp(t)
    evidence = gammaln(kinds * beta) - gammaln(n + kinds * beta)
    mean = digamma(n + kinds * beta + 1)
    for value, many in zip(values, times):
        evidence = evidence + many * (gammaln(value + beta) - gammaln(beta))
        mean = mean - many * (value + beta) / (n + kinds * beta) * digamma(value + beta + 1)
    prior = kinds * polygamma(1, kinds * beta + 1) - polygamma(1, beta + 1)  # d(mean entropy) / d(beta)
    weight = np.exp(evidence - evidence.max()) * prior * beta
    return float((weight * mean).sum() / weight.sum() / log(2))


ESTIMATORS: dict[str, Callable[[np.ndarray], float]] = {
    "plug-in": plug_in,
    "Miller-Madow": miller_madow,
    "Chao-Wang-Jost": chao_wang_jost,
}
"""The estimators that need counts alone, by name; `nsb` needs the number of kinds as well."""


def entropy_of(probabilities: Sequence[float] | np.ndarray) -> float:
    """The entropy of a known distribution, in bits.

    Raises:
        UsageError: where it is none.
    """
    p = np.asarray(probabilities, dtype=float)
    if p.ndim != 1 or (p < 0).any() or not np.isclose(p.sum(), 1.0, atol=1e-9):
        raise UsageError("expected probabilities: numbers of at least 0 that sum to 1")
    p = p[p > 0]
    return float(max(0.0, -(p * np.log2(p)).sum()))
