"""What a schema costs over a session under three models of caching, side by side and never mixed."""

from __future__ import annotations

from typing import Any

from modtools.errors import UsageError
from modtools.schemas.caching import CachePrices, cached, described_once, uncached
from modtools.teaching.explorer import explorer, table


def cache_html(schema_tokens: float, calls: int, missed: int, prices: CachePrices) -> str:
    """The costs in tokens at the price of an uncached read.

    Args:
        schema_tokens: l(s).
        calls: of the session, n.
        missed: readings that do not come out of the cache, the first among them.
        prices: of a token put in and taken out.
    """
    if not 1 <= missed <= calls:
        raise UsageError(f"{missed} misses in {calls} calls: expected 1 to {calls}; the first reading is never a hit")
    hit_rate = (calls - missed) / calls
    costs = {
        "read anew at every call": uncached(schema_tokens, calls),
        f"cached, hit rate {hit_rate:.3g}": cached(schema_tokens, calls, hit_rate, prices),
        "described once, never read again": described_once(schema_tokens, calls),
    }
    rows = [[name, f"{cost:.1f}", f"{cost / calls:.2f}", f"{schema_tokens:g}"] for name, cost in costs.items()]
    return table(["model", "tokens a session", "tokens a call", "room in the window"], rows)


def cache_explorer() -> Any:
    """A widget; it opens where the module's example stands, with prices as one provider has them."""

    def render(schema_tokens: str, calls: int, misses: int, write_price: str, read_price: str) -> str:
        try:
            tokens, write, read = float(schema_tokens), float(write_price), float(read_price)
        except ValueError:
            raise UsageError("schema tokens and prices: expected numbers") from None
        if not 0 < tokens < 1e9:
            raise UsageError(f"{tokens:g} schema tokens: expected a number above 0")
        return cache_html(tokens, calls, misses, CachePrices(write, read))

    return explorer(
        render, schema_tokens="300", calls=range(10, 51), misses=range(1, 51), write_price="1.25", read_price="0.1"
    )
