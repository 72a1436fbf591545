"""An episode: one task, one surface, one seed, from the first message to the verifier's verdict.

Episodes that stand in one group of the plan go in lockstep: each turn is one batch for the model. An episode
ends by the finish message, by its budget, or because the context is exhausted.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modtools.contract import Outcome, digest
from modtools.lab.injected_fault import Fault, with_fault
from modtools.lab.prompt import first_messages
from modtools.lab.tasks import Task, materialise
from modtools.lab.verify import verify
from modtools.models import Generation, Message, Model, Request, Sampling
from modtools.models.lockstep import conversations
from modtools.pipeline import FAILURES, AuditLog, Result
from modtools.pipeline import Request as ToolRequest
from modtools.surfaces import Surface

TOKEN_PARTS = ("schema", "prompt", "history", "observation", "reasoning", "call")


@dataclass(frozen=True)
class Budget:
    """What an episode may use; the same on every surface.

    Attributes:
        turns_base, turns_per_c: an episode of complexity c has turns_base + turns_per_c * c turns.
        reply_tokens: longest reply, in tokens.
        failures_in_a_row: replies without an executed call after which the episode is ended.
    """

    turns_base: int = 4
    turns_per_c: int = 2
    reply_tokens: int = 384
    failures_in_a_row: int = 3

    def turns(self, c: int) -> int:
        """Turns for a task of complexity c."""
        return self.turns_base + self.turns_per_c * c


@dataclass(frozen=True)
class Setting:
    """What all episodes of a run share.

    Attributes:
        arm: names model, surface switches and decoding (see `lab.plan`).
        temperature: of the sampling.
        budget: see Budget.
        sandbox_level: for programs, tests and the verifier.
        schema_tokens: surface name -> l(s) in tokens of the model.
        inject_fault: whether each episode meets the fault of `lab.injected_fault`.
    """

    arm: str
    temperature: float
    budget: Budget
    sandbox_level: str
    schema_tokens: dict[str, int]
    inject_fault: bool = False


@dataclass(frozen=True)
class Job:
    """One episode to be run."""

    task: Task
    surface: Surface
    seed: int


class _Episode:
    """An episode under way: messages, workspace, and what has been counted so far."""

    def __init__(self, job: Job, setting: Setting, audit: AuditLog, attempt: str, prefix: str = "modtools-episode-"):
        self.job, self.setting, self.attempt = job, setting, attempt
        self.messages: list[Message] = list(first_messages(job.task, job.surface))
        self.folder = Path(tempfile.mkdtemp(prefix=prefix))
        materialise(job.task, self.folder)
        self.fault = Fault() if setting.inject_fault else None
        surface = with_fault(job.surface, self.fault) if self.fault else job.surface
        self.pipeline = surface.pipeline(self.folder, setting.sandbox_level, audit)
        self.struck_at: int | None = None  # the turn of the fault
        self.turns: list[dict[str, Any]] = []
        self.failures_in_a_row = 0
        self.ended_by = ""
        self.budget_part = ""
        self.started = time.perf_counter()

    def request(self) -> Request:
        """The next turn's request. Its generator is keyed by (task, surface, seed, step): no neighbour can shift it."""
        step = len(self.turns)
        key = (self.job.task.id, self.job.surface.name, self.job.seed, step)
        rng = np.random.default_rng(int(digest(list(key))[:16], 16))
        return Request(tuple(self.messages), rng=rng, key=key)

    def take(self, generation: Generation) -> None:
        """Put a reply through the pipeline, note it, and see whether the episode ends."""
        task, surface, step = self.job.task, self.job.surface, len(self.turns)
        request_id = f"{self.setting.arm}/{task.id}/{surface.name}/{self.job.seed}/{step}@{self.attempt}"
        result = self.pipeline.run(ToolRequest(request_id, generation.text, generation.finish))
        self.turns.append(self._turn(generation, result))
        if self.fault:
            self.struck_at = step if self.fault.operation and self.struck_at is None else self.struck_at
            self.fault.look(self.folder)
        if result.finished:
            self.ended_by = "finish"
            return
        self.messages += [Message("assistant", generation.text), Message("user", result.observation.text)]
        executed = result.outcome in (Outcome.SUCCESS, Outcome.PARTIAL)
        self.failures_in_a_row = 0 if executed else self.failures_in_a_row + 1
        if self.failures_in_a_row >= self.setting.budget.failures_in_a_row:
            self.ended_by, self.budget_part = "budget", "failures_in_a_row"
        elif len(self.turns) >= self.setting.budget.turns(task.c):
            self.ended_by, self.budget_part = "budget", "turns"

    def record(self) -> dict[str, Any]:
        """The episode's line, verdict included."""
        task = self.job.task
        verdict = verify(task, self.folder, self.setting.sandbox_level)
        calls = [turn for turn in self.turns if turn["outcome"] != "finished"]
        tokens = {part: sum(turn["tokens"][part] for turn in self.turns) for part in TOKEN_PARTS}
        return {
            "arm": self.setting.arm,
            "task": task.id,
            "surface": self.job.surface.name,
            "seed": self.job.seed,
            "stratum": task.c,
            "family": task.family,
            "u": task.u,
            "success": verdict.passed and self.ended_by != "context_exhausted",
            "ended_by": self.ended_by,
            "budget_part": self.budget_part,
            **({"fault": self._fault()} if self.fault else {}),
            "calls": len(calls),
            "tokens": tokens,
            "outcomes": dict(Counter(turn["outcome"] for turn in calls)),
            "codes": dict(Counter(turn["code"] for turn in calls if turn["code"])),
            "stages": dict(
                Counter(FAILURES[t["code"]].stage for t in calls if t["code"] and t["outcome"] != "success")
            ),
            "verdict": {"ran": verdict.ran, "failed": verdict.failed, "detail": verdict.detail[:300]},
            "wall_s": round(time.perf_counter() - self.started, 3),
            "turns": self.turns,
        }

    def _fault(self) -> dict[str, Any] | None:
        """How the episode took its fault; None where no call of it changed anything."""
        if self.struck_at is None:
            return None
        return {"turn": self.struck_at, "operation": self.fault.operation, "recovered": self.fault.recovered}

    def close(self) -> None:
        """Remove the workspace."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _turn(self, generation: Generation, result: Result) -> dict[str, Any]:
        start, end = result.span
        return {
            "text": generation.text,
            "finish": generation.finish,
            "usage": asdict(generation.usage),
            "tokens": self._tokens(generation, generation.text[start:end]),
            "outcome": "finished" if result.finished else str(result.outcome),
            "code": result.observation.code,
            "action": result.operation.action if result.operation else None,
            "operation": result.operation.digest if result.operation else None,
            "observation": result.observation.text,
        }

    def _tokens(self, generation: Generation, call_text: str) -> dict[str, int]:
        """This turn's cost by part; the parts sum to prompt plus reply.

        The schema and the rest of the first two messages are read at every turn; the newest observation for
        the first time; everything between has been read before and is history. A reply's tokens are split
        in proportion to the characters that belong to its call.
        """
        system, task, *later = generation.usage.message_tokens
        schema = self.setting.schema_tokens[self.job.surface.name]
        reply = generation.usage.completion_tokens
        call = round(reply * len(call_text) / len(generation.text)) if generation.text else 0
        return {
            "schema": schema,
            "prompt": system + task - schema,
            "history": sum(later[:-1]),
            "observation": later[-1] if later else 0,
            "reasoning": reply - call,
            "call": call,
        }


def run_group(
    jobs: Sequence[Job],
    setting: Setting,
    model: Model,
    audit: AuditLog,
    attempt: str,
    on_turn: Callable[[int], None] = lambda tokens: None,
    prefix: str = "modtools-episode-",
) -> Iterator[dict[str, Any]]:
    """Run episodes in lockstep and yield each one's record as it ends.

    Args:
        jobs: the episodes of one group of the plan.
        setting: of the run.
        model: answers a batch a turn.
        audit: receives every call.
        attempt: names this process's try, so that a repeated episode's requests have new ids.
        on_turn: told the number of tokens that each batch generated.
        prefix: of the workspaces' names, so that those of a dead process can be found.

    Yields:
        Episode records, in the order in which they end.
    """
    sampling = Sampling(setting.budget.reply_tokens, setting.temperature)
    active, speaker = [], conversations(model)
    try:
        for job in jobs:
            active.append(_Episode(job, setting, audit, attempt, prefix))
        while active:
            requests = [episode.request() for episode in active]
            fitting = []
            for episode, request in zip(list(active), requests):
                if model.fits(request, sampling.max_tokens):
                    fitting.append((episode, request))
                else:
                    episode.ended_by = "context_exhausted"
            generations = speaker.generate([request for _, request in fitting], sampling) if fitting else []
            on_turn(sum(generation.usage.completion_tokens for generation in generations))
            for (episode, _), generation in zip(fitting, generations):
                episode.take(generation)
            for episode in [e for e in active if e.ended_by]:
                yield episode.record()
                episode.close()
                active.remove(episode)
    finally:
        for episode in active:
            episode.close()
