"""A folder of the workspace, held open, so that what is done in it is done in this very folder.

The folder is reached by directory handles, one component at a time, and no link is followed: whatever is swapped
for a part of the path meanwhile, the handle stays where it is. Where the system has no directory handles
(Windows), the folder's path is resolved when it is entered, must lie in the workspace, and is used as it is; a
folder that is swapped after that is seen only where states are compared, not by the opening itself.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Self

HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
ABSENT = "absent"
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class Folder:
    """One folder; a context manager that lets go of it at the end."""

    def __init__(self, root: Path):
        """Enter the root of a workspace.

        Raises:
            OSError: where it is gone.
        """
        self._path = Path(root) if HANDLES else Path(root).resolve()
        self._handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY) if HANDLES else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def enter(self, name: str) -> None:
        """Go on to a folder in this one.

        Raises:
            OSError: where there is none, or a link or a file.
        """
        if self._handle is not None:
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=self._handle)
            os.close(self._handle)
            self._handle = inner
            return
        path = (self._path / name).resolve()
        if path != self._path / name or not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        self._path = path

    def make(self, name: str) -> None:
        """Make a folder in this one, where there is none, and go on to it."""
        try:
            os.mkdir(self._at(name), 0o755, dir_fd=self._handle)
        except FileExistsError:
            pass
        self.enter(name)

    @property
    def identity(self) -> str:
        """Device and inode: which folder this is, whatever its name."""
        status = os.stat(self._path) if self._handle is None else os.fstat(self._handle)
        return f"{status.st_dev}:{status.st_ino}"

    def status(self, name: str) -> os.stat_result | None:
        """What stands there, not following a link, or None."""
        try:
            return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int) -> int:
        """A handle on a regular file in it; a named pipe does not wait for its other end.

        Raises:
            OSError: for a link and anything else that is no file.
        """
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        if self._handle is None and os.path.islink(self._path / name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        handle = os.open(self._at(name), flags, 0o644, dir_fd=self._handle)
        if not is_file(os.fstat(handle)):
            os.close(handle)
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return handle

    def opened(self, handle: int, name: str) -> os.stat_result | None:
        """The status of a file that is open.

        Without directory handles it is asked for by name: Windows numbers devices differently for open files,
        and lets nobody replace a file that is open.
        """
        return self.status(name) if self._handle is None else os.fstat(handle)

    def replace(self, part: str, name: str) -> None:
        """Put one file in the place of another, in one step."""
        os.replace(self._at(part), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name), dir_fd=self._handle)

    def _at(self, name: str) -> str | Path:
        return self._path / name if self._handle is None else name


def entry_state(status: os.stat_result | None) -> str:
    """A version of what stands at a name: device, inode, size in bytes, time of the last change in ns; or "absent"."""
    if status is None:
        return ABSENT
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def is_file(status: os.stat_result | None) -> bool:
    """Whether it is a regular file: no folder, link, pipe or device."""
    return status is not None and stat.S_ISREG(status.st_mode)
