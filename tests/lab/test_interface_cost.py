"""The interface's cost by surface: parts that fit one another, and a reason where something is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modtools.errors import UsageError
from modtools.lab.choice_entropy import choice_entropy
from modtools.lab.episode import Budget
from modtools.lab.findings import findings, findings_text
from modtools.lab.interface_cost import interface_costs, interface_text
from modtools.lab.own_tasks import read_tasks
from modtools.lab.plan import Plan
from modtools.lab.reference_model import reference_model
from modtools.lab.run import read_run, run
from modtools.sandbox import strongest_level

LEVEL = strongest_level()
PLAN = Plan(strata=(1, 2, 3), per_stratum=2, task_seed=13, budget=Budget(reply_tokens=4000), group=18)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(manifest, records) of the references, as if a model with a vocabulary of 4,096 tokens had played them."""
    out = tmp_path_factory.mktemp("played")
    run(PLAN, reference_model(PLAN, LEVEL), out, LEVEL)
    manifest, records = read_run(out)
    manifest["model"]["info"]["vocabulary"] = 4096
    return out, manifest, records


def test_the_parts_of_eta_fit_one_another(played):
    _, manifest, records = played
    costs = interface_costs(manifest, records, records)
    choice = choice_entropy(PLAN.tasks())
    assert costs["bits_a_token"] == 12 and costs["choice"]["bits"] == choice.bits
    assert set(costs["surfaces"]) == {"coarse", "fine", "code"}
    for name, of in costs["surfaces"].items():
        episodes = [record for record in records if record["surface"] == name]
        call = sum(record["tokens"]["call"] for record in episodes) / len(episodes)
        turns = sum(len(record["turns"]) for record in episodes) / len(episodes)
        assert of["call_tokens"]["value"] == pytest.approx(call)
        assert of["overhead_tokens"]["value"] == pytest.approx(call - choice.bits / 12)
        for charge, eta in zip((1, turns), of["eta"].values(), strict=True):
            bound = charge * of["schema_tokens"] + choice.bits / 12
            assert eta["eta"] == pytest.approx((charge * of["schema_tokens"] + call - bound) / bound)
    json.dumps(costs, allow_nan=False)


def test_what_the_references_tell_is_much_of_kinds_and_little_of_operations(played):
    _, manifest, records = played
    sampled = interface_costs(manifest, records, records)["sampled"]
    assert 2 <= len(sampled) and set(sampled) <= {record["family"] for record in records}  # one call tells nothing
    for of in sampled.values():
        assert of["calls"] == sum(of["kinds"].values())
        assert of["kind"]["bits"] <= 2.33 and of["operation"]["coverage"] < 0.8 and of["operation"]["low"] is None


def test_the_report_shows_it_with_its_warning(played):
    folder, manifest, records = played
    found = findings(folder, manifest, records)
    text = findings_text(found)
    assert "## What the interface cost" in text and "a longer description makes eta smaller" in text
    assert text.count("| fine |") == 1


def test_an_unknown_vocabulary_and_tasks_of_ones_own_are_reasons(played, tmp_path):
    folder, manifest, records = played
    unknown = {**manifest, "model": {**manifest["model"], "info": {}}}
    with pytest.raises(UsageError, match="names no vocabulary"):
        interface_costs(unknown, records)
    assert "names no vocabulary" in interface_text(findings(folder, unknown, records)["interface"])
    plan = Plan(
        own=tuple(read_tasks(Path(__file__).resolve().parents[2] / "course" / "own_tasks")),
        budget=Budget(reply_tokens=4000),
    )
    run(plan, reference_model(plan, LEVEL), tmp_path / "own", LEVEL)
    own, episodes = read_run(tmp_path / "own")
    own["model"]["info"]["vocabulary"] = 4096
    assert "was not generated" in findings(tmp_path / "own", own, episodes)["interface"]["text"]
