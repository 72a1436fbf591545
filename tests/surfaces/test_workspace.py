"""The workspace: one true path, and nothing outside it."""

from __future__ import annotations

import os
import sys

import pytest

from modtools.contract import ToolFailure
from modtools.surfaces import Workspace

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX links and pipes")


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("X = 1\n")
    (tmp_path / "secret.txt").write_text("secret")
    return Workspace(root)


def code(act, *arguments, **named) -> str:
    with pytest.raises(ToolFailure) as raised:
        act(*arguments, **named)
    assert raised.value.failure.what
    return raised.value.failure.code


@pytest.mark.parametrize(
    "path", ["src/a.py", "./src/a.py", "src//a.py", "src/../src/a.py", "src/./a.py", "src/b/../a.py"]
)
def test_many_spellings_have_one_canonical_path(workspace, path):
    assert workspace.canonical(path) == "src/a.py"


@pytest.mark.case(9)
@pytest.mark.parametrize("path", ["../secret.txt", "src/../../secret.txt", "src/../../etc/passwd", "/etc/passwd", "~/x",
                                  "C:/x", "..", "src/../..", "../workspace2/x"])  # fmt: skip
def test_a_path_that_leads_outside_is_refused_whether_or_not_it_exists(workspace, path):
    assert code(workspace.canonical, path) == "outside_workspace"
    assert code(workspace.canonical, path) == "outside_workspace"


@pytest.mark.case(9)
@posix
def test_a_link_is_resolved_before_anyone_decides(workspace, tmp_path):
    (workspace.root / "inner.py").symlink_to("src/a.py")
    (workspace.root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (workspace.root / "folder").symlink_to(tmp_path)
    (workspace.root / "loop").symlink_to("loop")
    assert workspace.canonical("inner.py") == "src/a.py"
    for path in ("out.txt", "folder/secret.txt", "folder/new.txt", "loop"):
        assert code(workspace.canonical, path) == "outside_workspace", path


@pytest.mark.case(9)
def test_a_differently_cased_name_is_the_listed_one_or_missing(workspace):
    if (workspace.root / "SRC").exists():  # the system ignores case: the true name counts
        assert workspace.canonical("SRC/A.PY") == "src/a.py"
    else:
        with pytest.raises(ToolFailure) as raised:
            workspace.read(workspace.canonical("SRC/A.PY"))
        assert raised.value.failure.code == "missing_path" and "src/a.py" in raised.value.failure.expected


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "a\nb", "src\\a.py", "x" * 300, "x/" * 600, "\ud800", "."])
def test_what_is_no_path_is_malformed(workspace, path):
    assert code(workspace.canonical, path) == "malformed_identifier"


def test_a_missing_path_lists_what_is_there(workspace):
    with pytest.raises(ToolFailure) as raised:
        workspace.read(workspace.canonical("b.py"))
    assert raised.value.failure.code == "missing_path" and "src/a.py" in raised.value.failure.expected


@posix
def test_a_link_swapped_in_after_the_check_leads_nowhere(workspace, tmp_path):
    canonical = workspace.canonical("src/a.py")
    (workspace.root / "src" / "a.py").unlink()
    (workspace.root / "src" / "a.py").symlink_to(tmp_path / "secret.txt")
    assert code(workspace.read, canonical) == "precondition_failed"
    workspace.write(canonical, "new\n")
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert not (workspace.root / "src" / "a.py").is_symlink()


@posix
def test_a_folder_swapped_for_a_link_leads_nowhere(workspace, tmp_path):
    canonical = workspace.canonical("src/new.txt")
    os.rename(workspace.root / "src", workspace.root / "moved")
    (workspace.root / "src").symlink_to(tmp_path)
    assert code(workspace.write, canonical, "x") == "precondition_failed"
    assert not (tmp_path / "new.txt").exists()


@posix
def test_a_hard_link_to_a_file_elsewhere_is_left_alone(workspace, tmp_path):
    os.link(tmp_path / "secret.txt", workspace.root / "hard.txt")
    workspace.write("hard.txt", "changed")
    assert (tmp_path / "secret.txt").read_text() == "secret" and workspace.read("hard.txt") == "changed"


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS opens a pipe's reader differently")
def test_a_pipe_is_refused_and_does_not_block(workspace):
    os.mkfifo(workspace.root / "pipe")
    assert code(workspace.read, "pipe") == "precondition_failed"
    assert workspace.files() == ["src/a.py"]


def test_binary_and_huge_files_are_refused_with_the_reason(workspace):
    (workspace.root / "b.bin").write_bytes(b"\xff\xfe\x00")
    with open(workspace.root / "big.txt", "wb") as file:
        file.truncate(50_000_000)
    assert code(workspace.read, "b.bin") == code(workspace.read, "big.txt") == "precondition_failed"
    assert [path for path, _ in workspace.text_files()] == ["src/a.py"]


def test_writing_makes_folders_and_leaves_no_parts(workspace):
    workspace.write("new/deep/c.py", "Y = 2\n")
    assert workspace.read("new/deep/c.py") == "Y = 2\n"
    assert code(workspace.write, "src", "x") == code(workspace.write, "src/a.py/x", "x") == "precondition_failed"
    assert code(workspace.write, "big.txt", "x" * 2_000_000) == "precondition_failed"
    assert not [p for p in workspace.root.rglob("*") if p.name.endswith(".part")]


@posix
def test_a_written_program_stays_executable(workspace):
    (workspace.root / "run.sh").write_text("old")
    (workspace.root / "run.sh").chmod(0o755)
    workspace.write("run.sh", "new")
    assert (workspace.root / "run.sh").stat().st_mode & 0o777 == 0o755
    workspace.write("plain.txt", "x")
    assert (workspace.root / "plain.txt").stat().st_mode & 0o111 == 0


def test_text_that_is_no_unicode_is_refused(workspace):
    assert code(workspace.write, "a.txt", "\ud800") == "precondition_failed"
