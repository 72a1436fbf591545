"""The nouns of talking to a model, and the one protocol behind which every backend lies.

A backend turns a batch of conversations into replies. What it can do beyond that it declares in
`capabilities`; asking for more is an UnsupportedError, never a quiet approximation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from modtools.errors import ContextOverflowError, UnsupportedError, UsageError

if TYPE_CHECKING:
    import numpy as np

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "lost"]

CAPABILITIES = {
    "batch": "several requests in one call",
    "mask": "a token mask on a request",
    "logprobs": "log-probabilities of the sampled tokens",
    "score": "log-probabilities of a given text",
    "count": "render a prompt and count its tokens before any reply",
}


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str

    def __post_init__(self):
        if self.role not in ("system", "user", "assistant"):
            raise UsageError(f"message role {self.role!r}: expected 'system', 'user' or 'assistant'")
        if any("\ud800" <= c <= "\udfff" for c in self.content):
            raise UsageError("a message holds half of a surrogate pair; expected Unicode text")


class TokenMask(Protocol):
    """Says which tokens may come next; stateful, one per request."""

    def allowed(self) -> np.ndarray:
        """Booleans, shape (V,): the allowed set of the present state, end-of-sequence included when accepting.

        V is the tokenizer's vocabulary; a network's head may be wider, what lies beyond V is never allowed.
        """
        ...

    def advance(self, token_id: int) -> None:
        """Takes the sampled token; not called for an end-of-sequence token."""
        ...

    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        ...


@dataclass(frozen=True)
class Sampling:
    """How a batch is sampled.

    Attributes:
        max_tokens: the longest reply in tokens, end-of-sequence included.
        temperature: 0 takes the likeliest token; above 0 every request needs its own generator.
        stop: strings that end a reply; the text ends before the first of them.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    stop: tuple[str, ...] = ()

    def __post_init__(self):
        if (
            self.max_tokens < 1
            or not 0 <= self.temperature < float("inf")
            or isinstance(self.stop, str)
            or "" in self.stop
        ):
            raise UsageError(
                f"{self}: expected max_tokens >= 1, a finite temperature >= 0, stop a tuple of non-empty strings"
            )


@dataclass(frozen=True)
class Request:
    """A conversation that awaits its next assistant turn.

    Attributes:
        messages: the conversation so far.
        rng: this episode's generator; one uniform draw a sampled token, so that an episode's randomness does
            not depend on its neighbours in the batch.
        mask: restricts the reply's tokens (capability "mask"). It goes on from where it stands, and is left where the
            reply ended: one request, one matcher, and a fresh one or `reset()` for the next.
        key: names the turn for the scripted and replay backends: (task, surface, seed, step).
    """

    messages: tuple[Message, ...]
    rng: np.random.Generator | None = None
    mask: TokenMask | None = None
    key: tuple = ()


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply.

    Attributes:
        prompt_tokens: the prompt's.
        cached_tokens: how many of those came out of a cache.
        completion_tokens: the sampled ones, end-of-sequence included.
        message_tokens: what each message added to the prompt (see `Model.count_messages`); empty where the
            backend cannot count.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    message_tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Generation:
    """A reply.

    Attributes:
        text: without the stop string and without end-of-sequence.
        token_ids: every sampled token, end-of-sequence and stop string included; empty where the backend has none.
        finish: "stop" (ended by itself or by a stop string), "length" (cut at max_tokens), "lost" (connection broke).
        usage: counted tokens.
        logprobs: natural log of each sampled token's probability under the unmasked distribution at
            temperature 1; None unless asked for.
        legal_mass: for each sampled token Z_t, the probability at temperature 1 of the allowed set it was taken from;
            None unless log-probabilities were asked for under a mask. Then, in bits, the masked reply's surprisal
            at temperature 1 is sum(-log2 p) + sum(log2 Z_t).
        overruled: for each sampled token, whether the mask refused the one that the model found likeliest; None likewise.
    """

    text: str
    token_ids: tuple[int, ...]
    finish: Finish
    usage: Usage
    logprobs: tuple[float, ...] | None = None
    legal_mass: tuple[float, ...] | None = None
    overruled: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class Score:
    """A text's tokens and the natural log of each one's probability after the prompt and its predecessors."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


class Model(Protocol):
    """What every backend offers.

    Attributes:
        name: what reports call the model.
        digest: SHA-256 that identifies the weights, script or recording.
        capabilities: names from CAPABILITIES.
        context_tokens: longest prompt plus reply, in tokens.
        info: dtype, device, quantisation, revision, notes and the like, for the manifest; plain JSON values.
    """

    name: str
    digest: str
    capabilities: frozenset[str]
    context_tokens: int
    info: Mapping[str, Any]

    def render(self, messages: Sequence[Message]) -> str:
        """The exact prompt text, the opening of the assistant's turn included (capability "count")."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a plain text (capability "count")."""
        ...

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        """Tokens that each message adds to the prompt; their sum is the prompt's token count (capability "count").

        The first entry includes what the template puts before it, the last the opening of the assistant's turn.
        """
        ...

    def fits(self, request: Request, max_tokens: int) -> bool:
        """Whether the prompt and a reply of max_tokens fit the context."""
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False) -> list[Generation]:
        """One reply a request, in their order.

        Raises:
            ContextOverflowError: naming the first request that does not fit; nothing has been generated then.
            UnsupportedError: a mask or log-probabilities where they are not declared.
            UsageError: temperature above 0 without a generator.
        """
        ...

    def score(self, messages: Sequence[Message], text: str) -> Score:
        """Log-probabilities of a text as the next assistant turn (capability "score")."""
        ...


def require(model: Model, capability: str) -> None:
    """Raises UnsupportedError unless the model declares the capability."""
    if capability not in model.capabilities:
        offered = ", ".join(sorted(model.capabilities)) or "nothing beyond generating"
        raise UnsupportedError(
            f"the model {model.name!r} does not offer {capability!r} ({CAPABILITIES[capability]}); it offers: {offered}"
        )


def require_for(model: Model, requests: Sequence[Request], logprobs: bool) -> None:
    """Raises UnsupportedError where a batch asks for what the model does not declare."""
    if logprobs:
        require(model, "logprobs")
    masks = [request.mask for request in requests if request.mask is not None]
    if masks:
        require(model, "mask")
    if not all(hasattr(mask, "allowed") for mask in masks):
        raise UsageError("a request's mask has no allowed(); expected a matcher: grammar.matcher(vocabulary)")
    if len({id(mask) for mask in masks}) < len(masks):
        raise UsageError("two requests share one mask; give each a matcher of its own")
    if len(requests) > 1:
        require(model, "batch")


def check_context(model: Model, prompt_tokens: Sequence[int], max_tokens: int) -> None:
    """Raises ContextOverflowError for the first prompt that leaves no room for max_tokens; .request_index names it."""
    for index, tokens in enumerate(prompt_tokens):
        if tokens + max_tokens > model.context_tokens:
            raise ContextOverflowError(tokens, max_tokens, model.context_tokens, index)


def cut_at_stop(text: str, stop: Sequence[str]) -> str | None:
    """The text before the earliest stop string, or None where it has none."""
    places = [place for place in (text.find(string) for string in stop) if place >= 0]
    return text[: min(places)] if places else None
