"""The fault table, injected for real: each request ends once, its work is done once, its audit is whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modtools.errors import UsageError
from modtools.teaching.faults import fault_table, inject, problems
from modtools.teaching.injections import FAULTS

# How a request must end, for a tool with effects and for one that reads.
EXPECTED = {
    ("none", "commit"): ("success", "success"),
    **{("cancelled", step): ("cancelled", "cancelled") for step in list(FAULTS["cancelled"])[:-1]},
    ("cancelled", "normalise"): ("unknown_outcome", "cancelled"),
    ("raises", "canonicalise"): ("unavailable_tool", "unavailable_tool"),
    ("raises", "authorise"): ("permission_denied", "permission_denied"),
    ("raises", "bind"): ("unavailable_tool", "unavailable_tool"),
    ("raises", "execute"): ("unknown_outcome", "unavailable_tool"),
    ("hangs", "execute"): ("unknown_outcome", "timeout"),
    ("hangs in a process", "execute"): ("unknown_outcome", "timeout"),
    ("dies in a process", "execute"): ("unknown_outcome", "unavailable_tool"),
    ("returns rubbish", "execute"): ("unknown_outcome", "unavailable_tool"),
    ("returns the wrong shape", "normalise"): ("unknown_outcome", "unavailable_tool"),
    ("returns 100 MB", "normalise"): ("success", "success"),
    ("disk full", "extract"): ("unavailable_tool", "unavailable_tool"),
    ("disk full", "bind"): ("cancelled", "cancelled"),
    ("disk full", "normalise"): ("success", "success"),
    ("disk full", "commit"): ("unknown_outcome", "unknown_outcome"),
    ("killed", "extract"): ("cancelled", "cancelled"),
    **{("killed", step): ("unknown_outcome", "unknown_outcome") for step in ("bind", "execute", "commit")},
    ("stale", "resolve"): ("unavailable_tool", "unavailable_tool"),
    ("revoked", "resolve"): ("unavailable_tool", "unavailable_tool"),
    ("two calls race", "bind"): ("success", "success"),
    ("approval used before", "authorise"): ("permission_denied", "permission_denied"),
    ("hook raises", "authorise"): ("permission_denied", "permission_denied"),
    ("hook raises", "execute"): ("permission_denied", "permission_denied"),
    ("hook raises", "normalise"): ("success", "success"),
    ("hook raises", "commit"): ("success", "success"),
    ("gate raises", "authorise"): ("permission_denied", "permission_denied"),
    ("hook calls its tool", "authorise"): ("permission_denied", "permission_denied"),
}


def test_every_fault_at_every_step_ends_as_it_must():
    rows = fault_table()
    found = {(row.fault, row.step, row.effect): row.outcome for row in rows}
    assert found == {
        (*place, effect): outcome
        for place, outcomes in EXPECTED.items()
        for effect, outcome in zip(("write", "read"), outcomes)
    }
    assert [(row.fault, row.step, problem) for row in rows for problem in problems(row)] == []


def test_the_check_of_a_row_finds_what_must_not_be():
    row = inject("none", "commit")
    assert problems(row) == []
    for wrong in (
        {"ends": 0},
        {"ends": 2},
        {"whole": False},
        {"done": 0},
        {"done": 2},
        {"outcome": "cancelled"},
        {"observation": "a text that no model may see"},
    ):
        assert len(problems(replace(row, **wrong))) == 1, wrong


def test_a_fault_that_there_is_not_is_an_error_that_lists_what_there_is():
    for wrong in (("flood", "commit", "write"), ("hangs", "parse", "write"), ("none", "commit", "fly")):
        with pytest.raises(UsageError, match="disk full: extract"):
            inject(*wrong)
    with pytest.raises(UsageError, match="disk full"):
        fault_table("flood")
