"""The acceptance criteria are ticked from the run, and the memo is its reader's."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from modtools.cli import app
from modtools.lab.acceptance import DRAFT, FIELDS, MEMO, acceptance, acceptance_text, write_memo
from modtools.lab.episode import Budget
from modtools.lab.findings import findings
from modtools.lab.plan import Plan
from modtools.lab.reference_model import reference_model
from modtools.lab.report import write_report
from modtools.lab.run import read_run, run
from modtools.sandbox import strongest_level

LEVEL = strongest_level()
PLAN = Plan(strata=(1, 2, 3), per_stratum=2, task_seed=21, budget=Budget(reply_tokens=4000), group=6)


@pytest.fixture
def done(tmp_path):
    run(PLAN, reference_model(PLAN, LEVEL), tmp_path / "run", LEVEL)
    return tmp_path / "run"


def ticks(folder, **changed) -> dict[str, bool | None]:
    manifest, records = read_run(folder)
    found = findings(folder, manifest, records) | changed
    return {each.name: each.met for each in acceptance(folder, manifest, records, found)}


def test_a_small_unregistered_run_fails_what_it_fails_and_leaves_open_what_it_cannot_show(done):
    met = ticks(done)
    assert met["at least 60 tasks"] is False and met["the run is whole"] is True
    assert met["the plan was registered, and committed, before the run"] is False
    assert met["pilot and run have no task in common"] is None
    assert met["every task fails before and passes after"] is None and met["a replay gives the same numbers"] is None
    assert met["costs are told by part"] is True and met["the memo has its four fields"] is False
    assert met["at least 5 seeds, or as many as the power simulation asks for"] is False


def test_what_other_commands_write_down_closes_what_was_open(done):
    (done / "checked.json").write_text('{"failures": []}')
    (done / "replayed.json").write_text('{"differences": ["calls was 3 and is now 4"]}')
    met = ticks(done)
    assert met["every task fails before and passes after"] is True and met["a replay gives the same numbers"] is False
    (done / "replayed.json").write_text("{}")
    assert ticks(done)["a replay gives the same numbers"] is False


def test_a_commit_in_the_manifest_is_what_counts(done):
    note = {"hash": "h", "commit": "c" * 40, "registered": "2026-01-01T00:00:00Z"}
    assert ticks(done, registration=note)["the plan was registered, and committed, before the run"] is True
    assert (
        ticks(done, registration={**note, "commit": ""})["the plan was registered, and committed, before the run"]
        is False
    )


def test_a_run_that_stopped_is_not_whole(done):
    lines = (done / "episodes.jsonl").read_text().splitlines(keepends=True)
    (done / "episodes.jsonl").write_text("".join(lines[:-1]))
    assert ticks(done)["the run is whole"] is False


def test_the_memo_is_a_draft_until_its_reader_has_written_it_and_is_never_overwritten(done):
    manifest, records = read_run(done)
    report = write_report(done, manifest, records).read_text()
    memo = (done / MEMO).read_text()
    assert all(f"## {name}" in memo for name in FIELDS) and memo.count(DRAFT) == 4 and "exploratory" in memo
    assert "| criterion |" in report and "still to be written" in report
    (done / MEMO).write_text(memo.replace(DRAFT, "Fine, since"))
    assert ticks(done)["the memo has its four fields"] is True
    write_memo(done, findings(done, manifest, records))
    assert DRAFT not in (done / MEMO).read_text()
    (done / MEMO).write_text("# Memo\n")
    assert ticks(done)["the memo has its four fields"] is False


def test_the_list_reads_met_not_met_and_open(done):
    manifest, records = read_run(done)
    text = acceptance_text(acceptance(done, manifest, records, findings(done, manifest, records)))
    assert "| at least 60 tasks | NOT met | 6 tasks |" in text and "| open |" in text and "| met |" in text


def test_a_replay_is_compared_and_one_altered_reply_is_found(done):
    runner = CliRunner()
    replay = ["lab", "replay", str(done), "--out", str(done.parent / "again"), "--compare", str(done / "replayed.json")]
    same = runner.invoke(app, replay)
    assert same.exit_code == 0 and "the same numbers" in same.output
    assert ticks(done)["a replay gives the same numbers"] is True
    lines = (done / "episodes.jsonl").read_text().splitlines()
    episode = json.loads(lines[0])
    episode["turns"][0]["text"] = '{"finish": true}'
    (done / "episodes.jsonl").write_text("\n".join([json.dumps(episode), *lines[1:]]) + "\n")
    replay[4] = str(done.parent / "altered")
    other = runner.invoke(app, replay)
    assert other.exit_code == 1 and json.loads((done / "replayed.json").read_text())["differences"]
