"""Estimators of entropy against a distribution that is known: bias, spread, and whether an interval is due."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.errors import UsageError
from modtools.schemas.entropy import ESTIMATORS, entropy_of, nsb
from modtools.schemas.entropy_estimate import estimate_entropy
from modtools.teaching.explorer import explorer, table

SAMPLES = 200


def _zipf(kinds: int) -> np.ndarray:
    weights = 1 / np.arange(1, kinds + 1)
    return weights / weights.sum()


DISTRIBUTIONS = {
    "8 kinds, alike": np.full(8, 1 / 8),
    "64 kinds, alike": np.full(64, 1 / 64),
    "1024 kinds, alike": np.full(1024, 1 / 1024),
    "64 kinds, as 1/rank": _zipf(64),
    "1024 kinds, as 1/rank": _zipf(1024),
    "2 kinds, 9 to 1": np.array([0.9, 0.1]),
}


@dataclass(frozen=True)
class Runner:
    """How one estimator did over many samples.

    Attributes:
        estimator: its name.
        mean: of its estimates, in bits.
        bias: mean less the exact entropy.
        spread: standard deviation of its estimates.
    """

    estimator: str
    mean: float
    bias: float
    spread: float


def race(distribution: str, sample_size: int, seed: int = 0, samples: int = SAMPLES) -> list[Runner]:
    """Draw samples and let every estimator have a go at each.

    Args:
        distribution: a name of DISTRIBUTIONS.
        sample_size: things seen in each sample.
        seed: of the draws.
        samples: how many.

    Raises:
        UsageError: for an unknown distribution, or fewer than 2 things seen.
    """
    if distribution not in DISTRIBUTIONS or sample_size < 2:
        raise UsageError(
            f"{distribution!r}, {sample_size} seen: expected one of {', '.join(DISTRIBUTIONS)}, and at least 2"
        )
    p = DISTRIBUTIONS[distribution]
    drawn = np.random.default_rng(seed).multinomial(sample_size, p, size=samples)
    entrants = ESTIMATORS | {"NSB, told the number of kinds": lambda counts: nsb(counts, len(p))}
    exact, runners = entropy_of(p), []
    for name, estimator in entrants.items():
        found = np.array([estimator(sample[sample > 0]) for sample in drawn])
        runners.append(Runner(name, float(found.mean()), float(found.mean() - exact), float(found.std(ddof=1))))
    return runners


def race_html(distribution: str, sample_size: int, seed: int = 0) -> str:
    """The race, and what a single sample would let you say."""
    exact = entropy_of(DISTRIBUTIONS[distribution])
    rows = [
        [each.estimator, f"{each.mean:.2f}", f"{each.bias:+.2f}", f"{each.spread:.2f}"]
        for each in race(distribution, sample_size, seed)
    ]
    sample = np.random.default_rng(seed).multinomial(sample_size, DISTRIBUTIONS[distribution])
    one = estimate_entropy(sample[sample > 0])
    said = (
        f"<p>Exact entropy {exact:.2f} bits. {SAMPLES} samples of {sample_size}.</p>",
        table(["estimator", "mean, bits", "bias", "spread"], rows),
        f"<p>With one sample only ({one.kinds} kinds seen, coverage {one.coverage:.2f}), by {html.escape(one.estimator)}: "
        f"{html.escape(one.text())} bits.</p>",
    )
    return "".join(said)


def estimator_race() -> Any:
    """A widget: choose the distribution, how much is seen, and the seed."""

    def render(distribution: str, seen: str, seed: int) -> str:
        return race_html(distribution, int(seen), seed)

    return explorer(
        render, distribution=tuple(DISTRIBUTIONS), seen=("10", "30", "100", "300", "1000", "3000"), seed=range(0, 20)
    )
