"""From which complexity on the code surface is the cheaper one: c*, with an interval, or "no crossover in range".

Each surface has a cost curve of its own, in tokens a task. One program may do a change at many places, so code pays for
distinct edits u and, by the length of its loop, for repetitions r = c / u: a + b u + g log r. The fine surface pays for
each call and reads its history again at the next: a + b c + d c^2. c* is where the two meet, u being what tasks of that
complexity have on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.errors import RecordError
from modtools.lab.analysis.paired import DRAWS, Differences, differences, slope_effect

_GRID_STEP = 0.01
_LEAST_TASKS = 6  # three coefficients a curve, and something left to scatter


@dataclass(frozen=True)
class Crossover:
    """Where the curves meet.

    Attributes:
        outcome: "crossover", or "no crossover in range".
        at: c*, in calls; None without one.
        low, high: 95 % percentile interval from drawing tasks with replacement; None likewise.
        share: share of the drawn sets of tasks that have a crossover.
        cheaper: without a crossover, which surface is cheaper over the whole range, or "neither for certain".
        code, fine: coefficients (a, b, g) and (a, b, d).
        tasks: how many.
    """

    outcome: str
    at: float | None
    low: float | None
    high: float | None
    share: float
    cheaper: str
    code: tuple[float, float, float]
    fine: tuple[float, float, float]
    tasks: int


@dataclass(frozen=True)
class Costs:
    """Tokens a task on both surfaces; arrays of shape (tasks,)."""

    c: np.ndarray
    u: np.ndarray
    code: np.ndarray
    fine: np.ndarray

    def of(self, drawn: np.ndarray) -> Costs:
        """Those of drawn tasks."""
        return Costs(self.c[drawn], self.u[drawn], self.code[drawn], self.fine[drawn])


def costs(records: Sequence[Mapping[str, Any]]) -> Costs:
    """Mean total tokens of each task on code and fine.

    Raises:
        RecordError: where the two were not run on the same tasks and seeds.
    """

    def total(record: Mapping[str, Any]) -> float:
        return float(sum(record["tokens"].values()))

    both = [
        differences(records, one, other, total, lambda a, b: a) for one, other in (("code", "fine"), ("fine", "code"))
    ]
    u = {record["task"]: float(record["u"]) for record in records}
    return Costs(both[0].c, np.array([u[task] for task in both[0].tasks]), both[0].values, both[1].values)


def crossover(found: Costs, seed: int = 0) -> Crossover:
    """Fit both curves, and find where they meet between the least and the largest complexity.

    Raises:
        RecordError: for fewer than six tasks, or fewer than three complexities.
    """
    if len(found.c) < _LEAST_TASKS or len(set(found.c)) < 3:
        raise RecordError(
            f"{len(found.c)} tasks of {len(set(found.c))} complexities: two cost curves need at least {_LEAST_TASKS} of 3"
        )
    code, fine = _fit(found)
    at, sign = _meeting(found, code, fine)
    rng, meetings = np.random.default_rng(seed), []
    for _ in range(DRAWS // 4):
        drawn = found.of(rng.integers(len(found.c), size=len(found.c)))
        if len(set(drawn.c)) >= 3:
            meetings.append(_meeting(drawn, *_fit(drawn))[0])
    met = [each for each in meetings if each is not None]
    share = len(met) / len(meetings)
    trend = slope_effect(Differences((), found.c, found.code - found.fine))
    flat = trend.low is None or trend.low <= 0 <= trend.high
    coefficients = (tuple(map(float, code)), tuple(map(float, fine)), len(found.c))
    if at is None or flat:
        cheaper = "neither for certain" if at is not None else ("code" if sign < 0 else "fine")
        return Crossover("no crossover in range", None, None, None, share, cheaper, *coefficients)
    low, high = np.percentile(met, [2.5, 97.5])
    return Crossover("crossover", at, float(low), float(high), share, "", *coefficients)


def curves(found: Costs, at: np.ndarray, code: Sequence[float], fine: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Cost on code and on fine at some complexities, u being what tasks of that complexity have on average."""
    strata = np.unique(found.c)
    u = np.interp(at, strata, [found.u[found.c == c].mean() for c in strata])
    return code[0] + code[1] * u + code[2] * np.log(at / u), fine[0] + fine[1] * at + fine[2] * at**2


def _fit(found: Costs) -> tuple[np.ndarray, np.ndarray]:
    one = np.ones_like(found.c)
    code = np.linalg.lstsq(np.stack([one, found.u, np.log(found.c / found.u)], axis=1), found.code, rcond=None)[0]
    fine = np.linalg.lstsq(np.stack([one, found.c, found.c**2], axis=1), found.fine, rcond=None)[0]
    return code, fine


def _meeting(found: Costs, code: np.ndarray, fine: np.ndarray) -> tuple[float | None, int]:
    """(where code becomes the cheaper one and stays so, or None; the sign of code - fine at the end of the range)."""
    grid = np.arange(found.c.min(), found.c.max() + _GRID_STEP / 2, _GRID_STEP)
    on_code, on_fine = curves(found, grid, code, fine)
    dearer = on_code > on_fine
    if dearer.all() or not dearer.any() or dearer[-1]:
        return None, 1 if dearer[-1] else -1
    return float(grid[np.flatnonzero(dearer)[-1] + 1]), -1
