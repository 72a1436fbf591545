"""A run packed for the package comes out the same, and replays to the same numbers, its sub-experiment included."""

from __future__ import annotations

import gzip
import json
import subprocess

import pytest
from typer.testing import CliRunner

from modtools.cli import app
from modtools.errors import MissingPieceError, RecordError
from modtools.lab import recording
from modtools.lab.episode import Budget
from modtools.lab.findings import FAULT_FOLDER
from modtools.lab.plan import Plan
from modtools.lab.recording import pack, shipped_run, unpack
from modtools.lab.reference_model import reference_model
from modtools.lab.registration import read_registration, register
from modtools.lab.run import read_run, run
from modtools.sandbox import strongest_level

LEVEL = strongest_level()
PLAN = Plan(strata=(1, 2, 3), per_stratum=1, task_seed=12, budget=Budget(reply_tokens=4000), group=9)
runner = CliRunner()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """(run folder, packed folder) of a registered run with its sub-experiment."""
    home = tmp_path_factory.mktemp("recording")
    for command in (["init", "-q"], ["config", "user.email", "a@example.org"], ["config", "user.name", "a"]):
        subprocess.run(["git", *command], cwd=home, check=True)
    model = reference_model(PLAN, LEVEL)
    register(PLAN, model, home / "plan", LEVEL)
    registration = read_registration(home / "plan")
    run(PLAN, model, home / "run", LEVEL, registration=registration)
    run(registration.fault_plan, model, home / "run" / FAULT_FOLDER, LEVEL)
    pack(home / "run", home / "shipped" / "confirmatory")
    return home / "run", home / "shipped" / "confirmatory"


def test_what_is_packed_is_small_always_the_same_and_comes_out_whole(packed, tmp_path):
    folder, small = packed
    assert {path.relative_to(small).as_posix() for path in small.rglob("*") if path.is_file()} == {
        "manifest.json", "registration.json", "episodes.jsonl.gz", "fault/manifest.json", "fault/episodes.jsonl.gz",
    }  # fmt: skip
    size = pack(folder, tmp_path / "again")
    assert size == sum(path.stat().st_size for path in small.rglob("*") if path.is_file())
    for path in small.rglob("*.gz"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(small)).read_bytes()
    out = unpack(small, tmp_path / "out")
    assert read_run(out) == read_run(folder) and read_run(out / FAULT_FOLDER) == read_run(folder / FAULT_FOLDER)


def test_the_shipped_run_replays_to_the_same_numbers_and_one_altered_reply_changes_them(packed, tmp_path, monkeypatch):
    folder, small = packed
    monkeypatch.setenv("MODTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recording, "SHIPPED", small.parent)
    replay = ["lab", "replay", "--out", str(tmp_path / "again"), "--compare", str(tmp_path / "compared.json")]
    done = runner.invoke(app, [*replay, "--json", str(tmp_path / "j.json")])
    assert done.exit_code == 0 and "the replay gives the same numbers" in done.output, done.output
    said = json.loads((tmp_path / "j.json").read_text())
    assert said["confirmatory"] and said["recovery"]["injected"]["fine"]["episodes"] == 3

    altered = unpack(small, tmp_path / "altered")
    path = altered / FAULT_FOLDER / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for record in lines:
        if record["surface"] == "fine" and record["stratum"] == 1:
            record["turns"][-2]["text"] = "no call at all"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    other = runner.invoke(
        app, ["lab", "replay", str(altered), "--out", str(tmp_path / "other"), "--compare", str(tmp_path / "c.json")]
    )
    assert other.exit_code == 1
    # What the altered file says of itself was not touched; what the replay makes of its replies is something else.
    assert any(
        "recovery.injected.fine" in line for line in json.loads((tmp_path / "c.json").read_text())["differences"]
    )


def test_a_damaged_file_and_a_foreign_plan_are_named(packed, tmp_path):
    _, small = packed
    broken = tmp_path / "broken"
    unpack(small, broken)
    (broken / "episodes.jsonl").unlink()
    (broken / "episodes.jsonl.gz").write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(RecordError, match="damaged"):
        unpack(broken, tmp_path / "out")
    foreign = unpack(small, tmp_path / "foreign")
    plan = json.loads((foreign / "registration.json").read_text())
    (foreign / "registration.json").write_text(json.dumps({**plan, "fault_seeds": 9}))
    done = runner.invoke(app, ["lab", "replay", str(foreign), "--out", str(tmp_path / "r")])
    assert isinstance(done.exception, RecordError) and "not the plan that the run's manifest names" in str(
        done.exception
    )


def test_a_run_of_other_surfaces_is_not_replayed(packed, tmp_path):
    other = unpack(packed[1], tmp_path / "other")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["pinned"]["surfaces"]["fine"]["digest"] = "0" * 64
    (other / "manifest.json").write_text(json.dumps(manifest))
    done = runner.invoke(app, ["lab", "replay", str(other), "--out", str(tmp_path / "r")])
    assert isinstance(done.exception, RecordError) and "the fine surface is not the one" in str(done.exception)


def test_a_version_without_a_recording_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "SHIPPED", tmp_path / "nothing")
    with pytest.raises(MissingPieceError, match="ships no pilot run.*modtools lab replay RUN"):
        shipped_run("pilot")


def test_a_folder_that_was_left_half_way_is_unpacked_again(packed, tmp_path, monkeypatch):
    monkeypatch.setenv("MODTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(recording, "SHIPPED", packed[1].parent)
    folder = shipped_run()
    (folder / "whole").unlink()
    (folder / "episodes.jsonl").write_text("")
    assert shipped_run() == folder and read_run(folder) == read_run(packed[0])
