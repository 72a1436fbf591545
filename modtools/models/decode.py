"""The decoding loop: a batch of token lists in, a batch of replies out.

`Context` holds what a batch has read as the network's key-value cache. It grows by `extend`, one call for a whole
prompt or for a single token a row, and a batch of unequal lists is padded on the left with holes that nothing
attends to. Because `extend` may be called again with any tokens, a context can outlive one reply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from modtools.errors import ModtoolsError
from modtools.models.model import Finish, Request, Sampling, cut_at_stop
from modtools.models.sampling import choose, log_probability

if TYPE_CHECKING:
    import torch


class Context:
    """What a batch of `rows` has read so far.

    Attributes:
        cache: keys and values of every column.
        attended: (rows, columns), 1 where a column holds a token of that row, 0 where it is a hole.
    """

    def __init__(self, network: torch.nn.Module, rows: int):
        import torch
        from transformers import DynamicCache

        self.network = network
        self.cache = DynamicCache(config=network.config)
        self.attended = torch.zeros((rows, 0), dtype=torch.long, device=network.device)
        # transformers renames the argument in 5.x
        names = inspect.signature(network.forward).parameters
        self.cache_argument = "cache" if "cache" in names else "past_key_values"

    def extend(self, tokens: Sequence[Sequence[int]], logits_to_keep: int = 1) -> np.ndarray:
        """Reads one list of tokens a row; gives float64 logits (rows, logits_to_keep, V) of the last positions."""
        import torch

        width = max(len(row) for row in tokens)
        block = torch.tensor([[0] * (width - len(row)) + list(row) for row in tokens], device=self.attended.device)
        new = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in tokens], device=self.attended.device)
        self.attended = torch.cat([self.attended, new], dim=1)
        positions = (self.attended.cumsum(1) - 1).clamp(min=0)[:, -width:]  # holes do not count
        with torch.inference_mode():
            logits = self.network(
                input_ids=block,
                attention_mask=self.attended,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=logits_to_keep,
                **{self.cache_argument: self.cache},
            ).logits
        return logits[:, -logits_to_keep:].to("cpu", torch.float32).numpy().astype(np.float64)

    def keep(self, rows: Sequence[int]) -> None:
        """Drops every row but these."""
        import torch

        index = torch.tensor(rows, device=self.attended.device)
        self.cache.batch_select_indices(index)
        self.attended = self.attended[index]


@dataclass
class Reply:
    """A reply under way."""

    request: Request
    index: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    finish: Finish | None = None


def decode(
    network: torch.nn.Module,
    prompts: Sequence[Sequence[int]],
    requests: Sequence[Request],
    sampling: Sampling,
    ends: frozenset[int],
    to_text: Callable[[Sequence[int]], str],
    logprobs: bool = False,
) -> list[Reply]:
    """Continues each prompt until an end token, a stop string or max_tokens; finished rows leave the batch.

    Args:
        prompts: token ids, one list a request.
        ends: ids of the end-of-sequence tokens.
        to_text: turns all of a reply's ids into its text at once, so that a character split over tokens is whole.

    Raises:
        ModtoolsError: a mask that allows nothing, naming request and position.
    """
    replies = [Reply(request, index) for index, request in enumerate(requests)]
    context, live = Context(network, len(prompts)), list(replies)
    logits = context.extend(prompts)
    while True:
        for reply, row in zip(live, logits[:, -1]):
            _take_token(reply, row, sampling, ends, to_text, logprobs)
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
    mask = reply.request.mask
    allowed = None if mask is None else _allowed(reply, len(logits))
    token_id = choose(logits, sampling.temperature, reply.request.rng, allowed)
    reply.token_ids.append(token_id)
    if logprobs:
        reply.logprobs.append(log_probability(logits, token_id))
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


def _allowed(reply: Reply, head_size: int) -> np.ndarray:
    """The mask's allowed set, checked; the network's head may be wider."""
    allowed = np.asarray(reply.request.mask.allowed(), dtype=bool)
    where = f"request {reply.index}, token {len(reply.token_ids)} of the reply"
    if allowed.ndim != 1 or len(allowed) > head_size:
        raise ModtoolsError(f"{where}: the mask has shape {allowed.shape}, expected at most ({head_size},)")
    if not allowed.any():
        accepting = "accepting" if reply.request.mask.is_accepting() else "not accepting"
        raise ModtoolsError(
            f"{where}: the mask allows no token, not even end-of-sequence (its state is {accepting}); "
            "a mask that can get stuck is not maximal for this vocabulary"
        )
    return allowed
