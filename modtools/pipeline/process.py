"""A handler in a process of its own: a fresh interpreter, ended with all it started when its time is over.

The program it runs is `worker`. What goes in is trusted and pickled; what comes back is not: it is JSON, and
bounded. When `run_in_process` returns, however that comes about, no process of the handler is left on Linux; on
macOS those are left that moved to a session of their own, on Windows those whose parent had ended before. If this
process itself is killed, the worker ends too, on Windows without what it had started.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO

from modtools.contract import BoundCall, Failure, Operation, Outcome, Tool, ToolResult
from modtools.errors import UsageError
from modtools.pipeline import worker
from modtools.pipeline.handler import POLL_S, Execution, type_name, why_give_up

MAX_RESULT_BYTES = 64 * 2**20
MAX_PRINTED_BYTES = 64 * 2**10
# All that the worker gets of our environment: the way to programs, libraries, temporary files and the home folder.
_ENVIRONMENT = "PATH PYTHONPATH LD_LIBRARY_PATH HOME USERPROFILE APPDATA SYSTEMROOT TMPDIR TEMP TMP".split()
_REPLY = re.compile(rb"(progress|result|declared|failed) (\d{1,15})\n")
_STOP_S = 2.0


def check_stoppable(tool: Tool) -> None:
    """See that a tool whose contract says "process" can run in one.

    Raises:
        UsageError: where a fresh interpreter could not import its handler.
    """
    if tool.contract.runs != "process":
        return
    module, function = getattr(tool.handler, "__module__", None), getattr(tool.handler, "__qualname__", None)
    try:
        found = module != "__main__" and importlib.util.find_spec(module) is not None
        found = found and getattr(sys.modules[module], function) is tool.handler
    except (ImportError, AttributeError, KeyError, TypeError, ValueError):
        found = False
    if not found:
        raise UsageError(
            f"{tool.contract.name} runs in a process of its own, which cannot import its handler "
            f"{module}.{function}: expected a function at the top level of a module that can be imported; "
            'move it into a file, or let the contract say runs="in_process"'
        )


def run_in_process(tool: Tool, operation: Operation, context: object, call: BoundCall, ends_s: float) -> Execution:
    """Run a handler in a process of its own.

    Its `cancelled` always says False there: who is cancelled is ended.

    Args:
        tool, operation, context, call: as for `execute`.
        ends_s: when to end it, on the clock of `time.monotonic`.
    """
    name = tool.contract.name
    try:
        order = _order(tool, operation, context, call)
        process = subprocess.Popen(
            [sys.executable, "-P", "-u", "-X", "utf8", str(Path(worker.__file__)), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={variable: os.environ[variable] for variable in _ENVIRONMENT if variable in os.environ},
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except UsageError as error:
        return Execution(failure=Failure("unavailable", str(error)), declared=True)
    except OSError as error:
        what = f"no process could be started for {name}: {type_name(error)}"
        return Execution(failure=Failure("unavailable", what), declared=True)
    replies: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
    printed = bytearray()
    talking = threading.Thread(target=_converse, args=(process, order, replies), daemon=True)
    listening = threading.Thread(target=_keep, args=(process.stderr, printed), daemon=True)
    try:
        talking.start()
        listening.start()
        execution = _end_of(process, replies, tool, call, ends_s)
    finally:
        _stop(process)
        for thread, streams in ((talking, (process.stdin, process.stdout)), (listening, (process.stderr,))):
            thread.join(_STOP_S)
            for stream in streams if not thread.is_alive() else ():
                with suppress(OSError):  # what was not yet written to a process that is gone
                    stream.close()
    more = "\n[more was printed than is kept]" if len(printed) > MAX_PRINTED_BYTES else ""
    return replace(execution, printed=printed[:MAX_PRINTED_BYTES].decode("utf-8", "replace") + more)


def _order(tool: Tool, operation: Operation, context: object, call: BoundCall) -> bytes:
    """What the worker reads. What needs the search path to be unpickled is pickled on its own inside."""
    check_stoppable(tool)
    bound = None
    if tool.takes_call:
        bound = {name: getattr(call, name) for name in ("request", "actor", "operation_id", "idempotency_key")}
        bound |= {"credentials": dict(call.credentials), "deadline_s": call.deadline_s - time.monotonic()}
    try:
        rest = pickle.dumps((operation, context, bound))
    except Exception as error:  # whatever a part of the context raises
        raise UsageError(
            f"{tool.contract.name} runs in a process of its own, and its context cannot be pickled "
            f"({type_name(error)}): expected data, without open files, locks or functions made on the spot"
        ) from error
    inner = pickle.dumps((tool.contract.name, tool.handler.__module__, tool.handler.__qualname__, rest))
    order = pickle.dumps((sys.path, inner))
    return worker.SIZE.pack(len(order)) + order


def _converse(process: subprocess.Popen, order: bytes, replies: SimpleQueue[tuple[str, bytes]]) -> None:
    """Write the order, then read replies; the last is of the kind "end", "rubbish" or "too_large"."""
    last, sent = ("end", b""), 0
    try:
        process.stdin.write(order)
        process.stdin.flush()
        while head := process.stdout.readline(64):
            reply = _REPLY.fullmatch(head)
            size = int(reply[2]) if reply else 0
            sent += size
            if sent > MAX_RESULT_BYTES:
                last = ("too_large", b"%d" % sent)
                break
            data = process.stdout.read(size)
            if not reply or len(data) < size:
                last = ("rubbish", head)
                break
            replies.put((reply[1].decode(), data))
    except OSError:
        pass  # the process is gone, which is what "end" says
    replies.put(last)


def _keep(stream: BinaryIO, printed: bytearray) -> None:
    """Read all of a stream, and keep the start of it: one byte more than what is given on."""
    while chunk := stream.read1():
        printed += chunk[: MAX_PRINTED_BYTES + 1 - len(printed)]


def _end_of(
    process: subprocess.Popen, replies: SimpleQueue[tuple[str, bytes]], tool: Tool, call: BoundCall, ends_s: float
) -> Execution:
    """Wait for the reply that says how the handler ended, for the end of its process, or for that of its time."""
    name, failure = tool.contract.name, None
    while not failure:
        left_s = max(0.0, ends_s - time.monotonic())
        try:
            kind, data = replies.get(timeout=min(left_s, POLL_S))
            if kind == "end":
                return Execution(failure=Failure("crash", f"{name} broke: {_end_in_words(process.wait(left_s))}"))
        except (Empty, subprocess.TimeoutExpired):
            failure = why_give_up(tool.contract, call, ends_s)
            continue
        if kind == "too_large":
            what = f"{name} sent {data.decode()} bytes of results, and at most {MAX_RESULT_BYTES} are taken"
            return Execution(failure=Failure("result_wrong_shape", what))
        try:
            value = json.loads(data)
            if kind == "result":
                return Execution(result=ToolResult(**{**value, "outcome": Outcome(value["outcome"])}))
            if kind != "progress":
                failure = Failure(**{part: str(text) for part, text in value.items()})
                return Execution(failure=failure, declared=kind == "declared")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UsageError):
            what = f"the process of {name} sent something else than a result"
            return Execution(failure=Failure("result_wrong_shape", what))
        call.progress(str(value))
        failure = why_give_up(tool.contract, call, ends_s)  # however much progress there is
    return Execution(failure=failure)


def _end_in_words(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code} and gave no result"
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name of its own
        return f"its process was ended by signal {-code}"


def _stop(process: subprocess.Popen) -> None:
    """End the worker and what it started, and wait for that."""
    if os.name != "posix":
        import psutil

        with suppress(psutil.NoSuchProcess):
            for started in psutil.Process(process.pid).children(recursive=True):
                started.kill()
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
