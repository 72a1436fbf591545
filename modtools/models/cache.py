"""The folder that keeps what is fetched or measured once: models, and the choice of a number format.

It is the user cache of the operating system; the environment variable MODTOOLS_CACHE moves it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache folder; it need not exist yet."""
    import platformdirs

    moved = os.environ.get("MODTOOLS_CACHE")
    return (
        Path(moved).expanduser().absolute() if moved else Path(platformdirs.user_cache_dir("modtools", appauthor=False))
    )


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
