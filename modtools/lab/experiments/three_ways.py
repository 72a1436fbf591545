"""Three ways from text to a valid call, on one model and the same requests: prompt only, retry, and constrained.

    prompt only   one reply, taken as it is
    retry         a reply that is no valid call gets the pipeline's observation, and the model another turn, up to a limit
    constrained   one reply, under the mask of the replies that are a valid call of one of the tools

A reply goes through the real pipeline, with tools that do nothing. It is *valid* where the pipeline carries it out, and
*right* where it is the call that the request asks for. Masks make replies valid; whether they make them right is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from modtools.catalogue import Snapshot
from modtools.contract import Effect, Operation, Outcome, Tool, ToolContract, ToolResult, digest
from modtools.digests import one_number
from modtools.errors import UsageError
from modtools.lab.experiments.single_calls import SingleCall, single_call
from modtools.masking import Vocabulary
from modtools.models import Generation, Message, Model, Request, Sampling
from modtools.pipeline import FAILURES, AuditLog, Pipeline, Policy, Result, Rule
from modtools.pipeline import Request as ToolRequest
from modtools.pipeline.call_grammar import call_grammar
from modtools.pipeline.policy import ALLOW

PROMPT_ONLY, RETRY, CONSTRAINED = "prompt only", "retry", "constrained"
WAYS = (PROMPT_ONLY, RETRY, CONSTRAINED)


@dataclass(frozen=True)
class Experiment:
    """What is asked.

    Attributes:
        requests: how many; every other one is of tools that no demonstration has.
        seed: from which they are drawn; no demonstration is drawn from it.
        retries: most further turns of the way "retry".
        reply_tokens: longest reply.
        group: requests that go to the model together.
        reasons: whether the model is told to reason before its call, and the mask lets it.
    """

    requests: int = 120
    seed: int = 0
    retries: int = 2
    reply_tokens: int = 160
    group: int = 16
    reasons: bool = False

    def calls(self) -> list[tuple[bool, SingleCall]]:
        """(whether its tools are unseen, the request), in order."""
        made = [(number % 2 == 1, Random(f"three ways/{self.seed}/{number}")) for number in range(self.requests)]
        calls = [(unseen, single_call(rng, unseen)) for unseen, rng in made]
        return [(unseen, _reasoning(call)) for unseen, call in calls] if self.reasons else calls


def _reasoning(call: SingleCall) -> SingleCall:
    system, asked = call.messages
    told = system.content.replace(
        "Reply with one call and nothing after it:",
        "First say in a sentence or two which tool fits and why. Then give one call between <tool_call> and </tool_call>:",
    )
    return replace(call, messages=(Message("system", told), asked))


def run_way(
    model: Model,
    experiment: Experiment,
    way: str,
    vocabulary: Vocabulary | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    skip: frozenset[int] = frozenset(),
    change: Callable[[SingleCall], SingleCall | None] = lambda call: call,
) -> Iterator[dict[str, Any]]:
    """Ask all requests one way.

    Args:
        model: answers, at temperature 0.
        experiment: what is asked.
        way: one of WAYS.
        vocabulary: of the model, for the way "constrained".
        on_progress: told requests done and in all.
        skip: numbers of requests that are on file already; groups that are on file whole are not asked again.
        change: makes another request of each, or None of one that is left out.

    Yields:
        One record a request, which the lab's metrics can read: its number as "task", way, model, whether its tools are
        unseen, replies, stage and code of the first reply's failure, attempts, valid, "success" (right), tokens read and
        written, seconds, seconds of compiling, and under a mask Z_t and the steps at which the mask overruled the model.

    Raises:
        UsageError: for an unknown way, or constrained without a vocabulary.
    """
    if way not in WAYS:
        raise UsageError(f"unknown way {way!r}; choose one of {', '.join(WAYS)}")
    if (vocabulary is None) == (way == CONSTRAINED):
        raise UsageError(
            f"the way {way!r} {'needs the vocabulary of the model' if way == CONSTRAINED else 'takes no mask'}"
        )
    changed = [(number, (unseen, change(call))) for number, (unseen, call) in enumerate(experiment.calls())]
    calls = [(number, asked) for number, asked in changed if asked[1] is not None]
    for start in range(0, len(calls), experiment.group):
        group = calls[start : start + experiment.group]
        if not all(number in skip for number, _ in group):
            for record in _group(model, experiment, way, vocabulary, group):
                if record["task"] not in skip:
                    yield record
        on_progress(min(start + experiment.group, len(calls)), len(calls))


def _group(
    model: Model, experiment: Experiment, way: str, vocabulary: Vocabulary | None, group: Sequence[Any]
) -> list[dict[str, Any]]:
    """A batch a turn, until every request of the group has ended."""
    waiting = [_Asked(number, unseen, call, way, model.name) for number, (unseen, call) in group]
    asked, sampling = list(waiting), Sampling(experiment.reply_tokens)
    while waiting:
        requests = []
        for each in waiting:
            mask = None
            if vocabulary is not None:
                began = time.perf_counter()
                form = "prose" if experiment.reasons else "json"
                mask = call_grammar(each.call.tools, form).matcher(vocabulary)
                each.compile_s += time.perf_counter() - began
            requests.append(Request(tuple(each.messages), mask=mask, key=(each.number, way, len(each.replies))))
        began = time.perf_counter()
        generations = model.generate(requests, sampling, logprobs=vocabulary is not None)
        share = (time.perf_counter() - began) / len(waiting)
        for each, generation in zip(waiting, generations, strict=True):
            each.take(generation, share)
        waiting = [
            each for each in waiting if way == RETRY and not each.valid and len(each.replies) <= experiment.retries
        ]
    return [each.record() for each in asked]


class _Asked:
    """A request under way."""

    def __init__(self, number: int, unseen: bool, call: SingleCall, way: str, model: str):
        self.number, self.unseen, self.call, self.way, self.model = number, unseen, call, way, model
        self.messages, self.replies = list(call.messages), []
        self.pipeline = idle_pipeline(call.tools)
        self.valid = self.right = False
        self.first_code = self.finish = ""
        self.read = self.written = 0
        self.seconds = self.compile_s = 0.0
        self.legal_mass: tuple[float, ...] = ()
        self.overruled: tuple[bool, ...] = ()

    def take(self, generation: Generation, seconds: float) -> None:
        """Put a reply through the pipeline and note what became of it."""
        request = ToolRequest(f"{self.way}/{self.number}/{len(self.replies)}", generation.text, generation.finish)
        result = self.pipeline.run(request)
        self.replies.append(generation.text)
        self.valid = result.outcome is Outcome.SUCCESS
        self.right = self.valid and is_right(result, self.call)
        if not self.valid and len(self.replies) == 1:
            self.first_code = result.observation.code
        self.read += generation.usage.prompt_tokens
        self.written += generation.usage.completion_tokens
        self.seconds += seconds
        self.legal_mass, self.overruled = generation.legal_mass or (), generation.overruled or ()
        self.finish = generation.finish
        self.messages += [Message("assistant", generation.text), Message("user", result.observation.text)]

    def record(self) -> dict[str, Any]:
        """The request's line."""
        return {
            "task": self.number,
            "way": self.way,
            "model": self.model,
            "unseen": self.unseen,
            "tools": len(self.call.tools),
            "replies": self.replies,
            "attempts": len(self.replies),
            "finish": self.finish,
            "first_code": self.first_code,
            "first_stage": FAILURES[self.first_code].stage if self.first_code else "",
            "valid": self.valid,
            "success": self.right,
            "read": self.read,
            "written": self.written,
            "seconds": round(self.seconds, 4),
            "compile_s": round(self.compile_s, 4),
            "legal_mass": [round(mass, 6) for mass in self.legal_mass],
            "overruled": [step for step, refused in enumerate(self.overruled) if refused],
        }


def idle_pipeline(tools: Sequence[ToolContract]) -> Pipeline:
    """The real pipeline over tools that do nothing and may do it."""

    def canonicalise(arguments: dict[str, Any], context: Any, name: str) -> Operation:
        return Operation(name, arguments, (f"tool:{name}",), Effect.READ)

    def idle(operation: Operation, context: Any) -> ToolResult:
        return ToolResult("done")

    made = [
        Tool(replace(tool, effect=Effect.READ, risk="low", approval="none"),
             lambda arguments, context, n=tool.name: canonicalise(arguments, context, n), idle)
        for tool in tools
    ]  # fmt: skip
    return Pipeline(Snapshot.of(made), Policy((Rule(ALLOW, "*"),)), AuditLog())


def is_right(result: Result, call: SingleCall) -> bool:
    """Whether a call that was carried out is the one that was asked for; key order and 1 = 1.0 do not matter."""
    done = result.operation
    if done is None:
        return False
    return digest([done.action, one_number(done.arguments)]) == digest(
        [call.call["name"], one_number(call.call["arguments"])]
    )
