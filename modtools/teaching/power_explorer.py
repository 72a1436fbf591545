"""How many tasks and seeds a hypothesis needs: the power of its planned test, simulated from a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import pair
from modtools.lab.analysis.hypotheses import HYPOTHESES
from modtools.lab.analysis.power import Design, Power, pilot_power
from modtools.lab.registration import SMALLEST, estimand
from modtools.teaching.explorer import explorer, table

TESTABLE = tuple(each for each in HYPOTHESES if not each.injected)
HOLM_FIRST = 0.05 / len(HYPOTHESES)
"""The level that Holm asks of the smallest of four p values."""


@dataclass(frozen=True)
class Choice:
    """A planned experiment: hypothesis name, tasks a stratum, seeds, and the effect in smallest effects of interest."""

    hypothesis: str
    per_stratum: int = 12
    seeds: int = 5
    effect: float = 1.0


def planned_power(pilot: Sequence[Mapping[str, Any]], choice: Choice, simulations: int = 500) -> Power:
    """The power of a planned experiment.

    Args:
        pilot: episode records, on tasks that the plan does not use.
        choice: what is planned.
        simulations: experiments to simulate.

    Raises:
        UsageError: for a hypothesis that the pilot cannot speak of.
    """
    named = {each.name: each for each in TESTABLE}
    if choice.hypothesis not in named:
        raise UsageError(f"no pilot tells the power of {choice.hypothesis!r}; choose one of {', '.join(named)}")
    each = named[choice.hypothesis]
    effect = each.predicted * SMALLEST[each.name] * choice.effect
    pairs = pair(pilot, each.left, each.right, each.quantity)
    design = Design(each.kind, effect, HOLM_FIRST, each.scale)
    return pilot_power(pairs, design, choice.per_stratum, choice.seeds, simulations)


def power_html(pilot: Sequence[Mapping[str, Any]], choice: Choice) -> str:
    """The power of a choice, and beside it with half and with twice the seeds and the tasks."""
    each = next(h for h in TESTABLE if h.name == choice.hypothesis)
    rows = []
    for tasks in (max(1, choice.per_stratum // 2), choice.per_stratum, choice.per_stratum * 2):
        row = [f"{tasks} tasks a stratum"]
        for seeds in (1, choice.seeds, choice.seeds * 2):
            power = planned_power(pilot, Choice(choice.hypothesis, tasks, seeds, choice.effect))
            row.append(f"{power.value:.2f}")
        rows.append(row)
    effect = each.predicted * SMALLEST[each.name] * choice.effect
    said = f"<p>{each.name}: {each.claim}. Effect to be found: {effect:+.3g} ({estimand(each)}).</p>"
    return said + table(["power", "1 seed", f"{choice.seeds} seeds", f"{choice.seeds * 2} seeds"], rows)


def power_explorer(pilot: Sequence[Mapping[str, Any]]) -> Any:
    """A widget: choose a hypothesis, tasks, seeds and the size of the effect, and see the power."""

    def render(hypothesis: str, tasks_a_stratum: int, seeds: int, effect: str) -> str:
        try:
            times = float(effect)
        except ValueError:
            raise UsageError(f"effect {effect!r}: expected a number of smallest effects of interest") from None
        if not 0 < times < 100:
            raise UsageError(f"effect {effect!r}: expected a number above 0 and below 100")
        return power_html(pilot, Choice(hypothesis, tasks_a_stratum, seeds, times))

    names = tuple(each.name for each in TESTABLE)
    return explorer(render, hypothesis=names, tasks_a_stratum=range(2, 25), seeds=range(1, 11), effect="1")
