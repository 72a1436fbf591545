"""Differences within tasks: what one surface has more than another on the same task, and its mean with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.errors import RecordError

Record = Mapping[str, Any]
DRAWS = 4000


@dataclass(frozen=True)
class Effect:
    """An estimated effect.

    Attributes:
        value: the estimate.
        low, high: its 95 % interval, from Student's t; None where the tasks do not differ, so that it has none.
        p: two-sided, of no effect; None likewise.
        boot_low, boot_high: the percentile interval beside it, from drawing tasks with replacement; None likewise, or
            where it was not asked for.
        n: tasks.
    """

    value: float
    low: float | None
    high: float | None
    p: float | None
    boot_low: float | None
    boot_high: float | None
    n: int


@dataclass(frozen=True)
class Differences:
    """One number a task.

    Attributes:
        tasks: their ids, sorted.
        c: complexity of each, shape (tasks,).
        values: of the difference, shape (tasks,).
    """

    tasks: tuple[str, ...]
    c: np.ndarray
    values: np.ndarray


def per_task(records: Sequence[Record], surface: str, of: Callable[[Record], float]) -> dict[str, float]:
    """Task -> mean over seeds of a quantity on one surface."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record["surface"] == surface:
            found.setdefault(record["task"], []).append(float(of(record)))
    return {task: float(np.mean(values)) for task, values in found.items()}


def differences(
    records: Sequence[Record],
    one: str,
    other: str,
    of: Callable[[Record], float],
    combine: Callable[[float, float], float] = lambda a, b: a - b,
) -> Differences:
    """`one` against `other` on each task, after the mean over seeds.

    Args:
        records: of a finished run.
        one, other: names of surfaces.
        of: the quantity.
        combine: what the two means give; their difference.

    Raises:
        RecordError: where a task was not run on both surfaces, or with unequal numbers of seeds, or there is none.
    """
    left, right = per_task(records, one, of), per_task(records, other, of)
    counts = {s: sum(record["surface"] == s for record in records) for s in (one, other)}
    if left.keys() != right.keys() or not left or counts[one] != counts[other]:
        raise RecordError(
            f"{one} has {counts[one]} episodes of {len(left)} tasks and {other} {counts[other]} of {len(right)}; a paired "
            "comparison needs the same tasks and seeds on both: finish the run first"
        )
    c = {record["task"]: record["stratum"] for record in records}
    tasks = tuple(sorted(left))
    values = np.array([combine(left[task], right[task]) for task in tasks])
    return Differences(tasks, np.array([float(c[task]) for task in tasks]), values)


def mean_effect(found: Differences, seed: int = 0, boot: bool = True) -> Effect:
    """The mean difference: Student's t over tasks, and the percentile bootstrap beside it unless `boot` is False."""
    from scipy import stats

    values = found.values
    if len(values) < 2 or np.ptp(values) == 0:  # tasks that do not differ say nothing about how much tasks differ
        return Effect(float(values.mean()), None, None, None, None, None, len(values))
    test = stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(0.95)
    primary = (float(values.mean()), *map(float, (*interval, test.pvalue)))
    if not boot:
        return Effect(*primary, None, None, len(values))
    draws = np.random.default_rng(seed).integers(len(values), size=(DRAWS, len(values)))
    drawn = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return Effect(*primary, *map(float, drawn), len(values))


def slope_effect(found: Differences, seed: int = 0, boot: bool = True) -> Effect:
    """The slope of the difference on c, in its unit a call: least squares over tasks, HC3 errors, and the bootstrap.

    Raises:
        RecordError: for tasks of one complexity only.
    """
    from scipy import stats

    if np.ptp(found.c) == 0:
        raise RecordError(f"all tasks have c = {found.c[0]:g}; a slope on c needs tasks of different complexity")
    slope = float(_slopes(found.c[None], found.values[None])[0])
    n = len(found.values)
    residuals = found.values - found.values.mean() - slope * (found.c - found.c.mean())
    if n < 4 or np.allclose(residuals, 0):
        return Effect(slope, None, None, None, None, None, n)
    error = _hc3(found.c, residuals)
    reach = float(stats.t.ppf(0.975, n - 2)) * error
    p = 2 * float(stats.t.sf(abs(slope) / error, n - 2))
    if not boot:
        return Effect(slope, slope - reach, slope + reach, p, None, None, n)
    draws = np.random.default_rng(seed).integers(n, size=(DRAWS, n))
    drawn = _slopes(found.c[draws], found.values[draws])
    ends = np.percentile(drawn[np.isfinite(drawn)], [2.5, 97.5])
    return Effect(slope, slope - reach, slope + reach, p, float(ends[0]), float(ends[1]), n)


def _slopes(c: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least-squares slopes, one a row of shape (rows, tasks); NaN for a row of one complexity."""
    centred = c - c.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (centred * values).sum(axis=1) / (centred**2).sum(axis=1)


def _hc3(c: np.ndarray, residuals: np.ndarray) -> float:
    """The standard error of the slope where tasks scatter unequally (MacKinnon and White 1985, HC3)."""
    centred = c - c.mean()
    square = float((centred**2).sum())
    leverage = 1 / len(c) + centred**2 / square
    slack = np.maximum(1 - leverage, 1e-9)  # of a task that the line must pass through
    return float(np.sqrt(((centred * residuals / slack) ** 2).sum()) / square)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values over one family; a hypothesis without a p value stays in the family, untested."""
    from statsmodels.stats.multitest import multipletests

    filled = [1.0 if p is None else p for p in p_values]
    adjusted = multipletests(filled, method="holm")[1] if filled else []
    return [None if p is None else float(a) for p, a in zip(p_values, adjusted)]
