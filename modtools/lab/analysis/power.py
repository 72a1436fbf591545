"""Power by simulation: how often would the planned test find an effect of a given size?

From pilot records: planned tasks are drawn from the pilot's tasks of the same complexity, and the planned number
of seeds from each drawn task's own seeds. A pilot task's mean holds the noise of its few seeds. Drawn as it is,
that noise would count twice, so the spread between tasks is first shrunk to what the noise does not explain.

After a run: the same test on samples drawn from the observed values, their effect replaced by the smallest one
of interest. Power at the *observed* effect says nothing that p does not say, so it is not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import DIFFERENCE, Pairs
from modtools.lab.analysis.contrast import leverages, mean_and_error, slope_and_error

MEAN, SLOPE = "mean", "slope"
KINDS = (MEAN, SLOPE)
SIMULATIONS = 2000
_MOST_NUMBERS = 4_000_000  # drawn at once


@dataclass(frozen=True)
class Power:
    """A simulated power.

    Attributes:
        tasks, seeds: of the simulated experiment.
        value: share of simulations in which the test finds the effect, with its sign.
        error: Monte Carlo standard error of `value`.
    """

    tasks: int
    seeds: int
    value: float
    error: float


@dataclass(frozen=True)
class Design:
    """What a simulated experiment tests.

    Attributes:
        kind: "mean" or "slope" (on c).
        effect: the true mean, or slope per unit of c; not 0.
        alpha: two-sided level. Under Holm over m tests, alpha / m gives a lower bound.
        scale: "difference" or "log ratio".
    """

    kind: str
    effect: float
    alpha: float = 0.05
    scale: str = DIFFERENCE

    def __post_init__(self):
        if self.kind not in KINDS or not np.isfinite(self.effect) or self.effect == 0 or not 0 < self.alpha < 1:
            raise UsageError(
                f"kind {self.kind!r}, effect {self.effect}, alpha {self.alpha}: expected one of {', '.join(KINDS)}, an "
                f"effect other than 0, and 0 < alpha < 1"
            )


def pilot_power(
    pilot: Pairs, design: Design, per_stratum: int, seeds: int, simulations: int = SIMULATIONS, seed: int = 0
) -> Power:
    """Power of the planned experiment, from a pilot.

    Args:
        pilot: its tasks, lined up; at least two tasks a stratum. The planned strata are the pilot's.
        design: what is tested.
        per_stratum, seeds: of the planned experiment.
        simulations: experiments to simulate.
        seed: the same arguments and seed give the same power.

    Raises:
        UsageError: for a pilot too small to show a spread: one task in a stratum, or one seed a task.
    """
    if per_stratum < 1 or seeds < 1:
        raise UsageError(f"{per_stratum} tasks a stratum, {seeds} seeds: expected at least 1 of each")
    spread = _spread_of(pilot, design.scale)
    strata = np.unique(pilot.c)
    c = np.repeat(strata, per_stratum)
    model = _model(c, design) + _lack_of_fit(pilot.c, pilot.contrasts(design.scale), design.kind, c)
    rng = np.random.default_rng(seed)
    found, done = 0, 0
    while done < simulations:
        block = min(simulations - done, max(1, _MOST_NUMBERS // (len(c) * seeds)))
        drawn = np.concatenate([_draw(np.flatnonzero(pilot.c == s), (block, per_stratum), rng) for s in strata], axis=1)
        noise = spread.noise(drawn, seeds, rng)
        found += int(_finds(c, model + spread.between[drawn] + noise, design).sum())
        done += block
    return _power(found, simulations, len(c), seeds)


def power_by_seeds(
    pilot: Pairs,
    design: Design,
    per_stratum: int,
    choices: Sequence[int],
    simulations: int = SIMULATIONS,
    seed: int = 0,
) -> list[Power]:
    """Power for each number of seeds, to choose from; see `pilot_power`."""
    return [pilot_power(pilot, design, per_stratum, seeds, simulations, seed) for seeds in choices]


def fewest_seeds(powers: Sequence[Power], target: float = 0.8) -> int | None:
    """The fewest seeds whose power reaches the target, or None where none of them does."""
    return min((power.seeds for power in powers if power.value >= target), default=None)


def achieved_power(
    c: np.ndarray, values: np.ndarray, design: Design, simulations: int = SIMULATIONS, seed: int = 0
) -> Power | None:
    """Power of the test that was run, at an effect of interest and the observed spread.

    Args:
        c, values: one complexity and one contrast a task, shape (n,).
        design: what was tested, and the effect to be found.
        simulations: samples of n tasks to draw.
        seed: of the draws.

    Returns:
        The power (its `seeds` is 0: the spread already holds the seeds there were), or None where the values
        show no spread to simulate from.
    """
    c, values = np.asarray(c, dtype=float), np.asarray(values, dtype=float)
    n = len(values)
    if n < 3 or (design.kind == SLOPE and np.ptp(c) == 0):
        return None
    if design.kind == MEAN:
        residuals = (values - values.mean()) * np.sqrt(n / (n - 1))
    else:
        slope, _ = slope_and_error(c, values)
        room = 1 - leverages(c)
        if room.min() < 1e-9:
            return None
        residuals = (values - values.mean() - slope * (c - c.mean())) / np.sqrt(room)
    if np.ptp(residuals) < 1e-12:
        return None
    drawn = np.random.default_rng(seed).integers(n, size=(simulations, n))
    found = _finds(c[drawn], _model(c, design)[drawn] + residuals[drawn], design)
    return _power(int(found.sum()), simulations, n, 0)


@dataclass(frozen=True)
class _Spread:
    """What varies in a pilot: `between`, shape (tasks,), and the seeds' residuals of each surface."""

    between: np.ndarray
    left: tuple[np.ndarray, ...]
    right: tuple[np.ndarray, ...]

    def noise(self, drawn: np.ndarray, seeds: int, rng: np.random.Generator) -> np.ndarray:
        """Of each drawn task, the mean noise of `seeds` fresh seeds on the left, less that on the right."""
        total = np.zeros(drawn.shape)
        for residuals, sign in ((self.left, 1), (self.right, -1)):
            counts = np.array([len(of) for of in residuals])
            padded = np.zeros((len(counts), counts.max()))
            for row, of in zip(padded, residuals):
                row[: len(of)] = of
            which = (rng.random((*drawn.shape, seeds)) * counts[drawn][..., None]).astype(int)
            total += sign * padded[drawn[..., None], which].mean(axis=-1)
        return total


def _spread_of(pilot: Pairs, scale: str) -> _Spread:
    """Split the pilot's variance into tasks and seeds.

    A log ratio is split by its linear part: a seed's residual as a share of its task's mean.
    """
    values = pilot.contrasts(scale)
    sides, variance = [], np.zeros(len(values))
    for side in (pilot.left_values, pilot.right_values):
        if min(len(of) for of in side) < 2:
            raise UsageError("the pilot has a task with one seed; choosing the number of seeds needs at least 2 a task")
        unit = [1.0 if scale == DIFFERENCE else of.mean() for of in side]
        residuals = tuple((of - of.mean()) / by * np.sqrt(len(of) / (len(of) - 1)) for of, by in zip(side, unit))
        variance += [of.var() / len(of) for of in residuals]
        sides.append(residuals)
    between = np.empty_like(values)
    for stratum in np.unique(pilot.c):
        of = pilot.c == stratum
        if of.sum() < 2:
            raise UsageError(f"the pilot has one task with c={stratum:g}; a spread needs at least 2 a stratum")
        between[of] = (values[of] - values[of].mean()) * np.sqrt(of.sum() / (of.sum() - 1))
    total = between.var()
    kept = max(0.0, total - variance.mean()) / total if total > 0 else 0.0
    return _Spread(between * np.sqrt(kept), *sides)


def _lack_of_fit(c: np.ndarray, values: np.ndarray, kind: str, at: np.ndarray) -> np.ndarray:
    """How far each stratum's mean lies off the mean, or off the line, at the planned complexities `at`."""
    strata = np.unique(c)
    means = np.array([values[c == stratum].mean() for stratum in strata])
    if kind == MEAN:
        off = means - means.mean()
    elif len(strata) < 2:
        raise UsageError("the pilot has one complexity; a slope on c needs at least two")
    else:
        off = means - np.polyval(np.polyfit(strata, means, 1), strata)
    return off[np.searchsorted(strata, at)]


def _model(c: np.ndarray, design: Design) -> np.ndarray:
    return np.full(len(c), design.effect) if design.kind == MEAN else design.effect * c


def _finds(c: np.ndarray, values: np.ndarray, design: Design) -> np.ndarray:
    """For samples of shape (simulations, n): whether the test is significant, with the sign of the effect."""
    from scipy.stats import t

    if design.kind == MEAN:
        estimate, error = mean_and_error(values)
    else:
        estimate, error = slope_and_error(np.broadcast_to(c, values.shape), values)
    freedom = values.shape[-1] - (1 if design.kind == MEAN else 2)
    return np.sign(design.effect) * estimate > t.ppf(1 - design.alpha / 2, freedom) * error


def _draw(from_: np.ndarray, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    return from_[rng.integers(len(from_), size=shape)]


def _power(found: int, simulations: int, tasks: int, seeds: int) -> Power:
    share = found / simulations
    return Power(tasks, seeds, share, float(np.sqrt(share * (1 - share) / simulations)))
