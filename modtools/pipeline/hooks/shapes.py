"""Hooks: foreign code at named points of a call, in five shapes.

A shape's power lies in its code, not in its name: what the pipeline reads of its answer, and when. A listener's
answer is not read at all; an interceptor can hand back arguments or a refusal and nothing else; a hook has the
powers that its contract lists; middleware holds `proceed`; a policy gate gives a verdict. Source: Part 05,
"Listener, hook, middleware, interceptor and policy gate".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from modtools.errors import UsageError
from modtools.pipeline.hooks.answer import HookAnswer, Refusal
from modtools.pipeline.hooks.contract import Event, HookContract, HookPoint
from modtools.pipeline.policy import Level, Query, Verdict


@runtime_checkable
class Listener(Protocol):
    """Is told that a request has ended. Nothing it returns is read, nothing it raises is felt."""

    contract: HookContract

    def notify(self, event: Event) -> object: ...


@runtime_checkable
class Hook(Protocol):
    """Runs at a point of the lifecycle with the powers that its contract lists, and no others."""

    contract: HookContract

    def run(self, event: Event) -> HookAnswer | None: ...


@runtime_checkable
class Interceptor(Protocol):
    """Stands before one particular tool, ahead of authorisation: alters its arguments, refuses, or lets pass."""

    contract: HookContract

    def intercept(self, event: Event) -> Mapping[str, Any] | Refusal | None: ...


@runtime_checkable
class Middleware(Protocol):
    """Wraps the execution: what it does before and after `proceed()`, and whether it calls it, is its own."""

    contract: HookContract

    def wrap(self, event: Event, proceed: Callable[[], Any]) -> Any: ...


@runtime_checkable
class PolicyGate(Protocol):
    """Gives a verdict on one canonical operation, with the authority of its contract's ceiling."""

    contract: HookContract

    def judge(self, query: Query) -> Verdict | tuple[Verdict, str]: ...


# Shape -> its protocol, and the powers that a contract can give it at each point where it can stand.
SHAPES: dict[str, tuple[type, dict[HookPoint, tuple[str, ...]]]] = {
    "listener": (Listener, {HookPoint.REQUEST_ENDED: ()}),
    "hook": (
        Hook,
        {
            HookPoint.PRE_TOOL_USE: ("input", "block", "ask", "cancel"),
            HookPoint.POST_TOOL_USE: ("output", "retry"),
            HookPoint.TOOL_FAILURE: ("retry",),
        },
    ),
    "interceptor": (Interceptor, {HookPoint.PRE_TOOL_USE: ("input", "block")}),
    "middleware": (Middleware, {HookPoint.PRE_TOOL_USE: ("output", "block", "retry")}),
    "policy gate": (PolicyGate, {HookPoint.PRE_TOOL_USE: ("block", "ask")}),
}
# What a power needs outside a policy gate, whose every word stands at its ceiling and is weighed there.
_NEEDS = {"block": Level.RESOURCE_DENY, "cancel": Level.RESOURCE_DENY, "ask": Level.MANDATORY_ASK}


def shape_of(hook: Any) -> str:
    """The shape of an object by the one method it has, once its contract is seen to fit that shape.

    Raises:
        UsageError: no shape, two shapes, or a contract that gives the shape what it cannot have.
    """
    found = [shape for shape, (protocol, _) in SHAPES.items() if isinstance(hook, protocol)]
    contract = getattr(hook, "contract", None)
    if len(found) != 1 or not isinstance(contract, HookContract):
        raise UsageError(
            f"{type(hook).__name__} is {' and '.join(found) or 'no hook'}: expected a HookContract as `contract`, "
            "and one method of notify, run, intercept, wrap, judge"
        )
    for problem in _misfits(found[0], contract):
        raise UsageError(f"{found[0]} {contract.name!r}: {problem}")
    return found[0]


def _misfits(shape: str, contract: HookContract) -> Iterator[str]:
    """Why this contract does not fit this shape, one sentence each."""
    points = SHAPES[shape][1]
    if contract.point not in points:
        yield f"it cannot stand at {contract.point}; expected {', '.join(points)}"
        return
    powers = points[contract.point]
    if extra := sorted(contract.powers - set(powers)):
        yield f"its contract lists {', '.join(extra)}; at {contract.point} it can have {', '.join(powers) or 'nothing'}"
    for power in sorted(contract.powers & set(_NEEDS)):
        gate_asks_too_high = power == "ask" and contract.ceiling < Level.MANDATORY_ASK
        if gate_asks_too_high if shape == "policy gate" else contract.ceiling > _NEEDS[power]:
            side = "or lower" if shape == "policy gate" else "or higher"
            yield f"{power} needs a ceiling of {_NEEDS[power].label} {side}, got {contract.ceiling.label}"
    if shape == "listener" and contract.failure == "closed":
        yield 'it changes nothing, so it cannot fail closed; expected failure="open"'
    if shape == "policy gate" and contract.failure == "open":
        yield 'a gate that broke must not let pass; expected failure="closed"'
    if shape == "interceptor" and re.search(r"[*?\[]", contract.tools):
        yield f"it stands before one tool; expected its qualified name as `tools`, got {contract.tools!r}"
    if contract.output_schema is not None and (shape == "middleware" or not contract.changes):
        yield "output_schema is for what it puts in place of arguments or a result's data, and it changes neither"


@dataclass(frozen=True, eq=False)
class Registered:
    """A hook with the shape and the contract it had when it was registered; what it claims later gives no power."""

    hook: Any
    shape: str
    contract: HookContract


def register(hooks: Iterable[Any], resolvers: Collection[str] = ()) -> tuple[Registered, ...]:
    """The hooks in the order in which they act: by their contracts' order, then by name.

    Raises:
        UsageError: for a hook whose shape and contract do not fit, a name used twice, or an unknown resolver.
    """
    known = [Registered(hook, shape_of(hook), hook.contract) for hook in hooks]
    names = [each.contract.name for each in known]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two hooks have the name {', '.join(twice)}; a trace could not tell them apart")
    for contract in (each.contract for each in known):
        if contract.conflicts not in ("refuse", *resolvers):
            choices = ", ".join(["refuse", *resolvers])
            raise UsageError(
                f"hook {contract.name!r}: conflicts {contract.conflicts!r}; expected one of {choices}, and every "
                "name but refuse is one of the resolvers that the host supplies"
            )
    return tuple(sorted(known, key=lambda each: (each.contract.order, each.contract.name)))
