"""One handler: whatever it does, wherever it runs, there is one Execution, and it comes in time."""

from __future__ import annotations

import contextvars
import importlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from modtools.contract import BoundCall, Effect, Operation, Outcome, Tool, ToolContract, ToolFailure, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import process
from modtools.pipeline.execute import execute
from modtools.pipeline.process import check_stoppable

FOLDER = Path(__file__).parent


def tool(handler: Callable, takes_call=False, effect=Effect.READ, **fields) -> Tool:
    contract = ToolContract("t", "A tool.", {"type": "object"}, effect=effect, approval="none", **fields)
    return Tool(contract, lambda arguments, context: None, handler, takes_call=takes_call)


def bound(deadline_s=math.inf, **fields) -> BoundCall:
    return BoundCall("r1", "model", "o1", deadline_s=deadline_s, **fields)


def run(handler: Callable, context=None, call=None, **fields):
    operation = Operation("act", {"x": [1]}, ("workspace:x",), fields.get("effect", Effect.READ))
    return execute(tool(handler, **fields), operation, context, call or bound())


def throw(error: BaseException):
    raise error


# In a thread of this process


class Mute(Exception):
    """An exception that cannot be asked anything."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__

    @property
    def __class__(self):
        raise RuntimeError("no class")


class HalfMade(ToolFailure):
    def __init__(self):  # without a failure
        pass


class Odd(BaseException):
    pass


class Faceless:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class Stubborn(str):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("behave", "code"),
    [
        (lambda: throw(Mute()), "crash"),
        (lambda: throw(HalfMade()), "crash"),
        (lambda: throw(Odd()), "crash"),
        (lambda: throw(SystemExit(1)), "crash"),
        (lambda: throw(KeyboardInterrupt()), "crash"),
        (lambda: throw(MemoryError()), "crash"),
        (lambda: throw(RecursionError()), "crash"),
        (lambda: None, "result_wrong_shape"),
        (lambda: Faceless(), "result_wrong_shape"),
        (lambda: ToolResult("s", data={"x": object()}), "result_wrong_shape"),
        (lambda: ToolResult("s", data={"x": math.nan}), "result_wrong_shape"),
        (lambda: broken_later("summary", None), "result_wrong_shape"),
        (lambda: broken_later("outcome", "fine"), "result_wrong_shape"),
        (lambda: broken_later("data", 7), "result_wrong_shape"),
    ],
)
def test_whatever_a_handler_does_ends_in_one_execution(behave, code):
    execution = run(lambda o, c: behave())
    assert execution.result is None and execution.failure.code == code and not execution.declared


def broken_later(name: str, value: object) -> ToolResult:
    result = ToolResult("s")
    object.__setattr__(result, name, value)
    return result


def test_a_result_is_a_copy_that_the_handler_cannot_change_any_more():
    numbers, given = [1, 2], {}

    def handler(operation, context):
        given["result"] = ToolResult(Stubborn("sum"), data={"numbers": numbers, "pair": (1, 2)}, outcome="success")
        return given["result"]

    result = run(handler).result
    numbers.append(3)
    object.__setattr__(given["result"], "summary", "something else")
    assert result == ToolResult("sum", data={"numbers": [1, 2], "pair": [1, 2]})
    assert type(result.summary) is str and result.outcome is Outcome.SUCCESS


def test_a_handler_gets_the_call_only_where_it_takes_it():
    seen = []
    run(lambda *arguments: seen.append(arguments) or ToolResult("done"), "context")
    run(lambda *arguments: seen.append(arguments) or ToolResult("done"), "context", takes_call=True)
    assert [len(arguments) for arguments in seen] == [2, 3]
    assert seen[1][1] == "context" and seen[1][2].operation_id == "o1"


def test_a_handler_sees_the_callers_context_variables_and_leaves_none_behind():
    variable = contextvars.ContextVar("variable", default="nothing")
    variable.set("the caller's")
    seen = []

    def handler(operation, context):
        seen.append(variable.get())
        variable.set("the handler's")
        return ToolResult("done")

    run(handler), run(handler)
    assert seen == ["the caller's"] * 2 and variable.get() == "the caller's"


def test_a_thread_is_used_again_and_one_that_hangs_is_not(monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    threads, release = [], threading.Event()

    def quick(operation, context):
        threads.append(threading.get_ident())
        return ToolResult("done")

    def slow(operation, context):
        threads.append(threading.get_ident())
        release.wait(10)
        return ToolResult("late")

    run(quick), run(quick)
    hung = run(slow, timeout_s=0.05)
    run(quick)
    release.set()
    assert hung.failure.code == "timeout" and hung.left_behind
    assert threads[0] == threads[1] == threads[2] != threads[3]


def test_a_handler_that_was_given_up_is_told_to_stop(monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    stopped = threading.Event()

    def cooperative(operation, context, call):
        while not call.cancelled():
            time.sleep(0.005)
        stopped.set()
        return ToolResult("stopped")

    assert run(cooperative, takes_call=True, timeout_s=0.05).failure.code == "timeout"
    assert stopped.wait(10)


def test_a_call_ends_at_its_deadline_and_after_it_nothing_begins():
    begun = []
    execution = run(lambda o, c: time.sleep(10), call=bound(time.monotonic() + 0.05))
    assert execution.failure.code == "timeout" and "deadline" in execution.failure.what
    late = run(lambda o, c: begun.append(1), call=bound(time.monotonic() - 1))
    assert (late.failure.code, late.declared, late.attempts, begun) == ("timeout", True, 0, [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_after_a_fork_handlers_still_run():
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import test_execute as t; t.run(t.done); pid = os.fork()\n"
        "if pid == 0: os._exit(7 if t.run(t.done).result else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(FOLDER)], timeout=60).returncode == 7


def done(operation, context):
    return ToolResult("done")


# Tries


def failing(times: int, error: BaseException) -> tuple[Callable, list]:
    """A handler that fails that often, and spoils its operation each time; and what it was given."""
    given = []

    def handler(operation, context):
        given.append(list(operation.arguments["x"]))
        operation.arguments["x"].append(2)
        if len(given) <= times:
            raise error
        return ToolResult("done")

    return handler, given


LIMITED, DECLINED = ToolFailure("rate_limited", "wait"), ToolFailure("precondition_failed", "no")


@pytest.mark.parametrize(
    ("error", "effect", "idempotent", "attempts"),
    [
        (ValueError(), Effect.READ, False, 3),
        (ValueError(), Effect.WRITE, True, 3),
        (ValueError(), Effect.WRITE, False, 1),  # it may have been done
        (LIMITED, Effect.WRITE, False, 3),  # it was not
        (DECLINED, Effect.READ, True, 1),  # it would be the same again
        (ToolFailure("no_such_code", "?"), Effect.READ, True, 1),
        (ToolFailure("cancelled", "?"), Effect.READ, True, 1),
    ],
)
def test_a_try_is_made_again_where_code_and_contract_allow_it(error, effect, idempotent, attempts):
    handler, given = failing(2, error)
    execution = run(handler, effect=effect, idempotent=idempotent, retries=5)
    assert execution.attempts == attempts and (execution.result is not None) == (attempts == 3)
    assert given == [[1]] * attempts


def test_there_are_no_more_tries_than_the_contract_allows():
    for retries in (0, 1):
        handler, given = failing(9, LIMITED)
        execution = run(handler, retries=retries)
        assert execution.attempts == len(given) == retries + 1 and execution.failure.code == "rate_limited"


def test_a_tool_whose_thread_still_runs_is_not_tried_beside_it(monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    begun, release = [], threading.Event()
    execution = run(lambda o, c: begun.append(1) or release.wait(10), idempotent=True, retries=3, timeout_s=0.05)
    release.set()
    assert execution.left_behind and execution.attempts == len(begun) == 1


def test_no_try_begins_when_the_call_is_cancelled_or_its_time_is_over():
    handler, given = failing(9, LIMITED)
    assert run(handler, retries=9, call=bound(cancelled=lambda: bool(given))).attempts == 1
    handler, begun_s = lambda o, c: begun_s.append(time.monotonic()) or throw(LIMITED), []
    deadline_s = time.monotonic() + 0.2
    execution = run(handler, retries=9, call=bound(deadline_s))
    assert execution.failure.code == "rate_limited" and 1 <= execution.attempts < 10 and begun_s[-1] < deadline_s


# In a process of its own


@pytest.fixture
def handlers(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("stoppable_handlers")


def run_apart(handler: Callable, context=None, **fields):
    return run(handler, context, runs="process", **fields)


def test_a_process_is_given_operation_context_and_call_and_nothing_of_our_environment(handlers, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "hunter2")
    progress = []
    call = bound(time.monotonic() + 30, credentials={"key": "secret"}, progress=progress.append)
    result = run_apart(handlers.tells, {"level": 3}, takes_call=True, call=call).result
    assert (result.summary, result.body) == ("told", "Größe \ud800")
    told = dict(result.data)
    assert (told["arguments"], told["context"]) == ({"x": [1]}, {"level": 3})
    assert told["credentials"] == {"key": "secret"} and 0 < told["left_s"] <= 30
    assert "SOME_TOKEN" not in told["environment"] and "PATH" in told["environment"]
    assert told["pid"] != os.getpid() and told["stdin"] == "" and progress == ["half-way", "done"]


def test_what_a_handler_prints_is_kept_and_does_no_harm_to_its_result(handlers):
    execution = run_apart(handlers.prints, 3 * process.MAX_PRINTED_BYTES)
    assert execution.result.summary == "printed"
    assert execution.printed.startswith("to stdout\nto descriptor 1\nof a child\nxxx")
    assert execution.printed.endswith("[more was printed than is kept]")
    assert len(execution.printed) < process.MAX_PRINTED_BYTES + 100


POSIX = pytest.mark.skipif(os.name != "posix", reason="the system has no signals")


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("declines", "precondition_failed", "not now"),
        ("raises", "crash", "t broke with RuntimeError"),
        ("returns_rubbish", "result_wrong_shape", "returned dict"),
        ("exits", "crash", "exit code 3"),
        pytest.param("kills_itself", "crash", "ended by SIGKILL", marks=POSIX),
        pytest.param("crashes_the_interpreter", "crash", "ended by SIGSEGV", marks=POSIX),
        ("writes_rubbish_to_every_descriptor", "result_wrong_shape", "something else than a result"),
    ],
)
def test_however_a_process_ends_there_is_one_failure_that_names_it(handlers, name, code, words):
    execution = run_apart(getattr(handlers, name), effect=Effect.WRITE)
    assert execution.result is None and execution.failure.code == code and words in execution.failure.what
    assert execution.declared == (name == "declines") and "hunter2" not in execution.failure.what


def test_a_result_that_is_too_large_is_not_read(handlers, monkeypatch):
    monkeypatch.setattr(process, "MAX_RESULT_BYTES", 10**6)
    assert len(run_apart(handlers.returns_much, 900_000).result.body) == 900_000
    failure = run_apart(handlers.returns_much, 1_000_000).failure
    assert failure.code == "result_wrong_shape" and "at most 1000000 are taken" in failure.what


def test_a_thread_that_a_handler_left_does_not_hold_up_its_result(handlers):
    assert run_apart(handlers.leaves_a_thread, timeout_s=30).result.summary == "done"


def alive(pids: list[int]) -> list[int]:
    """Those that still run; a zombie has ended."""
    running = []
    for pid in pids:
        try:
            running += [pid] * (psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            pass
    return running


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process can leave its group")
@pytest.mark.parametrize(
    ("then", "ends", "code"),
    [("hang", "timeout", "timeout"), ("hang", "cancelled", "cancelled"), ("exit", "", "crash"), ("return", "", "")],
)
def test_when_a_call_has_ended_no_process_of_it_is_left(handlers, tmp_path, then, ends, code):
    note = tmp_path / "pids"
    call = bound(cancelled=note.exists) if ends == "cancelled" else None
    context = {"note": str(note), "then": then}
    timeout_s = 1.5 if ends == "timeout" else 30
    execution = run_apart(handlers.starts_children_and_hangs, context, call=call, timeout_s=timeout_s)
    assert (execution.failure.code if execution.failure else "") == code and not execution.left_behind
    assert len(pids := json.loads(note.read_text())) == 4 and alive(pids) == []


@POSIX
def test_a_handler_that_leaves_its_process_group_is_ended_all_the_same(handlers, tmp_path):
    note = tmp_path / "pid"
    execution = run_apart(handlers.leaves_its_group_and_hangs, str(note), call=bound(cancelled=note.exists))
    assert execution.failure.code == "cancelled" and alive(json.loads(note.read_text())) == []


def test_progress_without_end_does_not_keep_a_call_alive(handlers):
    told = []
    execution = run_apart(handlers.tells_for_ever, takes_call=True, timeout_s=3.0, call=bound(progress=told.append))
    assert execution.failure.code == "timeout" and len(told) > 1


@POSIX
def test_a_worker_ends_with_all_it_started_when_its_standard_input_ends(handlers, tmp_path):
    note = tmp_path / "pids"
    context = {"note": str(note), "then": "hang"}
    apart = tool(handlers.starts_children_and_hangs, runs="process")
    order = process._order(apart, Operation("act", {}, (), Effect.READ), context, bound())
    command = [sys.executable, "-P", process.worker.__file__, str(os.getpid())]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    worker.stdin.write(order)
    worker.stdin.flush()
    until_s = time.monotonic() + 30
    while not note.exists():
        assert time.monotonic() < until_s, "the handler did not start"
        time.sleep(0.01)
    worker.stdin.close()
    worker.wait(30)
    first, supervisor, in_its_group, _ = json.loads(note.read_text())
    assert alive([first, supervisor, in_its_group]) == []


HARNESS = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import test_execute, stoppable_handlers

def fork():
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    if os.fork() == 0:
        time.sleep(60)

if sys.argv[3] == "forked":
    threading.Thread(target=fork).start()
context = {"note": sys.argv[2], "then": "hang"}
test_execute.run_apart(stoppable_handlers.starts_children_and_hangs, context, timeout_s=60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process can leave its group")
@pytest.mark.parametrize("how", ["plain", "forked"])  # a fork of the harness keeps the worker's standard input open
def test_when_the_harness_is_killed_no_process_of_a_handler_is_left(tmp_path, how):
    note = tmp_path / "pids"
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(FOLDER), str(note), how])
    until_s = time.monotonic() + 30
    while not note.exists() or (how == "forked" and len(psutil.Process(harness.pid).children()) < 2):
        assert time.monotonic() < until_s, "the handler did not start"
        time.sleep(0.01)
    worker, supervisor, *started = json.loads(note.read_text())
    forks = [child for child in psutil.Process(harness.pid).children() if child.pid != supervisor]
    assert alive([worker, supervisor, *started]) == [worker, supervisor, *started]
    harness.kill()
    harness.wait()
    while (left := alive([worker, supervisor, *started])) and time.monotonic() < until_s:
        time.sleep(0.01)
    for fork in forks:
        fork.kill()
    assert left == [] and len(forks) == (how == "forked")


def test_a_handler_that_no_fresh_interpreter_can_import_is_refused(handlers):
    def inner(operation, context):
        return ToolResult("done")

    from_main = type(done)(done.__code__, done.__globals__, "done")
    from_main.__module__ = "__main__"
    for handler in (inner, lambda o, c: None, from_main, Path.read_text, Mute()):
        apart = tool(handler, runs="process")
        with pytest.raises(UsageError, match="cannot import its handler"):
            check_stoppable(apart)
        execution = execute(apart, Operation("act", {}, (), Effect.READ), None, bound())
        assert execution.failure.code == "unavailable" and execution.declared
    check_stoppable(tool(inner))
    check_stoppable(tool(handlers.tells, runs="process"))


def test_a_context_that_cannot_be_sent_is_refused_before_anything_is_done(handlers):
    execution = run_apart(handlers.returns_rubbish, threading.Lock())
    assert execution.failure.code == "unavailable" and execution.declared and "pickled" in execution.failure.what


def test_a_process_that_cannot_be_set_up_has_done_nothing(handlers):
    execution = run_apart(handlers.returns_rubbish, FailsToArrive(), effect=Effect.WRITE)
    assert (
        execution.failure.code == "unavailable" and execution.declared and "ZeroDivisionError" in str(execution.failure)
    )


class FailsToArrive:
    def __reduce__(self):
        return divmod, (1, 0)


def test_a_tool_that_died_is_tried_again_in_a_new_process(handlers):
    execution = run_apart(handlers.exits, retries=1)
    assert execution.attempts == 2 and execution.failure.code == "crash"


def test_no_try_begins_once_the_time_of_all_tries_is_over():
    begun = []

    def busy(operation, context):
        begun.append(time.monotonic())
        time.sleep(0.15)
        raise ToolFailure("busy", "later")

    started = time.monotonic()
    run(busy, retries=5, timeout_s=0.3)
    assert len(begun) > 1 and max(begun) - started < 1.0  # within the grace of 2 s it would be later
