"""The workspace: one folder an episode may work in, and nothing outside it.

A path from a model is untrusted text. `canonical` turns it into the one true relative path, links resolved,
before any policy sees it; reading and writing then walk to that path by directory handles and follow no
link, so a link swapped in between check and use leads nowhere. Where the system has no directory handles
(Windows), the path is resolved a second time just before it is opened.
"""

from __future__ import annotations

import os
import stat
import unicodedata
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from modtools.contract import ToolFailure

MAX_READ_BYTES = 10_000_000
MAX_WRITE_CHARS = 1_000_000
MAX_SEARCH_BYTES = 1_000_000
_SKIPPED_FOLDERS = {"__pycache__", ".git"}
_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


@dataclass(frozen=True)
class Workspace:
    """A folder. Paths that go in and out are relative, with forward slashes."""

    root: Path

    def canonical(self, path: str, must_exist: bool = True, where: str = "arguments.path") -> str:
        """The one true path behind what the model wrote.

        Args:
            path: as written by the model.
            must_exist: refuse a path where nothing is.
            where: the argument to name in a failure.

        Returns:
            A relative path with `.` and `..` and links resolved, e.g. "src/a.py".

        Raises:
            ToolFailure: malformed_identifier, outside_workspace or missing_path. A path outside gives the
                same failure whether or not something is there.
        """
        parts = self._parts(path, where)
        root = self.root.resolve()
        resolved = root.joinpath(*parts)
        try:
            resolved = resolved.resolve()
            relative = resolved.relative_to(root)
        except (ValueError, OSError, RuntimeError):  # outside, or a loop of links
            raise _outside(path, where) from None
        if relative == PurePosixPath("."):
            raise ToolFailure(
                "malformed_identifier", f'"{_shown(path)}" is the workspace itself', where, "a file in it"
            )
        spelled = self._as_listed(root, relative.parts)
        if spelled is None and must_exist:
            raise ToolFailure("missing_path", f'there is no "{_shown(path)}"', where, self._hint(parts))
        return "/".join(spelled or relative.parts)

    def read(self, path: str) -> str:
        """The text of a file at a canonical path.

        Raises:
            ToolFailure: missing_path, or precondition_failed for a folder, a huge or a binary file.
        """
        data = self._read_bytes(path)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise ToolFailure("precondition_failed", f'"{path}" is not a text file (UTF-8)', "arguments.path") from None

    def write(self, path: str, content: str) -> None:
        """Create or replace a file at a canonical path; folders on the way are made.

        The new file takes the old one's place in one step, so a hard link to a file elsewhere is left alone.

        Raises:
            ToolFailure: precondition_failed where a folder is in the way or the text is too long.
        """
        if len(content) > MAX_WRITE_CHARS:
            what = f"the content has {len(content)} characters"
            raise ToolFailure("precondition_failed", what, "arguments.content", f"at most {MAX_WRITE_CHARS}")
        try:
            data = content.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolFailure("precondition_failed", "the content is not Unicode text", "arguments.content") from None
        *folders, name = path.split("/")
        part = f".{uuid.uuid4().hex}.part"
        try:
            if not _HANDLES:
                self._write_without_handles(path, part, data)
                return
            folder = self._open_folder(folders, create=True)
            try:
                handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=folder)
                try:
                    with os.fdopen(handle, "wb") as file:
                        file.write(data)
                        with suppress(FileNotFoundError):  # a program stays executable
                            old = os.stat(name, dir_fd=folder, follow_symlinks=False)
                            os.fchmod(handle, 0o644 | (old.st_mode & 0o111 if stat.S_ISREG(old.st_mode) else 0))
                    os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
                except OSError:
                    os.unlink(part, dir_fd=folder)
                    raise
            finally:
                os.close(folder)
        except OSError as error:
            what = f'"{path}" cannot be written ({error.strerror})'
            raise ToolFailure("precondition_failed", what, "arguments.path", "the path of a file") from None

    def files(self) -> list[str]:
        """All regular files, sorted; links, caches and anything that is no file are left out."""
        return sorted(self._walk())

    def text_files(self) -> Iterator[tuple[str, str]]:
        """(path, text) of every file that is text and not huge, sorted by path."""
        for path in self.files():
            try:
                if os.lstat(self.root / path).st_size <= MAX_SEARCH_BYTES:
                    yield path, self.read(path)
            except (ToolFailure, OSError):
                continue

    def _parts(self, path: str, where: str) -> list[str]:
        expected = 'a relative path with forward slashes, e.g. "src/a.py"'
        if not path.strip() or len(path) > 1000 or any(unicodedata.category(c) in ("Cc", "Cs") for c in path):
            raise ToolFailure("malformed_identifier", f'"{_shown(path)}" is not a path', where, expected)
        if "\\" in path:
            raise ToolFailure("malformed_identifier", f'"{_shown(path)}" has a backslash', where, expected)
        if path.startswith(("/", "~")) or (len(path) > 1 and path[1] == ":"):
            raise _outside(path, where)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if any(len(part.encode()) > 255 for part in parts):
            raise ToolFailure("malformed_identifier", f'"{_shown(path)}" has a name too long', where, expected)
        return parts

    def _as_listed(self, root: Path, parts: tuple[str, ...]) -> list[str] | None:
        """The path spelled as the folders list it, or None where it does not exist.

        On a system that ignores case, "README.MD" opens readme.md: policy must see the name that is there.
        """
        spelled: list[str] = []
        for part in parts:
            folder = root.joinpath(*spelled)
            try:
                names = os.listdir(folder)
            except OSError:
                return None
            if part not in names:
                if not os.path.lexists(folder / part):
                    return None
                same = [name for name in names if name.casefold() == part.casefold()]
                part = same[0] if same else part
            spelled.append(part)
        return spelled

    def _hint(self, parts: list[str]) -> str:
        wanted = "/".join(parts).casefold()
        files = self.files()
        near = [f for f in files if f.casefold() == wanted] or [f for f in files if f.split("/")[-1] == parts[-1]]
        if near:
            return f'an existing path, e.g. "{near[0]}"'
        shown = ", ".join(files[:12]) + (", ..." if len(files) > 12 else "")
        return f"an existing path, one of {shown}" if files else "an existing path"

    def _walk(self) -> Iterator[str]:
        for folder, names, files in os.walk(self.root, followlinks=False):
            names[:] = [n for n in names if n not in _SKIPPED_FOLDERS and not os.path.islink(os.path.join(folder, n))]
            for name in files:
                full = os.path.join(folder, name)
                try:
                    name.encode("utf-8")
                    regular = stat.S_ISREG(os.lstat(full).st_mode)
                except (OSError, UnicodeEncodeError):
                    continue
                if regular and not name.endswith(".part"):
                    yield Path(full).relative_to(self.root).as_posix()

    def _read_bytes(self, path: str) -> bytes:
        *folders, name = path.split("/")
        try:
            if _HANDLES:
                folder = self._open_folder(folders)
                try:
                    # O_NONBLOCK: opening a named pipe must not wait for a writer.
                    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
                finally:
                    os.close(folder)
            else:
                handle = os.open(self._checked_again(path), os.O_RDONLY | getattr(os, "O_BINARY", 0))
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise ToolFailure(
                        "precondition_failed", f'"{path}" is not a file', "arguments.path", "the path of a file"
                    )
                if status.st_size > MAX_READ_BYTES:
                    what = f'"{path}" has {status.st_size} bytes'
                    raise ToolFailure("precondition_failed", what, "arguments.path", f"at most {MAX_READ_BYTES}")
                return file.read(MAX_READ_BYTES)
        except OSError as error:
            raise ToolFailure("missing_path", f'"{path}" cannot be read ({error.strerror})', "arguments.path") from None

    def _open_folder(self, folders: list[str], create: bool = False) -> int:
        """A handle on a folder, reached one component at a time without following a link."""
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in folders:
                if create:
                    try:
                        os.mkdir(name, 0o755, dir_fd=handle)
                    except FileExistsError:
                        pass
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
        except OSError:
            os.close(handle)
            raise
        return handle

    def _checked_again(self, path: str) -> Path:
        full = (self.root / path).resolve()
        if not full.is_relative_to(self.root.resolve()):
            raise OSError(0, "the path leads out of the workspace")
        return full

    def _write_without_handles(self, path: str, part: str, data: bytes) -> None:
        full = self._checked_again(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        (full.parent / part).write_bytes(data)
        os.replace(full.parent / part, full)


def _outside(path: str, where: str) -> ToolFailure:
    what = f'"{_shown(path)}" leads out of the workspace'
    return ToolFailure("outside_workspace", what, where, "a path relative to the workspace")


def _shown(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path[:80])
