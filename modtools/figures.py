"""A figure together with the sentence that says the same in words.

The sentence is the alternative text of the picture, in a notebook and in a report, and it is what nbval compares:
it quotes the numbers drawn. Colours are seaborn's colour-blind palette; never let colour alone carry a meaning.

    with canvas() as (drawing, axes):
        seaborn.pointplot(data, x="complexity", y="success", hue="surface", markers=["o", "s", "^"], ax=axes)
    Figure(drawing, "Success by complexity: coarse 0.62, fine 0.67, code 0.73.")
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modtools.errors import UsageError

if TYPE_CHECKING:
    import matplotlib.figure

_DPI = 120


@dataclass(frozen=True)
class Figure:
    """A drawing and its alternative text.

    Attributes:
        drawing: a matplotlib figure, best made by `canvas`.
        alt: what the figure shows, with the numbers, in a sentence or two.
    """

    drawing: matplotlib.figure.Figure
    alt: str

    def __post_init__(self):
        if not self.alt.strip():
            raise UsageError("a figure needs an alt text: a sentence that says what it shows, with the numbers")

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """What Jupyter shows: the picture with its alt text, or the alt text alone."""
        picture = base64.b64encode(self._bytes("png")).decode("ascii")
        tag = f'<img alt="{html.escape(self.alt)}" src="data:image/png;base64,{picture}">'
        return {"text/html": tag, "text/plain": self.alt}

    def save(self, path: Path) -> Path:
        """Writes the picture; the suffix, .png or .svg, says how."""
        path = Path(path)
        if path.suffix not in (".png", ".svg"):
            raise UsageError(f"cannot save a figure as {path.name!r}; expected a name that ends in .png or .svg")
        path.write_bytes(self._bytes(path.suffix[1:]))
        return path

    def markdown(self, path: str) -> str:
        """The Markdown that shows the picture saved at `path` (as the document sees it) with its alt text."""
        alt = " ".join(self.alt.split()).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"![{alt}](<{path}>)"

    def _bytes(self, kind: str) -> bytes:
        """The picture, the same bytes for the same drawing: no date, no random ids."""
        import matplotlib

        buffer = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        with matplotlib.rc_context({"svg.hashsalt": "modtools"}):
            self.drawing.savefig(buffer, format=kind, dpi=_DPI, metadata=metadata)
        return buffer.getvalue()


@contextmanager
def canvas(rows: int = 1, columns: int = 1, width_in: float = 6.4, height_in: float = 4.0) -> Iterator[tuple[Any, Any]]:
    """Yields (matplotlib figure, axes) under the kit's theme; axes is an array where there are several.

    The figure is not pyplot's: it is shown once, by `Figure`, and leaves the user's own settings alone.
    """
    import seaborn
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Drawing

    with rc_context(), seaborn.axes_style("whitegrid"), seaborn.plotting_context("notebook"):
        seaborn.set_palette("colorblind")
        drawing = Drawing(figsize=(width_in, height_in), layout="constrained")
        yield drawing, drawing.subplots(rows, columns)
