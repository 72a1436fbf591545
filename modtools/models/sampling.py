"""One token out of a row of logits."""

from __future__ import annotations

import numpy as np


def choose(logits: np.ndarray, temperature: float, rng: np.random.Generator | None, allowed: np.ndarray | None) -> int:
    """The next token's id.

    Args:
        logits: shape (V,), float64.
        temperature: 0 takes the largest logit, the lowest id among equals; above 0 samples at this temperature.
        rng: gives one uniform number; unused at temperature 0.
        allowed: booleans, shape (V,) or shorter, the allowed set, not empty; what lies beyond is not allowed; None
            allows every token. It acts before sampling.
    """
    if allowed is not None:
        best = int(logits.argmax()) if temperature == 0 else len(logits)
        if best < len(allowed) and allowed[best]:  # the usual case, at no cost
            return best
        ids = np.flatnonzero(allowed)
        return int(ids[choose(logits[ids], temperature, rng, None)])
    if temperature == 0:
        return int(logits.argmax())
    weights = np.exp((logits - logits.max()) / temperature)
    cumulative = weights.cumsum()
    place = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    last = np.searchsorted(cumulative, cumulative[-1])  # the last token of positive weight: rounding may pass it
    return int(min(place, last))


def log_probability(logits: np.ndarray, token_id: int) -> float:
    """Natural log of the token's probability at temperature 1; logits of shape (V,), float64."""
    top = logits.max()
    return float(logits[token_id] - top - np.log(np.exp(logits - top).sum()))
