"""Tasks of one's own: what is read, what is refused and why, and a run on them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modtools.cli import app
from modtools.errors import RecordError, UsageError
from modtools.lab.episode import Budget
from modtools.lab.own_tasks import read_set, read_tasks, write_set
from modtools.lab.plan import Plan, plan_of
from modtools.lab.reference_model import reference_model
from modtools.lab.run import read_run, run
from modtools.models import load_model
from modtools.sandbox import strongest_level

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "course" / "own_tasks"
LEVEL = strongest_level()
runner = CliRunner()


@pytest.fixture
def own(tmp_path) -> Path:
    """A copy of one of the examples, to be spoilt."""
    shutil.copytree(EXAMPLES / "cap-the-discount", tmp_path / "own" / "cap-the-discount")
    return tmp_path / "own"


def test_the_examples_are_proven_and_packed(tmp_path):
    out = tmp_path / "own.jsonl"
    done = runner.invoke(app, ["lab", "import", str(EXAMPLES), "--out", str(out), "--json", str(tmp_path / "j.json")])
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "j.json").read_text())
    assert said == {"tasks": ["cap-the-discount", "count-the-words"], "strata": {"1": 1, "2": 1}, "failures": []}
    assert list(read_set(out)) == read_tasks(EXAMPLES)
    assert runner.invoke(app, ["lab", "check", str(out)]).exit_code == 0


def test_a_wrong_c_is_found_and_nothing_is_written(own, tmp_path):
    path = own / "cap-the-discount" / "task.toml"
    path.write_text(path.read_text().replace("c = 2", "c = 3"))
    done = runner.invoke(app, ["lab", "import", str(own), "--out", str(tmp_path / "own.jsonl")])
    assert done.exit_code == 1 and "the reference makes 2 calls, c is 3" in done.output
    assert not (tmp_path / "own.jsonl").exists()


def test_a_run_on_own_tasks_is_replayed_without_their_folder(tmp_path):
    plan = Plan(own=tuple(read_tasks(EXAMPLES)), budget=Budget(reply_tokens=4000))
    records = run(plan, reference_model(plan, LEVEL), tmp_path / "run", LEVEL)
    assert len(records) == 6 and all(record["success"] for record in records)
    assert {record["family"] for record in records} == {"own_tasks"}
    again = plan_of(read_run(tmp_path / "run")[0])
    assert again == plan
    replayed = run(again, load_model(f"replay:{tmp_path / 'run'}"), tmp_path / "again", LEVEL)
    assert [record["success"] for record in replayed] == [True] * 6


def spoil(own: Path, name: str, text: str | None) -> None:
    path = own / "cap-the-discount" / name
    if text is None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("task.toml", None, "task.toml is missing"),
        ("task.toml", "text = 'a'\nc = ", "task.toml"),
        ("task.toml", "text = 'a'\nc = 1\nlevel = 2", "unknown level; expected text, c and u"),
        ("task.toml", "text = ' '\nc = 1", "text is what the model is told"),
        ("task.toml", "text = 'a'\nc = 0", "1 <= u <= c <= 50"),
        ("task.toml", "text = 'a'\nc = true", "1 <= u <= c <= 50"),
        ("task.toml", "text = 'a'\nc = 2\nu = 3", "1 <= u <= c <= 50"),
        ("task.toml", "text = 'a'", "c is None"),
        ("reference.py", None, "reference.py cannot be read"),
        ("reference.py", "import nowhere_at_all", "does not run: ModuleNotFoundError"),
        ("reference.py", "def operations():\n    return 1", "operations and programs must be a function that yields"),
        ("workspace", None, "workspace is missing"),
        ("workspace/tests", None, "no test method"),
        ("workspace/tests/test_prices.py", "def test_a():\n    pass\n", "no test method of a unittest.TestCase"),
        ("workspace/tests/test_prices.py", "def", "a test is no Python"),
        ("workspace/other/__init__.py", "", "one folder with the package, found other, shop"),
        ("workspace/loose.py", "", "expected tests/ and one folder"),
        ("workspace/shop/__init__.py", None, "has no __init__.py"),
        ("workspace/shop/big.py", "#" * 200_001, "more than 200000 bytes"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(own, name, text, message):
    spoil(own, name, text)
    with pytest.raises(UsageError) as error:
        read_tasks(own)
    assert message in str(error.value) and "cap-the-discount" in str(error.value)


def test_all_wrong_tasks_are_named_at_once(own):
    for name in ("first", "second"):
        (own / name).mkdir()
    with pytest.raises(UsageError) as error:
        read_tasks(own)
    assert "first" in str(error.value) and "second" in str(error.value)


def test_a_link_in_a_workspace_is_refused(own):
    (own / "cap-the-discount" / "workspace" / "shop" / "link.py").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="is a link"):
        read_tasks(own)


def test_bytes_that_are_no_text_are_refused(own):
    (own / "cap-the-discount" / "workspace" / "shop" / "data.py").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="no UTF-8 text"):
        read_tasks(own)


def test_a_set_that_is_none_is_refused(tmp_path, own):
    with pytest.raises(RecordError, match="modtools lab import DIR"):
        read_set(tmp_path / "nothing.jsonl")
    tasks = read_tasks(own)
    write_set(tasks, tmp_path / "set.jsonl")
    record = json.loads((tmp_path / "set.jsonl").read_text())
    for wrong in ({**record, "c": 0}, {**record, "files": {}}, {**record, "more": 1}, {"id": "a"}):
        (tmp_path / "wrong.jsonl").write_text(json.dumps(wrong) + "\n")
        with pytest.raises(RecordError, match="no task of this version"):
            read_set(tmp_path / "wrong.jsonl")
    with pytest.raises(UsageError, match="two tasks have the name cap-the-discount"):
        Plan(own=(tasks[0], replace(tasks[0], text="another")))


def test_own_tasks_leave_no_say_to_the_options_of_the_generator(tmp_path, own):
    write_set(read_tasks(own), tmp_path / "set.jsonl")
    done = runner.invoke(
        app, ["lab", "run", "--tasks", str(tmp_path / "set.jsonl"), "--per-stratum", "3", "--out", str(tmp_path / "r")]
    )
    assert done.exit_code != 0 and "run as they are" in str(done.exception)
