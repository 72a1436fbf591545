"""The pure cores behind the widgets, and the one shell."""

from __future__ import annotations

import pytest

from modtools.errors import UsageError
from modtools.lab.tasks import task_by_id
from modtools.sandbox import strongest_level
from modtools.teaching.concept import ConceptCheck
from modtools.teaching.explorer import explorer, table
from modtools.teaching.ladder import Ladder, ladder_html, ladder_text, rungs
from modtools.teaching.side_by_side import readable, reference_transcripts, side_by_side, side_by_side_html

CALL = '{"name": "read_file", "arguments": {"path": "shop/prices.py"}}'


@pytest.mark.parametrize(
    ("reply", "states"),
    [
        (CALL, "passed passed passed passed passed"),
        (f"I call {CALL}.", "stopped unreached unreached unreached unreached"),
        (CALL.replace('"}}', '",}}'), "passed stopped unreached unreached unreached"),
        (CALL.replace("read_file", "delete_file"), "passed passed stopped unreached unreached"),
        (CALL.replace("shop", "shed"), "passed passed passed stopped unreached"),
        ('{"name": "run_tests", "arguments": {"command": "python -m unittest"}}', "passed passed passed passed stopped"),
        # A precondition is found while the tool looks at the world, and still belongs to the fourth stage.
        ('{"name": "replace_in_file", "arguments": {"path": "README.md", "old": "absent", "new": "x"}}',
         "passed passed passed stopped unreached"),
        ('{"finish": true}', "passed unreached unreached unreached unreached"),
    ],
)  # fmt: skip
def test_the_ladder_stops_at_the_stage_the_failure_belongs_to(reply, states):
    result = Ladder().climb(reply)
    assert [state.replace("not reached", "unreached") for _, state, _ in rungs(result)] == states.split()
    assert result.observation.text in ladder_text(result)


def test_the_ladder_escapes_what_a_model_wrote():
    page = ladder_html(Ladder().climb(CALL.replace("shop/prices.py", "<script>alert(1)</script>")))
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_the_shell_shows_what_the_function_makes_of_the_controls():
    box = explorer(lambda a, b, c: f"{a}-{b}-{c}", a="text", b=("x", "y"), c=range(1, 4))
    text, choice, slider, output = box.children
    assert output.value == "text-x-1"
    text.value, choice.value, slider.value = "new", "y", 3
    assert output.value == "new-y-3"


def test_an_error_of_the_kit_is_shown_and_does_not_break_the_widget():
    def render(a):
        if a == "bad":
            raise UsageError("no <such> thing")
        return a

    box = explorer(render, a="good")
    box.children[0].value = "bad"
    assert box.children[-1].value == "<p>no &lt;such&gt; thing</p>"
    box.children[0].value = "fine"
    assert box.children[-1].value == "fine"


def test_a_table_escapes_its_cells():
    assert "&lt;b&gt;" in table(["h"], [["<b>"]]) and "<b>" in table(["h"], [["<b>"]], raw=True)


def test_a_concept_check_answers_every_option():
    check = ConceptCheck("Which?", {"this": "Because.", "that": "It is not."}, right="this")
    assert check.answer("this") == "Right. Because." and check.answer("that") == "Not so. It is not."
    assert "this | that" in check.answer("other")
    box = check.widget()
    box.children[0].value = "that"
    assert "Not so. It is not." in box.children[-1].value
    with pytest.raises(UsageError):
        ConceptCheck("Which?", {"this": ""}, right="that")


def test_three_surfaces_are_shown_step_by_step():
    task = task_by_id("rename-3-0001")
    transcripts = reference_transcripts(task, strongest_level())
    assert {name: len(calls) for name, calls in transcripts.items()} == {"coarse": 3, "fine": 3, "code": 1}
    assert "call 2 of 3" in side_by_side_html(transcripts, 2) and "done after 1" in side_by_side_html(transcripts, 2)
    box = side_by_side({"a": task}, strongest_level())
    assert box.children[1].max == 3 and task.text in box.children[-1].value


def test_a_program_keeps_its_lines_when_shown():
    shown = readable('{"name": "do", "arguments": {"op": "write", "args": {"path": "a", "content": "x\\ny"}}}')
    assert shown == "do\nop: write\nargs.path: a\nargs.content:\nx\ny"
