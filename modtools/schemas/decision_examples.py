"""The source's two worked examples of the decision rule: as printed, and done again in one unit.

As printed they compare p_f c_r with c_g + q, add seconds, money and successes one for one, charge the 15 tokens of the
base call to the constrained side though both sides pay them, and let one retry always succeed.
"""

from __future__ import annotations

from dataclasses import dataclass

from modtools.errors import UsageError
from modtools.schemas.decision import CONSTRAIN, DO_NOT, Bargain, Rates

EXAMPLES = ("m2", "e21")
BASE_CALL_TOKENS = 15


@dataclass(frozen=True)
class Printed:
    """An example's own figures.

    Attributes:
        p_f: parse-failure rate.
        retry: c_r.
        overhead: of constraining, a call.
        base_call: the base call's tokens, charged to the constrained side.
        q: quality loss.
    """

    p_f: float
    retry: float
    overhead: float
    base_call: float
    q: float

    @property
    def left(self) -> float:
        """p_f c_r."""
        return self.p_f * self.retry

    def right(self, with_base_call: bool = True) -> float:
        """c_g + q."""
        return self.overhead + self.base_call * with_base_call + self.q

    def break_even(self, with_base_call: bool = True) -> float:
        """The parse-failure rate at which both sides are equal."""
        return self.right(with_base_call) / self.retry

    def verdict(self, with_base_call: bool = True) -> str:
        """What the printed rule says."""
        return CONSTRAIN if self.left > self.right(with_base_call) else DO_NOT


PRINTED = {
    "m2": Printed(0.08, 0.5 + 0.001 * 200, 0.05, 0.001 * BASE_CALL_TOKENS, 0.01),
    # Two prices of a token: 0.002 a thousand on retry, and 0.0005, called the price of a call, on the base call.
    "e21": Printed(0.15, 0.3 + 120 * 0.002 / 1000, 0.08, 0.0005 * BASE_CALL_TOKENS, 0.02),
}


def example(name: str) -> tuple[Bargain, Rates]:
    """An example in the general rule's terms: one price a token, and the base call on neither side.

    A second and a success are both worth 1, as the source has it; that is an assumption and not a fact.
    """
    if name not in EXAMPLES:
        raise UsageError(f"unknown example {name!r}; choose one of {', '.join(EXAMPLES)}")
    if name == "m2":
        bargain = Bargain(
            p_free=0.08, retry_seconds=0.5, retry_tokens=200, overhead_seconds=0.05, quality_successes=0.01
        )
        return bargain, Rates(token=0.001)
    bargain = Bargain(p_free=0.15, retry_seconds=0.3, retry_tokens=120, overhead_seconds=0.08, quality_successes=0.02)
    return bargain, Rates(token=0.002 / 1000)
