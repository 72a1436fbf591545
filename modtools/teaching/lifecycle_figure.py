"""The road of a call drawn: five stages, eleven steps, what each step does, and how a call can end there."""

from __future__ import annotations

from itertools import groupby

from modtools.contract import Outcome
from modtools.figures import Figure, canvas
from modtools.pipeline import STAGE_OF, Step

_SUCCESS, _INVALID, _DENIED, _ASKED, _TIMEOUT, _CANCELLED, _PARTIAL, _ACCEPTED, _UNKNOWN, _UNAVAILABLE = Outcome

# Step -> what it does, and how a call can end there. At every step before normalising a call can also be cancelled, and
# any step can break (unavailable_tool); where a tool with effects had begun, both end as unknown_outcome.
LIFECYCLE: dict[Step, tuple[str, tuple[Outcome, ...]]] = {
    Step.EXTRACT: ("find the one call in the reply", (_INVALID,)),
    Step.PARSE: ("read it as JSON", (_INVALID,)),
    Step.RESOLVE: ("find the tool in the catalogue the model saw", (_INVALID, _UNAVAILABLE, _DENIED)),
    Step.VALIDATE: ("hold the arguments against the schema", (_INVALID,)),
    Step.CANONICALISE: ("name what would really be done, to what", (_INVALID,)),
    Step.CLASSIFY: ("effect and risk of this very call", (_DENIED,)),
    Step.AUTHORISE: ("ask the hooks, then the policy", (_DENIED, _ASKED)),
    Step.BIND: ("credentials, locks, key; announce it in the audit", (_UNAVAILABLE, _INVALID, _DENIED, _SUCCESS)),
    Step.EXECUTE: ("run the handler in its boundary", (_TIMEOUT, _UNKNOWN, _UNAVAILABLE, _DENIED)),
    Step.NORMALISE: ("bound, redact and word the result", (_UNKNOWN, _UNAVAILABLE)),
    Step.COMMIT: ("write the terminal line, then tell the model", (_SUCCESS, _PARTIAL, _ACCEPTED, _UNKNOWN)),
}


def lifecycle_figure() -> Figure:
    """Five stages on the left, their steps beside them; the order is from top to bottom."""
    with canvas(width_in=9.2, height_in=5.8) as (drawing, axes):
        rows = {step: -i for i, step in enumerate(Step)}
        for step, (job, ends) in LIFECYCLE.items():
            y = rows[step]
            axes.add_patch(_box(1.55, y, 1.5, 0.74, "white"))
            axes.text(2.3, y, step, ha="center", va="center", fontsize=10)
            axes.text(3.25, y, job, va="center", fontsize=10)
            axes.text(8.1, y, _lines(ends), va="center", fontsize=9)
            if step != Step.COMMIT:
                axes.annotate("", (2.3, y - 0.63), (2.3, y - 0.37), arrowprops={"arrowstyle": "-|>", "color": "black"})
        for i, (stage, steps) in enumerate(groupby(Step, STAGE_OF.get)):
            lines = [rows[step] for step in steps]
            height = lines[0] - lines[-1] + 0.74
            axes.add_patch(_box(0, (lines[0] + lines[-1]) / 2, 1.3, height, ("#dcdcdc", "#f0f0f0")[i % 2]))
            axes.text(0.65, (lines[0] + lines[-1]) / 2, stage, ha="center", va="center", fontsize=10, weight="bold")
        for x, title in ((0.65, "stage"), (2.3, "step")):
            axes.text(x, 0.75, title, ha="center", va="center", fontsize=9, style="italic")
        for x, title in ((3.25, "what it does"), (8.1, "how a call can end here")):
            axes.text(x, 0.75, title, va="center", fontsize=9, style="italic")
        axes.set(xlim=(-0.1, 12.6), ylim=(-10.5, 1.1))
        axes.axis("off")
    parts = [
        f"{stage}: " + "; ".join(f"{step} ({LIFECYCLE[step][0]}; can end as {', '.join(LIFECYCLE[step][1])})" for step in steps)
        for stage, steps in groupby(Step, STAGE_OF.get)
    ]  # fmt: skip
    return Figure(drawing, f"Five stages and their {len(Step)} steps, in order. {'. '.join(parts)}.")


def _lines(ends: tuple[Outcome, ...]) -> str:
    """Two to a line."""
    return ",\n".join(", ".join(ends[i : i + 2]) for i in range(0, len(ends), 2))


def _box(x: float, y: float, width: float, height: float, colour: str):
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.12"
    return FancyBboxPatch((x, y - height / 2), width, height, style, facecolor=colour, edgecolor="black")
