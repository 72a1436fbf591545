"""Whether to constrain the decoder: both sides of the bargain, in one unit.

An arm fails an attempt with probability p, retries up to m times at cost c_r, and loses L where all attempts fail:

    C = c_r (p1 + p1 p2 + ... m terms) + p1 p2 ... p(m+1) L

p1 is the first attempt's, the later ones are conditional on the failures before (a model that failed once is likelier
to fail again). Constrain exactly where

    C(free) - C(masked) > K/n + overhead + c_mask N + q

with K the compile cost, spread over the n calls of that grammar; `overhead` what a masked call costs besides; c_mask the
mask's cost a token and N the tokens of a call; and q the quality that is lost. A masked retry pays its mask as well.

The source's rule, p c_r > c_g + q, is this one with m = 1, L = 0, p = 0 on the masked side, and the base call's tokens
charged to the masked side alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from modtools.errors import UsageError

CONSTRAIN, DO_NOT = "constrain", "do not constrain"
_PROBABILITIES = ("p_free", "p_masked", "p_free_again", "p_masked_again")


@dataclass(frozen=True)
class Rates:
    """What a second, a token and a success are worth, all in one unit (money, seconds, or anything else).

    Attributes:
        second, token, success: worth of one of each.
        unit: its name.
    """

    second: float = 1.0
    token: float = 0.0
    success: float = 1.0
    unit: str = "units"


@dataclass(frozen=True)
class Bargain:
    """Everything the decision depends on. Probabilities are per attempt; the field's name tells the unit of the rest.

    Attributes:
        p_free, p_masked: a first attempt fails.
        p_free_again, p_masked_again: a later attempt fails, given that all before did; None: as the first.
        retries: most retries, m.
        retry_seconds, retry_tokens: of one retry, the same for both arms, the mask apart.
        lost_successes: L, what is lost where all attempts fail.
        compile_seconds: K.
        calls_a_grammar: n.
        overhead_seconds, overhead_tokens: of a masked call, besides compiling and masks.
        mask_seconds_a_token: c_mask.
        tokens_a_call: N.
        quality_successes: q.
    """

    p_free: float
    p_masked: float = 0.0
    p_free_again: float | None = None
    p_masked_again: float | None = None
    retries: int = 1
    retry_seconds: float = 0.0
    retry_tokens: float = 0.0
    lost_successes: float = 0.0
    compile_seconds: float = 0.0
    calls_a_grammar: float = 1.0
    overhead_seconds: float = 0.0
    overhead_tokens: float = 0.0
    mask_seconds_a_token: float = 0.0
    tokens_a_call: float = 0.0
    quality_successes: float = 0.0

    def __post_init__(self):
        for name in _PROBABILITIES:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise UsageError(f"{name} is {value}; expected a probability, 0 to 1")
        if self.retries < 0 or self.retries != int(self.retries) or self.calls_a_grammar < 1:
            raise UsageError(
                f"retries {self.retries}, calls_a_grammar {self.calls_a_grammar}: expected a whole number of at least 0, "
                f"and at least 1"
            )
        costs = [each.name for each in fields(self) if each.name not in (*_PROBABILITIES, "retries", "calls_a_grammar")]
        for name in costs:
            # A mask may raise quality: then q is a gain, below 0.
            if not np.isfinite(getattr(self, name)) or (getattr(self, name) < 0 and name != "quality_successes"):
                raise UsageError(f"{name} is {getattr(self, name)}; expected a number of at least 0")


@dataclass(frozen=True)
class Decision:
    """What the rule says.

    Attributes:
        left: C(free) - C(masked), what masking spares.
        right: what masking costs.
        verdict: CONSTRAIN or DO_NOT.
        break_even: input -> the value at which the verdict turns, the others as they are; only inputs that can turn it.
        sensitivity: input -> change of left - right for a change of that input by one of its units.
        unit: of both sides.
    """

    left: float
    right: float
    verdict: str
    break_even: dict[str, float]
    sensitivity: dict[str, float]
    unit: str


def failure_cost(first: float, again: float | None, retries: int, retry_cost: float, loss: float) -> float:
    """C of an arm: expected retries times their cost, and the loss where every attempt fails.

    With p = 1 on every attempt it is retries * retry_cost + loss.
    """
    later, reached, total = first if again is None else again, first, 0.0
    for _ in range(retries):
        total += reached * retry_cost
        reached *= later
    return total + reached * loss


def sides(bargain: Bargain, rates: Rates) -> tuple[float, float]:
    """(what masking spares, what it costs), in the unit of the rates."""
    b = bargain
    mask = b.mask_seconds_a_token * b.tokens_a_call * rates.second
    retry, loss = b.retry_seconds * rates.second + b.retry_tokens * rates.token, b.lost_successes * rates.success
    free = failure_cost(b.p_free, b.p_free_again, b.retries, retry, loss)
    masked = failure_cost(b.p_masked, b.p_masked_again, b.retries, retry + mask, loss)
    overhead = b.overhead_seconds * rates.second + b.overhead_tokens * rates.token
    compiled = b.compile_seconds * rates.second / b.calls_a_grammar
    return free - masked, compiled + overhead + mask + b.quality_successes * rates.success


def decide(bargain: Bargain, rates: Rates) -> Decision:
    """Apply the rule, and say what would turn it."""
    left, right = sides(bargain, rates)
    numbers = [each.name for each in fields(bargain) if each.name != "retries"]
    inputs = [name for name in numbers if getattr(bargain, name) is not None]
    even = {name: value for name in inputs if (value := _break_even(bargain, rates, name)) is not None}
    sensitivity = {name: _slope(bargain, rates, name) for name in inputs}
    return Decision(left, right, CONSTRAIN if left > right else DO_NOT, even, sensitivity, rates.unit)


def _surplus(bargain: Bargain, rates: Rates, name: str, value: float) -> float:
    left, right = sides(replace(bargain, **{name: value}), rates)
    return left - right


def _break_even(bargain: Bargain, rates: Rates, name: str) -> float | None:
    """Where left - right is 0 along one input; None where it is nowhere, or everywhere."""
    from scipy.optimize import brentq

    now = getattr(bargain, name)
    if name in _PROBABILITIES:
        grid = np.linspace(0, 1, 201)
    else:
        lowest = 1.0 if name == "calls_a_grammar" else 0.0
        scale = max(abs(now), 1.0)
        grid = lowest + np.concatenate([[0], np.geomspace(1e-6, 1e6, 241) * scale])
        if name == "quality_successes":
            grid = np.concatenate([-grid[:0:-1], grid])
    values = [_surplus(bargain, rates, name, float(x)) for x in grid]
    turns = [i for i in range(len(grid) - 1) if (values[i] > 0) != (values[i + 1] > 0)]
    if not turns:
        return None
    nearest = min(turns, key=lambda i: abs(grid[i] - now))
    ends = float(grid[nearest]), float(grid[nearest + 1])
    return float(brentq(lambda x: _surplus(bargain, rates, name, x), *ends, xtol=1e-12))


def _slope(bargain: Bargain, rates: Rates, name: str) -> float:
    """Derivative of left - right by one input, inward at the ends of a probability's range."""
    now = getattr(bargain, name)
    step = 1e-6 * max(1.0, abs(now))
    low, high = now - step, now + step
    if name in _PROBABILITIES:
        low, high = max(0.0, low), min(1.0, high)
    elif name != "quality_successes":
        low = max(1.0 if name == "calls_a_grammar" else 0.0, low)
    return (_surplus(bargain, rates, name, high) - _surplus(bargain, rates, name, low)) / (high - low)


@dataclass(frozen=True)
class UncertainDecision:
    """The rule over draws of its uncertain inputs.

    Attributes:
        constrain_share: share of draws in which it says to constrain.
        surplus: left - right at the middle of the draws.
        low, high: the middle 95 % of left - right.
        draws: how many.
    """

    constrain_share: float
    surplus: float
    low: float
    high: float
    draws: int


def decide_under_uncertainty(bargain: Bargain, rates: Rates, uncertain: Mapping[str, np.ndarray]) -> UncertainDecision:
    """Carry the uncertainty of measured inputs through the rule.

    Args:
        bargain: the inputs that are known, and any value for the others.
        rates: exchange rates.
        uncertain: input -> draws of it, all of one length; drawn together where they belong together.

    Raises:
        UsageError: for no draws, draws of different lengths, or an unknown input.
    """
    lengths = {len(draws) for draws in uncertain.values()}
    known = {each.name for each in fields(bargain)}
    if len(lengths) != 1 or 0 in lengths or not set(uncertain) <= known:
        raise UsageError(f"uncertain inputs {', '.join(uncertain) or 'none'}: expected some of {', '.join(sorted(known))}, "
                         "each with equally many draws")  # fmt: skip
    rows = zip(*uncertain.values(), strict=True)
    surplus = np.array(
        [np.subtract(*sides(replace(bargain, **dict(zip(uncertain, map(float, row)))), rates)) for row in rows]
    )
    low, middle, high = np.percentile(surplus, [2.5, 50, 97.5])
    return UncertainDecision(float((surplus > 0).mean()), float(middle), float(low), float(high), len(surplus))


def share_draws(failed: int, tried: int, draws: int = 2000, seed: int = 0) -> np.ndarray:
    """Draws of a probability of which `failed` of `tried` were seen, from Jeffreys' Beta(failed + 1/2, rest + 1/2)."""
    if not 0 <= failed <= tried or tried < 1:
        raise UsageError(f"{failed} of {tried}: expected 0 to the number tried, and at least one try")
    return np.random.default_rng(seed).beta(failed + 0.5, tried - failed + 0.5, size=draws)
