"""pass@k and pass^k: does one of k attempts at a task succeed, and do all of them?

A task with n attempts, s of them successful, gives the unbiased estimates 1 - C(n-s, k)/C(n, k) and C(s, k)/C(n, k):
the shares of the k-subsets of its attempts that hold a success, and that hold nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import values_by_task
from modtools.lab.metrics import Estimate, Record, mean


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of k attempts succeeds.

    Raises:
        UsageError: unless 1 <= k <= attempts and 0 <= successes <= attempts.
    """
    _check(attempts, successes, k)
    return 1 - comb(attempts - successes, k) / comb(attempts, k)


def pass_hat_k(attempts: int, successes: int, k: int) -> float:
    """Unbiased estimate of the chance that all of k attempts succeed (pass^k).

    Raises:
        UsageError: as in `pass_at_k`.
    """
    _check(attempts, successes, k)
    return comb(successes, k) / comb(attempts, k)


@dataclass(frozen=True)
class PassK:
    """Both measures on one surface, as means over tasks with a bootstrap over tasks.

    Attributes:
        k: attempts.
        at_k: at least one of k succeeds.
        hat_k: all k succeed.
    """

    k: int
    at_k: Estimate
    hat_k: Estimate


def pass_k(records: Sequence[Record], surface: str, k: int) -> PassK:
    """pass@k and pass^k of a surface; the seeds of a task are its attempts.

    Raises:
        RecordError: see `by_task.values_by_task`.
        UsageError: for a task with fewer than k seeds.
    """
    by_task = values_by_task(records, surface, lambda record: float(record["success"]))
    rows = []
    for task, values in by_task.items():
        n, successes = len(values), round(sum(values.values()))
        if n < k:
            raise UsageError(f"task {task} has {n} seeds on {surface}; pass@{k} needs at least {k}")
        rows.append({"task": task, "at": pass_at_k(n, successes, k), "hat": pass_hat_k(n, successes, k)})
    return PassK(k, mean(rows, lambda row: row["at"]), mean(rows, lambda row: row["hat"]))


def _check(attempts: int, successes: int, k: int) -> None:
    if not (1 <= k <= attempts and 0 <= successes <= attempts):
        raise UsageError(f"k={k}, {successes} of {attempts} attempts: expected 1 <= k <= attempts, 0 <= successes")
