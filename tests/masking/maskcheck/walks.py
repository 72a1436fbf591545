"""Random walks through the masks of a grammar: at first any allowed token, then what shortens the way to the end."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from maskcheck.way_out import WayOut
from modtools.masking import Grammar, Vocabulary

CANDIDATES = 24  # allowed tokens that are weighed in one step, beside all that are one byte
MOST_TOKENS = 600


@dataclass(frozen=True)
class Walk:
    """What one walk wrote; unfinished where it ran out of tokens, with the state in which it stood."""

    text: bytes
    tokens: tuple[int, ...]
    is_finished: bool
    where: str


def walk(grammar: Grammar, vocabulary: Vocabulary, rng: random.Random, wander: int = 12, way: WayOut | None = None):
    """One walk: `wander` tokens at random, then towards the end."""
    matcher, way = grammar.matcher(vocabulary), way or WayOut()
    singles = np.array([i for i, token in enumerate(vocabulary.tokens) if token and len(token) == 1])
    ids: list[int] = []
    while len(ids) < MOST_TOKENS:
        mask = matcher.allowed()
        if mask[vocabulary.eos_id] and len(ids) >= wander:
            token_id = vocabulary.eos_id
        elif len(ids) < wander:
            token_id = int(rng.choice(np.flatnonzero(mask)))
        else:
            allowed = np.flatnonzero(mask)
            few = (
                [int(i) for i in rng.sample(list(allowed), CANDIDATES)]
                if len(allowed) > CANDIDATES
                else [*map(int, allowed)]
            )
            few += singles[mask[singles]].tolist()
            left = {i: way.of(matcher.state.read(vocabulary.tokens[i])) for i in few if vocabulary.tokens[i]}
            best = min(left.values(), default=0)
            token_id = rng.choice([i for i, distance in left.items() if distance == best] or [vocabulary.eos_id])
        matcher.advance(token_id)
        if token_id == vocabulary.eos_id:
            return Walk(_text(ids, vocabulary), tuple(ids), True, "")
        ids.append(token_id)
    return Walk(_text(ids, vocabulary), tuple(ids), False, matcher.state.describe())


def _text(ids: list[int], vocabulary: Vocabulary) -> bytes:
    return b"".join(vocabulary.tokens[i] for i in ids)
