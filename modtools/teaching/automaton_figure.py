"""A small automaton drawn: its states in the order in which they are met, its bytes on the arrows."""

from __future__ import annotations

from collections.abc import Iterable

from modtools.errors import UsageError
from modtools.figures import Figure, canvas
from modtools.masking import Grammar
from modtools.masking.grammar import State

MAX_STATES = 8  # more cannot be read in a row


def reachable(grammar: Grammar, alphabet: str) -> tuple[list[State], list[tuple[int, str, int]]]:
    """The states that texts over an ASCII alphabet lead to, the start first, and the arrows (from, letter, to).

    Raises:
        UsageError: more than MAX_STATES states.
    """
    states, arrows = [grammar.start], []
    for state in states:
        for letter in alphabet:
            after = state.step(ord(letter))
            if after is None:
                continue
            if after not in states:
                states.append(after)
            arrows.append((states.index(state), letter, states.index(after)))
        if len(states) > MAX_STATES:
            raise UsageError(f"{grammar.name}: more than {MAX_STATES} states; draw a smaller automaton")
    return states, arrows


def automaton_figure(grammar: Grammar, alphabet: str) -> Figure:
    """The automaton of a grammar over a few ASCII letters; a double ring is a state where a text may end.

    Raises:
        UsageError: more than MAX_STATES states.
    """
    states, arrows = reachable(grammar, alphabet)
    joined: dict[tuple[int, int], list[str]] = {}
    for source, letter, target in arrows:
        joined.setdefault((source, target), []).append(letter)
    with canvas(width_in=1.6 * len(states) + 1, height_in=2.2) as (drawing, axes):
        for i, state in enumerate(states):
            for radius in (0.26, 0.2) if state.is_accepting else (0.26,):
                axes.add_patch(_ring(i, radius))
            axes.text(i, 0, str(i), ha="center", va="center")
        axes.annotate("", (-0.28, 0), (-0.75, 0), arrowprops={"arrowstyle": "-|>", "color": "black"})
        for (source, target), letters in joined.items():
            _arrow(axes, source, target, ", ".join(letters))
        axes.set(xlim=(-0.9, len(states) - 0.4), ylim=(-0.8, 0.8), aspect="equal")
        axes.axis("off")
    ends = _listed(i for i, state in enumerate(states) if state.is_accepting)
    moves = "; ".join(f"{source} reads {letter} to {target}" for source, letter, target in arrows)
    return Figure(drawing, f"{len(states)} states, start 0, may end in {ends}. {moves}.")


def _ring(x: float, radius: float):
    from matplotlib.patches import Circle

    return Circle((x, 0), radius, facecolor="white", edgecolor="black", zorder=2)


def _arrow(axes, source: int, target: int, label: str) -> None:
    """An arc above for a step to the right, below for one to the left, a loop below for none."""
    if source == target:
        ends, bend, place = ((source + 0.12, -0.23), (source - 0.12, -0.23)), -1.9, (source, -0.62)
    else:
        side = 1 if target > source else -1
        ends = ((source + 0.22 * side, 0.14 * side), (target - 0.22 * side, 0.14 * side))
        bend, place = -0.3, ((source + target) / 2, side * (0.2 + 0.14 * abs(target - source)))
    style = {"arrowstyle": "-|>", "color": "black", "connectionstyle": f"arc3,rad={bend}"}
    axes.annotate("", ends[1], ends[0], arrowprops=style)
    axes.text(*place, label, ha="center", va="center")


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
