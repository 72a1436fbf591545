"""The crossover complexity c*: from where on the code surface is the cheaper one, or "no crossover in range".

The cost of code depends on u and r = c/u, so c* is only defined along a path that says which u goes with a c:
- "tasks": u as in the tasks that were run (their stratum means of u and log r, joined by lines);
- "repeated": one payload, repeated (u = 1, r = c), where code is at its best;
- "distinct": nothing repeats (u = c, r = 1), where it is at its worst.

The interval draws tasks. A draw in which the curves meet before or after the range counts as beyond that end, so
an end of the interval may be open. Where the slope of code - fine along the path may be 0, no c* is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.contrast import DRAWS, task_weights
from modtools.lab.analysis.costs import CODE, FINE, TaskCosts, fit_curve, regressors, task_costs, weighted_fits
from modtools.lab.metrics import Estimate, Record, total_tokens

CROSSOVER, NONE_IN_RANGE, NOT_IDENTIFIED = "crossover", "no crossover in range", "curve not identified"
PATHS = ("tasks", "repeated", "distinct")
RANGE = (1.0, 8.0)
_STEP = 0.01
_MOST_LOST = 0.05  # share of draws without curves, or that cross the other way, up to which an interval is given


@dataclass(frozen=True)
class Crossover:
    """Where the cost curves of code and fine cross.

    Attributes:
        outcome: "crossover", "no crossover in range", or "curve not identified".
        reason: why there is none, or "".
        path: which u goes with a c.
        c_star: in calls of the fine surface, or None.
        low, high: 95 % interval; None for an end that lies beyond the range, or where there is no interval.
        drawn: share of the bootstrap draws that cross within the range, in the direction of the estimate.
        cheaper_above: the surface that is cheaper above c*, or None.
        curves: surface -> coefficient -> value; empty where they are not identified.
        slope: of code - fine along the path, in cost per unit of c, from one end of the range to the other, with its
            95 % percentile interval; None where the curves are not identified.
    """

    outcome: str
    reason: str
    path: str
    c_star: float | None
    low: float | None
    high: float | None
    drawn: float | None
    cheaper_above: str | None
    curves: dict[str, dict[str, float]]
    slope: Estimate | None

    def text(self, digits: int = 1) -> str:
        """For a table: "3.4 (2.1 to beyond 8)", or the outcome with its reason."""
        if self.c_star is None:
            return f"{self.outcome} ({self.reason})"
        if self.low is None and self.high is None:
            return f"{self.c_star:.{digits}f} (no interval)"
        low = f"before {RANGE[0]:g}" if self.low is None else f"{self.low:.{digits}f}"
        high = f"beyond {RANGE[1]:g}" if self.high is None else f"{self.high:.{digits}f}"
        return f"{self.c_star:.{digits}f} ({low} to {high})"


def crossover(
    records: Sequence[Record],
    of: Callable[[Record], float] = total_tokens,
    path: str = "tasks",
    seed: int = 0,
    draws: int = DRAWS,
) -> Crossover:
    """c* between code and fine, from a model's episodes or from reference solutions written as records.

    Args:
        records: see `costs.task_costs`; tasks that were run on one of the two only are left out.
        of: cost of an episode.
        path: one of PATHS.
        seed, draws: of the bootstrap.

    Raises:
        UsageError: for an unknown path.
        RecordError: see `costs.task_costs`; also where no task was run on both.
    """
    if path not in PATHS:
        raise UsageError(f"unknown path {path!r}; choose one of {', '.join(PATHS)}")
    code, fine = _same_tasks(task_costs(records, CODE, of), task_costs(records, FINE, of))
    curves = {costs.surface: fit_curve(costs) for costs in (code, fine)}
    unknown = [surface for surface, curve in curves.items() if curve is None]
    if unknown:
        return _none(NOT_IDENTIFIED, f"these tasks do not fix the curve of {' and '.join(unknown)}", path)
    grid = np.linspace(*RANGE, round((RANGE[1] - RANGE[0]) / _STEP) + 1)
    weights = np.vstack([np.ones(len(code.c)), task_weights(len(code.c), seed, draws)])
    difference = (
        weighted_fits(code.design(), code.cost, weights) @ _path(path, code, grid).T
        - weighted_fits(fine.design(), fine.cost, weights) @ regressors(FINE, grid, np.ones_like(grid)).T
    )
    slopes = (difference[:, -1] - difference[:, 0]) / (RANGE[1] - RANGE[0])
    lost = float(np.isnan(slopes).mean())
    if lost > _MOST_LOST:
        return _none(NOT_IDENTIFIED, f"{lost:.0%} of the bootstrap draws do not fix the curves", path, curves)
    low, high = (float(end) for end in np.nanpercentile(slopes[1:], [2.5, 97.5]))
    slope = Estimate(float(slopes[0]), low, high, len(code.c))
    if low <= 0 <= high:
        reason = f"the slope of code - fine is {slope.text()} per unit of c, which does not exclude 0"
        return _none(NONE_IN_RANGE, reason, path, curves, slope)
    falling = slopes[0] < 0
    stars = _crossings(grid, difference if falling else -difference)
    if not np.isfinite(stars[0]):
        reason = f"the curves do not cross between {RANGE[0]:g} and {RANGE[1]:g}"
        return _none(NONE_IN_RANGE, reason, path, curves, slope)
    drawn, cheaper = float(np.isfinite(stars[1:]).mean()), CODE if falling else FINE
    return Crossover(CROSSOVER, "", path, float(stars[0]), *_interval(stars[1:]), drawn, cheaper, curves, slope)


def _same_tasks(code: TaskCosts, fine: TaskCosts) -> tuple[TaskCosts, TaskCosts]:
    both = set(code.tasks) & set(fine.tasks)
    if not both:
        raise RecordError("no task was run on both code and fine; expected the same tasks on both")
    kept = []
    for costs in (code, fine):
        of = np.array([task in both for task in costs.tasks])
        kept.append(TaskCosts(costs.surface, tuple(sorted(both)), costs.c[of], costs.u[of], costs.cost[of]))
    return kept[0], kept[1]


def _path(path: str, code: TaskCosts, grid: np.ndarray) -> np.ndarray:
    """The code curve's regressors along the grid, shape (grid, 3)."""
    if path == "repeated":
        return regressors(CODE, grid, np.ones_like(grid))
    if path == "distinct":
        return regressors(CODE, grid, grid)
    strata = np.unique(code.c)
    means = np.array([code.design()[code.c == stratum].mean(axis=0) for stratum in strata])
    return np.column_stack([np.interp(grid, strata, column) for column in means.T])


def _crossings(grid: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Where each row first falls through 0, shape (rows,).

    +inf where it stays above 0 (a crossing would come later), -inf where it stays below; NaN where it only rises
    through 0, and for a row of NaN.
    """
    above = difference > 0
    falls = above[:, :-1] & ~above[:, 1:]
    at = falls.argmax(axis=1)
    rows = np.arange(len(difference))
    before, after = difference[rows, at], difference[rows, at + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = grid[at] + (grid[at + 1] - grid[at]) * before / (before - after)
    never = np.where(above.all(axis=1), np.inf, np.where((~above).all(axis=1), -np.inf, np.nan))
    found = np.where(falls.any(axis=1), crossing, never)
    return np.where(np.isnan(difference).any(axis=1), np.nan, found)


def _interval(stars: np.ndarray) -> tuple[float | None, float | None]:
    """The middle 95 % of the draws, an end beyond the range as None."""
    kept = stars[~np.isnan(stars)]
    if len(kept) < (1 - _MOST_LOST) * len(stars):
        return None, None
    ends = np.percentile(kept, [2.5, 97.5], method="inverted_cdf")
    low, high = (float(end) if np.isfinite(end) else None for end in ends)
    return low, high


def _none(outcome: str, reason: str, path: str, curves: dict | None = None, slope: Estimate | None = None) -> Crossover:
    return Crossover(outcome, reason, path, None, None, None, None, None, curves or {}, slope)
