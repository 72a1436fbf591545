"""From a source to a notebook not yet run: cells and ids, the badge, the set-up cell, stubs for solutions.

A source is a jupytext percent file. Every cell names itself; tags and other metadata follow the id:

    # %% [markdown] id="intro"
    # %% id="first-call" tags=["live", "nbval-ignore-output"]

An answer stands between `### BEGIN SOLUTION` and `### END SOLUTION`. The student sees `...` in its place, or the
lines given by `### STUB: line` inside it; a stub line is a line of the answer in which `...` may hide anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import modtools
from modtools.errors import MissingPieceError, UsageError
from modtools.teaching.setup_cell import SETUP_ID, badge, setup_source

if TYPE_CHECKING:
    from nbformat import NotebookNode

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_BEGIN, _END, _STUB = "### BEGIN SOLUTION", "### END SOLUTION", "### STUB:"
_HIDDEN = "..."


def read_source(path: Path, notebook: str) -> NotebookNode:
    """The notebook that `path` describes, answers included and nothing executed.

    Args:
        path: a percent file.
        notebook: path of the notebook in the repository, for its badge; with `/`.

    Raises:
        UsageError: a cell has no id of its own or an invalid one, the first cell is not the title, there is a
            second title, or a live cell's output would be compared.
        MissingPieceError: jupytext is not installed.
    """
    try:
        import jupytext
    except ImportError as error:
        raise MissingPieceError("building notebooks needs jupytext: pip install 'modtools[notebooks]'") from error
    from nbformat.v4 import new_code_cell, new_notebook

    cells = jupytext.read(path, fmt="py:percent").cells
    for position, cell in enumerate(cells, start=1):
        cell.metadata.pop("lines_to_next_cell", None)
        cell.id = _valid_id(cell.metadata.pop("id", None), f"{path.name}, cell {position}")
        if cell.cell_type == "code":
            _refuse_hidden_comparison(cell, f"{path.name}, cell {cell.id!r}")
    _refuse_repeats((cell.id for cell in cells), path.name)
    _refuse_other_titles(cells, path.name)
    title, *rest = cells[0].source.split("\n", 1)
    cells[0].source = "\n".join([title, "", badge(notebook), *rest])
    cells.insert(1, new_code_cell(setup_source(modtools.__version__), id=SETUP_ID))
    return new_notebook(cells=cells, metadata=METADATA)


def solution(source: str) -> str:
    """A code cell as the solutions show it: the answer without its stub."""
    return "\n".join(line for line in source.split("\n") if not line.lstrip().startswith(_STUB))


def stub(source: str, where: str) -> str:
    """A code cell as the exercises show it: every answer replaced by its stub.

    Args:
        where: names the cell in an error.

    Raises:
        UsageError: a marker is missing, or a stub line matches no line of its answer.
    """
    kept, answer, stubs, indent = [], [], [], None
    for line in source.split("\n"):
        text = line.strip()
        if text == _BEGIN and indent is None:
            answer, stubs, indent = [], [], line[: line.index(_BEGIN)]
        elif text == _END and indent is not None:
            for hidden in stubs:
                _refuse_unmatched(hidden, answer, where)
            kept += [indent + hidden for hidden in stubs] or [f"{indent}{_HIDDEN}  # your code here"]
            indent = None
        elif text in (_BEGIN, _END):
            raise UsageError(f"{where}: {text!r} without its partner")
        elif indent is not None and text.startswith(_STUB):
            stubs.append(text.removeprefix(_STUB).removeprefix(" "))
        elif indent is not None:
            answer.append(text)
        else:
            kept.append(line)
    if indent is not None:
        raise UsageError(f"{where}: {_BEGIN!r} without its partner")
    return "\n".join(kept)


def _valid_id(value: str | None, where: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value or "") or value == SETUP_ID:
        raise UsageError(
            f'{where}: id {value!r}; expected id="..." in the cell header, 1 to 64 letters, digits, "-" or "_", '
            f"and not {SETUP_ID!r}, which the build writes itself"
        )
    return value


def _refuse_repeats(ids: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise UsageError(f"{where}: two cells have the id {name!r}; ids must differ")
        seen.add(name)


def _refuse_other_titles(cells: list[NotebookNode], where: str) -> None:
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    titles = re.findall(r"(?m)^# ", re.sub(r"(?ms)^```.*?^```", "", prose))  # a comment in a fence is no title
    if len(titles) != 1 or cells[0].cell_type != "markdown" or not cells[0].source.startswith("# "):
        raise UsageError(f"{where}: expected one '# Title', at the top of a first markdown cell, and no other")


def _refuse_hidden_comparison(cell: NotebookNode, where: str) -> None:
    tags = cell.metadata.get("tags", [])
    if "live" in tags and "nbval-ignore-output" not in tags:
        raise UsageError(f"{where}: tagged 'live'; a live cell also needs the tag 'nbval-ignore-output'")
    if "nbval-skip" in tags or "NBVAL_" in cell.source:
        raise UsageError(f"{where}: leave nbval to the tag 'nbval-ignore-output', which is counted")


def _refuse_unmatched(hidden: str, answer: list[str], where: str) -> None:
    pattern = ".*".join(re.escape(part) for part in hidden.strip().split(_HIDDEN))
    if not any(re.fullmatch(pattern, line) for line in answer):
        raise UsageError(f"{where}: stub line {hidden.strip()!r} matches no line of the answer")
