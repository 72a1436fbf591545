"""Made-up episode records with a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

PARTS = ("schema", "prompt", "history", "observation", "reasoning", "call")
STRATA = (1, 2, 3, 5, 8)


def make_record(task, surface, seed=0, c=1, success=False, tokens=60.0, u=1, **fields) -> dict:
    """A record whose total is `tokens`; a third of it stands in the call."""
    parts = dict.fromkeys(PARTS, 0.0) | {"schema": tokens / 3, "prompt": tokens / 3, "call": tokens / 3}
    base = {"arm": "a", "task": task, "surface": surface, "seed": seed, "stratum": c, "u": u, "family": "f",
            "success": bool(success), "ended_by": "finish", "calls": 2, "tokens": parts, "stages": {}, "codes": {},
            "outcomes": {}, "turns": []}  # fmt: skip
    return base | fields


def make_run(chance, tokens, tasks=50, seeds=5, surfaces=("coarse", "fine", "code"), task_spread=0.0, seed=0) -> list:
    """Records in which success has the chance `chance(surface, c)` and tokens the median `tokens(surface, c)`.

    `task_spread` is the standard deviation of a task's own shift of its chance, the same on every surface.
    """
    rng = np.random.default_rng(seed)
    records = []
    for i in range(tasks):
        c = STRATA[i % len(STRATA)]
        shift = task_spread * rng.standard_normal()
        for surface in surfaces:
            p = np.clip(chance(surface, c) + shift, 0, 1)
            for k in range(seeds):
                cost = tokens(surface, c) * np.exp(0.3 * rng.standard_normal())
                records.append(make_record(f"t{i:03d}", surface, k, c, rng.random() < p, cost))
    return records


@pytest.fixture
def record():
    return make_record


@pytest.fixture
def run():
    return make_run


@pytest.fixture
def likely():
    """likely(hits, n, p): whether so many hits are no surprise (1 in 1,000 on either side) at probability p."""

    def likely(hits: int, n: int, p: float) -> bool:
        low, high = binom.ppf([0.001, 0.999], n, p)
        return bool(low <= hits <= high)

    return likely
