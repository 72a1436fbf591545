"""The decoding loop: a batch of token lists in, a batch of replies out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from modtools.models.context import Context, Reading
from modtools.models.model import Finish, Request, Sampling, cut_at_stop
from modtools.models.sampling import allowed_set, choose, legal_mass, log_probability

if TYPE_CHECKING:
    import torch


@dataclass
class Reply:
    """A reply under way.

    Attributes:
        request: what it answers.
        index: of the request in its batch.
        token_ids, logprobs, legal_mass, overruled, text, finish: see `Generation`.
        reading: what its row had read when it ended, where that was asked for.
    """

    request: Request
    index: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    legal_mass: list[float] = field(default_factory=list)
    overruled: list[bool] = field(default_factory=list)
    text: str = ""
    finish: Finish | None = None
    reading: Reading | None = None


def decode(
    network: torch.nn.Module,
    prompts: Sequence[Sequence[int]],
    requests: Sequence[Request],
    sampling: Sampling,
    ends: frozenset[int],
    to_text: Callable[[Sequence[int]], str],
    logprobs: bool = False,
    read: Sequence[Reading | None] | None = None,
) -> list[Reply]:
    """Continues each prompt until an end token, a stop string or max_tokens; finished rows leave the batch.

    Args:
        prompts: token ids, one list a request.
        ends: ids of the end-of-sequence tokens.
        to_text: turns all of a reply's ids into its text at once, so that a character split over tokens is whole.

        read: for each prompt a reading of its beginning, shorter than it, or None; then the replies come with
            readings of their own. None: nothing was read before, and nothing is kept.

    Raises:
        ModtoolsError: a mask that allows nothing, naming request and position.
    """
    replies = [Reply(request, index) for index, request in enumerate(requests)]
    context, live = Context.of(network, read or [None] * len(prompts)), list(replies)
    begun = [len(each.tokens) if each else 0 for each in read or [None] * len(prompts)]
    logits = context.extend([prompt[start:] for prompt, start in zip(prompts, begun)])
    while True:
        for place, (reply, row) in enumerate(zip(live, logits[:, -1])):
            _take_token(reply, row, sampling, ends, to_text, logprobs)
            if reply.finish and read is not None:  # the last token was sampled, and not read
                reply.reading = context.reading(place, [*prompts[reply.index], *reply.token_ids[:-1]])
        going = [place for place, reply in enumerate(live) if reply.finish is None]
        if not going:
            return replies
        if len(going) < len(live):
            context.keep(going)
            live = [live[place] for place in going]
        logits = context.extend([reply.token_ids[-1:] for reply in live])


def _take_token(
    reply: Reply,
    logits: np.ndarray,
    sampling: Sampling,
    ends: frozenset[int],
    to_text: Callable[[Sequence[int]], str],
    logprobs: bool,
) -> None:
    """Samples one token for one row and says whether the reply is finished."""
    mask, allowed = reply.request.mask, None
    if mask is not None:
        where = f"request {reply.index}, token {len(reply.token_ids)} of the reply"
        allowed = allowed_set(mask, len(logits), ends, where)
    token_id = choose(logits, sampling.temperature, reply.request.rng, allowed)
    reply.token_ids.append(token_id)
    if logprobs:
        reply.logprobs.append(log_probability(logits, token_id))
        if allowed is not None:
            reply.legal_mass.append(legal_mass(logits, allowed))
            reply.overruled.append(not allowed[int(logits.argmax())])
    if token_id in ends:
        reply.finish = "stop"
        reply.text = to_text(reply.token_ids[:-1])
        return
    if mask is not None:
        mask.advance(token_id)
    at_limit = len(reply.token_ids) == sampling.max_tokens
    if at_limit or sampling.stop:
        reply.text = to_text(reply.token_ids)
        before_stop = cut_at_stop(reply.text, sampling.stop)
        if before_stop is not None:
            reply.text, reply.finish = before_stop, "stop"
        elif at_limit:
            reply.finish = "length"
