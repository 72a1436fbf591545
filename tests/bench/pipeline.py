"""A call through the whole pipeline beside the same call through an MCP client in memory.

Four arms call one tool, `read_file(path)`, whose text is made up and costs next to nothing, with a new path each time:

    audited    the pipeline from the model's text to the observation, with its audit on disk
    unwritten  the same with its audit in memory
    mcp        `mcp.Client` on a server object of this process: no network, no bytes, protocol 2026-07-28
    function   the plain function, the floor

The first three check the argument against a schema, run the function in a thread, and check the result against a
schema. The pipeline also finds and parses the call in the text, canonicalises, authorises and records it.

A sample is a number of calls begun together and waited for, and its time is shared out among them: for one at a time
that is how long a call takes, for more it is throughput. The pipeline is then called from threads, the client from
tasks of one event loop, as each is meant to be used; the function is called in a loop. The arms take turns of a few
samples in an order drawn anew for each round. A ratio is that of the medians of all samples.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import random
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from bench.clocks import CLOCKS

from modtools.catalogue import Snapshot
from modtools.contract import Effect, Operation, Tool, ToolContract, ToolResult
from modtools.errors import MissingPieceError, ModtoolsError
from modtools.pipeline import WORKSPACE_POLICY, AuditLog, Pipeline, Request, Step
from modtools.pipeline.audit import short_artefacts

ROUNDS = 10


class ReadFile:
    """The tool's function, and the paths to call it with. While it `counts`, it keeps the most threads alive at once."""

    def __init__(self):
        self.counts, self.most_threads, self.numbers = False, 0, itertools.count()

    def __call__(self, path: str) -> str:
        if self.counts:
            self.most_threads = max(self.most_threads, threading.active_count())
        return f'"""The module {path}."""\n\nPATH = "{path}"'

    def new_paths(self, count: int) -> list[str]:
        """Paths that were not read before."""
        return [f"src/module_{number}.py" for number in itertools.islice(self.numbers, count)]


class PipelineArm:
    """The pipeline; with several calls at once, from the threads of a pool."""

    def __init__(self, read: ReadFile, folder: Path | None, clock: Callable[[], float]):
        self.folder, self.clock, self.ids = folder, clock, itertools.count()
        self.pipeline = Pipeline(Snapshot.of((_tool(read),)), WORKSPACE_POLICY, AuditLog(folder))
        self.steps_s: dict[Step, list[float]] = {step: [] for step in Step}

    async def sample(self, paths: Sequence[str], pool: Executor) -> tuple[float, list[str]]:
        """Seconds for all calls together, and the texts they read."""
        calls = [json.dumps({"name": "read_file", "arguments": {"path": path}}) for path in paths]
        requests = [Request(f"call-{next(self.ids)}", call) for call in calls]
        begun_s = self.clock()
        results = list((pool.map if len(paths) > 1 else map)(self.pipeline.run, requests))
        spent_s = self.clock() - begun_s
        for record in results[0].trace if len(paths) == 1 else ():
            self.steps_s[record.step].append(record.duration_s)
        return spent_s, [result.observation.text.partition("\n")[2] for result in results]

    def bytes_a_call(self) -> dict[str, float]:
        """What the audit has grown by for each call."""
        calls, lines = next(self.ids), (self.folder / "audit.jsonl").read_bytes()
        artefacts = [len(text) for text in short_artefacts(self.folder).values()]
        return {
            "lines": lines.count(b"\n") / calls,
            "line_bytes": len(lines) / calls,
            "artefacts": len(artefacts) / calls,
            "artefact_bytes": sum(artefacts) / calls,
        }


class McpArm:
    """An MCP client; with several calls at once, from as many tasks."""

    def __init__(self, client: Any, clock: Callable[[], float]):
        self.client, self.clock = client, clock

    async def sample(self, paths: Sequence[str], pool: Executor) -> tuple[float, list[str]]:
        """As PipelineArm.sample."""
        begun_s = self.clock()
        calls = [self.client.call_tool("read_file", {"path": path}) for path in paths]
        results = await asyncio.gather(*calls) if len(calls) > 1 else [await calls[0]]
        return self.clock() - begun_s, [result.structured_content["result"] for result in results]


class FunctionArm:
    """The function itself; never more than one at a time."""

    def __init__(self, read: ReadFile, clock: Callable[[], float]):
        self.read, self.clock = read, clock

    async def sample(self, paths: Sequence[str], pool: Executor) -> tuple[float, list[str]]:
        """As PipelineArm.sample."""
        begun_s = self.clock()
        texts = [self.read(path) for path in paths]
        return self.clock() - begun_s, texts


def measure(
    calls: int = 2000,
    at_once: Sequence[int] = (1, 8, 64),
    seed: int = 0,
    clock: str = "wall",
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Any]:
    """Measures every arm with every number of calls at once.

    Args:
        calls: of an arm, for each number at once; at least ROUNDS samples are taken.
        at_once: numbers of calls begun together, ascending.
        seed: of the order of turns.
        clock: a name from CLOCKS.
        progress: called with the number at once, the rounds done and their number.

    Returns:
        `ratio` (audited / mcp at the first number at once), `better`, `rows` with one entry for each number at once,
        `audit` (lines, artefacts and their bytes a call), `steps_us` (median wall time of each step of a call, one
        call at a time, audited), `settings`.

    Raises:
        MissingPieceError: where mcp is not installed.
        ModtoolsError: where an arm gives another text than the function.
    """
    gc.freeze()  # what this process has loaded so far is not walked through in anyone's time
    try:
        data = asyncio.run(_measure(calls, at_once, random.Random(seed), CLOCKS[clock], progress))
    finally:
        gc.unfreeze()
    settings = {"calls": calls, "seed": seed, "clock": clock, "mcp": version("mcp")}
    return {"ratio": data["rows"][0]["ratio"], "better": "lower", **data, "settings": settings}


async def _measure(calls: int, at_once: Sequence[int], order: random.Random, clock: Callable[[], float],
                   progress: Callable[[str, int, int], None]) -> dict[str, Any]:  # fmt: skip
    try:
        from mcp import Client
        from mcp.server import MCPServer
    except ImportError as error:
        raise MissingPieceError(f"the package mcp cannot be used ({error}); pip install -e '.[bench]'") from None

    read, server, rows = ReadFile(), MCPServer("files"), []
    server.add_tool(read.__call__, name="read_file", description="Read a file.")
    with tempfile.TemporaryDirectory() as folder:
        async with Client(server) as client:
            audited = PipelineArm(read, Path(folder), clock)
            arms = {
                "audited": audited,
                "unwritten": PipelineArm(read, None, clock),
                "mcp": McpArm(client, clock),
                "function": FunctionArm(read, clock),
            }
            threads = {name: await _threads(arm, read, at_once) for name, arm in arms.items()}
            for n, together in enumerate(at_once):
                samples = {name: [] for name in arms}
                with ThreadPoolExecutor(together) as pool:
                    for done in range(ROUNDS + 1):
                        progress(f"{together} at once:", n * (ROUNDS + 1) + done, len(at_once) * (ROUNDS + 1))
                        for name in order.sample(list(arms), len(arms)):
                            gc.collect()  # so that no arm clears away what another left behind
                            turn = [await _seconds(arms[name], read, together, pool)
                                    for _ in range(max(1, calls // (ROUNDS * together)))]  # fmt: skip
                            if done > 0:  # the first round starts the pool's threads
                                samples[name].append(turn)
                of_threads = {name: counts[n] for name, counts in threads.items()}
                rows.append({"at_once": together, **_figures(samples), "threads": of_threads})
        progress("", 1, 1)
        steps_us = {str(step): float(np.median(seconds)) * 1e6 for step, seconds in audited.steps_s.items()}
        return {"rows": rows, "audit": audited.bytes_a_call(), "steps_us": steps_us}


async def _threads(arm: Any, read: ReadFile, at_once: Sequence[int]) -> list[int]:
    """For each number at once the most threads beyond those there were before any call; this warms up, too."""
    before, found = threading.active_count(), []
    for together in at_once:
        read.counts, read.most_threads = True, before
        with ThreadPoolExecutor(together) as pool:
            for _ in range(5):
                await _seconds(arm, read, together, pool)
        found.append(read.most_threads - before)
    read.counts = False
    return found


async def _seconds(arm: Any, read: ReadFile, together: int, pool: Executor) -> float:
    """Seconds a call of one sample."""
    paths = read.new_paths(together)
    spent_s, texts = await arm.sample(paths, pool)
    if texts != [read(path) for path in paths]:
        raise ModtoolsError(f"{type(arm).__name__} gave {texts[0][:80]!r} and so on where the file's text was due")
    return spent_s / together


def _figures(samples: dict[str, list[list[float]]]) -> dict[str, Any]:
    """Ratios and microseconds a call, from seconds a call by arm, round and sample."""
    p50 = {name: np.median(rounds) for name, rounds in samples.items()}
    by_round = np.median(samples["audited"], axis=1) / np.median(samples["mcp"], axis=1)
    return {
        "ratio": float(p50["audited"] / p50["mcp"]),
        "better": "lower",
        "ratio_by_round": {
            "least": float(by_round.min()),
            "p50": float(np.median(by_round)),
            "most": float(by_round.max()),
        },
        "unwritten_ratio": float(p50["unwritten"] / p50["mcp"]),
        "call_us": {
            name: {"p50": float(p50[name]) * 1e6, "p99": float(np.quantile(rounds, 0.99)) * 1e6}
            for name, rounds in samples.items()
        },
        "samples": int(np.size(samples["audited"])),
    }


def _tool(read: ReadFile) -> Tool:
    def schema(name: str) -> dict[str, Any]:
        properties = {name: {"type": "string"}}
        return {"type": "object", "properties": properties, "required": [name], "additionalProperties": False}

    def canonicalise(arguments: Any, context: Any) -> Operation:
        return Operation("read", arguments, (f"workspace:{arguments['path']}",), Effect.READ)

    def handle(operation: Operation, context: Any) -> ToolResult:
        text = read(operation.arguments["path"])
        return ToolResult(f"{len(text)} characters", text, {"result": text})

    contract = ToolContract("read_file", "Read a file.", schema("path"), output_schema=schema("result"),
                            effect=Effect.READ, risk="low", approval="none", idempotent=True,
                            concurrency="parallel")  # fmt: skip
    return Tool(contract, canonicalise, handle)
