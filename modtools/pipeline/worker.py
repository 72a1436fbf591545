"""The program of a worker process: it carries out one handler and sends back how that ended.

`process` starts this file by itself in a fresh interpreter, so it imports the standard library only until the
search path of whoever started it has come in. On standard input it gets its order and then nothing; the end of
standard input says that it is to stop. Its replies go out on what was standard output, each a line
"<kind> <bytes>" and that many bytes of JSON; what the handler prints, to either stream, goes to standard error.

On Linux and macOS there are two processes. The first runs no handler's code, so nothing can hang it: it waits for
the second, or for the word to stop, and ends all that is left. On Windows there is one; it ends itself when it is
to stop, and what it started is found and ended by `process`, or left, where that was killed.
Sources: prctl(2), wait(2).
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
from contextlib import suppress

SIZE = struct.Struct(">Q")
LONGEST_PROGRESS_CHARS = 1000
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36


def main(starter: int) -> None:
    """Read the order, carry it out, reply, and end.

    Args:
        starter: process id of whoever started this one.
    """
    stdin, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if hasattr(os, "fork"):
        _die_with(starter, signal.SIGTERM)
    with open(stdin, "rb", buffering=0, closefd=False) as stream:
        (size,) = SIZE.unpack(_read(stream, SIZE.size))
        search_path, order = pickle.loads(_read(stream, size))
    sys.path[:] = search_path
    if hasattr(os, "fork"):
        _supervise(stdin)
        os.close(stdin)
    else:
        threading.Thread(target=_end_with, args=(stdin,), daemon=True).start()
    _work(order, replies)


def _read(stream, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = stream.read(size - len(data))
        if not chunk:
            os._exit(1)  # whoever started us is gone
        data += chunk
    return bytes(data)


def _end_with(stdin: int) -> None:
    os.read(stdin, 1)  # returns when whoever started us closes it
    os._exit(1)


def _work(order: bytes, replies: int) -> None:
    from importlib import import_module

    from modtools.contract import BoundCall, Failure
    from modtools.pipeline.handler import Execution, carry_out, type_name

    one_at_a_time = threading.Lock()

    def reply(kind: str, value: object) -> None:
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        with one_at_a_time:
            message = memoryview(b"%s %d\n" % (kind.encode(), len(data)) + data)
            while message:
                message = message[os.write(replies, message) :]

    name, module, function, rest = pickle.loads(order)
    try:
        operation, context, bound = pickle.loads(rest)
        handler = getattr(import_module(module), function)
    except BaseException as error:
        failure = Failure("unavailable", f"{name} could not be set up in its process: {type_name(error)}")
        execution = Execution(failure=failure, declared=True)
    else:
        arguments = (operation, context)
        if bound is not None:
            bound["deadline_s"] += time.monotonic()
            arguments += (
                BoundCall(**bound, progress=lambda text: reply("progress", str(text)[:LONGEST_PROGRESS_CHARS])),
            )
        execution = carry_out(name, handler, arguments)
    if execution.result:
        reply("result", vars(execution.result))
    else:
        reply("declared" if execution.declared else "failed", vars(execution.failure))
    while True:  # whoever started us ends us now, and with us the threads and processes that are left
        time.sleep(60)


def _supervise(stdin: int) -> None:
    """Fork. The second process returns; this one waits, ends all that is left, and then ends as the second did."""
    supervisor = os.getpid()
    wake, wakened = os.pipe()
    os.set_blocking(wakened, False)
    signal.set_wakeup_fd(wakened)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)  # its number comes through the pipe
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.close(wake)
        os.close(wakened)
        os.setpgid(0, 0)
        _die_with(supervisor, signal.SIGKILL)
        return
    with suppress(OSError):
        os.setpgid(child, child)  # whoever of the two is first
    if sys.platform == "linux":
        _control(_SET_SUBREAPER, 1)  # what the second process leaves behind becomes ours
    status = None
    while status is None:
        ready, _, _ = select.select([stdin, wake], [], [])
        if stdin in ready or signal.SIGTERM in os.read(wake, 512):
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
        else:
            ended, ended_status = os.waitpid(child, os.WNOHANG)
            status = ended_status if ended else None
    with suppress(ProcessLookupError, PermissionError):  # the latter for a group of zombies on macOS
        os.killpg(child, signal.SIGKILL)
    _end_orphans()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # SIGKILL needs no preparation, and takes none
            signal.signal(-code, signal.SIG_DFL)
        os.kill(supervisor, -code)
    os._exit(code)


def _end_orphans() -> None:
    """End our children until there are none; on Linux those are all that the second process started."""
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            import psutil

            for orphan in psutil.Process().children():
                orphan.kill()
            time.sleep(0.001)


def _die_with(parent: int, number: int) -> None:
    """Have the kernel send this process a signal when its parent ends (Linux only)."""
    if sys.platform == "linux":
        _control(_SET_DEATH_SIGNAL, number)
    if os.getppid() != parent:
        os._exit(1)  # it ended before we could be told


def _control(option: int, value: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
