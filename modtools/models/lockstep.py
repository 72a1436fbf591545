"""Conversations that go on: a batch whose prompts begin with what was read at the turn before is not read anew.

What is kept is found again by its tokens alone. A prompt that goes on from a conversation of the last call is read
from where the two part; where a reply is tokenised otherwise than it was sampled, that is a few tokens earlier. And a
beginning that several prompts of one call share, such as the system message with the tools, is read once.
"""

from __future__ import annotations

from collections.abc import Sequence

from modtools.models.context import Context, Reading, can_be_read_on
from modtools.models.huggingface import HuggingFaceModel
from modtools.models.model import Generation, Model, Request, Sampling

SHORTEST = 32  # tokens; a shorter beginning is not worth keeping
_KEPT_BEGINNINGS = 8


class Lockstep:
    """One group of conversations with one model; make another for the next group, or go on with this one."""

    def __init__(self, model: HuggingFaceModel):
        self.model = model
        self._beginnings: dict[tuple[int, ...], Reading] = {}
        self._conversations: list[Reading] = []

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """As `Model.generate`; `usage.cached_tokens` says what was not read anew."""
        prompts = self.model.prompts(requests, sampling)
        read = self._read_before(prompts)
        generations, readings = self.model.reply(requests, prompts, sampling, read=read)
        self._conversations = readings
        return generations

    def _read_before(self, prompts: Sequence[Sequence[int]]) -> list[Reading | None]:
        """For each prompt the longest reading of its beginning; each conversation goes on once."""
        free, found = list(self._conversations), []
        for prompt in prompts:
            shared = [_common(each.tokens, prompt) for each in free]
            best = max(range(len(free)), key=shared.__getitem__, default=None)
            if best is not None and shared[best] >= SHORTEST:
                found.append(free.pop(best).first(shared[best]))
            else:
                found.append(None)
        self._conversations = free
        new = [prompt for prompt, reading in zip(prompts, found) if reading is None]
        self._read_beginnings(new)
        return [reading or self._beginning(prompt) for prompt, reading in zip(prompts, found)]

    def _beginning(self, prompt: Sequence[int]) -> Reading | None:
        lengths = {key: _common(key, prompt) for key in self._beginnings}
        best = max(lengths, key=lengths.__getitem__, default=None)
        return self._beginnings[best].first(lengths[best]) if best and lengths[best] >= SHORTEST else None

    def _read_beginnings(self, prompts: Sequence[Sequence[int]]) -> None:
        """Read what several of the prompts begin with, where that was not read before."""
        groups: dict[tuple[int, ...], tuple[int, ...]] = {}
        for prompt in prompts:
            head = tuple(prompt[:SHORTEST])
            before = groups.get(head)
            groups[head] = tuple(prompt[: _common(before, prompt)]) if before else tuple(prompt)
        counts = {head: sum(tuple(prompt[:SHORTEST]) == head for prompt in prompts) for head in groups}
        due = [
            beginning
            for head, beginning in groups.items()
            if counts[head] > 1
            and len(beginning) >= SHORTEST
            and all(_common(key, beginning) < min(len(key), len(beginning)) for key in self._beginnings)
        ]
        if not due:
            return
        context = Context(self.model.network, len(due))
        context.extend(due)
        for row, beginning in enumerate(due):
            self._beginnings[beginning] = context.reading(row, beginning)
        while len(self._beginnings) > _KEPT_BEGINNINGS:
            del self._beginnings[next(iter(self._beginnings))]


def conversations(model: Model) -> Lockstep | Model:
    """What to ask turn by turn: a Lockstep where the model can keep what it has read, else the model itself."""
    can = isinstance(model, HuggingFaceModel) and can_be_read_on(model.network)
    return Lockstep(model) if can else model


def _common(one: Sequence[int], prompt: Sequence[int]) -> int:
    """How many tokens the two begin with in common, at most all of the prompt but its last."""
    most = min(len(one), len(prompt) - 1)
    return next((i for i in range(most) if one[i] != prompt[i]), most)
