"""Pictures of the findings: the interaction of surface and complexity, the cost curves, recovery from the fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modtools.figures import Figure, canvas
from modtools.lab.analysis.by_task import pair
from modtools.lab.analysis.costs import CODE, FINE, regressors, task_costs
from modtools.lab.analysis.crossover import RANGE
from modtools.lab.analysis.hypotheses import success
from modtools.lab.analysis.slopes import slope_contrast
from modtools.lab.metrics import Estimate, Record

_WIDTH = 0.25


def findings_figures(records: Sequence[Record], found: Mapping[str, Any]) -> dict[str, Figure]:
    """Name -> figure, of what the run allows to be drawn."""
    figures = {}
    on = [{record["task"] for record in records if record["surface"] == name} for name in (CODE, FINE)]
    if on[0] & on[1]:
        figures["interaction"] = interaction_figure(records)
        if found["crossover"].get("curves"):
            figures["crossover"] = crossover_figure(records, found["crossover"])
    if found["recovery"]["injected"]:
        figures["recovery"] = recovery_figure(found["recovery"]["injected"])
    return figures


def interaction_figure(records: Sequence[Record]) -> Figure:
    """The difference code - fine in success, one point a task, its mean in each stratum, and its line on c."""
    import seaborn

    pairs = pair(records, CODE, FINE, success)
    values, strata = pairs.contrasts(), np.unique(pairs.c)
    slope = slope_contrast(pairs.c, values)
    means = [values[pairs.c == c].mean() for c in strata]
    with canvas() as (drawing, axes):
        colours = seaborn.color_palette("colorblind")
        shift = np.random.default_rng(0).uniform(-_WIDTH, _WIDTH, len(values))
        axes.axhline(0, color="grey", linewidth=1)
        axes.plot(pairs.c + shift, values, "o", color=colours[0], alpha=0.45, label="a task")
        axes.plot(strata, means, "D", color=colours[3], markersize=9, label="mean of a stratum")
        if slope.estimate is not None:
            line = values.mean() + slope.estimate * (strata - pairs.c.mean())
            axes.plot(strata, line, "--", color=colours[2], label="line on c")
        axes.set(
            xlabel="complexity c", ylabel="code - fine, share of episodes solved", xticks=strata, ylim=(-1.08, 1.08)
        )
        axes.legend()
    shown = ", ".join(f"{mean:+.2f} at c={c:g}" for c, mean in zip(strata, means))
    return Figure(drawing, f"Success on code less success on fine, by task: mean {shown}. Slope on c {slope.text(3)}.")


def crossover_figure(records: Sequence[Record], crossover: Mapping[str, Any]) -> Figure:
    """Tokens of each task on code and fine with the two fitted curves, and c* with its interval where there is one."""
    import seaborn

    grid = np.linspace(*RANGE, 60)
    with canvas() as (drawing, axes):
        colours = seaborn.color_palette("colorblind")
        for index, (surface, marker, style) in enumerate(((CODE, "o", "-"), (FINE, "s", "--"))):
            costs = task_costs(records, surface)
            curve = np.array(list(crossover["curves"][surface].values()))
            axes.plot(costs.c + (index - 0.5) * _WIDTH, costs.cost, marker, color=colours[index], alpha=0.4)
            if surface == FINE:
                x, y = grid, regressors(FINE, grid, np.ones_like(grid)) @ curve
            else:  # which u goes with a c is told by the tasks: stratum by stratum
                x = np.unique(costs.c)
                y = np.array([costs.design()[costs.c == c].mean(axis=0) for c in x]) @ curve
            axes.plot(x, y, style, color=colours[index], label=surface)
        if crossover["c_star"] is not None:
            axes.axvline(crossover["c_star"], color="grey", linewidth=1)
            low, high = (
                RANGE[i] if crossover[end] is None else crossover[end] for i, end in enumerate(("low", "high"))
            )
            axes.axvspan(low, high, color="grey", alpha=0.2, label="c* with its interval")
        axes.set(xlabel="complexity c", ylabel="tokens a task, read and written", ylim=(0, None))
        axes.legend()
    return Figure(drawing, f"Tokens a task on code and fine, with fitted curves. Crossover c*: {crossover['text']}.")


def recovery_figure(injected: Mapping[str, Mapping[str, Any]]) -> Figure:
    """After the injected fault: the shares of episodes that recovered, and that completed their task."""
    import seaborn

    parts, words = ("recovered", "completed"), []
    with canvas(height_in=3.2) as (drawing, axes):
        colours = seaborn.color_palette("colorblind")
        for i, (part, hatch) in enumerate(zip(parts, ("", "//"))):
            shares = [Estimate(**of[part]) for of in injected.values()]
            at = np.arange(len(shares)) + (i - 0.5) * 0.36
            axes.bar(at, [each.value or 0 for each in shares], 0.34, color=colours[i], hatch=hatch, edgecolor="white",
                     label=part)  # fmt: skip
            for x, each in zip(at, shares):
                if each.low is not None:
                    axes.plot([x, x], [each.low, each.high], color="black", linewidth=1.5)
            words.append(f"{part} {', '.join(f'{name} {each.text()}' for name, each in zip(injected, shares))}")
        axes.set(ylabel="share of episodes that met it", ylim=(0, 1.03), xticks=range(len(injected)))
        axes.set_xticklabels(list(injected))
        axes.legend()
    return Figure(drawing, f"After the injected fault: {'; '.join(words)}.")
