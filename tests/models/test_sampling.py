from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from modtools.models.sampling import choose, log_probability

P = np.array([0.5, 0.3, 0.15, 0.05])


def draw(count: int, temperature: float, allowed=None) -> np.ndarray:
    rng = np.random.default_rng(0)
    ids = [choose(np.log(P), temperature, rng, allowed) for _ in range(count)]
    return np.bincount(ids, minlength=len(P)) / count


def test_sampling_at_temperature_1_follows_the_distribution():
    assert np.abs(draw(20_000, 1.0) - P).max() < 0.015


def test_temperature_sharpens_before_sampling():
    assert np.abs(draw(20_000, 0.5) - P**2 / (P**2).sum()).max() < 0.015


def test_a_mask_renormalises_over_the_allowed_set():
    allowed = np.array([False, True, False, True])
    expected = np.where(allowed, P, 0) / P[allowed].sum()
    assert np.abs(draw(20_000, 1.0, allowed) - expected).max() < 0.015


def test_temperature_0_takes_the_first_of_the_likeliest_and_draws_nothing():
    rng = np.random.default_rng(0)
    assert choose(np.array([0.0, 2.0, 2.0]), 0, rng, None) == 1
    assert choose(np.array([0.0, 2.0, 2.0]), 0, rng, np.array([True, False, True])) == 2
    assert choose(np.array([3.0, 3.0, 5.0]), 0, rng, np.array([True, True])) == 0
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_one_token_takes_one_uniform_number():
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    choose(np.log(P), 1.0, rng, None)
    other.random()
    assert rng.bit_generator.state == other.bit_generator.state


@given(
    st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=20),
    st.just(0) | st.floats(0.01, 10),
    st.integers(0, 2**32),
    st.data(),
)
def test_whatever_the_logits_the_choice_is_allowed(logits, temperature, seed, data):
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(logits), max_size=len(logits)).filter(any)))
    assert allowed[choose(np.array(logits), temperature, np.random.default_rng(seed), allowed)]


def test_log_probability_is_natural_and_at_temperature_1():
    assert np.isclose(log_probability(np.log(P) + 1000, 2), np.log(0.15))
