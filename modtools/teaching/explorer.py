"""The one widget shell of the course: controls on top, below them what a pure function makes of their values."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

from modtools.errors import ModtoolsError

Control = str | tuple[str, ...] | range | bool


def explorer(render: Callable[..., str], **controls: Control) -> Any:
    """A widget whose output is `render(**values)`, made anew whenever a control changes.

    Args:
        render: takes one keyword a control and returns HTML. It is the whole logic; test it alone.
        controls: name -> what can be chosen. A string is a text box with that text in it, a tuple of strings a
            list to choose from, a range a slider with a number box, True or False a box to tick.

    Returns:
        An ipywidgets box. Its children are the controls in order, then an HTML widget with the output.
    """
    import ipywidgets

    inputs = {name: _input(name, control) for name, control in controls.items()}
    output = ipywidgets.HTML()

    def update(change: Mapping[str, Any] | None = None) -> None:
        try:
            output.value = render(**{name: box.value for name, box in inputs.items()})
        except ModtoolsError as error:
            output.value = f"<p>{html.escape(str(error))}</p>"

    for box in inputs.values():
        box.observe(update, names="value")
    update()
    return ipywidgets.VBox([*inputs.values(), output])


def _input(name: str, control: Control) -> Any:
    import ipywidgets

    label = name.replace("_", " ")
    wide = ipywidgets.Layout(width="98%")
    if isinstance(control, bool):
        return ipywidgets.Checkbox(control, description=label, indent=False, layout=wide)
    if isinstance(control, str):
        rows = max(3, control.count("\n") + 2)
        return ipywidgets.Textarea(control, description=label, rows=rows, layout=wide, continuous_update=True)
    if isinstance(control, range):
        return ipywidgets.IntSlider(control.start, control.start, control.stop - 1, control.step, description=label)
    return ipywidgets.Dropdown(options=control, value=control[0], description=label, layout=wide)


def table(header: list[str], rows: list[list[str]], raw: bool = False) -> str:
    """An HTML table that can be read in light and dark themes. Cells are escaped unless `raw`."""
    cell = "border:1px solid #8888;padding:.25em .6em;text-align:left;vertical-align:top;line-height:1.35"
    shown = (lambda text: text) if raw else html.escape
    head = "".join(f'<th scope="col" style="{cell}">{html.escape(name)}</th>' for name in header)
    body = "".join("<tr>" + "".join(f'<td style="{cell}">{shown(c)}</td>' for c in row) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{"<tr>" + head + "</tr>" if header else ""}{body}</table>'


def code(text: str) -> str:
    """Preformatted text that wraps."""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font-size:90%"
    return f'<pre style="{style}">{html.escape(text)}</pre>'
