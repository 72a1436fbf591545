"""Episodes of the lab, as it runs them, beside the same episodes through transformers' own `generate`.

Three arms run the same episodes to their ends, pipeline and verifier included:

    lockstep   groups of the plan, the cache kept across an episode's calls, shared beginnings read once
    batches    groups of 16, the whole conversation read anew at every call, through `generate`
    one by one an episode at a time, likewise

In float32 and at temperature 0 all three must write the same replies; that is checked, and an arm that does not is an
error. In 16 bits near-ties may fall otherwise, so there the share of equal replies is only told.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.clocks import CLOCKS

from modtools.errors import ModtoolsError
from modtools.lab.episode import Budget, run_group
from modtools.lab.plan import Plan, setting_of
from modtools.models import Generation, Request, Sampling
from modtools.models.huggingface import HuggingFaceModel
from modtools.models.model import Usage
from modtools.pipeline import AuditLog
from modtools.sandbox import strongest_level

ARMS = {"lockstep": 15, "batches": 16, "one by one": 1}  # episodes that go together


class PlainGenerate:
    """A model asked through transformers' `generate`, which reads every prompt from its first token."""

    def __init__(self, model: HuggingFaceModel):
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Greedy replies; as Model.generate."""
        import torch

        prompts = self.model.prompts(requests, sampling)
        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in prompts], device=self.model.network.device)
        seen = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts], device=ids.device)
        with torch.inference_mode():
            made = self.model.network.generate(
                ids,
                attention_mask=seen,
                max_new_tokens=sampling.max_tokens,
                do_sample=False,
                eos_token_id=sorted(self.model.ends),
                pad_token_id=0,
            )
        return [
            self._generation(request, prompt, row[width:].tolist(), sampling)
            for request, prompt, row in zip(requests, prompts, made, strict=True)
        ]

    def _generation(self, request: Request, prompt: list[int], row: list[int], sampling: Sampling) -> Generation:
        end = next((i for i, token in enumerate(row) if token in self.model.ends), None)
        kept = row[: sampling.max_tokens] if end is None else row[: end + 1]
        text = self.model.prompter.decode(kept if end is None else kept[:-1])
        usage = Usage(len(prompt), 0, len(kept), tuple(self.model.count_messages(request.messages)))
        return Generation(text, tuple(kept), "length" if end is None else "stop", usage)


def measure(
    model: HuggingFaceModel,
    per_stratum: int = 3,
    task_seed: int = 0,
    budget: Budget = Budget(),
    clock: str = "wall",
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Any]:
    """Measures all arms on the same episodes, at temperature 0.

    Args:
        model: to be asked.
        per_stratum: tasks a stratum, each on three surfaces.
        task_seed: from which they are drawn.
        budget: of an episode.
        clock: a name from CLOCKS.
        progress: called with the arm, the episodes done and their number.

    Returns:
        `ratio` (lockstep time / one by one) and `ratio_to_batches`, `better`, and for each arm episodes a minute,
        seconds, tokens written, tokens read and tokens not read anew, and the share of its replies that equal those of
        the lockstep arm.

    Raises:
        ModtoolsError: an arm in float32 that writes other replies.
    """
    plan = Plan(per_stratum=per_stratum, task_seed=task_seed, budget=budget)
    setting = setting_of(plan, model, strongest_level())
    jobs = [job for group in plan.jobs() for job in group]
    arms: dict[str, dict[str, Any]] = {}
    replies: dict[str, dict[tuple, list[str]]] = {}
    for name, size in ARMS.items():
        asked = model if name == "lockstep" else PlainGenerate(model)
        records = []
        with tempfile.TemporaryDirectory() as folder:
            audit, begun_s = AuditLog(Path(folder)), CLOCKS[clock]()
            for start in range(0, len(jobs), size):
                for record in run_group(jobs[start : start + size], setting, asked, audit, name):
                    records.append(record)
                    progress(name, len(records), len(jobs))
            spent_s = CLOCKS[clock]() - begun_s
        turns = [turn for record in records for turn in record["turns"]]
        replies[name] = {(r["task"], r["surface"]): [turn["text"] for turn in r["turns"]] for r in records}
        arms[name] = {
            "episodes_a_minute": 60 * len(records) / spent_s,
            "seconds": spent_s,
            "turns": len(turns),
            "tokens_written": sum(turn["usage"]["completion_tokens"] for turn in turns),
            "tokens_of_prompts": sum(turn["usage"]["prompt_tokens"] for turn in turns),
            "tokens_not_read_anew": sum(turn["usage"]["cached_tokens"] for turn in turns),
            "same_replies": sum(replies[name][key] == replies["lockstep"][key] for key in replies[name]) / len(records),
        }
    if model.info["dtype"] == "float32" and any(arm["same_replies"] < 1 for arm in arms.values()):
        raise ModtoolsError("in float32 the arms write different replies, so they cannot be compared")
    ours = arms["lockstep"]["seconds"]
    return {
        "ratio": ours / arms["one by one"]["seconds"],
        "ratio_to_batches": ours / arms["batches"]["seconds"],
        "better": "lower",
        "arms": arms,
        "settings": {"episodes": len(jobs), "model": model.name, "dtype": model.info["dtype"], "clock": clock,
                     "budget": vars(replace(budget))},
    }  # fmt: skip
