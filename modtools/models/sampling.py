"""One token out of a row of logits, and what a mask does to the row before."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from modtools.errors import ModtoolsError, UsageError

if TYPE_CHECKING:
    from modtools.models.model import TokenMask


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


def masked(logits: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """z' = z on the allowed set, otherwise minus infinity; both of shape (V,). Top-k and top-p come after it."""
    return np.where(allowed, logits, -np.inf)


def legal_mass(logits: np.ndarray, allowed: np.ndarray) -> float:
    """Z_t, the probability at temperature 1 that the unmasked next token is in the allowed set; both of shape (V,)."""
    weights = np.exp(logits - logits.max())
    return float(weights[allowed].sum() / weights.sum())


def allowed_set(mask: TokenMask, head_size: int, ends: Collection[int], where: str) -> np.ndarray:
    """The allowed set of a mask, widened to the network's head: shape (head_size,) bool.

    Where the mask allows one end-of-sequence token, it allows all of them: a model may know several, a vocabulary one.

    Raises:
        ModtoolsError: the mask does not fit the head, or allows nothing; the message begins with `where`.
    """
    own = np.asarray(mask.allowed(), dtype=bool)
    if own.ndim != 1 or len(own) > head_size:
        raise ModtoolsError(f"{where}: the mask has shape {own.shape}, expected at most ({head_size},)")
    if not own.any():
        accepting = "accepting" if mask.is_accepting() else "not accepting"
        raise ModtoolsError(
            f"{where}: the mask allows no token, not even end-of-sequence (its state is {accepting}); "
            "a mask that can get stuck is not maximal for this vocabulary"
        )
    allowed = np.zeros(head_size, dtype=bool)
    allowed[: len(own)] = own
    ending = [end for end in ends if end < head_size]
    if ends and not ending:
        raise UsageError(f"{where}: ends are {sorted(ends)}, expected ids below {head_size}, the width of the head")
    allowed[ending] = allowed[ending].any()
    return allowed


def log_probability(logits: np.ndarray, token_id: int) -> float:
    """Natural log of the token's probability at temperature 1; logits of shape (V,), float64."""
    top = logits.max()
    return float(logits[token_id] - top - np.log(np.exp(logits - top).sum()))
