"""When is a mask worth its price? Both sides of the decision rule, and where each input would turn the verdict."""

from __future__ import annotations

import html
from typing import Any

from modtools.errors import UsageError
from modtools.schemas.decision import Bargain, Rates, decide
from modtools.teaching.explorer import explorer, table

WORDS = {
    "p_free": "failure rate without a mask",
    "p_masked": "failure rate with a mask",
    "retry_tokens": "tokens of a retry",
    "overhead_seconds": "seconds that a masked call takes longer",
    "quality_successes": "successes that the mask costs",
    "lost_successes": "successes lost where all attempts fail",
}


def break_even_html(bargain: Bargain, rates: Rates) -> str:
    """The verdict, both sides, and for each input its value, the value at which the verdict turns, and its slope."""
    made = decide(bargain, rates)
    said = (
        f"<p><b>{html.escape(made.verdict)}</b>: masking spares {made.left:.4f} and costs {made.right:.4f} "
        f"{html.escape(made.unit)} a call.</p>"
    )
    rows = []
    for name, words in WORDS.items():
        even = made.break_even.get(name)
        rows.append(
            [
                words,
                f"{getattr(bargain, name):g}",
                "never" if even is None else f"{even:.4g}",
                f"{made.sensitivity[name]:+.4g}",
            ]
        )
    return said + table(["input", "now", "the verdict turns at", "spares - costs, for one unit more"], rows)


def break_even_explorer() -> Any:
    """A widget over the rule's inputs; it opens on the module's example, with the base call on neither side."""

    def render(
        failures_in_100_free: int, failures_in_100_masked: int, retries: int, retry_tokens: str, a_token_is_worth: str,
        masked_call_takes_longer_s: str, successes_lost_in_100: int, loss_if_all_fail: bool,
    ) -> str:  # fmt: skip
        bargain = Bargain(
            p_free=failures_in_100_free / 100,
            p_masked=failures_in_100_masked / 100,
            retries=retries,
            retry_seconds=0.5,
            retry_tokens=_number("retry tokens", retry_tokens),
            lost_successes=float(loss_if_all_fail),
            overhead_seconds=_number("a masked call takes longer", masked_call_takes_longer_s),
            quality_successes=successes_lost_in_100 / 100,
        )
        return break_even_html(bargain, Rates(token=_number("a token is worth", a_token_is_worth)))

    return explorer(
        render,
        failures_in_100_free=range(8, 101),
        failures_in_100_masked=range(0, 101),
        retries=range(1, 6),
        retry_tokens="200",
        a_token_is_worth="0.001",
        masked_call_takes_longer_s="0.05",
        successes_lost_in_100=range(1, 31),
        loss_if_all_fail=False,
    )


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{name}: {text!r} is no number") from None
