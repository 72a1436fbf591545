"""Readings in words, and the command that prints them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modtools.masking import compile_json_schema
from modtools.masking.explain import read_text

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "accepted", "read", "why"),
    [
        (b'{"path": "a"}', True, 13, ""),
        (b'{"path": "a"', False, 12, "ends too early"),
        (b'{"other": "a"}', False, 2, "byte 2 ('o') cannot follow; one of 'p' can"),
        (b'{"path": 1}', False, 9, "byte 9 ('1') cannot follow"),
        (b"", False, 0, "ends too early"),
    ],
)
def test_a_reading_says_how_far_it_came_and_why_no_further(text, accepted, read, why):
    reading = read_text(compile_json_schema(SCHEMA), text)
    assert (reading.accepted, reading.read) == (accepted, read) and why in reading.refused_because
    assert reading.state


def command(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess:
    program = [sys.executable, "-c", "from modtools.cli import main; main()", "mask", *arguments]
    return subprocess.run(program, input=stdin, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture
def schema(tmp_path) -> str:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return str(tmp_path / "schema.json")


def test_a_document_is_judged_from_a_file_or_from_standard_input(schema, tmp_path):
    (tmp_path / "good.json").write_text('{"path": "x"}')
    good = command(schema, "--check", str(tmp_path / "good.json"), "--json", str(tmp_path / "out.json"))
    assert good.returncode == 0 and good.stdout.startswith(b"accepted")
    assert set(json.loads((tmp_path / "out.json").read_text())) == {"accepted", "state", "refused_because"}
    bad = command(schema, "--check", "-", stdin=b'{"path": "x",}')
    assert bad.returncode == 1 and b"byte 12 (',') cannot follow; one of ' }' can" in bad.stdout


def test_a_prefix_is_explained_with_the_tokens_that_may_follow(schema, tmp_path):
    out = tmp_path / "out.json"
    result = command(schema, "--explain", '{"pa', "--token", "th", "--json", str(out))
    data = json.loads(out.read_text())
    assert result.returncode == 0 and data["token"] == "" and not data["accepted"]
    assert "th" in data["tokens"] and data["allowed"] == len(data["tokens"])
    assert all(token.startswith("t") for token in data["tokens"])
    refused = command(schema, "--explain", '{"pa', "--token", "ir", "--vocabulary", "none")
    assert b"token 'ir': is refused: byte 4 ('i') cannot follow; one of 't' can" in refused.stdout
    assert command(schema, "--explain", '{"x', "--vocabulary", "none").returncode == 1


@pytest.mark.parametrize("arguments", [(), ("--check", "a", "--explain", "b"), ("--check", "/nowhere"),
                                       ("--explain", "", "--vocabulary", "gpt"), ("--explain", "", "--property-order", "x")])  # fmt: skip
def test_wrong_use_is_one_line_and_exit_code_2(schema, arguments):
    result = command(schema, *arguments)
    assert result.returncode == 2 and result.stderr.count(b"\n") == 1


def test_a_keyword_that_cannot_be_honoured_is_named(tmp_path):
    (tmp_path / "s.json").write_text('{"properties": {"a": {"not": {"type": "string"}}}}')
    result = command(str(tmp_path / "s.json"), "--explain", "")
    assert result.returncode == 2 and b"not at /properties/a" in result.stderr


def test_a_grammar_is_judged_and_explained_as_a_schema_is(tmp_path):
    (tmp_path / "call.ebnf").write_text('reply = until("<call>") "<call>" json({"type": "integer"}) "</call>"')
    path = str(tmp_path / "call.ebnf")
    assert command(path, "--check", "-", stdin=b"so <call>12</call>").returncode == 0
    bad = command(path, "--check", "-", stdin=b"so <call>12/</call>")
    assert bad.returncode == 1 and b"byte 11 ('/') cannot follow; one of '0123456789<' can" in bad.stdout
    (tmp_path / "call.ebnf").write_text("reply = call")
    broken = command(path, "--explain", "", "--vocabulary", "none")
    assert broken.returncode == 2 and b"line 1, column 9: there is no rule call; the rules are: reply" in broken.stderr
