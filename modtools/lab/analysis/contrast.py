"""An estimate with its test: Student's t as the primary, a bootstrap over tasks beside it.

The two formulas, of a mean and of a slope with HC3 errors, work on stacks of samples as well, so that a power
simulation runs the very test that the analysis runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ESTIMATED = "estimated"
TOO_FEW_TASKS = "too few tasks"
NO_VARIATION = "no variation"
ONE_COMPLEXITY = "one complexity"
ONE_TASK_DECIDES = "one task decides"
OUTCOMES = (ESTIMATED, TOO_FEW_TASKS, NO_VARIATION, ONE_COMPLEXITY, ONE_TASK_DECIDES)

DRAWS = 2000
_ROUNDING = 1e-12  # a spread below this share of the values is rounding, not variation


@dataclass(frozen=True)
class Contrast:
    """An estimate over tasks.

    Attributes:
        outcome: one of OUTCOMES; "estimated" is the only one with an interval.
        estimate: None where there is none.
        low, high: 95 % interval from Student's t; None where the data support none.
        p: two-sided; None where there is no test.
        boot_low, boot_high: 95 % percentile bootstrap that draws whole tasks, or None.
        n: tasks.
    """

    outcome: str
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    boot_low: float | None
    boot_high: float | None
    n: int

    def text(self, digits: int = 2) -> str:
        """For a table: "0.25 (0.05 to 0.45)", or with the outcome's name where there is no interval."""
        if self.estimate is None:
            return f"none ({self.outcome}, n={self.n})"
        if self.low is None:
            return f"{self.estimate:.{digits}f} ({self.outcome}, n={self.n})"
        return f"{self.estimate:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def without_interval(outcome: str, estimate: float | None, n: int, p: float | None = None) -> Contrast:
    """A contrast whose data support no interval."""
    return Contrast(outcome, estimate, None, None, p, None, None, n)


def with_interval(
    estimate: float, error: float, freedom: int, boot: tuple[float | None, float | None], n: int
) -> Contrast:
    """A contrast from its standard error, by Student's t with `freedom` degrees."""
    from scipy.stats import t

    half = float(t.ppf(0.975, freedom)) * error
    p = float(2 * t.sf(abs(estimate) / error, freedom))
    return Contrast(ESTIMATED, estimate, estimate - half, estimate + half, p, *boot, n)


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and its standard error over the last axis, shape (..., n) with n >= 2 -> (...), (...)."""
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def slope_and_error(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares slope of y on x, with intercept, and its HC3 standard error, over the last axis.

    Args:
        x, y: shapes (..., n) that broadcast, n >= 3. Where x does not vary, or one point alone fixes the line,
            the error is NaN.
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = (centred**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (centred * y).sum(axis=-1) / spread
        residual = y - y.mean(axis=-1, keepdims=True) - slope[..., None] * centred
        leverage = leverages(x)
        weight = np.where(leverage < 1 - 1e-9, residual / (1 - leverage), np.nan)
        error = np.sqrt(((centred * weight) ** 2).sum(axis=-1)) / spread
    return slope, error


def leverages(x: np.ndarray) -> np.ndarray:
    """Diagonal of the hat matrix of a line with intercept, over the last axis; same shape as x."""
    centred = x - x.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 / x.shape[-1] + centred**2 / (centred**2).sum(axis=-1, keepdims=True)


def is_rounding(error: float, values: np.ndarray) -> bool:
    """Whether a standard error is nothing but rounding beside the values."""
    return bool(error <= _ROUNDING * max(1.0, float(np.abs(values).max())))


def task_weights(n: int, seed: int, draws: int = DRAWS) -> np.ndarray:
    """How often each of n tasks is drawn, with replacement, in each bootstrap sample; shape (draws, n)."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws)


def percentile_interval(drawn: np.ndarray) -> tuple[float | None, float | None]:
    """The middle 95 % of a statistic's bootstrap draws; none where they do not differ."""
    if drawn.size == 0 or np.ptp(drawn) == 0:
        return None, None
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
