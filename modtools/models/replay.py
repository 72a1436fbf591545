"""A recorded run as a model: it gives back what was said, without computing anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modtools.errors import RecordError
from modtools.models.model import Generation, Message, Request, Sampling, Score, Usage, require, require_for
from modtools.records import read_json, read_lines


class ReplayModel:
    """The replies of a run folder, by key (task, surface, seed, step).

    It has no tokenizer: usage is the recorded one, and prompts can neither be rendered nor counted.

    Args:
        run_dir: a folder with manifest.json and episodes.jsonl.

    Raises:
        RecordError: a folder that is no run, a line that is no episode, two episodes with one key.
    """

    capabilities = frozenset({"batch"})

    def __init__(self, run_dir: Path):
        self.run_dir = Path(run_dir)
        self.manifest = read_json(self.run_dir / "manifest.json")
        try:
            recorded = self.manifest["model"]
            self.name, self.digest = f"replay of {recorded['name']}", recorded["digest"]
            self.info = {**recorded["info"], "backend": "replay"}
        except (KeyError, TypeError) as error:
            raise RecordError(
                f"{self.run_dir / 'manifest.json'}: expected model: {{name, digest, info}}: {error!r}"
            ) from error
        self.context_tokens = self.info.get("context_tokens", 0)
        self.episodes: dict[tuple, dict[str, Any]] = {}
        for number, episode in enumerate(read_lines(self.run_dir / "episodes.jsonl"), start=1):
            self._add(episode, f"{self.run_dir / 'episodes.jsonl'}, line {number}")

    def _add(self, episode: dict[str, Any], where: str) -> None:
        try:
            key = (episode["task"], episode["surface"], episode["seed"])
            turns = [_generation(turn) for turn in episode["turns"]]
        except (KeyError, TypeError) as error:
            raise RecordError(f"{where}: expected an episode with task, surface, seed and turns: {error!r}") from error
        if key in self.episodes:
            raise RecordError(f"{where}: a second episode for {key}; a run of one arm is expected")
        self.episodes[key] = {**episode, "turns": turns}

    def render(self, messages: Sequence[Message]) -> str:
        require(self, "count")

    def count(self, text: str) -> int:
        require(self, "count")

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        require(self, "count")

    def fits(self, request: Request, max_tokens: int) -> bool:
        """False exactly where the recorded episode ended for want of context."""
        episode = self.episodes.get(request.key[:-1], {})
        return not (episode.get("ended_by") == "context_exhausted" and request.key[-1] >= len(episode["turns"]))

    def generate(self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False) -> list[Generation]:
        """The recorded replies; sampling is what was recorded, whatever is asked for."""
        require_for(self, requests, logprobs)
        return [self._turn(request.key) for request in requests]

    def score(self, messages: Sequence[Message], text: str) -> Score:
        require(self, "score")

    def _turn(self, key: tuple) -> Generation:
        turns = self.episodes[key[:-1]]["turns"] if key[:-1] in self.episodes else []
        if not turns or not 0 <= key[-1] < len(turns):
            recorded = (
                f"this episode has {len(turns)} turns" if turns else f"it has {len(self.episodes)} other episodes"
            )
            raise RecordError(f"{self.run_dir} has no reply for key {key!r} (task, surface, seed, step); {recorded}")
        return turns[key[-1]]


def _generation(turn: dict[str, Any]) -> Generation:
    usage = {**turn["usage"], "message_tokens": tuple(turn["usage"].get("message_tokens", ()))}
    return Generation(turn["text"], tuple(turn.get("token_ids", ())), turn["finish"], Usage(**usage))
