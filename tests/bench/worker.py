"""One engine in a process of its own: its memory can be told apart, and when it hangs it can be killed.

Only one worker of a run is at work at a time. The parent sends a schema with its documents in tokens, and hears of
each step when it is done, so that what was measured before a kill is not lost.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import psutil
from bench.clocks import CLOCKS
from bench.engines import ENGINES, Refused, Tokens

from modtools.errors import ModtoolsError

LOAD_LIMIT_S = 300
GRACE_S = 1.0  # a worker stops by itself between two masks; what takes this much longer hangs inside one
POLL_S = 0.01  # how often memory is looked at
# Walked before anything is measured: each engine computes what belongs to the vocabulary.
WARM_UP = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}
WARM_UP_DOCUMENT = {"a": "a string, é", "b": 1.5, "c": [None, True, {"d": "e"}]}


class LoadError(ModtoolsError):
    """An engine ends or hangs while it is loaded."""


@dataclass(frozen=True)
class Job:
    """A schema and its valid documents as token ids, end-of-sequence included; the clock is a name from CLOCKS."""

    schema: Any
    documents: Sequence[Sequence[int]]
    clock: str = "wall"


@dataclass(frozen=True)
class Walk:
    """One document, walked. Times in seconds; entry i of each list is about step i.

    Attributes:
        ended: "accepted", "refused" (a mask left out the next token, or the engine gave up), or "limit".
        mask_s, unpack_s, advance_s: of each step; advance_s is one shorter.
        cached: how many masks came out of our cache.
    """

    ended: str
    mask_s: list[float]
    unpack_s: list[float]
    advance_s: list[float]
    cached: int


@dataclass
class Outcome:
    """What became of one schema in one engine.

    Attributes:
        status: "walked", "refused" (with the reason), "limit" (killed or stopped by the time limit) or "crashed".
        compile_s, first_mask_s: None where it did not come so far. The first mask's time includes compiling.
        facts: of our grammar.
    """

    status: str = "limit"
    reason: str = ""
    compile_s: float | None = None
    first_mask_s: float | None = None
    walks: list[Walk] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)


class Worker:
    """The parent's side.

    Attributes:
        load_s: seconds to load the engine with this vocabulary, the warm-up included.
        base_bytes, peak_bytes: resident memory before the engine was loaded, and the most ever seen.
    """

    def __init__(self, engine: str, tokens: Tokens, eos_id: int, warm_up: Job):
        self.engine, self.tokens, self.eos_id, self.warm_up = engine, tokens, eos_id, warm_up
        self.load_s, self.base_bytes, self.peak_bytes = 0.0, 0, 0
        self._process: multiprocessing.Process | None = None

    def run(self, job: Job, limit_s: float) -> Outcome:
        """Compiles and walks, in a new process where the last one was killed."""
        outcome = Outcome()
        try:
            if self._process is None:
                self.start()
            self._connection.send((job, limit_s))
            for kind, content in self._messages(limit_s + GRACE_S):
                if kind == "first":
                    outcome.compile_s, outcome.first_mask_s = content
                elif kind == "walk":
                    outcome.walks.append(content)
                else:
                    outcome.status, outcome.reason, outcome.facts = content
        except TimeoutError:
            outcome.reason = f"killed after {limit_s + GRACE_S:g} s"
            self.stop()
        except LoadError as error:
            outcome.status, outcome.reason = "crashed", str(error)
        except (EOFError, ConnectionError):
            outcome.status, outcome.reason = "crashed", "its process ended"
            self.stop()
        return outcome

    def start(self) -> None:
        """Loads the engine in a new process and warms it up.

        Raises:
            LoadError: it cannot be loaded with this vocabulary.
        """
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        arguments = (theirs, self.engine, self.tokens, self.eos_id)
        self._process = spawn.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        try:
            list(self._messages(LOAD_LIMIT_S))  # it has its tokens, and waits
            self.base_bytes = psutil.Process(self._process.pid).memory_info().rss
            started = time.perf_counter()
            self._connection.send((self.warm_up, LOAD_LIMIT_S))
            list(self._messages(LOAD_LIMIT_S))
        except (EOFError, ConnectionError, TimeoutError) as error:
            self.stop()
            raise LoadError(
                f"{self.engine} cannot be loaded with {len(self.tokens)} tokens; --engines leaves it out"
            ) from error
        self.load_s = time.perf_counter() - started

    def stop(self) -> None:
        """Kills the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _messages(self, limit_s: float) -> Iterator[tuple[str, Any]]:
        process, deadline = psutil.Process(self._process.pid), time.monotonic() + limit_s
        while True:
            while not self._connection.poll(POLL_S):
                self.peak_bytes = max(self.peak_bytes, _resident_bytes(process))
                if time.monotonic() > deadline:
                    raise TimeoutError
            message = self._connection.recv()
            self.peak_bytes = max(self.peak_bytes, _resident_bytes(process))
            yield message
            if message[0] == "done":
                return


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:  # it has just ended; reading from it says so
        return 0


# The worker's side ------------------------------------------------------------------------------------------------


def _serve(connection: Connection, name: str, tokens: Tokens, eos_id: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which kills us
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # engines warn of what they refuse; we report refusals
    connection.send(("done", None))
    job, limit_s = connection.recv()
    engine = ENGINES[name](tokens, eos_id)
    for message in _work(engine, job, limit_s):
        connection.send(message)
    gc.collect()
    gc.freeze()  # as a server does: what belongs to the vocabulary is not looked through again and again
    while True:
        try:
            job, limit_s = connection.recv()
        except EOFError:
            return
        gc.collect()
        for message in _work(engine, job, limit_s):
            connection.send(message)


def _work(engine: Any, job: Job, limit_s: float) -> Iterator[tuple[str, Any]]:
    text, deadline, clock = json.dumps(job.schema), time.monotonic() + limit_s, CLOCKS[job.clock]
    try:
        started = clock()
        walk = engine.compile(job.schema, text)
        compiled = clock()
        raw = walk.mask()
        masked = clock()
    except Exception as error:  # whatever an engine raises is its way to refuse; the reason is reported
        reason = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
        yield "done", ("refused", reason[:300], {})
        return
    yield "first", (compiled - started, masked - started)
    first = (raw, masked - compiled)
    facts = getattr(walk, "facts", dict)
    for ids in job.documents:
        walked = _walk(walk, ids, first, deadline, clock)
        first = None
        yield "walk", walked
        if walked.ended == "limit":
            yield "done", ("limit", f"stopped after {limit_s:g} s", facts())
            return
        walk.reset()
    yield "done", ("walked", "", facts())


def _walk(
    walk: Any, ids: Sequence[int], first: tuple[Any, float] | None, deadline: float, clock: Callable[[], float]
) -> Walk:
    """One document; `first` is the mask of its first step where that was made already."""
    is_cached = getattr(walk, "is_cached", lambda: False)
    mask_s, unpack_s, advance_s, cached = [], [], [], 0
    ended = "accepted"
    for step, token_id in enumerate(ids):
        try:
            if first is not None and step == 0:
                raw, seconds = first
            else:
                cached += is_cached()
                started = clock()
                raw = walk.mask()
                seconds = clock() - started
            mask_s.append(seconds)
            started = clock()
            walk.unpack(raw)
            unpack_s.append(clock() - started)
            if not walk.allows(raw, token_id):
                ended = "refused"
                break
            if step + 1 < len(ids):
                started = clock()
                walk.advance(token_id)
                advance_s.append(clock() - started)
        except Exception:  # an engine that gives up in the middle has refused the document
            ended = "refused"
            break
        if time.monotonic() > deadline:
            ended = "limit"
            break
    return Walk(ended, mask_s, unpack_s, advance_s, cached)
