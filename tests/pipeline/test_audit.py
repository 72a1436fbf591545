"""The audit log under death and a full disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from modtools.errors import RecordError
from modtools.pipeline import AuditLog
from modtools.records import append_line, read_lines

# A tool that dies by SIGKILL at a chosen place: before it runs, inside, or between its end and the commit.
PROGRAM = """
    import os, signal, sys
    from modtools.catalogue import Snapshot
    from modtools.contract import *
    from modtools.pipeline import *
    from pathlib import Path

    folder, place = Path(sys.argv[1]), sys.argv[2]
    die = lambda: os.kill(os.getpid(), signal.SIGKILL)

    class Log(AuditLog):
        def append(self, request, event, fields):
            if place == "before " + event: die()
            super().append(request, event, fields)
            if place == "after " + event: die()

    def handler(operation, context):
        (folder / "effect").write_text("done")
        if place == "in handler": die()
        return ToolResult("done")

    contract = ToolContract("t", "", {"type": "object"}, approval="none")
    tool = Tool(contract, lambda a, c: Operation("act", a, (), Effect.WRITE), handler)
    pipe = Pipeline(Snapshot.of((tool,)), Policy((Rule("allow", "*"),)), Log(folder))
    print(pipe.run(Request("r1", '{"name": "t"}')).outcome)
"""


def die_at(place: str, folder) -> subprocess.CompletedProcess:
    program = textwrap.dedent(PROGRAM)
    return subprocess.run([sys.executable, "-c", program, str(folder), place], capture_output=True, text=True)


@pytest.mark.case(13)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize(
    ("place", "outcome"),
    [
        ("after received", "cancelled"),
        ("before executing", "cancelled"),
        ("after executing", "unknown_outcome"),
        ("in handler", "unknown_outcome"),
        ("before terminal", "unknown_outcome"),
        ("after terminal", "success"),
        ("nowhere", "success"),
    ],
)
def test_killed_anywhere_a_request_has_one_terminal_result_after_the_restart(place, outcome, tmp_path):
    process = die_at(place, tmp_path)
    assert process.returncode == (0 if place == "nowhere" else -signal.SIGKILL), process.stderr
    for _ in range(2):  # a second restart must not close it again
        log = AuditLog(tmp_path)
    ends = [line["outcome"] for line in log.lines() if line["event"] == "terminal"]
    assert ends == [outcome]
    if outcome == "cancelled":
        assert not (tmp_path / "effect").exists()


def test_killed_before_anything_was_received_there_is_no_request(tmp_path):
    die_at("before received", tmp_path)
    assert AuditLog(tmp_path).lines() == []


def test_a_torn_last_line_is_dropped_and_the_log_goes_on(tmp_path):
    path = tmp_path / "log.jsonl"
    append_line(path, {"n": 1})
    with open(path, "ab") as file:
        file.write(b'{"n": 2, "torn')
    assert read_lines(path) == [{"n": 1}]
    append_line(path, {"n": 3})
    assert read_lines(path) == [{"n": 1}, {"n": 3}]


def test_a_line_that_is_no_record_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"n": 1}\nrubbish\n')
    with pytest.raises(RecordError, match="line 2"):
        read_lines(path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the file size to stand for a full disk, as Linux does")
@pytest.mark.parametrize("room_bytes", range(0, 1500, 100))
def test_on_a_full_disk_every_request_still_has_one_result(room_bytes, tmp_path):
    program = textwrap.dedent("""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    """) + textwrap.dedent(PROGRAM).replace(
        "print(", f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room_bytes}, {room_bytes}))\nprint("
    )  # fmt: skip
    process = subprocess.run([sys.executable, "-c", program, str(tmp_path), "nowhere"], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    said = process.stdout.strip()
    whole = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines()] if room_bytes else []
    ends = [line["outcome"] for line in AuditLog(tmp_path).lines() if line["event"] == "terminal"]
    assert len(ends) <= 1 and len(whole) <= 3
    if said == "success":
        assert ends == ["success"]
    elif said == "unknown_outcome":  # it ran, and the restart says the same
        assert ends == ["unknown_outcome"] and (tmp_path / "effect").exists()
    else:  # it was refused before anything was done
        assert said in ("unavailable_tool", "cancelled") and not (tmp_path / "effect").exists()
