"""eta: the source's worked example in every variant, and what the metric must refuse or show."""

from __future__ import annotations

from math import log2

import pytest

from modtools.errors import UsageError
from modtools.schemas.caching import CachePrices, cached, described_once, uncached
from modtools.schemas.inefficiency import (
    BIT_A_TOKEN,
    PER_CALL,
    PER_SESSION,
    Accounting,
    Needed,
    Spent,
    inefficiency,
    token_capacity,
)

# Exercise E2.2: six tools of 50 tokens, used alike, 2 bits of arguments, ten calls of 20 tokens.
SCHEMA, CALL, CALLS, BITS = 6 * 50, 20, 10, log2(6) + 2
VOCABULARY = 49_152


def eta(charge: float, bits_a_token: float, calls: int = 1, per: str = PER_CALL) -> float:
    accounting = Accounting(per, charge)
    return inefficiency(Spent(accounting, SCHEMA, CALL * calls), Needed(accounting, BITS * calls, bits_a_token)).eta


@pytest.mark.parametrize(
    ("charge", "bits_a_token", "expected"),
    [
        (1, BIT_A_TOKEN, 0.0506),  # as printed
        (1 / CALLS, BIT_A_TOKEN, 0.446),  # the schema spread over ten calls, on both sides
        (1, token_capacity(VOCABULARY), 0.0656),
        (1 / CALLS, token_capacity(VOCABULARY), 0.650),
    ],
)
def test_the_worked_example_in_its_consistent_variants(charge, bits_a_token, expected):
    assert eta(charge, bits_a_token) == pytest.approx(expected, abs=5e-4)


def test_the_cached_variant_as_printed_mixes_two_accountings_and_is_refused():
    observed = (SCHEMA + CALL * CALLS) / CALLS
    assert (observed - (SCHEMA + BITS)) / (SCHEMA + BITS) == pytest.approx(-0.836, abs=5e-4)  # the printed digits
    with pytest.raises(UsageError, match="count both alike"):
        inefficiency(
            Spent(Accounting(PER_CALL, 1 / CALLS), SCHEMA, CALL), Needed(Accounting(PER_CALL, 1), BITS, BIT_A_TOKEN)
        )
    with pytest.raises(UsageError, match="per session with the schema charged 1 times"):
        inefficiency(Spent(Accounting(PER_CALL, 1), SCHEMA, CALL), Needed(Accounting(PER_SESSION, 1), BITS, 1.0))


def test_a_call_and_a_session_counted_alike_give_one_eta():
    assert eta(1, 15.58) == pytest.approx(eta(CALLS, 15.58, CALLS, PER_SESSION))
    assert eta(1 / CALLS, 15.58) == pytest.approx(eta(1, 15.58, CALLS, PER_SESSION))


def test_eta_rewards_bloat_and_the_call_overhead_does_not():
    accounting = Accounting(PER_CALL, 1)
    lean, bloated = (
        inefficiency(Spent(accounting, schema, CALL), Needed(accounting, BITS, BIT_A_TOKEN))
        for schema in (SCHEMA, SCHEMA + 300)
    )
    assert bloated.eta == pytest.approx(lean.eta / 2, rel=0.02)  # 300 useless tokens, and it looks twice as good
    assert bloated.overhead_tokens == lean.overhead_tokens == pytest.approx(CALL - BITS)


def test_with_the_bound_in_bits_eta_can_be_negative():
    accounting = Accounting(PER_SESSION, 1)
    found = inefficiency(Spent(accounting, 60, 30), Needed(accounting, 80, BIT_A_TOKEN))
    assert found.eta < 0 and found.overhead_tokens == -50
    assert inefficiency(Spent(accounting, 60, 30), Needed(accounting, 80, token_capacity(VOCABULARY))).eta > 0


def test_all_parts_stand_beside_eta():
    accounting = Accounting(PER_SESSION, 3)
    found = inefficiency(Spent(accounting, 100, 60), Needed(accounting, 31.16, 15.58))
    assert (found.schema_tokens, found.charged_tokens, found.call_tokens) == (100, 300, 60)
    assert found.choice_tokens == pytest.approx(2) and found.eta == pytest.approx((360 - 302) / 302)
    assert all(part in found.text() for part in ("eta", "schema 300", "calls 60", "H/b 2", "overhead 58"))


@pytest.mark.parametrize("wrong", [("per day", 1), (PER_CALL, -1), (PER_CALL, float("inf")), (PER_CALL, float("nan"))])
def test_an_accounting_that_is_none_is_refused(wrong):
    with pytest.raises(UsageError):
        Accounting(*wrong)


def test_negative_quantities_and_an_empty_bound_are_refused():
    accounting = Accounting(PER_CALL, 1)
    for spent, needed in (
        (Spent(accounting, -1, 2), Needed(accounting, 2, 1.0)),
        (Spent(accounting, 1, 2), Needed(accounting, -2, 1.0)),
        (Spent(accounting, 1, 2), Needed(accounting, 2, 0.0)),
        (Spent(accounting, 0, 2), Needed(accounting, 0, 1.0)),
    ):
        with pytest.raises(UsageError):
            inefficiency(spent, needed)
    with pytest.raises(UsageError):
        token_capacity(1)


@pytest.mark.parametrize("calls", [10, 20])
def test_the_cache_models_at_ten_and_twenty_calls(calls):
    """The source's figure agrees with the second model at n = 10, h = 0.9 alone, where h = (n-1)/n and reading is free."""
    assert uncached(300, calls) == 300 * calls and described_once(300, calls) == 300
    free = CachePrices(write=1, read=0)
    assert cached(300, calls, (calls - 1) / calls, free) == pytest.approx(300)
    source = 300 * (1 - 0.9)  # l(s) (1 - h) a call, as printed
    assert (cached(300, calls, 0.9, free) / calls == pytest.approx(source)) is True
    assert (300 / calls == pytest.approx(source)) is (calls == 10)
    assert cached(300, calls, 0.9) == pytest.approx(calls * 300 * (0.1 + 0.9 * 0.1))


def test_the_first_reading_is_never_a_hit():
    with pytest.raises(UsageError, match=r"\(n-1\)/n = 0.9"):
        cached(300, 10, 0.95)
    with pytest.raises(UsageError, match="expected 0 to"):
        cached(300, 10, -0.1)
    for call in (uncached, described_once):
        with pytest.raises(UsageError, match="at least 1"):
            call(300, 0)
    with pytest.raises(UsageError, match="none below 0"):
        CachePrices(read=-1)
