"""A model that says what a script says: for demonstrations, tests and experiments on the harness alone.

Needs neither torch nor transformers. It counts tokens with a simple tokenizer of its own: a token is a run of
letters, digits and underscores, or a run of whitespace, or one other character.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence

from modtools.contract import digest
from modtools.errors import UsageError
from modtools.models.model import (
    Generation,
    Message,
    Model,
    Request,
    Sampling,
    Score,
    Usage,
    check_context,
    cut_at_stop,
    require,
    require_for,
)

Replies = Sequence[str]
Script = Replies | Mapping[tuple, Replies] | Callable[[Sequence[Message]], str]

PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)


class ScriptedModel:
    """Replies from a script; deterministic and without state, so that a resumed run goes on as if unbroken.

    Args:
        script: a function from the messages to the reply; or replies by the beginning of a request's key, the
            longest that matches counting; or plain replies for every key. The last part of a request's key,
            the step, says which of the replies is due.
        name: what reports call it.
        context_tokens: its context length, in its own tokens.
        counted_by: a model whose tokens are counted in place of its own (capability "count"), to tell what a script
            would cost that model; a reply then counts one token more, its end.
    """

    capabilities = frozenset({"batch", "count"})

    def __init__(
        self, script: Script, name: str = "scripted", context_tokens: int = 8192, counted_by: Model | None = None
    ):
        if counted_by is not None:
            require(counted_by, "count")
            context_tokens = counted_by.context_tokens
        self.name, self.context_tokens, self.counted_by = name, context_tokens, counted_by
        if callable(script):
            self.replies, self.reply = None, script
            identity = _source(script)
        else:
            by_prefix = script if isinstance(script, Mapping) else {(): script}
            if any(not isinstance(prefix, tuple) or isinstance(replies, str) for prefix, replies in by_prefix.items()):
                raise UsageError("a script maps tuples (the beginning of a key) to sequences of replies")
            self.replies = {prefix: tuple(replies) for prefix, replies in by_prefix.items()}
            identity = sorted([repr(prefix), *replies] for prefix, replies in self.replies.items())
        self.digest = digest(identity if counted_by is None else [identity, counted_by.digest])
        self.info = {
            "backend": "scripted",
            "context_tokens": context_tokens,
            "tokens": "runs of word characters or of whitespace, other characters singly",
        }
        if counted_by is not None:
            self.info["tokens"] = f"those of {counted_by.name}"

    def render(self, messages: Sequence[Message]) -> str:
        if self.counted_by is not None:
            return self.counted_by.render(messages)
        return "".join(_turn(message) for message in messages) + "assistant:"

    def count(self, text: str) -> int:
        return len(PIECE.findall(text)) if self.counted_by is None else self.counted_by.count(text)

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        if self.counted_by is not None:
            return self.counted_by.count_messages(messages)
        counts = [self.count(_turn(message)) for message in messages]
        return counts[:-1] + [counts[-1] + self.count("assistant:")]

    def fits(self, request: Request, max_tokens: int) -> bool:
        return sum(self.count_messages(request.messages)) + max_tokens <= self.context_tokens

    def generate(self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False) -> list[Generation]:
        require_for(self, requests, logprobs)
        prompt_tokens = [sum(self.count_messages(request.messages)) for request in requests]
        check_context(self, prompt_tokens, sampling.max_tokens)
        return [self._generate(request, sampling, tokens) for request, tokens in zip(requests, prompt_tokens)]

    def score(self, messages: Sequence[Message], text: str) -> Score:
        require(self, "score")

    def _generate(self, request: Request, sampling: Sampling, prompt_tokens: int) -> Generation:
        said = self.reply(request.messages) if self.replies is None else self._scripted(request.key)
        if self.counted_by is not None:
            return self._counted(said, request, sampling, prompt_tokens)
        pieces = PIECE.findall(said)[: sampling.max_tokens]
        text, finish = "".join(pieces), "stop" if len(pieces) == self.count(said) else "length"
        before_stop = cut_at_stop(text, sampling.stop)
        if before_stop is not None:
            text, finish = before_stop, "stop"
        counts = tuple(self.count_messages(request.messages))
        return Generation(text, (), finish, Usage(prompt_tokens, 0, len(pieces), counts))

    def _counted(self, said: str, request: Request, sampling: Sampling, prompt_tokens: int) -> Generation:
        written = self.count(said) + 1
        if written > sampling.max_tokens or cut_at_stop(said, sampling.stop) is not None:
            raise UsageError(
                f"model {self.name!r}: a reply of {written} tokens of {self.counted_by.name} is said whole or not at "
                f"all; expected max_tokens of at least that ({sampling.max_tokens}), and no stop string in it"
            )
        return Generation(
            said, (), "stop", Usage(prompt_tokens, 0, written, tuple(self.count_messages(request.messages)))
        )

    def _scripted(self, key: tuple) -> str:
        if not key or not isinstance(key[-1], int):
            raise UsageError(f"model {self.name!r}: key {key!r} of the request: expected (..., step), step a number")
        prefixes = [prefix for prefix in self.replies if key[: len(prefix)] == prefix]
        if not prefixes:
            raise UsageError(f"model {self.name!r}: the script has no replies for key {key!r}")
        replies, step = self.replies[max(prefixes, key=len)], key[-1]
        if not 0 <= step < len(replies):
            raise UsageError(
                f"model {self.name!r}: the script has run out at key {key!r}: {len(replies)} replies, step {step}"
            )
        return replies[step]


def _turn(message: Message) -> str:
    return f"{message.role}: {message.content}\n"


def _source(function: Callable) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise UsageError(
            f"script {function!r}: its source, which identifies the model, cannot be read; "
            "define it with `def` in a file or notebook, or give replies instead of a function"
        ) from error
