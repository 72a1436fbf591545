"""How a per-task contrast changes with complexity: the slope on c, with an interval that does not assume equal spread.

H1 asks it of the difference in success, H4 of the log ratio of tokens. Ordinary least squares over tasks; the
interval is Student's t on the HC3 standard error, since a difference of shares spreads unlike at each c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import DIFFERENCE, pair
from modtools.lab.analysis.contrast import (
    NO_VARIATION,
    ONE_COMPLEXITY,
    ONE_TASK_DECIDES,
    TOO_FEW_TASKS,
    Contrast,
    is_rounding,
    leverages,
    percentile_interval,
    slope_and_error,
    task_weights,
    with_interval,
    without_interval,
)
from modtools.lab.analysis.paired import checked
from modtools.lab.metrics import Record

_MOST_LOST = 0.05  # share of bootstrap draws without a slope up to which the others still stand for all


def slope_on_c(
    records: Sequence[Record],
    left: str,
    right: str,
    of: Callable[[Record], float],
    scale: str = DIFFERENCE,
    seed: int = 0,
) -> Contrast:
    """The slope on c of left - right, or of log(left / right), per unit of c.

    Args:
        records: episodes of one arm.
        left, right: names of surfaces.
        of: the quantity of an episode; averaged over the seeds of a task first.
        scale: "difference" or "log ratio".
        seed: of the bootstrap.

    Raises:
        RecordError: see `by_task.pair`.
    """
    pairs = pair(records, left, right, of)
    return slope_contrast(pairs.c, pairs.contrasts(scale), seed)


def slope_contrast(c: np.ndarray, values: np.ndarray, seed: int = 0) -> Contrast:
    """Test the slope of one value a task on c against 0.

    Args:
        c, values: shape (n,), finite.
        seed: of the bootstrap.

    Raises:
        UsageError: where the two do not belong together.
    """
    c, values = checked(c), checked(values)
    n = len(values)
    if len(c) != n:
        raise UsageError(f"{len(c)} complexities for {n} values; expected one for each")
    if n < 3:
        return without_interval(TOO_FEW_TASKS, None, n)
    if np.ptp(c) == 0:
        return without_interval(ONE_COMPLEXITY, None, n)
    slope, error = (float(number) for number in slope_and_error(c, values))
    if leverages(c).max() > 1 - 1e-9:
        return without_interval(ONE_TASK_DECIDES, slope, n)
    if is_rounding(error, values):  # the values lie on a line: flat is no effect, and of a steep one t knows no p
        return without_interval(NO_VARIATION, slope, n, 1.0 if is_rounding(abs(slope), values) else None)
    return with_interval(slope, error, n - 2, _bootstrap(c, values, seed), n)


def _bootstrap(c: np.ndarray, values: np.ndarray, seed: int) -> tuple[float | None, float | None]:
    """Percentile interval of the slope, drawing tasks; draws that hold one complexity only have no slope."""
    weights = task_weights(len(c), seed) / len(c)
    mean_c, mean_value = weights @ c, weights @ values
    spread = weights @ c**2 - mean_c**2
    kept = spread > 1e-9
    if kept.mean() < 1 - _MOST_LOST:
        return None, None
    slopes = (weights @ (c * values) - mean_c * mean_value)[kept] / spread[kept]
    return percentile_interval(slopes)
