"""An audit that was interrupted, changed or opened twice: it stays whole, or says that it is not; it never goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from modtools.contract import ToolResult
from modtools.errors import RecordError, UsageError
from modtools.pipeline import AuditLog, verify_audit
from modtools.pipeline.ledger import Ledger
from modtools.records import LineFile
from pipeline.tools import call, ends, make_pipeline, make_tool, run

PLACES = [
    (owner, method, when, line)
    for owner, method in ((LineFile, "append"), (Ledger, "note"))
    for when in ("before", "after")
    for line in (1, 2, 3)
]


@pytest.mark.parametrize(("owner", "method", "when", "line"), [*PLACES, (Ledger, "_end_work", "before", 1)])
def test_an_interrupt_around_a_line_leaves_one_end_and_a_whole_chain(owner, method, when, line, tmp_path, monkeypatch):
    pipeline, met = make_pipeline(make_tool(), audit=AuditLog(tmp_path)), []
    true = getattr(owner, method)

    def interrupted(self, *given, **named):
        if owner is LineFile and "event" not in given[0]:  # an artefact
            return true(self, *given, **named)
        met.append(1)
        if len(met) == line and when == "before":
            raise KeyboardInterrupt
        value = true(self, *given, **named)
        if len(met) == line:
            raise KeyboardInterrupt
        return value

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, method, interrupted)
        run(pipeline)
    assert run(pipeline, "r2").outcome == "success"
    assert verify_audit(tmp_path).broken_at is None and not verify_audit(tmp_path).open
    received = any(line["request"] == "r1" for line in pipeline.audit.lines())
    assert len(ends(pipeline, "r1")) == received


def test_real_interrupts_at_any_moment_break_no_chain(tmp_path):
    pipeline = make_pipeline(make_tool(), audit=AuditLog(tmp_path))
    number, met = 0, 0
    for pause_s in [0.0005 * n for n in range(1, 41)]:
        shot = threading.Timer(pause_s, os.kill, (os.getpid(), signal.SIGINT))
        try:
            shot.start()
            until_s = time.monotonic() + 2
            while time.monotonic() < until_s:
                number += 1
                run(pipeline, f"r{number}")
        except KeyboardInterrupt:
            met += 1
        shot.join()
    assert met > 30  # Python drops one that comes while an object is being finalised
    assert verify_audit(tmp_path).broken_at is None
    asked = {line["request"] for line in pipeline.audit.lines()}
    assert all(len(ends(pipeline, request)) == 1 for request in sorted(asked)[:200])


def test_a_relative_folder_stays_the_same_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    pipeline = make_pipeline(make_tool(), audit=AuditLog("audit"))
    run(pipeline)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(pipeline, "r2").outcome == "success" and len(ends(pipeline, "r2")) == 1
    assert verify_audit(tmp_path / "audit").records == 6 and not list((tmp_path / "elsewhere").iterdir())


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:-1]) + b"\n")


def replace_by_a_copy_with_more(path):
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes() + b"{}\n")
    copy.replace(path)


@pytest.mark.parametrize("change", [remove, empty, cut, replace_by_a_copy_with_more])
def test_a_file_that_somebody_changed_is_not_written_to_any_more(change, tmp_path):
    done = []
    pipeline = make_pipeline(
        make_tool(lambda o, c: done.append(1) or ToolResult("done")), audit=AuditLog(tmp_path / "a")
    )
    run(pipeline)
    change(tmp_path / "a" / "audit.jsonl")
    result = run(pipeline, "r2")
    assert result.observation.code == "audit_unavailable" and done == [1]
    assert "somebody else changed it" in result.trace[0].detail


def test_a_handle_that_now_leads_to_another_file_is_not_written_to(tmp_path):
    lines = LineFile(tmp_path / "lines.jsonl")
    lines.append({"n": 1})
    os.close(lines._handle)
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    assert other == lines._handle  # the number is used again
    lines.append({"n": 2})
    assert (tmp_path / "other").read_bytes() == b"" and (tmp_path / "lines.jsonl").read_bytes().count(b"\n") == 2
    os.close(other)


def test_another_process_cannot_open_it_as_well(tmp_path):
    audit = AuditLog(tmp_path)
    program = f"from modtools.pipeline import AuditLog; AuditLog({str(tmp_path)!r})"
    second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "another process has the audit" in second.stderr
    del audit
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_two_logs_of_one_process_in_one_folder_do_not_mix(tmp_path):
    one, two = AuditLog(tmp_path), AuditLog(tmp_path)
    run(make_pipeline(make_tool(), audit=one))
    with pytest.raises(RecordError, match="somebody else changed it"):
        two.append("r2", "received", {})
    assert verify_audit(tmp_path).broken_at is None


def test_a_line_nested_too_deeply_is_found(tmp_path):
    run(make_pipeline(make_tool(), audit=AuditLog(tmp_path)))
    with open(tmp_path / "audit.jsonl", "ab") as file:
        file.write(b"[" * 100_000 + b"\n")
    assert verify_audit(tmp_path).broken_at == 4


def test_a_request_id_of_an_open_request_is_refused_and_ends_nothing():
    entered, go = threading.Event(), threading.Event()
    pipeline = make_pipeline(make_tool(lambda o, c: entered.set() or go.wait(10) and ToolResult("done")))
    results = []
    first = threading.Thread(target=lambda: results.append(run(pipeline, text=call(x=1))))
    first.start()
    entered.wait(10)
    with pytest.raises(UsageError, match="was made before"):
        run(pipeline)
    go.set()
    first.join()
    assert results[0].outcome == "success" and ends(pipeline, "r1") == ["success"]
