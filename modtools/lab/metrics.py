"""Metrics of a run: from episode records to tables with intervals.

Success is a share of episodes and gets Wilson's interval. Requests stand in episodes and episodes in tasks,
so shares of requests and means get a percentile bootstrap that draws whole tasks. Where there are fewer than
two tasks, or the tasks do not differ at all, there is no interval, and none is invented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.contract import Stage
from modtools.errors import RecordError
from modtools.lab.episode import TOKEN_PARTS

Record = Mapping[str, Any]
STAGES = tuple(str(stage) for stage in Stage)
_DRAWS = 2000


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Attributes:
        value: the estimate; None where nothing was observed.
        low, high: ends of the interval; None where the data support none.
        n: observations behind it (episodes, or requests).
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    def text(self, digits: int = 2) -> str:
        """For a table: "0.25 (0.05 to 0.61)", or without an interval "0.25 (n=1)"."""
        if self.value is None:
            return "none"
        if self.low is None:
            return f"{self.value:.{digits}f} (n={self.n})"
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def success(records: Sequence[Record]) -> Estimate:
    """Share of episodes whose verifier passed, with Wilson's 95 % interval.

    With several seeds a task's episodes are not independent; the interval then draws tasks instead.
    """
    if not records:
        return Estimate(None, None, None, 0)
    if len({r["task"] for r in records}) < len(records):
        return mean(records, lambda r: float(r["success"]))
    from scipy.stats import binomtest

    wins = sum(r["success"] for r in records)
    interval = binomtest(wins, len(records)).proportion_ci(method="wilson")
    return Estimate(wins / len(records), float(interval.low), float(interval.high), len(records))


def mean(records: Sequence[Record], of: Callable[[Record], float]) -> Estimate:
    """Mean over episodes of a quantity, with a bootstrap over tasks."""
    return ratio(records, of, lambda r: 1.0)


def stage_shares(records: Sequence[Record]) -> dict[str, Estimate]:
    """For each stage, the share of requests that died there; bootstrap over tasks."""
    return {stage: ratio(records, lambda r, s=stage: r["stages"].get(s, 0), lambda r: r["calls"]) for stage in STAGES}


def token_parts(records: Sequence[Record]) -> dict[str, float]:
    """Mean tokens an episode by cost part; they sum to the mean total.

    Raises:
        RecordError: for an episode whose parts do not sum to what its turns used.
    """
    for record in records:
        used = sum(t["usage"]["prompt_tokens"] + t["usage"]["completion_tokens"] for t in record["turns"])
        if used != sum(record["tokens"].values()):
            raise RecordError(f"episode {record['task']}/{record['surface']}: cost parts sum to "
                              f"{sum(record['tokens'].values())}, its turns used {used} tokens")  # fmt: skip
    return {part: float(np.mean([r["tokens"][part] for r in records])) if records else 0.0 for part in TOKEN_PARTS}


def total_tokens(record: Record) -> float:
    """All tokens of an episode, read and written."""
    return float(sum(record["tokens"].values()))


def ratio(records: Sequence[Record], above: Callable[[Record], float], below: Callable[[Record], float]) -> Estimate:
    """Sum of `above` over sum of `below`, with a percentile bootstrap that draws tasks with replacement.

    The value is None where `below` sums to 0.
    """
    tasks = sorted({r["task"] for r in records})
    index = {task: i for i, task in enumerate(tasks)}
    sums = np.zeros((len(tasks), 2))
    for record in records:
        sums[index[record["task"]]] += (above(record), below(record))
    total = sums.sum(axis=0)
    if total[1] == 0:
        return Estimate(None, None, None, 0)
    value = float(total[0] / total[1])
    if len(tasks) < 2:
        return Estimate(value, None, None, int(total[1]))
    draws = np.random.default_rng(0).integers(len(tasks), size=(_DRAWS, len(tasks)))
    drawn = sums[draws].sum(axis=1)
    kept = drawn[drawn[:, 1] > 0]
    ratios = kept[:, 0] / kept[:, 1]
    if np.ptp(ratios) == 0:  # tasks that do not differ say nothing about how much tasks differ
        return Estimate(value, None, None, int(total[1]))
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Estimate(value, float(low), float(high), int(total[1]))
