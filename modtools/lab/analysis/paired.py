"""Paired comparison of two surfaces: the mean over tasks of a per-task difference, and Holm over a family.

The primary is Student's t on the per-task values; beside it stands a percentile bootstrap that draws tasks.
Where all tasks show the same difference, t has no answer. The sign-flip test has: without an effect each
task's sign is a coin, and n equal signs come up with probability 2^(1-n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import DIFFERENCE, pair
from modtools.lab.analysis.contrast import (
    NO_VARIATION,
    TOO_FEW_TASKS,
    Contrast,
    is_rounding,
    mean_and_error,
    percentile_interval,
    task_weights,
    with_interval,
    without_interval,
)
from modtools.lab.metrics import Record


def compare(
    records: Sequence[Record],
    left: str,
    right: str,
    of: Callable[[Record], float],
    scale: str = DIFFERENCE,
    seed: int = 0,
) -> Contrast:
    """The mean over tasks of left - right, or of log(left / right).

    Args:
        records: episodes of one arm.
        left, right: names of surfaces.
        of: the quantity of an episode; averaged over the seeds of a task first.
        scale: "difference" or "log ratio".
        seed: of the bootstrap.

    Raises:
        RecordError: see `by_task.pair`.
    """
    return mean_contrast(pair(records, left, right, of).contrasts(scale), seed)


def mean_contrast(values: np.ndarray, seed: int = 0) -> Contrast:
    """Test the mean of one value a task against 0.

    Args:
        values: shape (n,), finite.
        seed: of the bootstrap.
    """
    values = checked(values)
    n = len(values)
    if n < 2:
        return without_interval(TOO_FEW_TASKS, float(values[0]) if n else None, n)
    mean, error = (float(number) for number in mean_and_error(values))
    if is_rounding(error, values):
        return without_interval(NO_VARIATION, mean, n, 1.0 if is_rounding(abs(mean), values) else 2.0 ** (1 - n))
    drawn = task_weights(n, seed) @ values / n
    return with_interval(mean, error, n - 1, percentile_interval(drawn), n)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values of a family.

    A member without a test (None) keeps its place in the family, as if its p were 1, so that a test which fails
    never makes the others easier; its own adjusted value is None.

    Raises:
        UsageError: for a p outside 0 to 1, NaN included.
    """
    wrong = [p for p in p_values if p is not None and not 0 <= p <= 1]
    if wrong:
        raise UsageError(f"p values {wrong}: expected numbers from 0 to 1, or None where there was no test")
    if not p_values:
        return []
    from statsmodels.stats.multitest import multipletests

    adjusted = multipletests([1.0 if p is None else p for p in p_values], method="holm")[1]
    return [None if p is None else float(value) for p, value in zip(p_values, adjusted)]


def checked(values: np.ndarray) -> np.ndarray:
    """The values as floats, shape (n,).

    Raises:
        UsageError: where they are not finite numbers in one row.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise UsageError(f"values of shape {values.shape}: expected one finite number a task")
    return values
