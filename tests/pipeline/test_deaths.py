"""SIGKILL from outside between every two writes: the process that comes next sees only the disk."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from modtools.contract import ToolResult
from modtools.pipeline import AuditLog, Policy, Rule, verify_audit
from pipeline.tools import call, ends, make_pipeline, make_tool, run

# Forks a child for each place to die at. The child stops before and after everything that can change the disk, says
# so and waits; the parent lets it go on, and at the place in question kills it.
DRIVER = """
    import json, os, signal, sys, threading
    from pathlib import Path
    from modtools.pipeline import AuditLog
    from modtools.pipeline.validate import validate_arguments
    from pipeline.test_deaths import SCENARIOS, worker

    validate_arguments(worker(Path()).contract, {})  # what it imports, it imports once, before the forks
    scenario, root = sys.argv[1], Path(sys.argv[2])
    deaths = 0
    while True:
        folder = root / str(deaths)
        up, down = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            write, lock = os.write, threading.Lock()

            def stop():
                with lock:
                    write(up[1], b".")
                    os.read(down[0], 1)

            def stopping(function):
                def stopped(*args, **named):
                    stop()
                    try:
                        return function(*args, **named)
                    finally:
                        stop()
                return stopped

            for name in ("write", "open", "replace", "ftruncate", "mkdir"):
                setattr(os, name, stopping(getattr(os, name)))
            SCENARIOS[scenario](folder)
            os._exit(0)
        os.close(up[1]); os.close(down[0])
        passed = 0
        while os.read(up[0], 1):
            if passed == deaths:
                os.kill(child, signal.SIGKILL)
                break
            passed += 1
            os.write(down[1], b".")
        os.waitpid(child, 0)
        os.close(up[0]); os.close(down[1])
        if passed < deaths:
            break
        deaths += 1
    print(deaths)
"""


def worker(folder: Path, **fields):
    """A tool that leaves a mark for each time its work was done."""

    def handler(operation, context):
        with open(folder / "effects", "a") as file:
            file.write("done\n")
        return ToolResult("done")

    return make_tool(handler, idempotency_key=("key",), input_schema=KEYED, **fields)


KEYED = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
TEXT = call(key="k")


def once(folder: Path) -> None:
    """One call, from a fresh log to its end."""
    run(make_pipeline(worker(folder), audit=AuditLog(folder)), "r1", TEXT)


def approved(folder: Path) -> None:
    """A call that asks, its approval, and the call that uses it."""
    policy = Policy((Rule("ask", "*"),))
    pipeline = make_pipeline(worker(folder), policy=policy, audit=AuditLog(folder))
    run(pipeline, "r1", TEXT)
    run(pipeline, "r2", TEXT, approvals=(pipeline.approve("r1", "ann").id,))


def behind(folder: Path) -> None:
    """A call whose work goes on in the background."""
    done = []
    tool = worker(folder, background=True)
    pipeline = make_pipeline(tool, audit=AuditLog(folder), on_event=done.append)
    run(pipeline, "r1", TEXT)
    while not done:
        time.sleep(0.01)


SCENARIOS = {"once": once, "approved": approved, "behind": behind}


@pytest.mark.case(13)
@pytest.mark.skipif(sys.platform == "win32", reason="this system has no SIGKILL")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_between_any_two_writes_each_request_ends_once_and_its_work_is_done_at_most_once(scenario, tmp_path):
    paths = f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}\n"
    process = subprocess.run(
        [sys.executable, "-c", paths + textwrap.dedent(DRIVER), scenario, str(tmp_path)], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    deaths = int(process.stdout)
    seen = set()
    for death in range(deaths):
        folder = tmp_path / str(death)
        if not (folder / "audit.jsonl").exists():  # nothing was received yet
            continue
        before = AuditLog(folder)
        assert verify_audit(folder).broken_at is None and verify_audit(folder).open == ()
        lines = before.lines()
        effects = (folder / "effects").read_text().count("done") if (folder / "effects").exists() else 0
        for request in {line["request"] for line in lines}:
            terminal = [line for line in lines if (line["request"], line["event"]) == (request, "terminal")]
            completed = [line for line in lines if (line["request"], line["event"]) == (request, "completed")]
            assert len(terminal) == 1 and len(completed) == (terminal[0]["outcome"] == "background_accepted")
            outcome = (completed or terminal)[0]["outcome"]
            begun = any((line["request"], line["event"]) == (request, "executing") for line in lines)
            assert outcome in (("success", "unknown_outcome") if begun else ("cancelled", "approval_required"))
            assert effects <= 1 and (outcome != "success" or effects == 1) and (begun or outcome != "success")
            seen.add((begun, outcome))
        # The same work asked for again: it is never done twice.
        pipeline = make_pipeline(worker(folder), audit=AuditLog(folder))
        again = run(pipeline, "again", TEXT)
        total = (folder / "effects").read_text().count("done") if (folder / "effects").exists() else 0
        assert total <= 1 and ends(pipeline, "again") == [again.outcome]
        assert total == 1 or again.outcome == "unknown_outcome"
    assert {(True, "success"), (True, "unknown_outcome"), (False, "cancelled")} <= seen and deaths > 15, json.dumps(
        deaths
    )
