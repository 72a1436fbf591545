"""What every level is told about a run, and the first step they share: the bootstrap inside the box."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.sandbox.limits import Limits


@dataclass(frozen=True)
class Order:
    """One run, as the levels see it.

    Attributes:
        python_args: what the boxed interpreter gets after its own options.
        workspace: the working folder, absolute, links resolved.
        temporary: a private folder for temporary files, ended with the run.
        read_only: further files and folders that may be read.
        limits: the bounds.
        uid: the unprivileged user and group id to change to, or None to stay who one is.
        report_fd: where the bootstrap says how far it came.
    """

    python_args: tuple[str, ...]
    workspace: Path
    temporary: Path
    read_only: tuple[Path, ...]
    limits: Limits
    uid: int | None
    report_fd: int


def bootstrap(
    order: Order, executable: Path, *, workspace: str, temporary: str, private: bool, **job: Any
) -> list[str]:
    """The command that sets limits and walls from inside and then becomes the interpreter asked for.

    Args:
        order: the run.
        executable: the interpreter, for both the bootstrap and the code.
        workspace: where the box sees the workspace.
        temporary: where the box sees the temporary folder.
        private: whether the kernel counts the box's processes apart from the user's others.
        job: what the level adds, see modtools/sandbox/boot.py.
    """
    job = {
        "supervised": False,
        "landlock": None,
        "seccomp": None,
        "alias": None,
        "parent_pid": os.getpid(),
        "report_fd": order.report_fd,
        "uid": order.uid,
        "folder": workspace,
        "limits": resource_limits(order.limits, private=private),
        "executable": str(executable),
        "environment": {"HOME": workspace, "TMPDIR": temporary, "PATH": str(executable.parent)},
    } | job
    source = Path(__file__).with_name("boot.py").read_text(encoding="utf-8")
    return [str(executable), "-I", "-S", "-B", "-c", f"{source}\nboot({job!r})\n", *order.python_args]


def resource_limits(limits: Limits, *, private: bool) -> dict[str, tuple[int, int]]:
    """The limits as the kernel takes them: name of the resource -> (soft, hard)."""
    bounds = {
        "RLIMIT_CPU": (limits.cpu_s, limits.cpu_s + 1),  # at the soft limit a signal one can name, then SIGKILL
        "RLIMIT_FSIZE": (limits.file_bytes, limits.file_bytes),
        "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
        "RLIMIT_CORE": (0, 0),
    }
    if sys.platform == "linux":
        processes = limits.processes + (0 if private else _tasks_of_user(os.getuid()))
        bounds |= {"RLIMIT_AS": (limits.memory_bytes,) * 2, "RLIMIT_NPROC": (processes, processes)}
    return bounds


def _tasks_of_user(uid: int) -> int:
    """Processes and threads that the user has now; RLIMIT_NPROC counts them all."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == uid:
                count += len(list((process / "task").iterdir()))
        except OSError:
            pass  # it ended meanwhile, or is hidden from us
    return count
