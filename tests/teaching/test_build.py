"""The one-way build: what it writes, what it refuses, what its check finds."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from modtools.errors import ModtoolsError, UsageError
from modtools.teaching import build as builder
from modtools.teaching.sources import solution, stub

ROOT = Path(__file__).resolve().parents[2]

LESSON = """\
# %% [markdown] id="title"
# # A lesson
#
# What it says.

# %% id="picture" tags=["nbval-ignore-output"]
import sys
print(sys.prefix, file=sys.stderr)
print(f"{sys.prefix}/lib", object())

# %% id="sum"
1 + 1

# %% id="more"
2 + 2

# %% id="most"
3 + 3
"""
EXERCISE = """\
# %% [markdown] id="title"
# # An exercise

# %% id="q1" tags=["answer"]
def double(x):
    ### BEGIN SOLUTION
    ### STUB: result = ...
    ### STUB: return result
    result = 2 * x
    return result
    ### END SOLUTION

# %% id="q2"
### BEGIN SOLUTION
print(double(21))
### END SOLUTION
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A checkout with one lesson and one exercise, built."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "course/lessons").mkdir(parents=True)
    (root / "solutions").mkdir()
    (root / "course/lessons/00_lesson.py").write_text(LESSON)
    (root / "solutions/00_lesson.py").write_text(EXERCISE)
    written = [path.relative_to(root).as_posix() for path in builder.build(root)]
    assert written == ["notebooks/00_lesson.ipynb", "solutions/00_lesson.ipynb", "exercises/00_lesson.ipynb"]
    return root


def _read(path: Path) -> tuple[nbformat.NotebookNode, dict[str, nbformat.NotebookNode]]:
    notebook = nbformat.read(path, as_version=4)
    return notebook, {cell.id: cell for cell in notebook.cells}


def test_a_lesson_gets_badge_set_up_cell_and_outputs(built):
    notebook, cells = _read(built / "notebooks/00_lesson.ipynb")
    assert [cell.id for cell in notebook.cells] == ["title", "setup", "picture", "sum", "more", "most"]
    assert cells["title"].source.startswith("# A lesson\n\n[![Open in Colab]")
    assert cells["title"].source.endswith("/notebooks/00_lesson.ipynb)\n\nWhat it says.")
    assert "google.colab" in cells["setup"].source and cells["setup"].outputs[0].text.startswith("modtools ")
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == [1, 2, 3, 4, 5]
    assert cells["sum"].outputs[0].data["text/plain"] == "2"


def test_outputs_name_no_folder_and_no_address_and_lose_stderr(built):
    _, cells = _read(built / "notebooks/00_lesson.ipynb")
    assert [output.text for output in cells["picture"].outputs] == ["<python>/lib <object object at 0x...>\n"]


def test_a_solution_keeps_its_answers_and_an_exercise_has_stubs_and_no_outputs(built):
    _, answers = _read(built / "solutions/00_lesson.ipynb")
    _, questions = _read(built / "exercises/00_lesson.ipynb")
    assert answers["q2"].outputs[0].text == "42\n" and "STUB" not in answers["q1"].source
    assert questions["q1"].source == "def double(x):\n    result = ...\n    return result"
    assert questions["q2"].source == "...  # your code here"
    assert all(cell.get("outputs", []) == [] and cell.get("execution_count") is None for cell in questions.values())
    assert questions["q1"].metadata.tags == ["answer"]


def test_a_fresh_build_has_no_differences(built):
    assert builder.check(built) == []


def _edit_source(cell):
    cell.source += "\n# edited"


def _edit_tags(cell):
    cell.metadata.tags = ["live"]


def _edit_id(cell):
    cell.id = "another"


def _edit_count(cell):
    cell.execution_count = None


@pytest.mark.parametrize("edit", [_edit_source, _edit_tags, _edit_id, _edit_count])
def test_the_check_finds_an_edited_notebook(built, edit):
    path = built / "notebooks/00_lesson.ipynb"
    kept = path.read_bytes()
    notebook, cells = _read(path)
    edit(cells["sum"])
    nbformat.write(notebook, path)
    found = builder.check(built)
    path.write_bytes(kept)
    assert [(difference.notebook, difference.where) for difference in found] in (
        [("notebooks/00_lesson.ipynb", "sum")],
        [("notebooks/00_lesson.ipynb", "")],
    )


def test_the_check_finds_a_notebook_without_source_and_a_source_without_notebook(built):
    stray, lost = built / "exercises/stray.ipynb", built / "course/lessons/99_lost.py"
    nbformat.write(nbformat.v4.new_notebook(), stray)
    lost.write_text(LESSON)
    found = {(difference.notebook, difference.what) for difference in builder.check(built)}
    stray.unlink(), lost.unlink()
    assert found == {("exercises/stray.ipynb", "has no source"), ("notebooks/99_lost.ipynb", "not built")}


def test_more_than_a_fifth_of_unchecked_cells_is_a_difference(built):
    source = built / "course/lessons/00_lesson.py"
    source.write_text(LESSON.replace('id="sum"', 'id="sum" tags=["nbval-ignore-output"]'))
    found, ignored = builder.check(built), builder.ignored(built)
    source.write_text(LESSON)
    assert ignored[0].cells == ("picture", "sum") and ignored[0].code_cells == 5
    assert any("unchecked in 2 of 5 code cells" in difference.what for difference in found)


def test_a_failing_cell_leaves_the_committed_notebook_as_it_was(built):
    source, path = built / "course/lessons/00_lesson.py", built / "notebooks/00_lesson.ipynb"
    kept = path.read_bytes()
    source.write_text(LESSON.replace("1 + 1", "1 / 0"))
    with pytest.raises(ModtoolsError, match="division by zero"):
        list(builder.build(built, ["00_lesson"]))
    source.write_text(LESSON)
    assert path.read_bytes() == kept


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (' id="sum"', "", "id None"),
        ('id="sum"', 'id="more"', "two cells have the id 'more'"),
        ('id="sum"', 'id="setup"', "which the build writes itself"),
        ('id="sum"', 'id="sum" tags=["live"]', "nbval-ignore-output"),
        ('id="sum"', 'id="sum" tags=["nbval-skip"]', "which is counted"),
        ("# # A lesson", "# A lesson", "one '# Title'"),
        ("# What it says.", "# # Another title", "one '# Title'"),
    ],
)
def test_a_source_that_breaks_a_convention_is_refused(tmp_path, old, new, complaint):
    (tmp_path / "course/lessons").mkdir(parents=True)
    (tmp_path / "course/lessons/00_lesson.py").write_text(LESSON.replace(old, new))
    with pytest.raises(UsageError, match=complaint):
        builder.check(tmp_path)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("### BEGIN SOLUTION\nx = 1", "without its partner"),
        ("x = 1\n### END SOLUTION", "without its partner"),
        ("### BEGIN SOLUTION\n### STUB: y = ...\nx = 1\n### END SOLUTION", "matches no line"),
    ],
)
def test_a_stub_that_does_not_fit_its_answer_is_refused(source, complaint):
    with pytest.raises(UsageError, match=complaint):
        stub(source, "cell")


def test_a_stub_keeps_its_own_indentation():
    source = (
        "def f(xs):\n    ### BEGIN SOLUTION\n    ### STUB: for x in xs:\n    ### STUB:     ...\n"
        "    for x in xs:\n        print(x)\n    ### END SOLUTION"
    )
    assert stub(source, "cell") == "def f(xs):\n    for x in xs:\n        ..."
    assert solution(source).splitlines()[1:3] == ["    ### BEGIN SOLUTION", "    for x in xs:"]


def test_the_committed_notebooks_are_what_their_sources_say():
    assert [str(difference) for difference in builder.check(ROOT)] == []
