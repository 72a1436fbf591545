"""The command line: its help, its exit codes, its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from modtools.cli import app
from modtools.records import write_whole

ROOT = Path(__file__).resolve().parents[1]


def _commands(command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


def _run(*arguments: str | bytes, cwd=ROOT) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    command = [sys.executable, "-c", "from modtools.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("path", [*_commands(typer.main.get_command(app))][1:], ids=" ".join)
def test_every_commands_help_ends_with_an_example(path):
    command = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    assert (command.epilog or "").startswith(f"Example: modtools {' '.join(path)}")
    assert command.help


def test_an_error_of_the_kit_is_one_line_and_exit_code_2(tmp_path):
    result = _run("build", "--check", cwd=tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "course/lessons" in result.stderr


def test_a_wrong_option_is_exit_code_2():
    assert _run("doctor", "--nonsense").returncode == 2


def test_the_version_is_the_packages():
    assert _run("--version").stdout == "modtools 0.1.0\n"


def test_what_cannot_be_written_is_exit_code_2_too(tmp_path):
    result = _run("doctor", "--json", str(tmp_path))
    assert result.returncode == 2 and "cannot write" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--preset", "quick", "--seeds", "2"), "leave --per-stratum and --seeds out"),
        (("--preset", "slow"), "expected quick"),
        (("--seeds", "0"), "at least 1"),
        (("--per-stratum", "100000"), "expected 1 to 200"),
        (("--model", "scripted", "--dtype", "float32"), "takes neither"),
        (("--surfaces", "fine,rough"), "coarse, fine, code"),
        (("--sandbox", "strong"), "expected strongest"),
        (("--model", "replay:nowhere"), "manifest.json does not exist"),
        (("--model", "no/such-model"), "allow the download"),
        (("--model", "replay:nowhere", "--allow-download"), "options are: none"),
    ],
)
def test_wrong_options_of_a_run_are_one_line_and_leave_nothing(arguments, said, tmp_path):
    result = _run("lab", "run", "--out", str(tmp_path / "run"), *arguments)
    assert result.returncode == 2 and said in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


def test_the_references_solve_the_quick_preset(tmp_path):
    result = _run(
        "lab", "run", "--preset", "quick", "--model", "scripted", "--out", str(tmp_path), "--json", str(tmp_path / "j")
    )
    assert result.returncode == 0, result.stderr
    success = json.loads((tmp_path / "j").read_text())["success"]
    assert {name: cell["all"]["value"] for name, cell in success.items()} == {"coarse": 1.0, "fine": 1.0, "code": 1.0}


def test_checking_no_tasks_is_refused():
    result = _run("lab", "check", "--per-stratum", "0")
    assert result.returncode == 2 and "expected 1 to 200" in result.stderr


def test_a_schema_file_that_is_no_strict_json_is_refused_and_never_a_verdict(tmp_path):
    document = tmp_path / "document.json"
    document.write_text("1")
    for content, said in (
        ('{"type": "integer", "type": "string"}', "'type' stands twice"),
        ('{"const": NaN}', "NaN is no number"),
        ("[" * 100_000, "nested too deeply"),
    ):
        schema = tmp_path / "schema.json"
        schema.write_text(content)
        run = _run("mask", str(schema), "--check", str(document))
        assert run.returncode == 2 and said in run.stderr and run.stderr.count("\n") == 1, run.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such arguments and no device files")
def test_bytes_that_are_no_utf8_are_explained_like_others(tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "string"}')
    run = _run("mask", str(schema), "--explain", b'"\xff', "--vocabulary", "none")
    assert run.returncode == 1 and "cannot follow" in run.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such links and device files")
def test_figures_are_written_through_links_and_into_devices_and_replace_neither(tmp_path):
    link, figures = tmp_path / "link.json", tmp_path / "figures.json"
    link.symlink_to(figures)
    write_whole(link, "{}")
    assert link.is_symlink() and figures.read_text() == "{}"
    write_whole(Path(os.devnull), "{}")
    assert not Path(os.devnull).is_file()
    program = "from modtools.records import write_whole; write_whole('/dev/stdout', '{}')"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True).stdout == b"{}"  # a pipe


@pytest.fixture
def audited(tmp_path):
    """The audit of one call."""
    from pipeline.tools import make_pipeline, make_tool, run

    from modtools.pipeline import AuditLog

    run(make_pipeline(make_tool(), audit=AuditLog(tmp_path / "audit")))
    return tmp_path


def test_an_audit_is_verified_and_a_broken_one_is_exit_code_1(audited):
    whole = _run("audit", "verify", str(audited), "--json", str(audited / "found.json"))
    found = json.loads((audited / "found.json").read_text())
    assert whole.returncode == 0 and "3 records" in whole.stdout and "whole" in whole.stdout
    assert (found["records"], found["broken_at"]) == (3, None) and found["head"] in whole.stdout
    log = audited / "audit" / "audit.jsonl"
    log.write_text(log.read_text().replace('"event":"executing"', '"event":"executing" '))
    broken = _run("audit", "verify", str(audited), "--json", str(audited / "found.json"))
    assert broken.returncode == 1 and "broken at line 3" in broken.stdout
    assert json.loads((audited / "found.json").read_text())["broken_at"] == 3
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:1]))
    assert _run("audit", "verify", str(audited)).returncode == 0
    spoils = _run("audit", "verify", str(audited), "--json", str(log))
    assert spoils.returncode == 2 and "would overwrite an audit" in spoils.stderr and log.read_bytes()
    assert _run("audit", "verify", str(audited), "--head", found["head"]).returncode == 1
    assert _run("audit", "verify", str(audited / "nothing")).returncode == 2


def test_the_fault_table_is_printed_and_written(tmp_path):
    result = _run("faults", "--fault", "revoked", "--json", str(tmp_path / "faults.json"))
    assert result.returncode == 0 and "unavailable_tool" in result.stdout and "2 faults: each request" in result.stdout
    rows = json.loads((tmp_path / "faults.json").read_text())["rows"]
    assert [(row["fault"], row["step"], row["effect"]) for row in rows] == [
        ("revoked", "resolve", "write"),
        ("revoked", "resolve", "read"),
    ]
    assert _run("faults", "--fault", "flood").returncode == 2
