"""The report's three figures. Each says in words, with the numbers, what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modtools.figures import Figure, canvas
from modtools.lab.metrics import STAGES

_MARKERS = ("o", "s", "^", "D")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def success_figure(data: Mapping[str, Any]) -> Figure:
    """Success by complexity, one line a surface, with intervals."""
    import seaborn

    sentences = []
    with canvas() as (drawing, axes):
        colours = seaborn.color_palette("colorblind")
        for i, (name, cell) in enumerate(data["success"].items()):
            strata = [int(c) for c in cell["by_stratum"]]
            shown = [(k, c) for k, c in enumerate(cell["by_stratum"].values()) if c["value"] is not None]
            cells = [c for _, c in shown]
            x = [k + (i - 1) * 0.12 for k, _ in shown]
            y = [c["value"] for c in cells]
            spread = [
                [c["value"] - (c["value"] if c["low"] is None else c["low"]) for c in cells],
                [(c["value"] if c["high"] is None else c["high"]) - c["value"] for c in cells],
            ]
            axes.errorbar(x, y, yerr=spread, marker=_MARKERS[i % 4], color=colours[i], label=name, capsize=3)
            values = [c["value"] for c in cell["by_stratum"].values()]
            sentences.append(f"{name} {', '.join('no episode' if v is None else f'{v:.2f}' for v in values)}")
        axes.set(xlabel="complexity c (reference calls on the fine surface)", ylabel="share of episodes solved")
        axes.set(ylim=(-0.03, 1.03), xticks=range(len(strata)), xticklabels=[str(c) for c in strata])
        axes.legend(title="surface")
    order = ", ".join(str(c) for c in strata)
    return Figure(drawing, f"Success at complexity {order}, with 95 % intervals: {'; '.join(sentences)}.")


def death_figure(data: Mapping[str, Any]) -> Figure:
    """Where requests die: one bar a surface, one part a stage, the rest got through."""
    shares = {n: [s[stage]["value"] or 0.0 for stage in STAGES] for n, s in data["died_at"].items()}
    parts = {stage: [values[i] for values in shares.values()] for i, stage in enumerate(STAGES)}
    parts["got through"] = [max(0.0, 1 - sum(values)) for values in shares.values()]
    drawing = _stacked(list(shares), parts, "share of requests")
    words = [f"{n}: {', '.join(f'{s} {v:.2f}' for s, v in zip(STAGES, values))}" for n, values in shares.items()]
    return Figure(drawing, f"Share of requests that died at each stage. {'; '.join(words)}.")


def cost_figure(data: Mapping[str, Any]) -> Figure:
    """Mean tokens an episode by cost part."""
    costs = data["token_parts"]
    parts = {part: [costs[name][part] for name in costs] for part in next(iter(costs.values()))}
    drawing = _stacked(list(costs), parts, "mean tokens an episode")
    words = [f"{n}: {', '.join(f'{p} {v:.0f}' for p, v in values.items())}" for n, values in costs.items()]
    return Figure(drawing, f"Mean tokens an episode by cost part. {'; '.join(words)}.")


def _stacked(bars: list[str], parts: Mapping[str, list[float]], label: str) -> Any:
    """Horizontal stacked bars; every part has a colour and a hatch."""
    import seaborn

    with canvas(height_in=0.9 + 0.6 * len(bars)) as (drawing, axes):
        colours = seaborn.color_palette("colorblind")
        left = [0.0] * len(bars)
        for i, (part, values) in enumerate(parts.items()):
            axes.barh(bars, values, left=left, color=colours[i], hatch=_HATCHES[i], edgecolor="white", label=part)
            left = [a + b for a, b in zip(left, values)]
        axes.set(xlabel=label)
        axes.invert_yaxis()
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return drawing
