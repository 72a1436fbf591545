"""`modtools decide constrain`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from modtools.cli import app
from modtools.errors import UsageError

runner = CliRunner()


def test_an_example_is_shown_as_printed_and_done_again(tmp_path):
    done = runner.invoke(app, ["decide", "constrain", "--example", "m2", "--json", str(tmp_path / "j.json")])
    assert done.exit_code == 0, done.output
    assert "spares 0.0560, costs 0.0750: do not constrain" in done.output and "p_f = 0.107" in done.output
    data = json.loads((tmp_path / "j.json").read_text())
    assert {"left", "right", "break_even", "verdict"} <= set(data)
    assert data["break_even"]["p_free"] == pytest.approx(0.0857, abs=1e-4) and data["printed"]["break_even"] > 0.107
    turned = runner.invoke(app, ["decide", "constrain", "--example", "m2", "--p-f", "0.2"])
    assert "spares 0.1400, costs 0.0750: constrain" in turned.output


def test_inputs_and_rates_can_be_given(tmp_path):
    done = runner.invoke(
        app,
        ["decide", "constrain", "--p-f", "0.1", "--set", "retry_seconds=2", "--set", "retries=3", "--value", "second=0.5",
         "--set", "overhead_seconds=0.1", "--json", str(tmp_path / "j.json")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "j.json").read_text())
    assert data["left"] == pytest.approx((0.1 + 0.01 + 0.001) * 1.0) and data["right"] == pytest.approx(0.05)
    assert "lost_successes" in runner.invoke(app, ["decide", "constrain", "--inputs"]).output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "give --p-f"),
        (["--p-f", "1.5"], "p_free is 1.5"),
        (["--p-f", "0.1", "--set", "speed=1"], "is no input"),
        (["--p-f", "0.1", "--set", "retries"], "expected NAME=NUMBER"),
        (["--p-f", "0.1", "--set", "retries=1.5"], "expected a whole number"),
        (["--example", "m9"], "choose one of m2, e21"),
    ],
)
def test_wrong_use_is_named(args, message):
    done = runner.invoke(app, ["decide", "constrain", *args])
    assert isinstance(done.exception, UsageError) and message in str(done.exception)
