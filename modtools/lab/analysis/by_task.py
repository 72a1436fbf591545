"""From episode records to one number a task: the mean over its seeds, on two surfaces side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from modtools.errors import RecordError
from modtools.lab.metrics import Record

DIFFERENCE, LOG_RATIO = "difference", "log ratio"
SCALES = (DIFFERENCE, LOG_RATIO)


@dataclass(frozen=True)
class Pairs:
    """Tasks that were run on both of two surfaces.

    Attributes:
        left, right: the surfaces; a contrast is left against right.
        tasks: ids, sorted.
        c: complexity of each task, shape (n,).
        left_values, right_values: for each task its values, one a seed.
        unpaired: tasks that have episodes on one of the two surfaces only; they are in no contrast.
        uneven: tasks whose seeds differ between the surfaces; they are kept, by their means.
    """

    left: str
    right: str
    tasks: tuple[str, ...]
    c: np.ndarray
    left_values: tuple[np.ndarray, ...]
    right_values: tuple[np.ndarray, ...]
    unpaired: tuple[str, ...] = ()
    uneven: tuple[str, ...] = ()

    def contrasts(self, scale: str = DIFFERENCE) -> np.ndarray:
        """Per task, from the means over seeds: left - right, or log(left / right); shape (n,).

        Raises:
            RecordError: for a log ratio of a mean that is not positive.
        """
        left = np.array([values.mean() for values in self.left_values])
        right = np.array([values.mean() for values in self.right_values])
        if scale == DIFFERENCE:
            return left - right
        for surface, means in ((self.left, left), (self.right, right)):
            if (means <= 0).any():
                task = self.tasks[int(np.argmin(means))]
                raise RecordError(
                    f"task {task} on {surface}: the mean is {means.min():g}; a log ratio needs it above 0"
                )
        return np.log(left / right)


def pair(records: Sequence[Record], left: str, right: str, of: Callable[[Record], float]) -> Pairs:
    """Line two surfaces up task by task.

    Args:
        records: episodes of one arm; those of other surfaces are left out.
        left, right: names of surfaces.
        of: the quantity of an episode.

    Raises:
        RecordError: for several arms, a surface without episodes, surfaces without a common task, an episode that
            stands twice, a task with two complexities, or a quantity that is no finite number.
    """
    found = {surface: values_by_task(records, surface, of) for surface in (left, right)}
    both = sorted(set(found[left]) & set(found[right]))
    if not both:
        raise RecordError(f"no task was run on both {left} and {right}; expected the same tasks on both")
    complexity = complexity_by_task(records)
    return Pairs(
        left,
        right,
        tuple(both),
        np.array([complexity[task] for task in both], dtype=float),
        tuple(np.array(list(found[left][task].values())) for task in both),
        tuple(np.array(list(found[right][task].values())) for task in both),
        tuple(sorted(set(found[left]) ^ set(found[right]))),
        tuple(task for task in both if set(found[left][task]) != set(found[right][task])),
    )


def values_by_task(
    records: Sequence[Record], surface: str, of: Callable[[Record], float]
) -> dict[str, dict[int, float]]:
    """Task -> seed -> the quantity, on one surface.

    Raises:
        RecordError: as in `pair`.
    """
    arms = sorted({record["arm"] for record in records})
    if len(arms) > 1:
        raise RecordError(f"the episodes are of several arms ({', '.join(arms)}); analyse one at a time")
    values: dict[str, dict[int, float]] = {}
    for record in records:
        if record["surface"] != surface:
            continue
        task, seed, value = record["task"], record["seed"], float(of(record))
        if not math.isfinite(value):
            raise RecordError(f"episode {task}/{surface}/{seed}: the quantity is {value}; expected a finite number")
        if seed in values.setdefault(task, {}):
            raise RecordError(f"episode {task}/{surface}/{seed} stands twice among the records")
        values[task][seed] = value
    if not values:
        raise RecordError(f"no episodes on the surface {surface!r}; run it, or leave its contrasts out")
    return values


def complexity_by_task(records: Sequence[Record]) -> dict[str, int]:
    """Task -> c.

    Raises:
        RecordError: for a task that is recorded with two complexities.
    """
    complexity: dict[str, int] = {}
    for record in records:
        task, c = record["task"], record["stratum"]
        if complexity.setdefault(task, c) != c:
            raise RecordError(f"task {task} is recorded with c={complexity[task]} and with c={c}; expected one")
    return complexity
