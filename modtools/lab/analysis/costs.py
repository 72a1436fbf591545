"""What an episode costs, by part, and how the cost of a surface grows with the task.

Two curves, registered before the run: on the code surface a + b u + g log r, since distinct payloads u must be
written out and repetitions r = c/u only be told; on the fine surface a + b c + d c², since each call re-reads
what went before. Both are linear in their coefficients and fitted by least squares to per-task means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from modtools.errors import RecordError
from modtools.lab.analysis.by_task import complexity_by_task, values_by_task
from modtools.lab.episode import TOKEN_PARTS
from modtools.lab.metrics import Estimate, Record, mean, token_parts, total_tokens

CODE, FINE = "code", "fine"
COEFFICIENTS = {CODE: ("a", "b", "g"), FINE: ("a", "b", "d")}


def cost_parts(records: Sequence[Record]) -> dict[str, dict[str, Estimate]]:
    """Surface -> part -> mean tokens an episode, "total" last; the parts sum to it.

    Raises:
        RecordError: for an episode whose parts do not sum to what its turns used.
    """
    surfaces = sorted({record["surface"] for record in records})
    of = {surface: [record for record in records if record["surface"] == surface] for surface in surfaces}
    table = {}
    for surface, episodes in of.items():
        token_parts(episodes)  # raises where an episode's parts do not sum
        parts = {part: mean(episodes, lambda record, p=part: record["tokens"][p]) for part in TOKEN_PARTS}
        table[surface] = parts | {"total": mean(episodes, total_tokens)}
    return table


@dataclass(frozen=True)
class TaskCosts:
    """The cost of tasks on one surface.

    Attributes:
        surface: "code" or "fine".
        tasks: ids, sorted.
        c, u: complexity and distinct payloads, shape (n,).
        cost: mean over seeds, shape (n,).
    """

    surface: str
    tasks: tuple[str, ...]
    c: np.ndarray
    u: np.ndarray
    cost: np.ndarray

    def design(self) -> np.ndarray:
        """The regressors of the surface's curve, shape (n, 3)."""
        return regressors(self.surface, self.c, self.u)


def regressors(surface: str, c: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Of the curve of "code" 1, u, log(c/u); of "fine" 1, c, c²; shape (n, 3)."""
    columns = (u, np.log(c / u)) if surface == CODE else (c, c**2)
    return np.column_stack([np.ones_like(c), *columns])


def task_costs(records: Sequence[Record], surface: str, of: Callable[[Record], float] = total_tokens) -> TaskCosts:
    """The cost of each task on a surface, the mean over its seeds.

    Failed episodes are counted as they are: a surface on which the model gives up early is cheap. To compare the
    cost of solved tasks, pass the records of solved episodes, and say so.

    Args:
        records: episodes of one arm, or reference solutions written as records; each with task, surface, seed,
            arm, stratum, u, and what `of` reads.
        surface: "code" or "fine".
        of: cost of an episode.

    Raises:
        RecordError: see `by_task.values_by_task`; also for a task with two values of u, or u not within 1 to c.
    """
    values = values_by_task(records, surface, of)
    complexity = complexity_by_task(records)
    payloads = _payloads(records, complexity)
    tasks = tuple(sorted(values))
    return TaskCosts(
        surface,
        tasks,
        np.array([complexity[task] for task in tasks], dtype=float),
        np.array([payloads[task] for task in tasks], dtype=float),
        np.array([np.mean(list(values[task].values())) for task in tasks]),
    )


def fit_curve(costs: TaskCosts) -> dict[str, float] | None:
    """The coefficients of the surface's curve by name, or None where the tasks do not fix them."""
    found = weighted_fits(costs.design(), costs.cost, np.ones((1, len(costs.cost))))[0]
    return dict(zip(COEFFICIENTS[costs.surface], map(float, found))) if np.isfinite(found).all() else None


def weighted_fits(design: np.ndarray, cost: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Least squares once for each row of weights.

    Args:
        design: shape (n, p).
        cost: shape (n,).
        weights: how often each task counts, shape (draws, n).

    Returns:
        Coefficients, shape (draws, p); NaN in rows whose tasks do not fix them.
    """
    scale = np.abs(design).max(axis=0)
    scaled = design / np.where(scale > 0, scale, 1)
    outer = (scaled[:, :, None] * scaled[:, None, :]).reshape(len(scaled), -1)
    gram = (weights @ outer).reshape(len(weights), design.shape[1], design.shape[1])
    moment = weights @ (scaled * cost[:, None])
    fixed = np.linalg.matrix_rank(gram, tol=1e-9 * weights.shape[1], hermitian=True) == design.shape[1]
    found = np.full((len(weights), design.shape[1]), np.nan)
    found[fixed] = np.linalg.solve(gram[fixed], moment[fixed][..., None])[..., 0]
    return found / np.where(scale > 0, scale, 1)


def _payloads(records: Sequence[Record], complexity: Mapping[str, int]) -> dict[str, int]:
    payloads: dict[str, int] = {}
    for record in records:
        task, u = record["task"], record["u"]
        if payloads.setdefault(task, u) != u or not 1 <= u <= complexity[task]:
            raise RecordError(f"task {task}: u={u}, c={complexity[task]}; expected one u for a task, from 1 to c")
    return payloads
