"""A small table drawn as a figure: a word in each cell, and a shade that says the same again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modtools.errors import UsageError
from modtools.figures import Figure, canvas


def matrix_figure(
    cells: Mapping[str, Mapping[str, str]], shades: Mapping[str, float], alt: str, title: str = "", default: float = 0.0
) -> Figure:
    """Rows and columns with a word in each cell.

    Args:
        cells: row -> column -> word. Every row has the same columns.
        shades: word -> how dark its cell is, from 0 to 0.5, so that black words can be read on it.
        alt: what the figure shows.
        title: above it.
        default: shade of any other word.

    Raises:
        UsageError: rows with different columns, no rows, or a shade that hides the word.
    """
    columns = _columns(cells)
    if not all(0 <= shade <= 0.5 for shade in (*shades.values(), default)):
        raise UsageError(f"shades {dict(shades)}, {default}: expected numbers from 0 to 0.5")
    with canvas(width_in=2.2 + 1.15 * len(columns), height_in=1.2 + 0.42 * len(cells)) as (drawing, axes):
        for y, row in enumerate(cells.values()):
            for x, word in enumerate(row.values()):
                axes.add_patch(_box(x, y, shades.get(word, default)))
                axes.text(x, y, word, ha="center", va="center", color="black")
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(cells) - 0.5, -0.5), title=title)
        axes.set(xticks=range(len(columns)), xticklabels=[name.replace("_", "\n") for name in columns])
        axes.set(yticks=range(len(cells)), yticklabels=[name.replace("_", " ") for name in cells])
        axes.xaxis.tick_top()
        axes.grid(False)
    return Figure(drawing, alt)


def _columns(cells: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
    rows = [list(row) for row in cells.values()]
    if not rows or any(row != rows[0] for row in rows):
        raise UsageError(f"expected rows with the same columns, got {rows}")
    return rows[0]


def _box(x: int, y: int, shade: float):
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=str(1 - shade), edgecolor="grey")
