"""Error rate, recovered and completed are three numbers, for natural errors and for the injected fault."""

from __future__ import annotations

import pytest

from modtools.errors import RecordError
from modtools.lab.analysis.recovery import injected, natural, recovered_share


def turn(outcome: str, code: str = "") -> dict:
    return {"outcome": outcome, "code": code}


FAIL, DONE, END = turn("validation_failed", "missing"), turn("success"), turn("finished")
RED = turn("success", "tests_failed")  # the tests ran; that they fail is no failed request


def test_natural_errors_told_apart(record):
    records = [
        record("a", "fine", success=True, turns=[DONE, RED, END], calls=2),
        record("b", "fine", success=True, turns=[FAIL, DONE, END], calls=2),
        record("c", "fine", success=False, turns=[FAIL, DONE, FAIL], calls=3),
        record("d", "fine", success=True, turns=[DONE, FAIL, END], calls=2),
        record("e", "code", success=False, turns=[FAIL, FAIL, FAIL], calls=3),
    ]
    found = natural(records)
    fine = found["fine"]
    assert fine.episodes == 4
    assert (fine.error_rate.value, fine.error_rate.n) == (4 / 9, 9)
    assert (fine.met.value, fine.met.n) == (0.75, 4)
    assert [e.value for e in (fine.recovered, fine.completed, fine.both)] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert (found["code"].recovered.value, found["code"].error_rate.value) == (0.0, 1.0)


def test_the_injected_fault_is_no_error_of_the_surface(record):
    def fault(turn: int, recovered: bool) -> dict:
        return {"turn": turn, "operation": "d1", "recovered": recovered}

    frozen = turn("unknown_outcome", "crashed")
    records = [
        record("a", "fine", success=True, turns=[DONE, frozen, DONE, END], calls=3, fault=fault(1, True)),
        record("b", "fine", success=False, turns=[frozen, FAIL, DONE], calls=3, fault=fault(0, False)),
        record("c", "fine", success=False, turns=[FAIL, FAIL], calls=2, fault=None),
    ]
    fine = injected(records)["fine"]
    assert (fine.error_rate.value, fine.error_rate.n) == (3 / 6, 6)
    assert fine.met.value == pytest.approx(2 / 3)
    assert (fine.recovered.value, fine.completed.value, fine.both.value, fine.recovered.n) == (0.5, 0.5, 0.5, 2)


def test_no_error_is_no_share(record):
    fine = natural([record("a", "fine", success=True, turns=[DONE], calls=1)])["fine"]
    assert (fine.met.value, fine.recovered.value, fine.recovered.text()) == (0.0, None, "none")
    assert natural([]) == {} and injected([]) == {}


def test_records_of_another_experiment_are_refused(record):
    with pytest.raises(RecordError, match="a/fine/0 has no 'fault'"):
        injected([record("a", "fine")])
    with pytest.raises(RecordError, match="expected turn, operation, recovered"):
        injected([record("a", "fine", fault={"turn": 1})])
    with pytest.raises(RecordError, match="did not meet the fault"):
        recovered_share(record("a", "fine", fault=None))
