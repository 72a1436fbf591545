"""What masking does to a distribution: the masked one beside the true conditional one, over a whole small language.

p is the model's probability of a token sequence, its end token included, and Z_t the probability that the model gives
to the allowed tokens of step t. A masked decoder draws each token from p / Z_t, so it draws a sequence with
q = p / (Z_1 Z_2 ...). The conditional distribution is p divided by one number: the sum of p over the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modtools.errors import UsageError
from modtools.masking import Grammar, Vocabulary

if TYPE_CHECKING:
    from modtools.masking.matcher import Matcher
    from modtools.models import Message
    from modtools.models.huggingface import HuggingFaceModel

MOST_ROWS = 500  # unfinished sequences of the same length


@dataclass(frozen=True)
class Walk:
    """A token sequence that the masks allow.

    Attributes:
        token_ids: its tokens; end-of-sequence is the last of a finished one.
        log2_p: for each token the log2 of its probability under the model.
        log2_z: for each step the log2 of Z_t.
        log2_q: for each token the log2 of its probability when it is drawn from the allowed ones only.
        matcher: where it stands in the grammar.
    """

    token_ids: tuple[int, ...]
    log2_p: tuple[float, ...]
    log2_z: tuple[float, ...]
    log2_q: tuple[float, ...]
    matcher: Matcher

    @property
    def text(self) -> str:
        """What it spells."""
        return b"".join(self.matcher.vocabulary.tokens[i] or b"" for i in self.token_ids).decode()

    def after(self, logits: np.ndarray) -> list[Walk]:
        """This walk with each of the allowed tokens added; logits has the shape of the network's head."""
        ids = np.flatnonzero(self.matcher.allowed())
        every, allowed = _log2_sum(logits), _log2_sum(logits[ids])
        walks = []
        for token_id, log2 in zip(ids.tolist(), logits[ids] / np.log(2)):
            matcher = self.matcher.copy()
            matcher.advance(token_id)
            walks.append(
                Walk(
                    (*self.token_ids, token_id),
                    (*self.log2_p, float(log2) - every),
                    (*self.log2_z, allowed - every),
                    (*self.log2_q, float(log2) - allowed),
                    matcher,
                )
            )
        return walks


def every_walk(
    model: HuggingFaceModel, messages: Sequence[Message], grammar: Grammar, vocabulary: Vocabulary
) -> list[Walk]:
    """Every finished walk through a finite language, with its exact probabilities as the next assistant turn.

    Each prefix is read once: the unfinished walks of one length are one batch.

    Raises:
        UsageError: more than MOST_ROWS walks of one length.
    """
    from modtools.models.context import Context

    finished: list[Walk] = []
    unfinished = [Walk((), (), (), (), grammar.matcher(vocabulary))]
    context = Context(model.network, rows=1)
    logits = context.extend([model.prompter.encode(messages)])
    while unfinished:
        rows, further = [], []
        for row, walk in enumerate(unfinished):
            for longer in walk.after(logits[row, -1]):
                if longer.matcher.is_finished:
                    finished.append(longer)
                else:
                    rows.append(row)
                    further.append(longer)
        if len(rows) > MOST_ROWS:
            raise UsageError(f"{len(rows)} walks of {len(further[0].token_ids)} tokens; give a smaller language")
        unfinished = further
        if unfinished:
            context.keep(rows)
            logits = context.extend([walk.token_ids[-1:] for walk in unfinished])
    return finished


def _log2_sum(logits: np.ndarray) -> float:
    """log2 of the sum of exp(logits)."""
    return float((np.log(np.exp(logits - logits.max()).sum()) + logits.max()) / np.log(2))


def by_text(walks: Iterable[Walk], log2_factors: Callable[[Walk], Sequence[float]]) -> dict[str, float]:
    """The weight of each text, summed over its tokenisations; a walk weighs the product of its factors."""
    weights: dict[str, float] = {}
    for walk in walks:
        weights[walk.text] = weights.get(walk.text, 0.0) + 2.0 ** sum(log2_factors(walk))
    return weights


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """The same weights, divided by their sum."""
    whole = sum(weights.values())
    return {text: weight / whole for text, weight in weights.items()}


def total_variation(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """Half the sum of |p - q|: the share of probability that would have to be moved."""
    return sum(abs(p.get(text, 0.0) - q.get(text, 0.0)) for text in p.keys() | q.keys()) / 2
