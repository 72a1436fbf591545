"""Costs that lie orders of magnitude apart, as bars on a log scale."""

from __future__ import annotations

from collections.abc import Mapping

from modtools.errors import UsageError
from modtools.figures import Figure, canvas

_HATCHES = ("", "//", "..", "xx")


def cost_figure(costs: Mapping[str, Mapping[str, float]], unit: str) -> Figure:
    """One bar a cost, grouped by what was measured; a series may leave some out.

    Args:
        costs: series ("inside a string") -> what was measured ("trie walk") -> cost, above 0.
        unit: of all costs, for the axis and the alt text.

    Raises:
        UsageError: a cost that is not above 0, or no series or more than four.
    """
    if not 1 <= len(costs) <= len(_HATCHES) or any(cost <= 0 for series in costs.values() for cost in series.values()):
        raise UsageError(f"expected 1 to {len(_HATCHES)} series of costs above 0, got {costs}")
    names = list(dict.fromkeys(name for series in costs.values() for name in series))
    everything = [cost for series in costs.values() for cost in series.values()]
    width = 0.8 / len(costs)
    with canvas(height_in=1.2 + 0.5 * len(names) * len(costs) ** 0.5) as (drawing, axes):
        for i, (label, series) in enumerate(costs.items()):
            rows = [names.index(name) + (i + 0.5) * width - 0.4 for name in series]
            bars = axes.barh(rows, [*series.values()], 0.95 * width, hatch=_HATCHES[i], edgecolor="white", label=label)
            axes.bar_label(bars, [_rounded(cost) for cost in series.values()], padding=3)
        axes.set(xscale="log", xlim=(min(everything) / 3, max(everything) * 20), xlabel=f"{unit}, log scale")
        axes.set(yticks=range(len(names)), yticklabels=names)
        axes.grid(False, axis="y")
        axes.invert_yaxis()
        if len(costs) > 1:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(costs), frameon=False)
    words = [
        f"{label}: {', '.join(f'{name} {_rounded(cost)}' for name, cost in series.items())}"
        for label, series in costs.items()
    ]
    return Figure(drawing, f"Cost in {unit}. {'; '.join(words)}.")


def _rounded(cost: float) -> str:
    """Three significant digits, without an exponent where one can read it so: 84,100 and 0.0871."""
    return f"{float(f'{cost:.3g}'):,g}"
