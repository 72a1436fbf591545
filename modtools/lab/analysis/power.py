"""Power by simulation on pilot records: how many tasks and seeds find the effects of interest.

Tasks are drawn with replacement from the pilot, so that a planned run of any size has tasks that scatter like the
pilot's; for each drawn task its seeds are drawn with replacement too, the same ones on every surface. The effect that the
pilot happens to show is taken out, and the smallest effect of interest put in.

The noise that a pilot with few seeds leaves in a task's mean counts as scatter between tasks, and no number of planned
seeds takes it away. So the power is told too low rather than too high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.hypotheses import LEVEL, Hypothesis
from modtools.lab.analysis.paired import Differences, slope_effect

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Power:
    """Of one hypothesis under one plan.

    Attributes:
        hypothesis: its name.
        tasks, seeds: of the plan.
        power: share of simulated runs that find the smallest effect of interest, uncorrected; None where it cannot be
            simulated.
        why: the reason for None, else "".
    """

    hypothesis: str
    tasks: int
    seeds: int
    power: float | None
    why: str = ""


def simulate(
    pilot: Sequence[Record], each: Hypothesis, tasks: int, seeds: int, draws: int = 300, seed: int = 0
) -> Power:
    """Simulate one plan.

    Args:
        pilot: records of a pilot run; with the injected fault where the hypothesis is about it.
        each: the hypothesis, with its smallest effect of interest.
        tasks, seeds: of the plan; tasks are spread over the pilot's complexities as there.
        draws: simulated runs.
        seed: of the simulation.
    """
    if tasks < 4 or seeds < 1:
        raise UsageError(f"{tasks} tasks, {seeds} seeds: expected at least 4 and 1")
    by_task: dict[str, dict[int, list[Record]]] = {}
    for record in pilot:
        by_task.setdefault(record["task"], {}).setdefault(record["seed"], []).append(record)
    strata = sorted({record["stratum"] for record in pilot})
    names = {c: [t for t, runs in by_task.items() if next(iter(runs.values()))[0]["stratum"] == c] for c in strata}
    try:
        shown = each.effect(each.of(pilot), boot=False).value
    except RecordError as error:
        return Power(each.name, tasks, seeds, None, str(error))
    shift = each.smallest * each.predicted - shown
    rng, hits, done = np.random.default_rng(seed), 0, 0
    for _ in range(draws):
        drawn: list[Record] = []
        for number in range(tasks):
            pool = names[strata[number % len(strata)]]
            runs = by_task[pool[rng.integers(len(pool))]]
            keys = sorted(runs)
            for copy in range(seeds):
                chosen = runs[keys[rng.integers(len(keys))]]
                drawn += [{**record, "task": f"{number}", "seed": copy} for record in chosen]
        try:
            found = each.of(drawn)
            slope = found.c - found.c.mean() if each.effect is slope_effect else np.ones_like(found.c)
            effect = each.effect(replace(found, values=found.values + shift * slope), boot=False)
        except RecordError:
            continue
        done += 1
        hits += effect.p is not None and effect.p < LEVEL and effect.value * each.predicted > 0
    return Power(each.name, tasks, seeds, hits / done if done else None, "" if done else "no run could be simulated")


def least_seeds(
    pilot: Sequence[Record], family: Sequence[Hypothesis], tasks: int, most: int = 10, wanted: float = 0.8
) -> tuple[int | None, list[Power]]:
    """(the fewest seeds at which every hypothesis that can be simulated has the wanted power, or None; all that was tried)."""
    tried: list[Power] = []
    for seeds in range(1, most + 1):
        now = [simulate(pilot, each, tasks, seeds) for each in family]
        tried += now
        if all(each.power is None or each.power >= wanted for each in now):
            return seeds, tried
    return None, tried
