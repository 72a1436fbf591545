"""The entropy of what a task asks to be done, H(T, A | C), from the generator and so without an estimator's error.

C is the task's family and stratum, never its text (given that, hardly a choice is left). The choice is the reference's
whole sequence of canonical operations, hence one number for all surfaces. Each family tells the exact probability of
the operations it drafts (`Draft.one_in`); its log2 is their surprisal, and the mean surprisal is the entropy.

The mean is taken over the tasks of a run, so it carries a sampling error, which is told. Drafts that are drawn anew,
because one search would show two secrets, are not counted in: that changes a probability by their share at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from modtools.errors import UsageError
from modtools.lab.tasks import Task, drafted


@dataclass(frozen=True)
class ChoiceEntropy:
    """H of a task's choices.

    Attributes:
        bits: mean surprisal of the tasks' operations.
        error: its standard error, from the spread of the tasks within their families and strata.
        tasks: how many.
    """

    bits: float
    error: float
    tasks: int


def choice_bits(task: Task) -> float:
    """The surprisal in bits of a generated task's operations, given its family and stratum.

    Raises:
        UsageError: for a task of one's own; nobody knows its distribution.
    """
    if task.own_solution:
        raise UsageError(f"task {task.id} was not generated, so the entropy of its choice is not known")
    return log2(drafted(task.family, task.c, task.seed)[0].one_in)


def choice_entropy(tasks: Sequence[Task]) -> ChoiceEntropy:
    """H over a set of tasks, each family and stratum by its share in it.

    Raises:
        UsageError: for no tasks, or tasks of one's own.
    """
    if not tasks:
        raise UsageError("no tasks: an entropy of choices needs some")
    cells: dict[tuple[str, int], list[float]] = {}
    for task in tasks:
        cells.setdefault((task.family, task.c), []).append(choice_bits(task))
    values = [bits for of in cells.values() for bits in of]
    freedom = len(values) - len(cells)
    within = sum(float(((np.array(of) - np.mean(of)) ** 2).sum()) for of in cells.values())
    error = float(np.sqrt(within / freedom / len(values))) if freedom > 0 else float("nan")
    return ChoiceEntropy(float(np.mean(values)), error, len(values))
