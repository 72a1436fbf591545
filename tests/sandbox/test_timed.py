"""The fallback for systems without resource limits: it bounds time and output, and says what it is."""

from __future__ import annotations

from modtools.sandbox import Limits
from modtools.sandbox.timed import run_timed


def test_a_program_runs_in_the_workspace(tmp_path):
    result = run_timed(
        ["-c", "import sys; print(open('a').read(), sys.stdin.read())"], _with(tmp_path), Limits(), b"given"
    )
    assert (result.exit_code, result.stdout, result.ended_by, result.level) == (
        0,
        "text given\n",
        "exit",
        "rlimits_only",
    )


def test_an_error_keeps_its_exit_code_and_traceback(tmp_path):
    result = run_timed(["-c", "1/0"], tmp_path, Limits(), b"")
    assert result.exit_code == 1 and "ZeroDivisionError" in result.stderr


def test_an_endless_loop_is_ended(tmp_path):
    assert run_timed(["-c", "while True: pass"], tmp_path, Limits(wall_s=0.5), b"").ended_by == "wall_time"


def test_endless_output_is_cut(tmp_path):
    result = run_timed(["-c", "while True: print('x' * 1000)"], tmp_path, Limits(output_bytes=10_000), b"")
    assert result.ended_by == "output" and result.truncated and len(result.stdout) == 10_000


def _with(folder):
    (folder / "a").write_text("text")
    return folder
