"""The entropy of what a task asks to be done, H(T, A | C), from the generator and so without an estimator's error.

C is the task's family and stratum, never its text (given that, hardly a choice is left). The choice is the reference's
whole sequence of canonical operations, hence one number for all surfaces. Each family tells the exact probability of
the operations it drafts (`Draft.one_in`); its log2 is their surprisal, and the mean surprisal is the entropy.

The mean is taken over the tasks of a run, so it carries a sampling error, which is told. Drafts are drawn anew where one
search would show two secrets, and `one_in` speaks of all drafts. So for such families the mean is a cross-entropy: never
below the entropy of the tasks that are kept, and above it by log2(1 / share of drafts kept) at most. That is told too.
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
        error: its standard error, from the spread of the tasks within their families and strata; None where no family
            and stratum has two.
        slack: bits by which the mean may lie above the entropy at most, for drafts that were drawn anew.
        tasks: how many.
    """

    bits: float
    error: float | None
    slack: float
    tasks: int


def choice_bits(task: Task) -> float:
    """The surprisal in bits of a generated task's operations, given its family and stratum.

    Raises:
        UsageError: for a task of one's own; nobody knows its distribution.
    """
    return _bits_and_tries(task)[0]


def choice_entropy(tasks: Sequence[Task]) -> ChoiceEntropy:
    """H over a set of tasks, each family and stratum by its share in it.

    Raises:
        UsageError: for no tasks, or tasks of one's own.
    """
    if not tasks:
        raise UsageError("no tasks: an entropy of choices needs some")
    cells: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for task in tasks:
        cells.setdefault((task.family, task.c), []).append(_bits_and_tries(task))
    values = np.array([bits for of in cells.values() for bits, _ in of])
    freedom = len(values) - len(cells)
    within = sum(float(np.var([bits for bits, _ in of]) * len(of)) for of in cells.values())
    error = float(np.sqrt(within / freedom / len(values))) if freedom > 0 else None
    slack = sum(len(of) * log2(np.mean([tries for _, tries in of])) for of in cells.values()) / len(values)
    return ChoiceEntropy(float(values.mean()), error, float(slack), len(values))


def _bits_and_tries(task: Task) -> tuple[float, int]:
    if task.own_solution:
        raise UsageError(f"task {task.id} was not generated, so the entropy of its choice is not known")
    draft, *_, tries = drafted(task.family, task.c, task.seed)
    return log2(draft.one_in), tries
