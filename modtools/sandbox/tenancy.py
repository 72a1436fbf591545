"""Whose files and processes a box's are: an unprivileged user while it runs, the caller afterwards."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from modtools.errors import UsageError

# Root's boxes take one of these ids at random, so that the kernel counts each box's processes apart. systemd
# lists them as unused (UIDS-GIDS.md); a container that maps fewer ids gives its highest ones.
FIRST_UID, UIDS = 0x70000000, 2**16
DEEPEST, LONGEST = 100, 3000  # folders, bytes of a path; what is nested deeper cannot be deleted by shutil.rmtree


def box_uid() -> int | None:
    """The user id (and group id) to change to, or None for one who is not root or has no other id to take."""
    if os.geteuid() != 0:
        return None
    last = min(_last_mapped("/proc/self/uid_map"), _last_mapped("/proc/self/gid_map"), FIRST_UID + UIDS - 1)
    return last - secrets.randbelow(min(UIDS, last // 2)) if last > 1 else None


def _last_mapped(path: str) -> int:
    """The highest id of this user name space; each line is: first inside, first outside, how many."""
    return max(int(line.split()[0]) + int(line.split()[2]) - 1 for line in Path(path).read_text().splitlines())


@contextmanager
def lent(folders: list[Path], uid: int | None) -> Iterator[None]:
    """Give folders to the box's user, and take them back in a state in which they can be read and deleted."""
    try:
        for folder in folders if uid is not None else ():
            hand_over(folder, uid)
        yield
    finally:
        for folder in folders:
            hand_over(folder, None if uid is None else os.geteuid())


def hand_over(root: Path, uid: int | None) -> None:
    """Make every file and folder the user's (None: leave the owner), readable and writable for its owner.

    No link is followed. FIFOs, sockets and devices are removed, since a reader of one would wait for ever;
    folders nested too deep for deletion are moved up into root.
    """
    names = (root / f"too-deep-{number}" for number in count())
    waiting = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        _own(folder, uid, 0o700)
        if depth > DEEPEST or len(os.fsencode(folder)) > LONGEST:
            folder, depth = folder.rename(next(name for name in names if not os.path.lexists(name))), 1
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), depth + 1))
            elif entry.is_file(follow_symlinks=False):
                _own(Path(entry.path), uid, 0o600)
            elif entry.is_symlink():
                if uid is not None:
                    os.lchown(entry.path, uid, uid)
            else:
                os.unlink(entry.path)


def _own(path: Path, uid: int | None, rights: int) -> None:
    try:
        if uid is not None:
            os.chown(path, uid, uid)
        os.chmod(path, stat.S_IMODE(path.stat().st_mode) & 0o777 | rights)
    except PermissionError as error:
        raise UsageError(
            f"{path}: its owner or mode cannot be changed ({error.strerror}); "
            "use a workspace of your own, on a file system that keeps owners"
        ) from error
