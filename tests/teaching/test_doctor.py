"""The doctor: every finding says what was found and what to do, whatever the machine lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modtools.sandbox import available_levels
from modtools.teaching.doctor import checks

ROOT = Path(__file__).resolve().parents[2]

NAMES = ["python", "machine", "torch", "gpu", "dtype", "sandbox", "cache", "model", "kernel"]


def test_every_check_has_a_finding_and_advice():
    found = checks()
    assert [check.name for check in found] == NAMES
    assert all(check.value and check.advice for check in found)
    assert [check.value for check in found if "could not be looked at" in check.value] == []


def test_an_empty_cache_is_found_and_the_command_that_fills_it_is_named(tmp_path):
    file = tmp_path / "doctor.json"
    command = [sys.executable, "-c", "from modtools.cli import main; main()", "doctor", "--json", str(file)]
    environment = {**os.environ, "MODTOOLS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    findings = {check["name"]: check for check in json.loads(file.read_text(encoding="utf-8"))["checks"]}
    assert result.returncode == 1
    assert not findings["model"]["ok"] and "modtools model fetch" in findings["model"]["advice"]
    assert str(tmp_path / "cache") in findings["cache"]["value"]


def test_a_missing_torch_is_advice_not_a_crash():
    code = (
        "import sys; sys.modules['torch'] = None; from modtools.teaching.doctor import checks; "
        "print([check.advice for check in checks() if check.name == 'torch'])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pip install torch" in result.stdout


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_every_box_starts(need, level):
    reason = available_levels()[level]
    need(reason == "", f"{level}: {reason}")
