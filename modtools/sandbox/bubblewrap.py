"""Level 1: bubblewrap puts the run into its own file tree, processes, network, users and host name.

What is bound into the tree is the whole of what can be read or executed: the interpreter, its standard library
without third-party packages, the shared libraries they need one by one, a few device nodes, and /workspace (where
code may run a program that it wrote itself; it can do no more than ctypes can). There is no /proc. Source: bwrap(1).
"""

from __future__ import annotations

import os
import platform
import shutil

from modtools.errors import MissingPieceError
from modtools.sandbox import seccomp
from modtools.sandbox.interpreter import THIRD_PARTY, find_interpreter
from modtools.sandbox.order import Order, bootstrap

WORKSPACE, TEMPORARY = "/workspace", "/tmp"
NOBODY = "65534"


def command(order: Order, info_fd: int) -> list[str]:
    """The command line of one run; on info_fd bwrap names the host's id of the box's first process."""
    if (program := shutil.which("bwrap")) is None:
        raise MissingPieceError("the program bwrap is not installed (Debian, Ubuntu: apt install bubblewrap)")
    interpreter = find_interpreter()
    parts = [program, "--die-with-parent", "--info-fd", str(info_fd), "--hostname", "box"]
    parts += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if order.uid is None:
        parts += ["--unshare-user", "--uid", NOBODY, "--gid", NOBODY]
    else:
        # Root needs no user name space, and within one its processes would not be counted. bwrap, as root, binds
        # what only root can reach; the bootstrap then changes to the uid, and with that loses these two.
        parts += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    parts += ["--dev", "/dev", "--remount-ro", "/dev"]
    # First, since what is visible may lie below a host's folder of the same name.
    parts += ["--bind", str(order.workspace), WORKSPACE, "--bind", str(order.temporary), TEMPORARY]
    visible = (interpreter.executable, interpreter.stdlib, *interpreter.libraries, *order.read_only)
    for folder in sorted({folder for path in visible for folder in path.parents}):
        parts += ["--dir", str(folder)]  # made by bwrap itself, those above a private folder would be closed
    for path in visible:
        parts += ["--ro-bind", str(path), str(path)]
    for name in THIRD_PARTY:
        if (hidden := interpreter.stdlib / name).is_dir():
            parts += ["--tmpfs", str(hidden), "--remount-ro", str(hidden)]
    parts += ["--remount-ro", "/", "--"]
    return parts + bootstrap(
        order,
        interpreter.executable,
        workspace=WORKSPACE,
        temporary=TEMPORARY,
        private=order.uid is not None or _counts_per_name_space(),
        seccomp=seccomp.program(platform.machine(), seccomp.ALWAYS),
    )


def _counts_per_name_space() -> bool:
    """Whether the kernel counts a user's processes per user name space (Linux 5.14)."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int("".join(c for c in minor if c.isdigit()))) >= (5, 14)
