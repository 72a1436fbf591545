"""The failure table: every mode the course names is in it, and nothing in it is unreachable."""

from __future__ import annotations

import re
from pathlib import Path

from modtools.contract import Outcome, Stage
from modtools.pipeline.failures import FAILURES, outcome_of

# Section by section, as the course lists them (the lost table of Module 2, rebuilt).
LISTED = {
    Stage.EXTRACT: "none_found several_calls example_call truncated wrong_wrapper",
    Stage.PARSE: "trailing_comma single_quotes control_character unbalanced nan_infinity duplicate_key lone_surrogate "
    "too_deep too_large chunk_lost",
    Stage.VALIDATE: "unknown_tool missing_argument wrong_type not_in_enum out_of_range unknown_property arguments_as_string",
    Stage.SEMANTIC: "outside_workspace missing_path malformed_identifier command_not_allowed stale_version "
    "precondition_failed not_authorised approval_needed",
    Stage.DISPATCH: "timeout crash unavailable rate_limited busy partial unknown_outcome result_too_large result_wrong_shape",
}


def test_every_listed_failure_mode_stands_at_its_stage():
    for stage, listed in LISTED.items():
        for code in listed.split():
            assert FAILURES[code].stage == stage


def test_every_row_answers_whether_the_decoder_can_remove_it():
    assert {mode.decoder for mode in FAILURES.values()} == {"yes", "world", "no"}
    assert all(mode.meaning for mode in FAILURES.values())
    # What needs the world or a running tool is never the decoder's.
    assert all(mode.decoder == "no" for mode in FAILURES.values() if mode.stage == Stage.DISPATCH)


def test_the_ten_outcomes_are_ten():
    assert len(Outcome) == 10


def test_a_tool_with_effects_that_had_begun_leaves_the_outcome_open():
    for code in ("timeout", "crash", "cancelled", "result_wrong_shape"):
        assert outcome_of(code, started=True, has_effects=True) == Outcome.UNKNOWN_OUTCOME
        assert outcome_of(code, started=True, has_effects=False) != Outcome.UNKNOWN_OUTCOME
    assert outcome_of("missing_path", started=True, has_effects=True) == Outcome.VALIDATION_FAILED


def test_every_code_in_the_library_is_in_the_table():
    root = Path(__file__).resolve().parents[2] / "modtools"
    used = set()
    for path in [*root.joinpath("pipeline").glob("*.py"), *root.joinpath("surfaces").glob("*.py")]:
        used |= set(
            re.findall(r'(?:ToolFailure|Failure|_fail|_failure|_Ended\(Failure)\(\s*"(\w+)"', path.read_text("utf-8"))
        )
    assert used and used <= set(FAILURES)
