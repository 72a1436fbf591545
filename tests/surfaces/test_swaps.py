"""Between check and use: what policy decided about is what is read or written, whatever is swapped meanwhile."""

from __future__ import annotations

import json
import os
import threading

import pytest

from modtools.contract import ToolFailure
from modtools.pipeline import WORKSPACE_POLICY, AuditLog, Pipeline, Request
from modtools.surfaces import Context, Workspace, build_surface, folder
from modtools.surfaces.folder import Folder

pytestmark = [pytest.mark.case(9), pytest.mark.skipif(os.name != "posix", reason="needs POSIX links and renames")]


@pytest.fixture(params=[True, False], ids=["by handle", "by path"])
def workspace(request, tmp_path, monkeypatch) -> Workspace:
    """A workspace with src/a.txt, and a secret beside it; also as on a system without directory handles."""
    monkeypatch.setattr("modtools.surfaces.folder.HANDLES", request.param)
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_text("one\n")
    (root / "other.txt").write_text("two\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    (tmp_path / "away").mkdir()
    return Workspace(root)


def by_link(root, outside):
    (root / "src/a.txt").unlink()
    (root / "src/a.txt").symlink_to(outside / "secret.txt")


def by_link_inside(root, outside):
    (root / "src/a.txt").unlink()
    (root / "src/a.txt").symlink_to(root / "other.txt")


def by_rename(root, outside):
    os.replace(outside / "secret.txt", root / "src/a.txt")


def by_hard_link(root, outside):
    (root / "src/a.txt").unlink()
    os.link(outside / "secret.txt", root / "src/a.txt")


def by_folder_link(root, outside):
    os.rename(root / "src", outside / "moved")
    (outside / "away/a.txt").write_text("one\n")
    (root / "src").symlink_to(outside / "away")


def by_other_folder(root, outside):
    os.rename(root / "src", outside / "moved")
    (outside / "away/a.txt").write_text("one\n")
    os.rename(outside / "away", root / "src")


def by_deletion(root, outside):
    (root / "src/a.txt").unlink()


def by_recreation(root, outside):
    (root / "src/a.txt").rename(outside / "kept.txt")  # so that the new file cannot get its inode
    (root / "src/a.txt").write_text("one\n")


def by_edit(root, outside):
    with open(root / "src/a.txt", "a") as file:
        file.write("more\n")


def by_edit_of_equal_length(root, outside):
    before = os.stat(root / "src/a.txt").st_mtime_ns
    (root / "src/a.txt").write_text("eno\n")
    os.utime(root / "src/a.txt", ns=(before, before + 2 * 10**9))  # clocks of file systems tick slowly


def by_folder_in_its_place(root, outside):
    (root / "src/a.txt").unlink()
    (root / "src/a.txt").mkdir()


SWAPS = [value for name, value in list(globals().items()) if name.startswith("by_")]
CALLS = {
    "read_file": {"path": "src/a.txt"},
    "replace_in_file": {"path": "src/a.txt", "old": "one", "new": "three"},
    "write_file": {"path": "src/a.txt", "content": "three\n"},
}


def everything(top) -> dict[str, str]:
    """Every file under a folder with its text, and every link with its target."""
    paths = [path for path in sorted(top.rglob("*")) if path.is_symlink() or path.is_file()]
    return {str(path): os.readlink(path) if path.is_symlink() else path.read_text() for path in paths}


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("name", CALLS)
def test_a_swap_between_check_and_use_ends_the_call_and_touches_nothing(workspace, tmp_path, name, swap):
    tool, context = build_surface("fine").snapshot.tools[name], Context(workspace)
    operation = tool.canonicalise(CALLS[name], context)
    assert operation.resources == ("workspace:src/a.txt",)
    swap(workspace.root, tmp_path)
    swapped = everything(tmp_path)
    with pytest.raises(ToolFailure) as raised:
        tool.handler(operation, context)
    failure = raised.value.failure
    assert (failure.code, failure.where) == ("stale_version", "arguments.path")
    assert failure.what == 'the file "src/a.txt" changed since the call was checked'
    assert everything(tmp_path) == swapped


def appears(root, outside):
    (root / "new").mkdir(exist_ok=True)
    (root / "new/b.txt").write_text("theirs\n")


def folder_leads_out(root, outside):
    (root / "new").symlink_to(outside / "away")


@pytest.mark.parametrize("swap", [appears, folder_leads_out])
def test_a_path_that_was_free_when_checked_must_still_be(workspace, tmp_path, swap):
    tool, context = build_surface("fine").snapshot.tools["write_file"], Context(workspace)
    operation = tool.canonicalise({"path": "new/b.txt", "content": "ours\n"}, context)
    swap(workspace.root, tmp_path)
    swapped = everything(tmp_path)
    with pytest.raises(ToolFailure) as raised:
        tool.handler(operation, context)
    assert raised.value.failure.code == "stale_version" and everything(tmp_path) == swapped


def test_a_free_path_in_another_folder_of_the_same_name_is_another_path(workspace, tmp_path):
    tool, context = build_surface("fine").snapshot.tools["write_file"], Context(workspace)
    operation = tool.canonicalise({"path": "src/new.txt", "content": "ours\n"}, context)
    by_other_folder(workspace.root, tmp_path)
    with pytest.raises(ToolFailure, match="changed since"):
        tool.handler(operation, context)
    assert not (workspace.root / "src/new.txt").exists()


@pytest.mark.parametrize("name", CALLS)
def test_what_did_not_change_is_read_and_written(workspace, tmp_path, name):
    tool, context = build_surface("fine").snapshot.tools[name], Context(workspace)
    operation = tool.canonicalise(CALLS[name], context)
    (workspace.root / "src" / "neighbour.txt").write_text("beside it\n")
    os.link(workspace.root / "src" / "a.txt", tmp_path / "second_name.txt")  # still the same file
    tool.handler(operation, context)
    assert (workspace.root / "src/a.txt").read_text() == ("one\n" if name == "read_file" else "three\n")
    assert (tmp_path / "second_name.txt").read_text() == "one\n"


def test_new_folders_are_made_on_the_way_to_a_path_that_was_free(workspace):
    tool, context = build_surface("fine").snapshot.tools["write_file"], Context(workspace)
    tool.handler(tool.canonicalise({"path": "deep/er/b.txt", "content": "ours\n"}, context), context)
    assert (workspace.root / "deep/er/b.txt").read_text() == "ours\n"


def test_the_state_is_no_part_of_the_operations_digest(workspace):
    tool, context = build_surface("fine").snapshot.tools["read_file"], Context(workspace)
    before = tool.canonicalise(CALLS["read_file"], context)
    by_edit(workspace.root, None)
    after = tool.canonicalise(CALLS["read_file"], context)
    assert before.state != after.state and before.digest == after.digest


@pytest.mark.parametrize(
    "swap", [by_rename, by_hard_link, by_edit, by_edit_of_equal_length, by_deletion, by_recreation]
)
@pytest.mark.parametrize("when", ["before the file is opened", "once it is open"])
@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_a_swap_within_the_handler_is_seen_too(workspace, tmp_path, monkeypatch, name, when, swap):
    tool, context = build_surface("fine").snapshot.tools[name], Context(workspace)
    operation = tool.canonicalise(CALLS[name], context)
    opening = Folder.open

    def open_and_swap(opened_in, *arguments):
        if when == "once it is open":
            handle = opening(opened_in, *arguments)
            swap(workspace.root, tmp_path)
            return handle
        swap(workspace.root, tmp_path)
        return opening(opened_in, *arguments)

    monkeypatch.setattr(Folder, "open", open_and_swap)
    replaced_while_open = when == "once it is open" and swap not in (by_edit, by_edit_of_equal_length)
    if name == "read_file" and replaced_while_open and folder.HANDLES:
        assert tool.handler(operation, context).body == "one\n"  # the handle is still on the file that was checked
        return
    with pytest.raises(ToolFailure) as raised:
        tool.handler(operation, context)
    assert raised.value.failure.code in ("stale_version", "missing_path")
    monkeypatch.undo()
    left = everything(tmp_path)
    assert not any("three" in text or path.endswith(".part") for path, text in left.items())


def test_an_edit_between_reading_and_replacing_is_not_lost(workspace):
    class Interrupted(Workspace):
        def read(self, path, state=""):
            text = super().read(path, state)
            by_edit(self.root, None)
            return text

    tool, context = build_surface("fine").snapshot.tools["replace_in_file"], Context(Interrupted(workspace.root))
    with pytest.raises(ToolFailure, match="changed since"):
        tool.handler(tool.canonicalise(CALLS["replace_in_file"], context), context)
    assert (workspace.root / "src/a.txt").read_text() == "one\nmore\n"


def test_a_file_that_appears_while_its_new_folder_is_made_is_not_overwritten(workspace, tmp_path, monkeypatch):
    tool, context = build_surface("fine").snapshot.tools["write_file"], Context(workspace)
    operation = tool.canonicalise({"path": "new/b.txt", "content": "ours\n"}, context)
    making = Folder.make
    monkeypatch.setattr(Folder, "make", lambda *arguments: (making(*arguments), appears(workspace.root, tmp_path)))
    with pytest.raises(ToolFailure, match="changed since"):
        tool.handler(operation, context)
    assert (workspace.root / "new/b.txt").read_text() == "theirs\n"


class Swapping:
    """A policy that decides, and then lets someone else swap the file before the call is carried out."""

    version, digest = WORKSPACE_POLICY.version, WORKSPACE_POLICY.digest

    def __init__(self, swap):
        self.swap = swap

    def decide(self, *arguments, **named):
        decision = WORKSPACE_POLICY.decide(*arguments, **named)
        self.swap()
        return decision


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("surface", ["fine", "coarse"])
def test_after_a_swap_the_model_is_told_to_look_again_and_never_sees_the_other_file(workspace, tmp_path, surface, swap):
    built = build_surface(surface)
    policy = Swapping(lambda: swap(workspace.root, tmp_path))
    pipeline = Pipeline(built.snapshot, policy, AuditLog(), Context(workspace), built.wording)
    result = pipeline.run(Request("r", json.dumps(built.render("read", {"path": "src/a.txt"}))))
    assert result.outcome == "validation_failed" and result.observation.code == "stale_version"
    assert "secret" not in result.observation.text and "after a look at the file" in result.observation.text


def test_a_thread_that_swaps_all_the_time_never_gets_another_file_read_or_changed(workspace, tmp_path):
    a, secret, done = workspace.root / "src/a.txt", tmp_path / "secret.txt", threading.Event()

    def swap():
        for _ in iter(done.is_set, True):
            for make in (lambda p: os.link(secret, p), lambda p: p.symlink_to(secret), lambda p: p.write_text("one\n")):
                spare = tmp_path / "spare"
                make(spare)
                os.replace(spare, a)

    context = Context(workspace)
    tools = build_surface("fine").snapshot.tools
    thread = threading.Thread(target=swap)
    thread.start()
    seen, refused = set(), 0
    try:
        for _ in range(300):
            try:
                operation = tools["read_file"].canonicalise(CALLS["read_file"], context)
                body = tools["read_file"].handler(operation, context).body
                # A secret may be read only if it stood there, under this name, when the call was checked.
                inode = int(operation.state.rpartition("/")[2].split(":")[1])
                seen.add((body == "secret\n", inode == secret.stat().st_ino))
                tools["write_file"].handler(tools["write_file"].canonicalise(CALLS["write_file"], context), context)
            except ToolFailure:
                refused += 1
    finally:
        done.set()
        thread.join()
    assert refused and seen <= {(False, False), (True, True)}
    assert secret.read_text() == "secret\n"
