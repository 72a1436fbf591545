"""pass@k and pass^k by their unbiased forms, from n tries of which some succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from modtools.errors import UsageError


def pass_at_k(n: int, successes: int, k: int) -> float:
    """The chance that at least one of k tries drawn from n succeeds: 1 - C(n - c, k) / C(n, k) (arXiv 2107.03374)."""
    _check(n, successes, k)
    return 1 - comb(n - successes, k) / comb(n, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """The chance that all of k tries drawn from n succeed: C(c, k) / C(n, k) (arXiv 2406.12045)."""
    _check(n, successes, k)
    return comb(successes, k) / comb(n, k)


def pass_table(records: Sequence[Mapping[str, Any]], surface: str) -> dict[int, tuple[float, float]]:
    """k -> (pass@k, pass^k), the means over tasks of one surface, for every k up to the least number of seeds."""
    tries: dict[str, list[bool]] = {}
    for record in records:
        if record["surface"] == surface:
            tries.setdefault(record["task"], []).append(bool(record["success"]))
    most = min(map(len, tries.values()), default=0)
    return {
        k: tuple(float(np.mean([of(len(t), sum(t), k) for t in tries.values()])) for of in (pass_at_k, pass_hat_k))
        for k in range(1, most + 1)
    }


def _check(n: int, successes: int, k: int) -> None:
    if not 0 <= successes <= n or not 1 <= k <= n:
        raise UsageError(f"{successes} successes in {n} tries, k = {k}: expected 0 <= successes <= n and 1 <= k <= n")
