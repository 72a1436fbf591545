"""The check of H1 on the log-odds scale: a GEE with tasks as clusters and bias-reduced errors.

Success of an episode on surface, c, and their interaction; `right` (fine, in the plan) is the reference. Where a
surface's outcomes are separated by c, all solved or none solved included, the likelihood has no maximum: the fit
returns NaN with nothing but warnings, or stops anywhere and reports p = 0. That case is told beforehand, exactly:
with the interaction in the model each surface has a line of its own, and a line separates iff some c divides its
successes from its failures.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modtools.lab.analysis.by_task import Pairs, pair
from modtools.lab.analysis.contrast import ESTIMATED, ONE_COMPLEXITY, TOO_FEW_TASKS
from modtools.lab.metrics import Record

SEPARATED = "separated"
NOT_CONVERGED = "not converged"
GEE_OUTCOMES = (ESTIMATED, SEPARATED, ONE_COMPLEXITY, TOO_FEW_TASKS, NOT_CONVERGED)
_PARAMETERS = 4


@dataclass(frozen=True)
class Interaction:
    """The interaction of surface and c, in log-odds per unit of c.

    Attributes:
        outcome: one of GEE_OUTCOMES; the numbers are None unless it is "estimated".
        estimate, low, high: with its 95 % interval.
        p: two-sided.
        tasks: clusters.
        detail: why there are no numbers, or "".
    """

    outcome: str
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    tasks: int
    detail: str = ""


def interaction(records: Sequence[Record], left: str, right: str) -> Interaction:
    """Fit the GEE to the success of the episodes on two surfaces.

    Args:
        records: episodes of one arm.
        left: surface whose slope on c is compared.
        right: the reference.

    Raises:
        RecordError: see `by_task.pair`.
    """
    pairs = pair(records, left, right, lambda record: float(record["success"]))
    tasks = len(pairs.tasks)
    if tasks <= _PARAMETERS:
        return _none(TOO_FEW_TASKS, tasks, f"{tasks} tasks for {_PARAMETERS} parameters")
    if np.ptp(pairs.c) == 0:
        return _none(ONE_COMPLEXITY, tasks, f"all tasks have c={pairs.c[0]:g}")
    y, code, c, task = _rows(pairs)
    for surface, of in ((left, code == 1), (right, code == 0)):
        detail = _separation(c[of], y[of])
        if detail:
            return _none(SEPARATED, tasks, f"{surface}: {detail}")
    return _fit(y, np.column_stack([np.ones_like(c), code, c, code * c]), task, tasks)


def _rows(pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(success, is left, c, index of the task) for each episode, each of shape (episodes,), task by task."""
    rows = []
    for index, c in enumerate(pairs.c):
        for is_left, values in ((1.0, pairs.left_values[index]), (0.0, pairs.right_values[index])):
            rows += [(value, is_left, c, index) for value in values]
    y, code, c, task = np.array(rows, dtype=float).T
    return y, code, c, task


def _separation(c: np.ndarray, y: np.ndarray) -> str:
    """In which way c divides successes from failures, or "" where it does not."""
    won, lost = c[y == 1], c[y == 0]
    if not len(lost):
        return "every episode succeeded"
    if not len(won):
        return "no episode succeeded"
    if won.max() <= lost.min():
        return f"no success above c={won.max():g} and no failure below c={lost.min():g}"
    if lost.max() <= won.min():
        return f"no failure above c={lost.max():g} and no success below c={won.min():g}"
    return ""


def _fit(y: np.ndarray, design: np.ndarray, task: np.ndarray, tasks: int) -> Interaction:
    import statsmodels.api as sm

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = sm.GEE(y, design, task, family=sm.families.Binomial(), cov_struct=sm.cov_struct.Exchangeable())
        try:
            fit = model.fit(cov_type="bias_reduced")
            low, high = (float(end) for end in fit.conf_int()[-1])
            numbers = (float(fit.params[-1]), low, high, float(fit.pvalues[-1]))
        except np.linalg.LinAlgError as error:
            return _none(NOT_CONVERGED, tasks, str(error))
    if not (fit.converged and np.isfinite(numbers).all()):
        said = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
        return _none(NOT_CONVERGED, tasks, said or "the fit ended without a solution")
    return Interaction(ESTIMATED, *numbers, tasks)


def _none(outcome: str, tasks: int, detail: str) -> Interaction:
    return Interaction(outcome, None, None, None, None, tasks, detail)
