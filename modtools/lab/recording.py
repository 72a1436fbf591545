"""Runs of the lab as they are shipped in the package: packed small, and unpacked to be read or replayed.

There are two: the confirmatory run, and the pilot from which its plan was made.

Every reply of the model is in it, word for word, so that whoever has no hours to spare can put the very same texts
through extraction, pipeline and verifier again.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from modtools.errors import MissingPieceError, RecordError
from modtools.lab.findings import FAULT_FOLDER, REFERENCE_FOLDER
from modtools.lab.registration import NAME
from modtools.lab.run import read_run
from modtools.models.cache import cache_dir
from modtools.records import write_whole

SHIPPED = Path(__file__).with_name("recordings")
CONFIRMATORY, PILOT = "confirmatory", "pilot"
_NEEDED = ("manifest.json", "episodes.jsonl")
_EPISODES = "episodes.jsonl"


def pack(run_folder: Path, target: Path) -> int:
    """Copy a run, its registration and its sub-runs into a folder, the episodes compressed.

    Returns:
        Bytes written.

    Raises:
        RecordError: where it is no run folder.
    """
    run_folder, target = Path(run_folder), Path(target)
    read_run(run_folder)
    kept = [Path(name) for name in (*_NEEDED, NAME)]
    kept += [Path(folder, name) for folder in (FAULT_FOLDER, REFERENCE_FOLDER) for name in _NEEDED]
    size = 0
    for name in kept:
        source = run_folder / name
        if not source.exists():
            continue
        data = source.read_bytes()
        if name.name == _EPISODES:
            name, data = name.with_suffix(".jsonl.gz"), gzip.compress(data, mtime=0)
        write_whole(target / name, data)
        size += len(data)
    return size


def unpack(packed: Path, folder: Path) -> Path:
    """Write a packed run out as a run folder.

    Raises:
        RecordError: where a file of it is damaged.
    """
    packed, folder = Path(packed), Path(folder)
    for source in sorted(path for path in packed.rglob("*") if path.is_file()):
        name, data = source.relative_to(packed), source.read_bytes()
        if name.suffix == ".gz":
            try:
                name, data = name.with_suffix(""), gzip.decompress(data)
            except (OSError, EOFError) as error:
                raise RecordError(f"{source} is damaged ({error}); install modtools again") from None
        write_whole(folder / name, data)
    return folder


def shipped_run(name: str = CONFIRMATORY) -> Path:
    """A shipped run as a run folder in the cache, unpacked once for each content of the package.

    Raises:
        MissingPieceError: where this version ships none of that name.
    """
    packed = SHIPPED / name
    files = sorted(path for path in packed.rglob("*") if path.is_file()) if packed.is_dir() else []
    if not files:
        raise MissingPieceError(
            f"this version of modtools ships no {name} run; replay one of yours: modtools lab replay RUN --out DIR"
        )
    content = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    folder = cache_dir() / "recordings" / f"{name}-{content}"
    return folder if (folder / "whole").exists() else _unpacked(packed, folder)


def _unpacked(packed: Path, folder: Path) -> Path:
    unpack(packed, folder)
    write_whole(folder / "whole", "")  # written last: a folder without it was left half way
    return folder
