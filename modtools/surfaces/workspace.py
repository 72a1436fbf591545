"""The workspace: one folder an episode may work in, and nothing outside it.

A path from a model is untrusted text. `canonical` turns it into the one true relative path, links resolved,
before any policy sees it, and `state` says which file in which folder that was, in which version. Reading and
writing walk to the path by handles, follow no link (see `folder`), and compare what they opened with the state: what
was decided about is what is read or replaced, whatever was swapped in between. Two gaps are left. A change that
leaves size and time of a file as they were is not seen. And no system replaces a file only if it is unchanged, so
between a write's last look and its replacement there are some microseconds.
"""

from __future__ import annotations

import os
import stat
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from modtools.contract import ToolFailure
from modtools.surfaces.folder import ABSENT, HANDLES, Folder, entry_state, is_file

MAX_READ_BYTES = 10_000_000
MAX_WRITE_CHARS = 1_000_000
MAX_SEARCH_BYTES = 1_000_000
_SKIPPED_FOLDERS = {"__pycache__", ".git"}


@dataclass(frozen=True)
class Workspace:
    """A folder. Paths that go in and out are relative, with forward slashes.

    Attributes:
        root: the folder.
        shows: whether a path may be named and its text found by who works here. Policy decides what may be done;
            this keeps the rest out of searches and out of the hints in failures.
    """

    root: Path
    shows: Callable[[str], bool] = lambda path: True

    def canonical(self, path: str, where: str = "arguments.path") -> str:
        """The one true path behind what the model wrote, whether or not something is there.

        Whether there is must not be told before policy has decided.

        Args:
            path: as written by the model.
            where: the argument to name in a failure.

        Returns:
            A relative path with `.` and `..` and links resolved, e.g. "src/a.py".

        Raises:
            ToolFailure: malformed_identifier or outside_workspace.
        """
        parts = self._parts(path, where)
        root = self.root.resolve()
        resolved = root.joinpath(*parts)
        try:
            resolved = resolved.resolve()
            relative = resolved.relative_to(root)
        except (ValueError, OSError, RuntimeError):  # outside, or a loop of links
            raise self._outside(path, where) from None
        if relative == PurePosixPath("."):
            what = f'"{_shown(path)}" is the repository itself'
            raise ToolFailure("malformed_identifier", what, where, self._example(path))
        return "/".join(self._as_listed(root, relative.parts) or relative.parts)

    def state(self, path: str) -> str:
        """Which file stands at a canonical path, and in which version.

        Returns:
            "folder/file": device and inode of the folder; then device, inode, size and time of change of what is
            there, or "absent". Of a path whose folders are missing, the deepest folder that there is counts.

        Raises:
            ToolFailure: precondition_failed where the system does not let us look.
        """
        try:
            folder, names = self._reach(path)
            with folder:
                return _state(folder, names[0])
        except OSError as error:
            what = f'"{path}" cannot be reached ({error.strerror})'
            raise ToolFailure("precondition_failed", what, "arguments.path", "another path") from None

    def read(self, path: str, state: str = "") -> str:
        """The text of a file at a canonical path.

        Args:
            path: canonical.
            state: what `state` said when the call was checked, or "" for a file in any.

        Raises:
            ToolFailure: missing_path; stale_version where the state is another; or precondition_failed for a
                folder, a huge or a binary file.
        """
        data = self._read_bytes(path, state)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            what = f'"{path}" is not a text file (UTF-8)'
            raise ToolFailure("precondition_failed", what, "arguments.path", "a text file") from None

    def write(self, path: str, content: str, state: str = "") -> None:
        """Create or replace a file at a canonical path; folders on the way are made.

        The new file takes the old one's place in one step, so a hard link to a file elsewhere is left alone.

        Args:
            path: canonical.
            content: the whole text.
            state: as in `read`.

        Raises:
            ToolFailure: precondition_failed where a folder is in the way or the text is too long; stale_version.
        """
        if len(content) > MAX_WRITE_CHARS:
            what = f"the content has {len(content)} characters"
            raise ToolFailure("precondition_failed", what, "arguments.content", f"at most {MAX_WRITE_CHARS} characters")
        try:
            data = content.encode("utf-8")
        except UnicodeEncodeError:
            what = "the content holds half of a surrogate pair"
            raise ToolFailure("precondition_failed", what, "arguments.content", "Unicode text") from None
        try:
            folder, names = self._reach(path)
            missing = names[:-1]
            with folder:
                _check(state, _state(folder, names[0]), path)
                there = folder.status(names[0])
                if missing and there is not None:
                    what = f'"{path.removesuffix("/" + "/".join(names[1:]))}" is not a folder'
                    raise ToolFailure("precondition_failed", what, "arguments.path", "a path through folders")
                if there is not None and stat.S_ISDIR(there.st_mode):
                    raise self._is_folder(path)
                for inner in missing:
                    folder.make(inner)
                entry = ABSENT if missing and state else state.rpartition("/")[2]
                self._replace(folder, path, data, entry)
        except OSError as error:
            what = f'"{path}" cannot be written ({error.strerror})'
            raise ToolFailure("precondition_failed", what, "arguments.path", "another path") from None

    def files(self) -> list[str]:
        """All regular files that are shown, sorted; links, caches and anything that is no file are left out."""
        return sorted(path for path in self._walk() if self.shows(path))

    def text_files(self) -> Iterator[tuple[str, str]]:
        """(path, text) of every file that is text and not huge, sorted by path."""
        for path in self.files():
            try:
                if os.lstat(self.root / path).st_size <= MAX_SEARCH_BYTES:
                    yield path, self.read(path)
            except (ToolFailure, OSError):
                continue

    def _parts(self, path: str, where: str) -> list[str]:
        if not path.strip() or len(path) > 1000 or any(unicodedata.category(c) in ("Cc", "Cs") for c in path):
            raise ToolFailure("malformed_identifier", f'"{_shown(path)}" is not a path', where, self._example(path))
        if "\\" in path:
            raise ToolFailure("malformed_identifier", f'"{_shown(path)}" has a backslash', where, 'forward slashes "/"')
        if path.startswith(("/", "~")) or (len(path) > 1 and path[1] == ":"):
            raise self._outside(path, where)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if any(len(part.encode()) > 255 for part in parts):
            raise ToolFailure(
                "malformed_identifier", f'"{_shown(path)}" has a name too long', where, self._example(path)
            )
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

    def _hint(self, path: str) -> str:
        files, name = self.files(), path.split("/")[-1]
        near = [f for f in files if f.casefold() == path.casefold()] or [f for f in files if f.split("/")[-1] == name]
        if near:
            return f'an existing path, e.g. "{near[0]}"'
        shown = ", ".join(files[:12]) + (", ..." if len(files) > 12 else "")
        return f"an existing path, one of {shown}" if files else "an existing path"

    def _example(self, path: str) -> str:
        files = self.files()
        near = [f for f in files if f.split("/")[-1] == path.split("/")[-1]]
        return f'a relative path, e.g. "{[*near, *files, "src/a.py"][0]}"'

    def _outside(self, path: str, where: str) -> ToolFailure:
        what = f'"{_shown(path)}" leads out of the repository'
        return ToolFailure("outside_workspace", what, where, self._example(path))

    def _is_folder(self, path: str) -> ToolFailure:
        inside = next((f for f in self.files() if f.startswith(f"{path}/")), "")
        expected = f'a file in it, e.g. "{inside}"' if inside else "the path of a file"
        return ToolFailure("precondition_failed", f'"{path}" is a folder', "arguments.path", expected)

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

    def _reach(self, path: str) -> tuple[Folder, list[str]]:
        """The deepest folder on the way that is there, and the names that are left; the last is the file's."""
        names = path.split("/")
        folder = Folder(self.root)
        while len(names) > 1:
            try:
                folder.enter(names[0])
            except OSError:
                break
            del names[0]
        return folder, names

    def _read_bytes(self, path: str, state: str) -> bytes:
        try:
            folder, names = self._reach(path)
            *missing, name = names
            with folder:
                _check(state, _state(folder, names[0]), path)
                status = None if missing else folder.status(name)
                if status is None:
                    raise ToolFailure("missing_path", f'there is no "{path}"', "arguments.path", self._hint(path))
                if stat.S_ISDIR(status.st_mode):
                    raise self._is_folder(path)
                if not is_file(status):
                    what = f'"{path}" is not a file'
                    raise ToolFailure("precondition_failed", what, "arguments.path", "the path of a file")
                if status.st_size > MAX_READ_BYTES:
                    what = f'"{path}" has {status.st_size} bytes'
                    expected = f"a file of at most {MAX_READ_BYTES} bytes"
                    raise ToolFailure("precondition_failed", what, "arguments.path", expected)
                with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
                    data = file.read(MAX_READ_BYTES)
                    # After reading, so that a change meanwhile is seen too.
                    _check(state.rpartition("/")[2], entry_state(folder.opened(file.fileno(), name)), path)
                    return data
        except OSError as error:
            what = f'"{path}" cannot be read ({error.strerror})'
            raise ToolFailure("missing_path", what, "arguments.path", "another file") from None

    def _replace(self, folder: Folder, path: str, data: bytes, entry: str) -> None:
        """Write beside the file, look a last time whether it is as it was, and put the new one in its place."""
        name, part = path.split("/")[-1], f".{uuid.uuid4().hex}.part"
        try:
            with os.fdopen(folder.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(data)
                old = folder.status(name)
                if is_file(old) and HANDLES:  # a program stays executable
                    os.fchmod(file.fileno(), 0o644 | (old.st_mode & 0o111))
            _check(entry, entry_state(folder.status(name)), path)
            folder.replace(part, name)
        except (OSError, ToolFailure):
            with suppress(FileNotFoundError):
                folder.remove(part)
            raise


def _state(folder: Folder, name: str) -> str:
    return f"{folder.identity}/{entry_state(folder.status(name))}"


def _check(checked: str, now: str, path: str) -> None:
    """Compare two states; "" is any."""
    if checked not in ("", now):
        what = f'the file "{path}" changed since the call was checked'
        raise ToolFailure("stale_version", what, "arguments.path", "the same call again, after a look at the file")


def _shown(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path[:80])
