"""What a schema costs over a session, by how it is cached: three models that must not be mixed.

Prices are per token, as shares of an uncached read. A cache saves computing and money. It saves no room: a cached
schema stands in the context window all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from modtools.errors import UsageError


@dataclass(frozen=True)
class CachePrices:
    """Prices of a token: `write`, where it is put into a cache, and `read`, where it comes out of one."""

    write: float = 1.0
    read: float = 0.1

    def __post_init__(self):
        if self.write < 0 or self.read < 0:
            raise UsageError(f"prices {self.write} and {self.read}: expected none below 0")


def uncached(schema_tokens: float, calls: int) -> float:
    """n l(s): read anew at every call."""
    return _checked(calls) * schema_tokens


def cached(schema_tokens: float, calls: int, hit_rate: float, prices: CachePrices = CachePrices()) -> float:
    """n l(s) [(1-h) w + h k]: a share h of the n readings comes out of the cache at k, the others are put in at w.

    Raises:
        UsageError: for a hit rate above (n-1)/n: the first reading cannot be a hit.
    """
    most = (_checked(calls) - 1) / calls
    if not 0 <= hit_rate <= most + 1e-12:
        raise UsageError(f"hit rate {hit_rate}: expected 0 to (n-1)/n = {most:g}; the first reading is never a hit")
    return calls * schema_tokens * ((1 - hit_rate) * prices.write + hit_rate * prices.read)


def described_once(schema_tokens: float, calls: int) -> float:
    """l(s): read once and kept in a window that is not read again. It is never combined with a hit rate."""
    _checked(calls)
    return schema_tokens


def _checked(calls: int) -> int:
    if calls < 1:
        raise UsageError(f"{calls} calls: expected at least 1")
    return calls
