"""Middleware around the execution: each layer has the next one as its `proceed`, and the innermost is the tool.

What has happened cannot be taken back: once `proceed` gave a result, that result is delivered whatever a layer does,
unless its contract lets it put another in its place. Before that, a layer that breaks ends the call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from modtools.contract import Effect, Failure
from modtools.pipeline.hooks.guard import Breach, Ended, Refused, run_guarded
from modtools.pipeline.hooks.answer import Refusal, check_input
from modtools.pipeline.hooks.contract import Event
from modtools.pipeline.hooks.trace import HookTrace, entry, shown
from modtools.pipeline.hooks.shapes import Registered

T = TypeVar("T")


@dataclass(frozen=True)
class Around(Generic[T]):
    """How an execution inside its middleware ended.

    Attributes:
        value: what `proceed` gave, or what a layer was allowed to put in its place; None where nothing was executed.
        failure: why nothing was executed, or None.
        tries: how often the call was tried, with the tries before.
        trace: one entry each time a layer ended.
    """

    value: T | None
    failure: Failure | None
    tries: int
    trace: tuple[HookTrace, ...]


class Wrapping(Generic[T]):
    """One execution inside its layers; made for one `run`. Arguments as for `Hooks.around`."""

    def __init__(
        self,
        event: Event,
        layers: list[Registered],
        proceed: Callable[[], T],
        tries: int,
        untouched: Callable[[T], bool],
        took: Callable[[T], int],
        check: Callable[[T, T], T],
    ):
        self.event, self.layers, self.proceed, self.check = event, layers, proceed, check
        self.tries, self.untouched, self.took = tries, untouched, took
        self.trace: list[HookTrace] = []

    def run(self) -> Around[T]:
        """Go through all layers."""
        try:
            value, failure = self._layer(0), None
        except Refused as refused:
            value, failure = None, refused.failure
        return Around(value, failure, self.tries, tuple(self.trace))

    def _layer(self, depth: int) -> T:
        """What this layer and all inside it give; Refused where the tool was not reached."""
        if depth == len(self.layers):
            value = self.proceed()
            self.tries += self.took(value)
            return value
        layer, given, refused = self.layers[depth], [], []

        def serve() -> T:
            if refused:  # a no from within stays
                raise refused[-1]
            if given and (why := self._no_more(layer, given[-1], self.layers[depth + 1 :])):
                raise Refused(Failure("hook_failed", why))
            try:
                given.append(self._layer(depth + 1))
            except Refused as inner:
                refused.append(inner)
                raise
            return given[-1]

        handed: list[tuple[Any, T]] = []
        ended = run_guarded(
            layer.hook,
            layer.contract.timeout_s,
            lambda proceed: self._wrap(layer, proceed, handed),
            serve,
        )
        if given:
            return self._delivered(layer, ended, given, handed)
        if refused:
            self._note(layer, ended, "its proceed was refused")
            raise refused[-1]
        return self._unreached(layer, ended, depth)

    def _wrap(self, layer: Registered, proceed: Callable[[], T], handed: list[tuple[Any, T]]) -> Any:
        """In the layer's own thread. It gets copies: writing into one changes nothing."""
        check_input(layer.contract, self.event)

        def copied() -> T:
            true = proceed()
            handed.append((copy.deepcopy(true), true))
            return handed[-1][0]

        answer = layer.hook.wrap(copy.deepcopy(self.event), copied)
        for own, true in handed:
            if answer is own:
                return true
        if handed and "output" in layer.contract.changes and type(answer) is not type(handed[-1][1]):
            raise Breach(f"returned {type(answer).__name__} where {type(handed[-1][1]).__name__} was due")
        answer = copy.deepcopy(answer)
        return self.check(answer, handed[-1][1]) if handed and "output" in layer.contract.changes else answer

    def _delivered(self, layer: Registered, ended: Ended, given: list[T], handed: list[tuple[Any, T]]) -> T:
        """The effect has happened: what is told of it, after all that the layer did."""
        called = f"proceed {len(given)} times" if len(given) > 1 else "proceed"
        if ended.problem:
            self._note(layer, ended, f"{called}; {ended.problem}; the true result is delivered")
            return given[-1]
        if any(ended.value is true for true in given):
            self._note(layer, ended, called)
            return ended.value
        if "output" in layer.contract.changes:
            self._note(layer, ended, f"{called}; output")
            return ended.value
        self._note(
            layer, ended, f"{called}; used output, which its contract does not list; the true result is delivered"
        )
        return given[-1]

    def _unreached(self, layer: Registered, ended: Ended, depth: int) -> T:
        """Nothing was executed, and it is this layer's doing."""
        name = layer.contract.name
        why = ended.problem
        if not why and "block" in layer.contract.may:
            why = shown(str(ended.value.why) if isinstance(ended.value, Refusal) else "it did not proceed", self.event)
            self._note(layer, ended, f"block: {why}")
            raise Refused(Failure("hook_denied", f"{name}: {why}"))
        why = why or "used block, which its contract does not list"
        if layer.contract.failure == "open":
            self._note(layer, ended, f"{why}; it fails open, so the call goes on without it")
            return self._layer(depth + 1)
        self._note(layer, ended, why)
        raise Refused(Failure(ended.code, f"middleware {name} {why}"))

    def _no_more(self, layer: Registered, last: T, repeated: list[Registered]) -> str:
        if "retry" not in layer.contract.may:
            return "its contract does not list retry"
        return no_retry(self.event, self.tries, repeated, self.untouched(last))

    def _note(self, layer: Registered, ended: Ended, did: str) -> None:
        self.trace.append(entry(layer, self.event, did, ended))


def no_retry(event: Event, tries: int, repeated: Iterable[Registered], untouched: bool = False) -> str:
    """Why the call must not be made again, or "".

    Args:
        event: of the call.
        tries: how often it was made.
        repeated: the hooks that would run again with it.
        untouched: whether the last try is known to have had no effect.
    """
    contract = event.contract
    if tries > contract.retries:
        return f"the contract of {contract.name} allows {contract.retries} {'retry' if contract.retries == 1 else 'retries'}"
    reads = (event.operation or contract).effect == Effect.READ
    if not (untouched or contract.idempotent or reads):
        return f"{contract.name} may have done its work and is not idempotent"
    external = [each.contract.name for each in repeated if each.contract.side_effects == "external"]
    return f"{', '.join(external)} would have external effects again" if external else ""
