"""Handlers that a fresh interpreter can import, for tests of tools that run in a process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from modtools.contract import ToolFailure, ToolResult


def tells(operation, context, call):
    """Gives back what it was given and where it runs."""
    call.progress("half-way")
    call.progress("done")
    data = {
        "arguments": dict(operation.arguments),
        "context": context,
        "credentials": dict(call.credentials),
        "environment": sorted(os.environ),
        "left_s": call.deadline_s - time.monotonic(),
        "stdin": sys.stdin.read(),
        "pid": os.getpid(),
    }
    return ToolResult("told", "Größe \ud800", data)


def tells_for_ever(operation, context, call):
    while True:
        call.progress("on my way")


def prints(operation, context):
    print("to stdout")
    os.write(1, b"to descriptor 1\n")
    subprocess.run([sys.executable, "-c", "print('of a child')"])
    print("x" * context, file=sys.stderr)
    return ToolResult("printed")


def declines(operation, context):
    raise ToolFailure("precondition_failed", "not now", "arguments.x", "later")


def raises(operation, context):
    raise RuntimeError("password=hunter2")


def returns_rubbish(operation, context):
    return {"a": 1}


def returns_much(operation, context):
    return ToolResult("much", "y" * context)


def exits(operation, context):
    os._exit(3)


def kills_itself(operation, context):
    os.kill(os.getpid(), signal.SIGKILL)


def crashes_the_interpreter(operation, context):
    import ctypes

    ctypes.string_at(0)


def writes_rubbish_to_every_descriptor(operation, context):
    for number in range(3, 32):
        try:
            os.write(number, b"rubbish\n")
        except OSError:
            pass
    time.sleep(60)


def leaves_its_group_and_hangs(operation, context):
    os.setpgid(0, os.getppid())
    _note(context, [os.getpid()])
    time.sleep(60)


def leaves_a_thread(operation, context):
    threading.Thread(target=time.sleep, args=(60,)).start()
    return ToolResult("done")


def starts_children_and_hangs(operation, context):
    """Notes its process, the one above it, and two children: one in its group and one that has left it."""
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    children = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
    _note(context["note"], [os.getpid(), os.getppid(), *(child.pid for child in children)])
    if context["then"] == "hang":
        time.sleep(60)
    if context["then"] == "exit":
        os._exit(3)
    return ToolResult("done")


def _note(path: str, pids: list[int]) -> None:
    """Write a file that is either not there or whole."""
    Path(path + ".part").write_text(json.dumps(pids))
    os.replace(path + ".part", path)
