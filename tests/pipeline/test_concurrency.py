"""Calls beside each other: what a contract forbids never happens, and nobody waits for ever."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modtools.contract import BoundCall, Effect, Operation, Tool, ToolContract, ToolFailure, ToolResult
from modtools.pipeline.concurrency import Locks
from modtools.pipeline.execute import execute

PARALLEL, PER_RESOURCE, EXCLUSIVE = "parallel", "exclusive_per_resource", "exclusive"


def contract(concurrency=PER_RESOURCE, timeout_s=30.0) -> ToolContract:
    schema = {"type": "object"}
    return ToolContract("t", "A tool.", schema, approval="none", concurrency=concurrency, timeout_s=timeout_s)


def operation(*resources: str, effect=Effect.WRITE) -> Operation:
    return Operation("act", {}, resources, effect)


def bound(deadline_s=math.inf, **fields) -> BoundCall:
    return BoundCall("r1", "model", "o1", deadline_s=deadline_s, **fields)


def may_begin(locks: Locks, concurrency: str, *resources: str) -> bool:
    """Whether a call that does not wait gets what it needs."""
    try:
        with locks.hold(contract(concurrency), operation(*resources), bound(0)):
            return True
    except ToolFailure as failure:
        assert failure.failure.code == "busy"
        return False


@pytest.mark.parametrize(
    ("concurrency", "resources", "beside"),
    [
        (PARALLEL, ("a",), {"parallel", "same", "other", "none", "exclusive"}),
        (PER_RESOURCE, ("a", "b"), {"parallel", "other"}),
        (PER_RESOURCE, (), {"parallel"}),
        (EXCLUSIVE, ("a",), {"parallel"}),
    ],
)
def test_what_may_run_beside_a_call_of_each_class(concurrency, resources, beside):
    locks = Locks()
    with locks.hold(contract(concurrency), operation(*resources), bound()):
        found = {
            "parallel": may_begin(locks, PARALLEL, "a"),
            "same": may_begin(locks, PER_RESOURCE, "b", "a"),
            "other": may_begin(locks, PER_RESOURCE, "c"),
            "none": may_begin(locks, PER_RESOURCE),
            "exclusive": may_begin(locks, EXCLUSIVE, "c"),
        }
    assert {name for name, may in found.items() if may} == beside
    assert may_begin(locks, EXCLUSIVE)


calls = st.lists(
    st.tuples(
        st.sampled_from([PARALLEL, PER_RESOURCE, PER_RESOURCE, EXCLUSIVE]),
        st.lists(st.sampled_from("abc"), unique=True, max_size=3),
        st.sampled_from([0.0, 0.0003, 0.001]),
        st.sampled_from([0.0, 0.0005, math.inf]),
    ),
    min_size=8,
    max_size=24,
)


@settings(max_examples=60, deadline=None)
@given(calls)
def test_calls_that_exclude_each_other_never_overlap(drawn):
    locks, running, overlaps, guard = Locks(), [], [], threading.Lock()

    def forbidden(one, other) -> bool:
        if PARALLEL in (one[0], other[0]):
            return False
        return EXCLUSIVE in (one[0], other[0]) or not one[1] or not other[1] or bool({*one[1]} & {*other[1]})

    def run(call) -> bool:
        concurrency, resources, length_s, patience_s = call
        try:
            with locks.hold(contract(concurrency), operation(*resources), bound(time.monotonic() + patience_s)):
                with guard:
                    overlaps.extend((call, other) for other in running if forbidden(call, other))
                    running.append(call)
                time.sleep(length_s)
                with guard:
                    running.remove(call)
            return True
        except ToolFailure:
            return False

    with ThreadPoolExecutor(6) as pool:
        began = list(pool.map(run, drawn))
    assert overlaps == [] and running == []
    assert all(ran for ran, call in zip(began, drawn) if call[3] == math.inf), "a patient call never ran"
    assert may_begin(locks, EXCLUSIVE), "something is still held"


def test_an_exclusive_call_that_waits_goes_before_those_that_come_later():
    locks, order = Locks(), []

    def run(concurrency: str, *resources: str) -> None:
        with locks.hold(contract(concurrency), operation(*resources), bound()):
            order.append(concurrency)

    with locks.hold(contract(), operation("a"), bound()):
        exclusive = threading.Thread(target=run, args=(EXCLUSIVE,))
        exclusive.start()
        while may_begin(locks, PER_RESOURCE, "b"):  # until it stands in the queue
            time.sleep(0.001)
        later = threading.Thread(target=run, args=(PER_RESOURCE, "b"))
        later.start()
        assert may_begin(locks, PARALLEL) and order == []
    exclusive.join(), later.join()
    assert order == [EXCLUSIVE, PER_RESOURCE]


@pytest.mark.parametrize(
    ("fields", "timeout_s", "code"),
    [
        ({"cancelled": lambda: True}, 30, "cancelled"),
        ({"deadline_s": 0}, 30, "busy"),
        ({}, 0.05, "busy"),
    ],
)
def test_waiting_ends_with_the_call_and_leaves_nothing_behind(fields, timeout_s, code):
    locks = Locks()
    with locks.hold(contract(), operation("a"), bound()):
        with pytest.raises(ToolFailure) as raised:
            with locks.hold(contract(EXCLUSIVE, timeout_s), operation(), bound(**fields)):
                pytest.fail("it ran beside the other")
        assert raised.value.failure.code == code
        assert may_begin(locks, PER_RESOURCE, "b")


def test_a_handler_that_raises_gives_back_what_it_held():
    locks = Locks()
    with pytest.raises(KeyboardInterrupt):
        with locks.hold(contract(EXCLUSIVE), operation(), bound()):
            raise KeyboardInterrupt
    assert may_begin(locks, EXCLUSIVE)


# A handler that is left behind


def slow_tool(release: threading.Event, spans: list, effect: Effect) -> Tool:
    def handler(operation, context):
        spans.append(("begins", context))
        if context == "first":
            release.wait(30)
        spans.append(("ends", context))
        return ToolResult("done")

    shape = ToolContract("t", "A tool.", {"type": "object"}, effect=effect, concurrency=PER_RESOURCE, timeout_s=0.05)
    return Tool(shape, lambda a, c: None, handler)


def call(locks: Locks, tool: Tool, context: str, cancelled=lambda: False):
    what = operation("a", effect=tool.contract.effect)
    mine = bound(cancelled=cancelled)
    with locks.hold(contract(), what, mine) as hold:
        return execute(tool, what, context, mine, hold)


@pytest.mark.parametrize("why", ["timeout", "cancelled"])
def test_two_writing_calls_never_overlap_even_if_the_first_was_given_up(why, monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0 if why == "timeout" else 30.0)
    locks, release, spans = Locks(), threading.Event(), []
    tool = slow_tool(release, spans, Effect.WRITE)
    first = call(locks, tool, "first", cancelled=lambda: why == "cancelled")
    assert first.failure.code == why and first.left_behind
    assert not may_begin(locks, PER_RESOURCE, "a") and may_begin(locks, PER_RESOURCE, "b")
    second = threading.Thread(target=call, args=(locks, tool, "second"))
    second.start()
    release.set()
    second.join()
    assert spans == [("begins", "first"), ("ends", "first"), ("begins", "second"), ("ends", "second")]
    assert may_begin(locks, EXCLUSIVE)


def test_what_only_reads_keeps_nobody_waiting_once_it_was_given_up(monkeypatch):
    monkeypatch.setattr("modtools.pipeline.execute._GRACE_S", 0.0)
    locks, release = Locks(), threading.Event()
    first = call(locks, slow_tool(release, [], Effect.READ), "first")
    assert first.left_behind and may_begin(locks, PER_RESOURCE, "a")
    release.set()


class Interrupts:
    """A caller who presses Ctrl-C while the handler runs."""

    def __init__(self, spans: list):
        self.spans = spans

    def __call__(self) -> bool:
        if self.spans:
            raise KeyboardInterrupt
        return False


def test_after_an_interrupt_a_handler_that_still_writes_keeps_its_resource():
    locks, release, spans = Locks(), threading.Event(), []
    with pytest.raises(KeyboardInterrupt):
        call(locks, slow_tool(release, spans, Effect.WRITE), "first", cancelled=Interrupts(spans))
    assert not may_begin(locks, PER_RESOURCE, "a")
    release.set()
    with locks.hold(contract(), operation("a"), bound()):
        assert spans == [("begins", "first"), ("ends", "first")]
