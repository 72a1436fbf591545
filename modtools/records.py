"""Records on disk: append-only JSON lines that survive kill -9, and whole-file writes that cannot be half done."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from modtools.errors import RecordError


def append_line(path: Path, record: Mapping[str, Any]) -> bytes:
    """Append one JSON line to a file, whole or not at all; see `LineFile`."""
    with LineFile(path) as file:
        return file.append(record)


class LineFile:
    """A file of JSON lines that is appended to, open from the first line on.

    A line goes out in one write. Where the disk takes only part of it, the part is cut off again; where the
    process dies within the write, `whole_lines` and the next one to open the file drop the torn end.
    """

    def __init__(self, path: Path):
        self.path = os.fspath(path)
        self._handle, self._identity = -1, (0, 0)

    def append(self, record: Mapping[str, Any], at: int | None = None) -> bytes:
        """Append one record and return its line without the newline.

        Args:
            record: a JSON object.
            at: how many bytes the file must have, for who may be the only one to write to it; None: any number.

        Raises:
            RecordError: where the line cannot be written whole, or the file has another size.
        """
        data = (json.dumps(record, separators=(",", ":")) + "\n").encode("ascii")
        try:
            size = self._open()
            if at not in (None, size):
                raise RecordError(f"{self.path} has {size} bytes where {at} were written: somebody else changed it")
            written = os.write(self._handle, data)
            if written < len(data):
                os.ftruncate(self._handle, size)
        except OSError as error:
            self.close()  # and if part of it is there, the next to open the file drops it
            raise RecordError(f"cannot write a line of {len(data)} bytes to {self.path}: {error}") from error
        if written < len(data):
            raise RecordError(f"{self.path} took {written} of {len(data)} bytes (disk full?); the line was taken back")
        return data[:-1]

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> LineFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self):
        self.close()

    def _open(self) -> int:
        """See that what we hold open is what stands at the path, and return its size."""
        if self._handle >= 0:
            with suppress(OSError):
                status, ours = os.stat(self.path), os.fstat(self._handle)
                if (status.st_dev, status.st_ino) == self._identity == (ours.st_dev, ours.st_ino):
                    return status.st_size
                if (ours.st_dev, ours.st_ino) != self._identity:
                    self._handle = -1  # somebody closed our handle, and its number is another file's now
            self.close()  # it was removed or replaced: what we would write would be lost
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        size = _cut_torn_end(self._handle)
        status = os.fstat(self._handle)
        self._identity = (status.st_dev, status.st_ino)
        return size


def _cut_torn_end(handle: int) -> int:
    """Cut what stands behind the last newline, and return the size left."""
    size = os.lseek(handle, 0, os.SEEK_END)
    if size and os.lseek(handle, size - 1, os.SEEK_SET) and os.read(handle, 1) == b"\n":
        return size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        os.lseek(handle, start, os.SEEK_SET)
        block = os.read(handle, end - start)
        newline = block.rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(handle, end)
    os.lseek(handle, 0, os.SEEK_END)
    return end


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file without their newlines; a torn last line is left out, a missing file is empty."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error}") from error
    return data.split(b"\n")[:-1]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a JSON-lines file.

    Raises:
        RecordError: for a line that is no JSON object, naming file and line.
    """
    records = []
    for number, line in enumerate(whole_lines(path), 1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise RecordError(
                f"{path}, line {number}: expected a JSON object, got {line[:60]!r}; mend or remove the line"
            )
        records.append(record)
    return records


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    A link is followed. What is no regular file, such as /dev/stdout, is written to and never replaced.

    Raises:
        RecordError: where it cannot be written; the old file is then untouched.
    """
    path, data = Path(path), content.encode("utf-8") if isinstance(content, str) else content
    part = None
    try:
        if path.exists() and not path.is_file():  # asked before the link is followed: that to a pipe leads nowhere
            path.write_bytes(data)
            return
        path = path.resolve()
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part and part.unlink()
        raise RecordError(f"cannot write {path}: {error}") from error


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file with `write_whole`, indented for people."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        RecordError: where it is missing or not JSON in the strict sense: no key twice, no NaN.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except FileNotFoundError:
        raise RecordError(f"{path} does not exist") from None
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error}") from error
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise RecordError(f"{path} is nested too deeply to be read") from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    twice = repeated_key(pairs)
    if twice is not None:
        raise ValueError(f"the key {twice!r} stands twice in an object")
    return dict(pairs)


def repeated_key(pairs: Sequence[tuple[str, Any]]) -> str | None:
    """The first key of a JSON object that stands in it twice, None where there is none."""
    names = [name for name, _ in pairs]
    return next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
