"""Level 2: Landlock for the file system, seccomp for the network and other processes; no program to install.

Unlike in level 1 the box sees the host's tree. It cannot open what no rule allows, but where its user may it can
learn that a path exists, with its size and times, and touch a file that everybody may write. Source: landlock(7).
"""

from __future__ import annotations

import os
import platform
import struct
from functools import cache
from pathlib import Path

from modtools.errors import MissingPieceError, UsageError
from modtools.sandbox import seccomp
from modtools.sandbox.interpreter import THIRD_PARTY, Interpreter, find_interpreter
from modtools.sandbox.order import Order, bootstrap

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = (
    1 << bit for bit in (0, 1, 2, 3, 6, 9, 10, 11)
)
IOCTL_DEVICE = 1 << 15
READ = READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


@cache
def abi() -> int:
    """The kernel's Landlock version (1 came with Linux 5.13); raises MissingPieceError where there is none."""
    import ctypes

    version = ctypes.CDLL(None).syscall(444, None, ctypes.c_long(0), ctypes.c_long(1))
    if version < 1:
        raise MissingPieceError("the kernel has no Landlock (it needs Linux 5.13, and lsm=landlock at boot)")
    return version


def command(order: Order) -> list[str]:
    """The command line of one run. Raises MissingPieceError, or UsageError for a folder out of the box's reach."""
    version, interpreter = abi(), find_interpreter()
    if order.uid is None and os.geteuid() == 0:
        raise MissingPieceError("the box must not run as root, and this root has no other user to change to")
    if order.uid is None and version < 6:  # the first to confine signals, and no change of uid does it instead
        raise MissingPieceError(f"without root it needs Landlock version 6 (Linux 6.12), this kernel has {version}")
    refused = [seccomp.ALWAYS, seccomp.WITHOUT_NAMESPACES]
    if version < 3:
        refused.append(seccomp.TRUNCATE)
    alias = None
    if order.uid is None:
        refused.append(seccomp.METADATA)
    else:
        for path in (order.workspace, order.temporary, *order.read_only):
            if closed := _closed_parent(path):
                raise UsageError(
                    f"{path}: the box's unprivileged user cannot pass through {closed}; "
                    "use a folder below one that others may enter, such as tempfile.mkdtemp() gives"
                )
        if _closed_parent(interpreter.executable):
            alias = _alias(interpreter)
    return bootstrap(
        order,
        interpreter.executable,
        workspace=str(order.workspace),
        temporary=str(order.temporary),
        private=order.uid is not None,
        supervised=True,
        alias=alias,
        landlock=(_attributes(version), _rules(order, interpreter, version)),
        seccomp=seccomp.program(platform.machine(), *refused),
    )


def _handled(version: int) -> int:
    """Every right of files that the version knows; what is handled is refused unless a rule allows it."""
    return (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1


def _attributes(version: int) -> bytes:
    """struct landlock_ruleset_attr, as long as the version knows it: files, TCP (4), sockets and signals (6)."""
    return struct.pack("QQQ", _handled(version), 0b11, 0b11)[: 8 if version < 4 else 16 if version < 6 else 24]


def _rules(order: Order, interpreter: Interpreter, version: int) -> list[tuple[str, int]]:
    """(path, rights) of everything the box may open; a folder's rights hold for all below it."""
    everything = _handled(version) & ~(EXECUTE | MAKE_CHAR | MAKE_SOCK | MAKE_FIFO | MAKE_BLOCK | IOCTL_DEVICE)
    rules = [(order.workspace, everything), (order.temporary, everything)]
    rules += [(interpreter.executable, EXECUTE | READ_FILE), (interpreter.stdlib, READ_DIR)]
    rules += [(path, READ) for path in interpreter.stdlib.iterdir() if path.name not in THIRD_PARTY]
    rules += [(path, EXECUTE | READ_FILE) for path in interpreter.libraries]  # the loader is executed
    rules += [(path, READ) for path in order.read_only]
    rules += [(Path(device), READ_FILE | WRITE_FILE) for device in DEVICES]
    return [(str(path), rights if path.is_dir() else rights & FILE_RIGHTS) for path, rights in rules if path.exists()]


def _closed_parent(path: Path) -> Path | None:
    """The first folder above that others may not pass through, or None."""
    return next((folder for folder in path.parents if not folder.stat().st_mode & 0o001), None)


def _alias(interpreter: Interpreter) -> tuple[str, list[str]]:
    """(the folder that holds the whole interpreter, the folders of its own libraries)."""
    prefix = os.path.commonpath([interpreter.executable, interpreter.stdlib])
    own = {str(library.parent) for library in interpreter.libraries if library.is_relative_to(prefix)}
    return prefix, sorted(own)
