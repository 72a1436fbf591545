"""The three surfaces: different calls, the same operations, the same words."""

from __future__ import annotations

import json

import pytest

from modtools.errors import UsageError
from modtools.pipeline import WORKSPACE_POLICY, AuditLog, Pipeline, Policy, Request, Rule
from modtools.sandbox import strongest_level
from modtools.surfaces import Context, FineSwitches, Workspace, build_surface
from modtools.surfaces.coarse import ARG_ALIASES, OP_ALIASES


@pytest.fixture
def root(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("X = 1\nY = X\n")
    (tmp_path / "src" / "b.py").write_text("Z = 3\n")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    return tmp_path


def ask(root, surface: str, *, level=None, switches=FineSwitches(), **arguments):
    """The result of one call on a fresh pipeline; `tool` names the tool."""
    built = build_surface(surface, switches)
    context = Context(Workspace(root), level, dump_search=built.dump_search)
    pipeline = Pipeline(built.snapshot, WORKSPACE_POLICY, AuditLog(), context, built.wording)
    name = arguments.pop("tool")
    return pipeline.run(Request("r", json.dumps({"name": name, "arguments": arguments})))


STEPS = [
    ("read", {"path": "src/a.py"}),
    ("read", {"path": "src/none.py"}),
    ("read", {"path": "../x"}),
    ("read", {"path": "src"}),
    ("read", {"path": "b.bin"}),
    ("write", {"path": "src", "content": ""}),
    ("read", {}),
    ("replace", {"path": "src/a.py"}),
    ("read", {"name": "src/a.py"}),
    ("read", {"path": "src/a.py", "line": "3"}),
    ("read", {"path": ["src/a.py"]}),
    ("run_tests", {"tests": ["; ls"]}),
    ("search", {"pattern": "X"}),
    ("search", {"pattern": ""}),
    ("replace", {"path": "src/a.py", "old": "X", "new": "W"}),
    ("replace", {"path": "src/a.py", "old": "Q", "new": "W"}),
    ("replace", {"path": "src/a.py", "old": "X = 1", "new": "X = 2"}),
    ("write", {"path": "new.py", "content": "A = 1\n"}),
]


@pytest.mark.parametrize(("action", "arguments"), STEPS)
def test_coarse_and_fine_reach_the_same_operation_and_the_same_words(root, action, arguments):
    results = []
    for name in ("fine", "coarse"):
        rendered = build_surface(name).render(action, arguments)
        results.append(ask(root, name, tool=rendered["name"], **rendered["arguments"]))
        (root / "src" / "a.py").write_text("X = 1\nY = X\n")
    fine, coarse = results
    coarse_text = coarse.observation.text.replace("arguments.args", "arguments")
    assert fine.observation.text.removesuffix(" (1 more problem)") == coarse_text and fine.outcome == coarse.outcome
    assert (fine.operation and fine.operation.digest) == (coarse.operation and coarse.operation.digest)


MISTAKES = {
    "read_file": [
        ({"path": "a.py"}, 'missing_path at arguments.path: there is no "a.py". Expected: an existing path, e.g. "src/a.py".'),
        ({"path": "src/c.py"}, 'there is no "src/c.py". Expected: an existing path, one of b.bin, src/a.py, src/b.py.'),
        ({"path": "/workspace/src/b.py"},
         'outside_workspace at arguments.path: "/workspace/src/b.py" leads out of the repository. '
         'Expected: a relative path, e.g. "src/b.py".'),
        ({"path": "src"}, 'precondition_failed at arguments.path: "src" is a folder. Expected: a file in it, e.g. "src/a.py".'),
        ({"path": "."}, 'malformed_identifier at arguments.path: "." is the repository itself. Expected: a relative path'),
        ({"path": "src\\a.py"}, '"src\\a.py" has a backslash. Expected: forward slashes "/".'),
        ({"path": "b.bin"}, '"b.bin" is not a text file (UTF-8). Expected: a text file.'),
        ({"file": "src/a.py"}, 'missing_argument at arguments: "path" is missing. Expected: a value for "path", not "file".'),
        ({"path": 3}, "wrong_type at arguments.path: the value is an integer. Expected: a string."),
    ],
    "replace_in_file": [
        ({"path": "src/a.py"}, '"old", "new" are missing. Expected: a value for "old", "new".'),
        ({"path": "src/a.py", "old": "Q", "new": "R"},
         'the old text is not in "src/a.py". Expected: text copied from the file; read it first.'),
        ({"path": "src/a.py", "old": "X", "new": "R"},
         'occurs 2 times in "src/a.py", at lines 1, 2. Expected: more text around it, so that it occurs once.'),
        ({"path": "src/a.py", "old": "X", "new": "X"}, "old and new text are the same. Expected: a different text."),
    ],
    "write_file": [
        ({"path": "src", "content": ""}, '"src" is a folder. Expected: a file in it, e.g. "src/a.py".'),
        ({"path": "src/a.py/x", "content": ""}, '"src/a.py" is not a folder. Expected: a path through folders.'),
    ],
    "search_files": [({"pattern": "a\nb"}, "the pattern spans lines. Expected: text of one line, at least one character.")],
    "run_tests": [
        ({"command": "python -m unittest tests/test_a.py"},
         'command_not_allowed at arguments.command: "python -m unittest tests/test_a.py" is not allowed. '
         'Expected: "python -m unittest", alone or with test modules written with dots.'),
        ({"command": "python -m unittest\nls"}, "is not allowed"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "words"), [(t, a, w) for t, rows in MISTAKES.items() for a, w in rows])
def test_a_common_mistake_is_told_with_what_to_do_next(root, tool, arguments, words):
    text = ask(root, "fine", tool=tool, **arguments).observation.text
    assert text.startswith("error: validation_failed/") and words in text and ". Expected: " in text


def test_an_ambiguous_replacement_is_refused_and_says_where(root):
    result = ask(root, "fine", tool="replace_in_file", path="src/a.py", old="X", new="W")
    assert "2 times" in result.observation.text and "lines 1, 2" in result.observation.text
    assert (root / "src" / "a.py").read_text() == "X = 1\nY = X\n"


def test_overlapping_occurrences_are_ambiguous_too(root):
    (root / "o.txt").write_text("aaa")
    assert "2 times" in ask(root, "fine", tool="replace_in_file", path="o.txt", old="aa", new="b").observation.text


def test_search_lists_path_and_line(root):
    text = ask(root, "fine", tool="search_files", pattern="X").observation.text
    assert text == 'ok: 2 matches for "X"\nsrc/a.py:1: X = 1\nsrc/a.py:2: Y = X'


def test_search_stops_listing_at_thirty_and_says_so(root):
    (root / "many.py").write_text("needle\n" * 50)
    lines = ask(root, "fine", tool="search_files", pattern="needle").observation.text.splitlines()
    assert lines[0] == 'ok: 50 matches for "needle", the first 30 shown' and len(lines) == 31


def test_the_four_switches_change_what_they_name(root):
    no_edit = build_surface("fine", FineSwitches(edit_command=False))
    assert "replace_in_file" not in no_edit.snapshot.tools and "write_file" in no_edit.snapshot.tools
    dump = ask(root, "fine", tool="search_files", pattern="Y", switches=FineSwitches(search_lists=False))
    assert "--- src/a.py\nX = 1\nY = X" in dump.observation.text
    bare = ask(root, "fine", tool="read_file", path="no", switches=FineSwitches(informative_errors=False))
    assert bare.observation.text == "error: validation_failed"
    plain = ask(root, "fine", tool="read_file", path="src/b.py", switches=FineSwitches(result_header=False))
    assert plain.observation.text == "Z = 3"
    digests = {build_surface("fine", s).digest for s in (
        FineSwitches(), FineSwitches(edit_command=False), FineSwitches(search_lists=False),
        FineSwitches(informative_errors=False), FineSwitches(result_header=False),
    )}  # fmt: skip
    assert len(digests) == 5


def test_every_alias_of_the_coarse_surface_works(root):
    needed = {"read": {"path": "src/a.py"}, "search": {"pattern": "X"}, "write": {"path": "n.py", "content": "x"},
              "replace": {"path": "src/a.py", "old": "X = 1", "new": "X = 1 "}}  # fmt: skip
    for action, arguments in needed.items():
        for alias in (action, action.upper(), *OP_ALIASES[action]):
            (root / "src" / "a.py").write_text("X = 1\n")
            assert ask(root, "coarse", tool="do", op=alias, args=arguments).operation.action == action, alias
        for name, value in arguments.items():
            for alias in ARG_ALIASES[name]:
                (root / "src" / "a.py").write_text("X = 1\n")
                renamed = {alias if key == name else key: v for key, v in arguments.items()}
                assert ask(root, "coarse", tool="do", op=action, args=renamed).outcome == "success", alias


@pytest.mark.parametrize(
    ("op", "args", "code"),
    [
        ("fly", {}, "unknown_operation"),
        ("read", {}, "missing_argument"),
        ("read", {"path": "src/a.py", "encoding": "utf-8"}, "unknown_property"),
        ("read", {"path": "src/a.py", "file": "src/b.py"}, "unknown_property"),
        ("read", {"path": ["src/a.py"]}, "wrong_type"),
        ("run_tests", {"command": "rm -rf /"}, "command_not_allowed"),
    ],
)
def test_what_the_coarse_surface_cannot_map_is_refused_by_name(root, op, args, code):
    assert ask(root, "coarse", tool="do", op=op, args=args).observation.code == code


@pytest.mark.case(15)
@pytest.mark.parametrize(("surface", "tool"), [("fine", "read_file"), ("coarse", "do"), ("code", "run_python")])
def test_arguments_as_a_string_end_the_same_way_on_every_surface(root, surface, tool):
    built = build_surface(surface)
    pipeline = Pipeline(built.snapshot, WORKSPACE_POLICY, AuditLog(), Context(Workspace(root)), built.wording)
    result = pipeline.run(Request("r", json.dumps({"name": tool, "arguments": '{"path": "src/a.py"}'})))
    assert result.observation.code == "arguments_as_string" and "the JSON object itself" in result.observation.text


@pytest.mark.parametrize(
    "command",
    ["", "ls", "python", "python -c 'print(1)'", "python -m unittest; ls", "python -m unittest ../x", "pytest", "'",
     "python -m unittest --locals", "python -m unittest /etc/passwd", "python -m unittest tests.a && ls"],
)  # fmt: skip
def test_only_the_unit_tests_may_be_run(root, command):
    assert ask(root, "fine", tool="run_tests", command=command).observation.code in (
        "command_not_allowed", "malformed_identifier",
    )  # fmt: skip


def test_without_a_sandbox_programs_are_unavailable_and_files_still_work(root):
    assert ask(root, "code", tool="run_python", code="print(1)").outcome == "unavailable_tool"
    assert ask(root, "fine", tool="run_tests", command="python -m unittest").outcome == "unavailable_tool"
    assert ask(root, "fine", tool="read_file", path="src/a.py").outcome == "success"


def test_programs_run_in_the_box_and_their_errors_are_pythons_own(root):
    level = strongest_level()
    good = ask(
        root,
        "code",
        level=level,
        tool="run_python",
        code="open('made.txt', 'w').write('hi'); print(open('src/b.py').read())",
    )
    assert good.observation.text == "ok: exit code 0\nZ = 3" and (root / "made.txt").read_text() == "hi"
    bad = ask(root, "code", level=level, tool="run_python", code="import nothing_here")
    assert bad.outcome == "partial" and bad.observation.code == "program_error"
    assert "ModuleNotFoundError: No module named 'nothing_here'" in bad.observation.text


def test_test_runs_say_the_same_at_each_run_and_name_no_machine_path(root):
    (root / "tests").mkdir()
    (root / "tests" / "__init__.py").write_text("")
    (root / "tests" / "test_a.py").write_text(
        "import unittest\nfrom src import a\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(a.X, 2)\n"
    )
    commands = (
        "python -m unittest",
        "python3 -m unittest -v",
        "python -m unittest tests.test_a",
        "python -m unittest discover",
    )
    results = [ask(root, "fine", level=strongest_level(), tool="run_tests", command=command) for command in commands]
    assert len({result.observation.text for result in results}) == 1
    assert (
        "ok: the tests failed, exit code 1" in results[0].observation.text
        and str(root) not in results[0].observation.text
    )
    assert "AssertionError: 1 != 2" in results[0].observation.text
    assert 'File "tests/test_a.py", line 5' in results[0].observation.text  # a path that read_file takes


def test_what_a_surface_cannot_say_is_a_usage_error():
    with pytest.raises(UsageError, match="no tool for 'read'"):
        build_surface("code").render("read", {"path": "a"})
    with pytest.raises(UsageError, match="coarse, fine, code"):
        build_surface("medium")


def test_a_file_with_windows_line_ends_is_edited_as_shown_and_keeps_them(root):
    (root / "w.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    assert ask(root, "fine", tool="read_file", path="w.txt").observation.text == "ok: w.txt, 3 lines\na\nb\nc"
    assert ask(root, "fine", tool="replace_in_file", path="w.txt", old="a\nb", new="x\ny\nz").outcome == "success"
    assert (root / "w.txt").read_bytes() == b"x\r\ny\r\nz\r\nc\r\n"


def test_missing_and_forbidden_look_the_same_to_whom_the_difference_is_not_told(root):
    (root / "secret").mkdir()
    (root / "secret" / "plan.py").write_text("KEY = 1\n")
    hides = lambda path: not path.startswith("secret/")  # noqa: E731
    policy = Policy((*WORKSPACE_POLICY.rules, Rule("deny", "*", "workspace:secret/*")))
    built = build_surface("fine")
    texts = []
    for number, path in enumerate(["secret/plan.py", "secret/none.py", "plan.py", "secret"]):
        pipeline = Pipeline(built.snapshot, policy, AuditLog(), Context(Workspace(root, hides)), built.wording)
        for tool, more in (
            ("read_file", {}),
            ("replace_in_file", {"old": "a", "new": "b"}),
            ("write_file", {"content": ""}),
        ):
            call = json.dumps({"name": tool, "arguments": {"path": path, **more}})
            texts.append((path, pipeline.run(Request(f"{number}{tool}", call)).observation.text))
    there, absent = ([text for path, text in texts if path == p] for p in ("secret/plan.py", "secret/none.py"))
    assert there == absent and all("permission_denied" in text for text in there)
    assert all("secret/" not in text for _, text in texts) and "KEY" not in str(texts)
    search = '{"name": "search_files", "arguments": {"pattern": "KEY"}}'
    assert pipeline.run(Request("search", search)).outcome == "permission_denied"  # it would work on all there is
