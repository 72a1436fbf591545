"""Builds the notebooks from their sources, one way only, and says where a committed one differs.

    course/lessons/NAME.py -> notebooks/NAME.ipynb   executed
    solutions/NAME.py      -> solutions/NAME.ipynb   executed
                           -> exercises/NAME.ipynb   answers stripped, not executed

The check compares what the source decides: cells, ids, tags, text. Outputs are nbval's business.
"""

from __future__ import annotations

import copy
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from modtools.errors import ModtoolsError, UsageError
from modtools.records import write_whole
from modtools.teaching.sources import METADATA, read_source, solution, stub

if TYPE_CHECKING:
    from nbformat import NotebookNode

CELL_TIMEOUT_S = 300
IGNORED_SHARE = 1 / 5  # at most this share of a notebook's code cells may leave its output unchecked
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Target:
    """One notebook to build: its source and path relative to the root, and whether answers are stripped."""

    source: str
    notebook: str
    stripped: bool


@dataclass(frozen=True)
class Difference:
    """One way in which a notebook is not what its source says. `where` is a cell id, or empty."""

    notebook: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.notebook}{f' [{self.where}]' if self.where else ''}: {self.what}"


@dataclass(frozen=True)
class Ignored:
    """The cells of one notebook whose output nbval does not compare."""

    notebook: str
    cells: tuple[str, ...]
    code_cells: int


def targets(root: Path, names: Sequence[str] = ()) -> list[Target]:
    """What there is to build under `root`; with `names` ("00_start") only those.

    Raises:
        UsageError: `root` is no checkout, or a name has no source.
    """
    if not (root / "course" / "lessons").is_dir():
        raise UsageError(f"{root} has no folder course/lessons; run this in a checkout of the repository")
    found = []
    for source in sorted([*root.glob("course/lessons/*.py"), *root.glob("solutions/*.py")]):
        path, notebook = source.relative_to(root).as_posix(), f"{source.stem}.ipynb"
        if path.startswith("course/"):
            found.append(Target(path, f"notebooks/{notebook}", stripped=False))
        else:
            found.append(Target(path, f"solutions/{notebook}", stripped=False))
            found.append(Target(path, f"exercises/{notebook}", stripped=True))
    known = {Path(target.source).stem for target in found}
    if unknown := set(names) - known:
        raise UsageError(f"no source for {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    return [target for target in found if not names or Path(target.source).stem in names]


def unexecuted(root: Path, target: Target) -> NotebookNode:
    """The notebook of `target` as its source gives it, before execution."""
    notebook = read_source(root / target.source, target.notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            where = f"{target.source}, cell {cell.id!r}"
            stripped = stub(cell.source, where)  # also for solutions: a bad stub is found wherever one looks
            cell.source = stripped if target.stripped else solution(cell.source)
    return notebook


def build(root: Path, names: Sequence[str] = ()) -> Iterator[Path]:
    """Builds notebook after notebook, with a progress bar each, and yields the path of each when written.

    Raises:
        ModtoolsError: a cell failed, or ran longer than CELL_TIMEOUT_S seconds; the notebook is left as it was.
    """
    import nbformat

    for target in targets(root, names):
        notebook, path = unexecuted(root, target), root / target.notebook
        path.parent.mkdir(exist_ok=True)
        if not target.stripped:
            _execute(notebook, path)
            _clean_outputs(notebook, _machine_paths(root))
        write_whole(path, nbformat.writes(notebook) + "\n")
        yield path


def check(root: Path) -> list[Difference]:
    """Every difference between the committed notebooks and their sources; empty when all is built."""
    import nbformat

    differences, planned = [], targets(root)
    for target in planned:
        path = root / target.notebook
        if path.exists():
            wanted, found = unexecuted(root, target), nbformat.read(path, as_version=4)
            differences += [Difference(target.notebook, *rest) for rest in _compare(wanted, found, target.stripped)]
        else:
            differences.append(Difference(target.notebook, "", "not built"))
    for folder in ("notebooks", "solutions", "exercises"):
        present = {path.relative_to(root).as_posix() for path in root.glob(f"{folder}/*.ipynb")}
        differences += [
            Difference(extra, "", "has no source")
            for extra in sorted(present - {target.notebook for target in planned})
        ]
    for entry in ignored(root):
        if len(entry.cells) > IGNORED_SHARE * entry.code_cells:
            what = f"output unchecked in {len(entry.cells)} of {entry.code_cells} code cells; at most in a fifth"
            differences.append(Difference(entry.notebook, "", what))
    return differences


def ignored(root: Path) -> list[Ignored]:
    """The cells tagged nbval-ignore-output, notebook by notebook, as the sources have them."""
    entries = []
    for target in targets(root):
        if not target.stripped:
            cells = [cell for cell in unexecuted(root, target).cells if cell.cell_type == "code"]
            tagged = tuple(cell.id for cell in cells if "nbval-ignore-output" in cell.metadata.get("tags", []))
            entries.append(Ignored(target.notebook, tagged, len(cells)))
    return entries


def _compare(wanted: NotebookNode, found: NotebookNode, stripped: bool) -> Iterator[tuple[str, str]]:
    """Yields (cell id or "", what differs)."""
    if found.metadata != METADATA:
        yield "", f"notebook metadata differ: expected only {', '.join(METADATA)}, as the build writes them"
    wanted_ids, found_ids = ([cell.get("id", "") for cell in notebook.cells] for notebook in (wanted, found))
    if wanted_ids != found_ids:
        yield "", f"cells are {', '.join(found_ids)}; the source has {', '.join(wanted_ids)}"
        return
    executed = 0
    for ours, theirs in zip(wanted.cells, found.cells):
        for part in ("cell_type", "source", "metadata"):
            if ours[part] != theirs[part]:
                yield ours.id, f"{part.replace('_', ' ')} differs from the source"
        if theirs.cell_type == "code":
            executed += 1
            if stripped and (theirs.outputs or theirs.execution_count is not None):
                yield ours.id, "has an output or an execution count; an exercise has none"
            elif not stripped and theirs.execution_count != executed:
                yield ours.id, f"execution count {theirs.execution_count}, not {executed}: not run once, top to bottom"


def _execute(notebook: NotebookNode, path: Path) -> None:
    """Runs every cell, in the folder of `path`, with the kernel of this Python."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from tqdm import tqdm

    count = sum(cell.cell_type == "code" for cell in notebook.cells)
    with tqdm(total=count, desc=f"{path.parent.name}/{path.name}", unit="cell") as bar:
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": str(path.parent)}},
            on_cell_executed=lambda **_: bar.update(),
        )
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise ModtoolsError(f"{path.parent.name}/{path.name} failed; nothing was written:\n{error}") from error
    notebook.metadata = copy.deepcopy(METADATA)


def _machine_paths(root: Path) -> dict[re.Pattern, str]:
    """The paths that only this machine has, longest first, and what stands in an output instead.

    A match must begin and end like a path, so that base64 pictures stay whole.
    """
    paths = {sys.prefix: "<python>", str(root): "<modtools>", str(Path.home()): "~", tempfile.gettempdir(): "<tmp>"}
    longest_first = sorted(paths, key=len, reverse=True)
    return {re.compile(rf"(?<![\w+/]){re.escape(path)}(?![\w+-])"): paths[path] for path in longest_first}


def _clean_outputs(notebook: NotebookNode, paths: dict[re.Pattern, str]) -> None:
    """Drops stderr (said aloud) and the ids of widget views; replaces paths, process numbers and addresses."""
    from nbformat import from_dict

    patterns = paths | {re.compile(r"ipykernel_\d+/\d+\.py"): "ipykernel", re.compile(r"\b0x[0-9a-f]{8,}\b"): "0x..."}

    def clean(value):
        if isinstance(value, str):
            for pattern, replacement in patterns.items():
                value = pattern.sub(replacement, value)
        elif isinstance(value, list):
            value = [clean(item) for item in value]
        elif isinstance(value, dict):
            value = {key: clean(item) for key, item in value.items() if key != _WIDGET_VIEW}
        return value

    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        for output in outputs:
            if output.get("name") == "stderr":
                print(f"[{cell.id}] wrote to stderr, not kept: {output.text.strip()[-200:]}", file=sys.stderr)
        if outputs:
            cell.outputs = [from_dict(clean(output)) for output in outputs if output.get("name") != "stderr"]
