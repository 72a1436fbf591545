"""Running a plan: resumable after any death, pinned by its manifest, and the same when replayed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modtools.errors import RecordError, UsageError
from modtools.lab.episode import TOKEN_PARTS, Budget
from modtools.lab.plan import Plan, plan_of
from modtools.lab.reference_model import reference_model
from modtools.lab.report import summary
from modtools.lab.run import key_of, read_run, run
from modtools.models import load_model
from modtools.models.scripted import ScriptedModel
from modtools.sandbox import strongest_level

ROOT = Path(__file__).resolve().parents[2]
# A small tokenizer-free run; replies are long in its own tokens, hence the room.
PLAN = Plan(per_stratum=1, task_seed=7, budget=Budget(reply_tokens=2000), group=4)


@pytest.fixture(scope="module")
def level() -> str:
    return strongest_level()


@pytest.fixture(scope="module")
def model(level):
    return reference_model(PLAN, level)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, model, level) -> Path:
    """A run folder with every episode of PLAN."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    run(PLAN, model, out, level)
    return out


def numbers(folder: Path) -> dict:
    """Everything a report says but the model's name."""
    return {key: value for key, value in summary(*read_run(folder)).items() if key != "model"}


def keys(folder: Path) -> list[tuple]:
    return sorted(key_of(record) for record in read_run(folder)[1])


def test_the_references_solve_every_task_on_every_surface(finished):
    _, records = read_run(finished)
    assert len(records) == 15 and all(record["success"] for record in records)
    assert {record["ended_by"] for record in records} == {"finish"}
    for record in records:
        if record["surface"] != "code":
            assert record["calls"] == record["stratum"]


def test_a_record_has_the_promised_fields_and_its_cost_parts_sum(finished):
    for record in read_run(finished)[1]:
        assert set(record) >= {
            "arm",
            "task",
            "surface",
            "seed",
            "stratum",
            "success",
            "ended_by",
            "calls",
            "tokens",
            "outcomes",
        }
        assert tuple(record["tokens"]) == TOKEN_PARTS
        used = sum(t["usage"]["prompt_tokens"] + t["usage"]["completion_tokens"] for t in record["turns"])
        assert sum(record["tokens"].values()) == used


def test_every_call_has_one_terminal_line_in_the_audit(finished):
    lines = [json.loads(line) for line in (finished / "audit" / "audit.jsonl").read_text().splitlines()]
    terminal = [line["request"] for line in lines if line["event"] == "terminal"]
    turns = sum(len(record["turns"]) for record in read_run(finished)[1])
    assert len(terminal) == len(set(terminal)) == turns
    assert {line["request"] for line in lines} == set(terminal)


def test_a_finished_run_is_left_as_it_is(finished, model, level):
    before = (finished / "episodes.jsonl").read_bytes()
    asked = ScriptedModel(lambda messages: pytest.fail("a finished run asked the model"))
    asked.digest, asked.name = model.digest, model.name
    run(PLAN, asked, finished, level)
    assert (finished / "episodes.jsonl").read_bytes() == before


def test_a_replay_gives_the_same_numbers_and_one_altered_reply_changes_them(finished, level, tmp_path):
    again = tmp_path / "again"
    run(plan_of(read_run(finished)[0]), load_model(f"replay:{finished}"), again, level)
    assert numbers(again) == numbers(finished)

    altered = tmp_path / "altered"
    altered.mkdir()
    (altered / "manifest.json").write_bytes((finished / "manifest.json").read_bytes())
    lines = (finished / "episodes.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["turns"][0]["text"] = first["turns"][0]["text"].replace('"name"', '"nome"')
    (altered / "episodes.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    run(PLAN, load_model(f"replay:{altered}"), tmp_path / "third", level)
    assert numbers(tmp_path / "third") != numbers(finished)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("after_lines", [0, 1, 6])
def test_killed_at_any_point_the_same_command_goes_on(after_lines, finished, tmp_path):
    program = (
        "from tests_plan import *\n"
        "run(PLAN, reference_model(PLAN, strongest_level()), Path(sys.argv[1]), strongest_level())\n"
    )
    (tmp_path / "tests_plan.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom modtools.lab.plan import Plan\nfrom modtools.lab.run import run\n"
        "from modtools.lab.episode import Budget\nfrom modtools.lab.reference_model import reference_model\n"
        "from modtools.sandbox import strongest_level\n"
        "PLAN = Plan(per_stratum=1, task_seed=7, budget=Budget(reply_tokens=2000), group=4)\n"
    )
    out = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    process = subprocess.Popen([sys.executable, "-c", program, str(out)], env=environment)
    episodes = out / "episodes.jsonl"
    while process.poll() is None:
        written = episodes.read_bytes().count(b"\n") if episodes.exists() else 0
        if (out / "manifest.json").exists() and written >= after_lines:
            process.kill()
            break
        time.sleep(0.005)
    process.wait()
    with open(episodes, "ab") as file:  # as if the kill had torn the line being written
        file.write(b'{"arm": "torn')
    assert len(read_run(out)[1]) < 15
    subprocess.run([sys.executable, "-c", program, str(out)], env=environment, check=True)
    assert keys(out) == keys(finished)
    assert numbers(out) == numbers(finished)
    # The audit closed what the dead process had left open.
    lines = [json.loads(line) for line in (out / "audit" / "audit.jsonl").read_text().splitlines()]
    terminal = [line["request"] for line in lines if line["event"] == "terminal"]
    assert len(terminal) == len(set(terminal)) and {line["request"] for line in lines} == set(terminal)


def test_a_folder_with_another_run_is_refused_and_untouched(finished, model, level):
    before = (finished / "episodes.jsonl").read_bytes()
    with pytest.raises(RecordError, match="temperature was 0.0 and is now 0.5"):
        run(Plan(**{**vars(PLAN), "temperature": 0.5}), model, finished, level)
    assert (finished / "episodes.jsonl").read_bytes() == before


def test_a_folder_in_use_is_refused(finished, model, level):
    from filelock import FileLock

    with FileLock(finished / ".lock"), pytest.raises(RecordError, match="in use"):
        run(PLAN, model, finished, level)


def test_a_model_that_only_talks_is_ended_by_its_budget_and_scores_nothing(tmp_path, level):
    talker = ScriptedModel(lambda messages: "I would first look at the file.", name="talker")
    records = run(Plan(surfaces=("fine",), per_stratum=1), talker, tmp_path, level)
    assert {(r["ended_by"], r["budget_part"], r["success"]) for r in records} == {
        ("budget", "failures_in_a_row", False)
    }
    assert all(r["codes"] == {"none_found": 3} and r["stages"] == {"extract": 3} for r in records)


def test_a_model_that_calls_for_ever_is_ended_by_its_turns(tmp_path, level):
    reader = ScriptedModel(lambda messages: '{"name": "search_files", "arguments": {"pattern": "def "}}', name="reader",
                           context_tokens=10**6)  # fmt: skip
    records = run(Plan(surfaces=("fine",), per_stratum=1), reader, tmp_path, level)
    assert [r["calls"] for r in records] == [Budget().turns(c) for c in (1, 2, 3, 5, 8)]
    assert {r["budget_part"] for r in records} == {"turns"}


def test_a_full_context_ends_only_the_episode_it_belongs_to(tmp_path, level):
    reader = ScriptedModel(
        lambda messages: '{"name": "search_files", "arguments": {"pattern": "def "}}', name="small", context_tokens=2600
    )
    records = run(Plan(surfaces=("fine",), per_stratum=1, budget=Budget(reply_tokens=40)), reader, tmp_path, level)
    assert len(records) == 5 and {r["ended_by"] for r in records} == {"context_exhausted"}
    assert not any(r["success"] for r in records)


def test_each_turn_has_a_generator_of_its_own_key(level):
    """No neighbour and no resume can shift an episode's randomness."""
    from modtools.lab.episode import Job, Setting, _Episode
    from modtools.pipeline import AuditLog
    from modtools.surfaces import build_surface

    setting = Setting("arm", 1.0, Budget(), level, {"fine": 1})
    task = PLAN.tasks()[0]

    def first_draw(seed: int) -> float:
        episode = _Episode(Job(task, build_surface("fine"), seed), setting, AuditLog(), "try")
        try:
            return episode.request().rng.random()
        finally:
            episode.close()

    assert first_draw(0) == first_draw(0) != first_draw(1)


@pytest.mark.parametrize("fields", [{"per_stratum": 0}, {"seeds": 0}, {"surfaces": ()}, {"surfaces": ("fine", "fine")},
                                    {"temperature": -1}, {"temperature": float("nan")}])  # fmt: skip
def test_a_plan_that_makes_no_sense_is_a_usage_error(fields):
    with pytest.raises(UsageError):
        Plan(**fields)


def test_tasks_that_can_no_longer_be_made_are_said(finished):
    manifest, _ = read_run(finished)
    name = next(iter(manifest["pinned"]["tasks"]))
    manifest["pinned"]["tasks"][name] = "0" * 64
    with pytest.raises(RecordError, match=f"generator has changed.*{name}"):
        plan_of(manifest)


def test_the_real_model_runs_the_lab(tmp_path, level):
    """One stratum of the quick preset on the embedded model: short replies, since only the plumbing is asked about."""
    embedded = load_model("embedded")
    plan = Plan(surfaces=("coarse",), per_stratum=1, budget=Budget(reply_tokens=8, failures_in_a_row=1))
    records = run(plan, embedded, tmp_path, level)
    assert len(records) == 5 and all(r["turns"][0]["usage"]["completion_tokens"] <= 8 for r in records)
    assert all(sum(t["tokens"].values()) == t["usage"]["prompt_tokens"] + t["usage"]["completion_tokens"]
               for r in records for t in r["turns"])  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_stops_the_command_cleanly_and_it_goes_on(tmp_path):
    out = tmp_path / "run"
    command = [sys.executable, "-c", "from modtools.cli import main; main()", "lab", "run", "--model", "scripted",
               "--per-stratum", "1", "--out", str(out)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )  # fmt: skip
    while not (out / "audit" / "audit.jsonl").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "the same command goes on" in said and "Traceback" not in errors
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert len(read_run(out)[1]) == 15


def copied(finished: Path, to: Path, lines: int = 15) -> Path:
    """A copy of a finished run that holds only its first lines."""
    to.mkdir()
    (to / "manifest.json").write_bytes((finished / "manifest.json").read_bytes())
    whole = (finished / "episodes.jsonl").read_text().splitlines(keepends=True)
    (to / "episodes.jsonl").write_text("".join(whole[:lines]))
    return to


def test_lines_that_are_no_episodes_of_this_run_are_refused_by_number(finished, model, level, tmp_path):
    first = json.loads((finished / "episodes.jsonl").read_text().splitlines()[0])
    bad = {
        "foreign task": {**first, "task": "rename-3-9999"},
        "foreign surface": {**first, "surface": "medium"},
        "foreign seed": {**first, "seed": 7},
        "foreign arm": {**first, "arm": "other"},
        "no turns": {name: value for name, value in first.items() if name != "turns"},
        "doubled": first,
    }
    for name, line in bad.items():
        folder = copied(finished, tmp_path / name, 3)
        with open(folder / "episodes.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        for act in (lambda: read_run(folder), lambda: run(PLAN, model, folder, level)):
            with pytest.raises(RecordError, match="line 4"):
                act()


@pytest.mark.parametrize("manifest", ["{}", "[]", "rubbish", '{"arm": "a"}'])
def test_a_folder_whose_manifest_is_none_is_refused(finished, manifest, tmp_path):
    folder = copied(finished, tmp_path / "run")
    (folder / "manifest.json").write_text(manifest)
    with pytest.raises(RecordError, match="manifest.json"):
        read_run(folder)


def test_what_is_in_the_way_is_a_record_error(finished, model, level, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be a run folder"):
        run(PLAN, model, tmp_path / "file", level)
    with pytest.raises(RecordError):
        read_run(tmp_path / "file")
    folder = copied(finished, tmp_path / "run", 2)
    (folder / "audit").mkdir()
    (folder / "audit" / "audit.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(RecordError, match="cannot be carried on"):
        run(PLAN, model, folder, level)


def test_another_version_of_anything_that_counts_is_another_run(finished, model, level, tmp_path):
    folder = copied(finished, tmp_path / "run", 3)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["pinned"]["versions"]["numpy"] = "0.1"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RecordError, match="versions.numpy was '0.1'"):
        run(PLAN, model, folder, level)


def test_a_resumed_run_removes_what_a_dead_process_left_behind(finished, model, level, tmp_path):
    import tempfile

    from modtools.contract import digest

    folder = copied(finished, tmp_path / "run", 14)
    left = Path(tempfile.gettempdir()) / f"modtools-run-{digest(str(folder.resolve()))[:12]}-dead"
    left.mkdir()
    run(PLAN, model, folder, level)
    assert not left.exists() and keys(folder) == keys(finished)


def test_a_program_that_leaves_an_untestable_package_fails_its_task_and_not_the_run(tmp_path, level):
    """A folder where a file was expected, a file where the package was, and a package nested very deep."""
    from modtools.pipeline import FINISH

    programs = [
        "import os, glob\np = glob.glob('*/__init__.py')[0]\nos.remove(p); os.mkdir(p)",
        "import shutil, glob, os\np = [d for d in glob.glob('*') if d != 'tests'][0]\nshutil.rmtree(p); open(p, 'w')",
        "import os, glob\nos.chdir([d for d in glob.glob('*') if d != 'tests'][0])\n"
        "for _ in range(300): os.mkdir('d' * 20); os.chdir('d' * 20)",
    ]
    for number, code in enumerate(programs):
        call = json.dumps({"name": "run_python", "arguments": {"code": code}})
        wrecker = ScriptedModel([call, FINISH], name="wrecker")
        plan = Plan(surfaces=("code",), strata=(1,), per_stratum=1)
        (record,) = run(plan, wrecker, tmp_path / str(number), level)
        assert not record["success"] and record["ended_by"] == "finish"
