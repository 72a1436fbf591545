"""One way to run code: start it inside a level, read what it prints, end it, take the workspace back."""

from __future__ import annotations

import errno
import os
import re
import select
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from modtools.errors import MissingPieceError, UsageError
from modtools.sandbox import bubblewrap, landlock, rlimits
from modtools.sandbox.limits import LEVELS, BoxResult, Limits
from modtools.sandbox.order import Order
from modtools.sandbox.tenancy import box_uid, lent
from modtools.sandbox.timed import run_timed

PIDFD_SEND_SIGNAL, PIDFD_OPEN = 424, 434  # system calls, which some builds of Python lack as functions


def run(
    python_args: Sequence[str],
    workspace: Path,
    *,
    level: str,
    limits: Limits = Limits(),
    stdin: bytes = b"",
    read_only: Sequence[Path] = (),
) -> BoxResult:
    """Run `python -I -B <python_args>` in a fresh process whose working folder is the workspace.

    Inside, only the workspace and a temporary folder (TMPDIR, gone afterwards) can be written, and only they, the
    interpreter, its standard library and `read_only` can be read. There is no socket, no other program, none of
    the caller's environment or descriptors. `-I` leaves the workspace off `sys.path`; `unittest discover -t .`
    puts it on. When `run` returns, every process of the box is gone and the workspace's files belong to the
    caller again, readable and deletable whatever the code did to their modes. Links the code made are left as
    they are: do not follow them. One run at a time in a workspace; runs in different ones may overlap.

    Args:
        python_args: such as ["-c", code] or ["-m", "unittest", "discover", "-s", "tests", "-t", "."].
        workspace: an existing folder.
        level: one of LEVELS, as `strongest_level()` says; "rlimits_only" keeps none of the above promises.
        limits: the bounds.
        stdin: what the code reads on standard input.
        read_only: files and folders that may be read too, under the same paths.

    Raises:
        UsageError: an unknown level, or a workspace that cannot be used.
        MissingPieceError: the level cannot be started here.
    """
    if level not in LEVELS:
        raise UsageError(f"sandbox level {level!r}: expected one of {', '.join(LEVELS)}")
    workspace = Path(workspace).resolve()
    if not workspace.is_dir():
        raise UsageError(f"workspace {workspace}: expected an existing folder")
    if os.name != "posix" and level == "rlimits_only":
        return run_timed(python_args, workspace, limits, stdin)
    if os.name != "posix" or (level != "rlimits_only" and sys.platform != "linux"):
        raise MissingPieceError(f"sandbox level {level} is not to be had on {sys.platform}")
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="modtools-"))
        report, report_writer = _pipe(stack)
        info, info_writer = _pipe(stack)
        order = Order(
            tuple(python_args),
            workspace,
            Path(temporary).resolve(),
            tuple(Path(path).resolve() for path in read_only),
            limits,
            uid=None if level == "rlimits_only" else box_uid(),
            report_fd=report_writer.fileno(),
        )
        command = _command(level, order, info_writer.fileno())
        given = stack.enter_context(tempfile.TemporaryFile())
        given.write(stdin)
        given.seek(0)
        stack.enter_context(lent([order.workspace, order.temporary], order.uid))
        start_s = time.monotonic()
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                pass_fds=[report_writer.fileno()] + [info_writer.fileno()] * (level == "bubblewrap"),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno != errno.E2BIG:
                raise
            # Longer than 128 KiB, or with a null character or a lone surrogate in it.
            raise UsageError(f"the code cannot be an argument: {error}; write it to a file of the workspace") from error
        report_writer.close()
        info_writer.close()
        with process, _ended(process, info):
            stdout, stderr, stopped_by = _collect(process, limits.output_bytes, start_s + limits.wall_s)
        duration_s = time.monotonic() - start_s
        stdout, stderr, reported = stdout.decode(errors="replace"), stderr.decode(errors="replace"), report.read()
    if reported != b"ready" and stopped_by is None:
        why = (reported.decode(errors="replace") or stderr).strip()
        raise MissingPieceError(f"sandbox level {level} did not start: {why}")
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    if stopped_by:
        code = 128 + signal.SIGKILL
    ended_by = stopped_by or _ended_by(code, stderr)
    return BoxResult(code, stdout, stderr, ended_by, stopped_by == "output", duration_s, level)


def _command(level: str, order: Order, info_fd: int) -> list[str]:
    if level == "bubblewrap":
        return bubblewrap.command(order, info_fd)
    return landlock.command(order) if level == "landlock" else rlimits.command(order)


def _pipe(stack: ExitStack) -> list[BinaryIO]:
    """A pipe's reader and writer, unbuffered, closed at the latest with the stack."""
    return [stack.enter_context(open(fd, mode, buffering=0)) for fd, mode in zip(os.pipe(), ("rb", "wb"))]


def _collect(process: subprocess.Popen, room_bytes: int, deadline_s: float) -> tuple[bytes, bytes, str | None]:
    """Read both pipes until the process ends: (stdout, stderr, None, or why it has to be stopped)."""
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in kept:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return *kept.values(), "wall_time"
            for key, _ in selector.select(left_s):
                chunk = os.read(key.fd, 2**16)
                if not chunk:
                    selector.unregister(key.fileobj)
                kept[key.fileobj] += chunk[:room_bytes]
                room_bytes -= len(chunk)
                if room_bytes < 0:
                    return *kept.values(), "output"
    try:
        process.wait(max(0.0, deadline_s - time.monotonic()))  # it may have closed both and go on
    except subprocess.TimeoutExpired:
        return *kept.values(), "wall_time"
    return *kept.values(), None


@contextmanager
def _ended(process: subprocess.Popen, info: BinaryIO) -> Iterator[None]:
    """At the end of the block no process of the box is left, however the block ends.

    The supervisor (see boot.py) ends after all others. bwrap does not wait for its processes, nor do they hear of
    its end before they are set up; so we kill the first of them ourselves and wait for it. The kernel lets it end
    only after all others of its name space.
    """
    import ctypes

    libc, first = ctypes.CDLL(None), -1
    try:
        if found := re.search(rb'"child-pid": (\d+)', info.read()):
            first = libc.syscall(PIDFD_OPEN, int(found[1]), 0)
        yield
    finally:
        if first >= 0:
            libc.syscall(PIDFD_SEND_SIGNAL, first, signal.SIGKILL, None, 0)
        else:
            process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        if first >= 0:
            poll = select.poll()
            poll.register(first, select.POLLIN)
            poll.poll()
            os.close(first)


def _ended_by(code: int, stderr: str) -> str:
    """The label of a run that was not stopped from outside."""
    if code == 128 + signal.SIGXCPU:
        return "cpu_time"
    if code and stderr.rstrip().rpartition("\n")[2].startswith("MemoryError"):
        return "memory"
    return "signal" if code > 128 else "exit"
