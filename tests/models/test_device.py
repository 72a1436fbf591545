from __future__ import annotations

import json

import pytest

from modtools.errors import UsageError
from modtools.models.device import choose_device, choose_dtype


def test_the_cpu_dtype_is_measured_once_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("MODTOOLS_CACHE", str(tmp_path / "new"))
    first, why_first = choose_dtype("cpu")
    second, why_second = choose_dtype("cpu")
    assert first == second
    assert "measured now" in why_first and "; remembered in" in why_second
    (path,) = (tmp_path / "new").iterdir()
    (times_ms,) = json.loads(path.read_text("utf-8")).values()
    assert str(first) == "torch." + min(times_ms, key=times_ms.get)


def test_a_damaged_memory_is_measured_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MODTOOLS_CACHE", str(tmp_path))
    (tmp_path / "cpu_dtype.json").write_text("{", "utf-8")
    assert "measured now" in choose_dtype("cpu")[1]
    assert "; remembered in" in choose_dtype("cpu")[1]


def test_what_is_asked_for_is_taken_and_what_is_unknown_refused():
    assert str(choose_dtype("cpu", "float16")[0]) == "torch.float16"
    assert choose_device("cpu")[0] == "cpu"
    with pytest.raises(UsageError, match="'int4'.*float32"):
        choose_dtype("cpu", "int4")
    with pytest.raises(UsageError, match="'tpu'.*cpu"):
        choose_device("tpu")
