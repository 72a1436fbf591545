"""A constrained decoding step of the embedded model beside an unconstrained one.

Both arms decode the same prompts through the same loop, in turns; end-of-sequence ends neither, so that step k has
the same context length in both. A step lasts from one call of the network to the next: the network, the choice of a
token for every row, and the mask. Texts differ, so steps are compared position by position, by their medians.
Each run compiles its schema anew: what a grammar remembers starts empty, what belongs to the vocabulary is warm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bench.clocks import CLOCKS

from modtools.masking import Vocabulary, compile_json_schema
from modtools.models import Message, Request, Sampling
from modtools.models.decode import decode

# Calls of two tools, one after another without an end: keys, enumerations, free and bounded strings, numbers.
SCHEMA = {
    "type": "array",
    "minItems": 1000,
    "items": {
        "type": "object",
        "properties": {
            "tool": {"enum": ["read_file", "search"]},
            "path": {"type": "string", "maxLength": 60},
            "query": {"type": "string"},
            "line": {"type": "integer", "minimum": 1},
        },
        "required": ["tool", "path"],
        "additionalProperties": False,
    },
}
PROMPT = "Write JSON only: a list of calls of the tools read_file and search, about file number {} of the project."


class TimedMask:
    """A matcher that adds up its own seconds."""

    def __init__(self, matcher: Any, clock: Callable[[], float]):
        self.matcher, self.clock, self.spent_s, self.steps = matcher, clock, 0.0, 0
        self.is_accepting = matcher.is_accepting

    def allowed(self) -> np.ndarray:
        started = self.clock()
        allowed = self.matcher.allowed()
        self.spent_s += self.clock() - started
        self.steps += 1
        return allowed

    def advance(self, token_id: int) -> None:
        started = self.clock()
        self.matcher.advance(token_id)
        self.spent_s += self.clock() - started


def measure(
    model: Any,
    vocabulary: Vocabulary,
    batches: Sequence[int] = (1, 15),
    steps: int = 40,
    runs: int = 10,
    clock: str = "wall",
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Any]:
    """Measures all batch sizes.

    Args:
        model: a HuggingFaceModel.
        vocabulary: its tokens.
        steps: tokens a reply; runs: replies an arm.
        clock: a name from CLOCKS.
        progress: called with the batch, the runs done and their number.

    Returns:
        `ratio` (constrained / unconstrained, the first batch size), `better`, `batches` by size, `settings`.
    """
    results, total = {}, len(batches) * (runs + 1)
    for n, rows in enumerate(batches):
        times: dict[str, list[np.ndarray]] = {"free": [], "masked": []}
        masks: list[TimedMask] = []
        for run in range(runs + 1):
            progress(f"batch of {rows}:", n * (runs + 1) + run, total)
            for arm in ("free", "masked") if run % 2 else ("masked", "free"):
                made = _masks(vocabulary, rows, CLOCKS[clock]) if arm == "masked" else [None] * rows
                seconds = _step_seconds(model, made, steps, CLOCKS[clock])
                if run > 0:  # the first run warms up
                    times[arm].append(seconds)
                    masks += [mask for mask in made if mask is not None]
        results[str(rows)] = _figures(times, masks, rows)
    progress("", total, total)
    return {
        "ratio": results[str(batches[0])]["ratio"],
        "better": "lower",
        "batches": results,
        "settings": {
            "steps": steps,
            "runs": runs,
            "model": model.name,
            **{k: model.info[k] for k in ("device", "dtype")},
        },
    }


def _masks(vocabulary: Vocabulary, rows: int, clock: Callable[[], float]) -> list[TimedMask]:
    grammar = compile_json_schema(SCHEMA, whitespace=1)
    return [TimedMask(grammar.matcher(vocabulary), clock) for _ in range(rows)]


def _step_seconds(model: Any, masks: Sequence[TimedMask | None], steps: int, clock: Callable[[], float]) -> np.ndarray:
    """Seconds of each step but the prompt's and the last, shape (steps - 2,)."""
    calls = [(Message("user", PROMPT.format(row)),) for row in range(len(masks))]
    requests = [Request(call, mask=mask) for call, mask in zip(calls, masks)]
    prompts, starts = [model.prompter.encode(call) for call in calls], []
    hook = model.network.register_forward_pre_hook(lambda *_: starts.append(clock()))
    try:
        decode(model.network, prompts, requests, Sampling(max_tokens=steps), frozenset(), model.prompter.decode)
    finally:
        hook.remove()
    return np.diff(starts)[1:]


def _figures(times: dict[str, list[np.ndarray]], masks: Sequence[TimedMask], rows: int) -> dict[str, Any]:
    medians = {arm: np.median(seconds, axis=0) for arm, seconds in times.items()}
    by_run = np.sum(times["masked"], axis=1) / np.sum(times["free"], axis=1)
    mask_s = sum(mask.spent_s for mask in masks) / sum(mask.steps for mask in masks)
    free_s = float(medians["free"].mean())
    return {
        "ratio": float(medians["masked"].sum() / medians["free"].sum()),
        "ratio_by_run": {"least": float(by_run.min()), "p50": float(np.median(by_run)), "most": float(by_run.max())},
        "free_step_ms": free_s * 1e3,
        "masked_step_ms": float(medians["masked"].mean()) * 1e3,
        "mask_us_per_row": mask_s * 1e6,
        "mask_share_of_step": mask_s * rows / free_s,
    }
