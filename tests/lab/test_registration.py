"""Registering a plan, running it, and what the report may then say."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from modtools.cli import app
from modtools.errors import RecordError
from modtools.lab.episode import Budget
from modtools.lab.findings import FAULT_FOLDER, findings, findings_text
from modtools.lab.plan import Plan
from modtools.lab.reference_model import reference_model
from modtools.lab.registration import NAME, read_registration, register
from modtools.lab.report import write_report
from modtools.lab.run import read_run, run
from modtools.sandbox import strongest_level

LEVEL = strongest_level()
PLAN = Plan(strata=(1, 2, 3), per_stratum=2, task_seed=11, budget=Budget(reply_tokens=4000), group=6)


@pytest.fixture(scope="module")
def model():
    return reference_model(PLAN, LEVEL)


@pytest.fixture(scope="module")
def done(tmp_path_factory, model):
    """(registration, run folder): registered in git, then run with its sub-experiment."""
    home = tmp_path_factory.mktemp("registered")
    for command in (["init", "-q"], ["config", "user.email", "a@example.org"], ["config", "user.name", "a"]):
        subprocess.run(["git", *command], cwd=home, check=True)
    register(PLAN, model, home / "plan", LEVEL)
    subprocess.run(["git", "add", "."], cwd=home, check=True)
    subprocess.run(["git", "commit", "-qm", "The plan"], cwd=home, check=True)
    registration = read_registration(home / "plan")
    run(registration.plan, model, home / "run", LEVEL, registration=registration)
    run(registration.fault_plan, model, home / "run" / FAULT_FOLDER, LEVEL)
    return registration, home / "run"


def test_a_registered_plan_is_the_plan_its_commit_and_its_hash(done):
    registration, folder = done
    assert registration.plan == PLAN and len(registration.commit) == 40 and len(registration.hash) == 64
    manifest, _ = read_run(folder)
    assert manifest["confirmatory"] and manifest["registration"] == registration.note()
    text = (registration.folder / "registration.md").read_text()
    assert all(word in text for word in ("H1", "H4", "Holm", "separated", "smallest effect"))


def test_the_report_of_a_registered_run_is_confirmatory_and_names_plan_and_verdicts(done, model):
    registration, folder = done
    manifest, records = read_run(folder)
    found = findings(folder, manifest, records)
    assert found["confirmatory"] and found["deviations"] == []
    assert {each["verdict"] for each in found["hypotheses"].values()} <= {
        "supported",
        "contradicted",
        "undecided",
        "not tested",
    }
    assert found["hypotheses"]["H3"]["effect"]["n"] == 6  # from the sub-experiment
    text = write_report(folder, manifest, records).read_text()
    assert "Confirmatory" in text and registration.hash in text and registration.commit in text
    assert set(found["recovery"]["injected"]) == {"coarse", "fine", "code"}


def test_without_a_registration_nothing_is_confirmatory(model, tmp_path):
    run(PLAN, model, tmp_path, LEVEL)
    manifest, records = read_run(tmp_path)
    found = findings(tmp_path, manifest, records)
    assert not found["confirmatory"] and found["registration"] is None
    assert {each["verdict"] for each in found["hypotheses"].values()} == {"exploratory"}
    text = write_report(tmp_path, manifest, records).read_text()
    assert "onfirmatory" not in text and "Exploratory" in text


def test_a_run_that_deviates_says_in_what_and_is_not_confirmatory(done):
    _, folder = done
    manifest, records = read_run(folder)
    other = json.loads(json.dumps(manifest))
    other["pinned"]["plan"]["temperature"] = 0.9
    for changed, rest, word in (
        (manifest, records[:-1], "17 of 18 episodes"),
        (other, records, "temperature was 0.0 and is now 0.9"),
    ):
        found = findings(folder, changed, rest)
        assert not found["confirmatory"] and word in " ".join(found["deviations"])
        assert word in findings_text(found) and "deviates" in findings_text(found)


def test_a_manifest_that_only_claims_to_be_confirmatory_is_not(model, tmp_path):
    run(PLAN, model, tmp_path, LEVEL)
    manifest, records = read_run(tmp_path)
    assert not findings(tmp_path, {**manifest, "confirmatory": True}, records)["confirmatory"]


def test_without_git_the_hash_file_stands(model, tmp_path):
    made = register(PLAN, model, tmp_path / "plan", LEVEL)
    assert made.commit == "" and (tmp_path / "plan" / "registration.sha256").read_text().strip() == made.hash


def test_a_registration_that_was_changed_or_exists_is_refused(model, tmp_path):
    made = register(PLAN, model, tmp_path, LEVEL)
    with pytest.raises(RecordError, match="never overwritten"):
        register(PLAN, model, tmp_path, LEVEL)
    data = {**made.data, "hypotheses": []}
    (tmp_path / NAME).write_text(json.dumps(data))
    with pytest.raises(RecordError, match="not the plan that was registered"):
        read_registration(tmp_path)


def test_pilot_and_plan_share_no_task_and_the_pilot_gives_the_power(model, done, tmp_path):
    _, folder = done
    manifest, records = read_run(folder)
    with pytest.raises(RecordError, match="run on tasks of the plan"):
        register(PLAN, model, tmp_path / "same", LEVEL, records, list(manifest["pinned"]["tasks"]))
    made = register(replace(PLAN), model, tmp_path / "other", LEVEL, records, ["rename-3-9999"])
    assert {each["hypothesis"] for each in made.data["power"]} == {"H1", "H2", "H4"}


def test_a_registered_run_brings_its_sub_runs_and_their_figures(tmp_path):
    runner = CliRunner()
    plan = [
        "lab",
        "preregister",
        "--model",
        "scripted",
        "--per-stratum",
        "2",
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "p"),
    ]
    assert runner.invoke(app, plan).exit_code == 0
    out = tmp_path / "run"
    args = ["lab", "run", "--registered", str(tmp_path / "p"), "--model", "scripted", "--out", str(out)]
    done = runner.invoke(app, [*args, "--json", str(tmp_path / "j.json")])
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "j.json").read_text())
    # The references play themselves, so their own costs are the run's, but for the end that each reply counts more.
    mine, theirs = said["crossover"]["curves"], said["reference_crossover"]["curves"]
    assert all(theirs[name] == pytest.approx(mine[name], rel=0.02) for name in ("code", "fine"))
    assert len(read_run(out / "reference")[1]) == len(read_run(out / FAULT_FOLDER)[1]) == 30
    report = (out / "report.md").read_text()
    for name in ("interaction", "crossover", "recovery"):
        assert (out / "figures" / f"{name}.png").stat().st_size > 5000 and f"figures/{name}.png" in report
    families = {task.rsplit("-", 2)[0] for task in read_run(out)[0]["pinned"]["tasks"]}
    assert "Success by family" in report and all(f"| {family} |" in report for family in families)
