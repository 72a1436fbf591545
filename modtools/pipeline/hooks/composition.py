"""How several hooks act together on one call: never "the first that answers wins".

Denials and cancellations come first, whatever the order; asks and context add up; changes that differ need a
resolver; a retry needs a budget and a call that may be repeated. Every hook is asked about the same original event,
and the order of registration never matters. Source: Part 05, "A hook attaches behaviour to a stable lifecycle point".
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from modtools.contract import Failure, ToolResult
from modtools.errors import UsageError
from modtools.pipeline.hooks.guard import is_under_way, mark_reentry, run_guarded
from modtools.pipeline.hooks.answer import HookAnswer, answer_of, faithful, plain, rule_of, spelling, tell
from modtools.pipeline.hooks.contract import Event, HookPoint
from modtools.pipeline.hooks.trace import HookTrace, entry, scrubbed, shown
from modtools.pipeline.hooks.shapes import SHAPES, Registered, register
from modtools.pipeline.policy import ASK, Query, Rule
from modtools.pipeline.hooks.wrapping import Around, Wrapping, no_retry

T = TypeVar("T")

# What a hook can end a call by, the strongest first.
_PRECEDENCE = ("hook_denied", "reentrant_call", "hook_failed", "cancelled")


@dataclass(frozen=True)
class Before:
    """What the hooks of pre_tool_use want together.

    Attributes:
        failure: why the call ends here, or None: a denial before a broken hook before a cancellation.
        denials, cancelled: the reasons, each with the hook's name.
        asks: rules for `Policy.decide`.
        arguments: the one agreed change, or None. It is as little believed as the model's: validate it again.
        context: text for the model.
        trace: one entry a hook.
    """

    failure: Failure | None = None
    denials: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    asks: tuple[Rule, ...] = ()
    arguments: dict[str, Any] | None = None
    context: str = ""
    trace: tuple[HookTrace, ...] = ()


@dataclass(frozen=True)
class After:
    """What the hooks of post_tool_use or tool_failure want together.

    Attributes:
        result: what is to be told: the event's own, the changed one, or one that says it is withheld.
        withheld: whether it is that last one. It has no data, so no schema to keep.
        retry: whether the call is to be made again; never where a hook that fails closed has failed.
        context: text for the model.
        trace: one entry a hook.
    """

    result: ToolResult | None = None
    withheld: bool = False
    retry: bool = False
    context: str = ""
    trace: tuple[HookTrace, ...] = ()


class GateAnswers(NamedTuple):
    """The verdicts of the policy gates as rules for `Policy.decide`; a failure ends the call."""

    rules: tuple[Rule, ...]
    trace: tuple[HookTrace, ...]
    failure: Failure | None


@dataclass
class _Round:
    """What came of asking several hooks about one event."""

    event: Event
    answers: list[tuple[Registered, HookAnswer]] = field(default_factory=list)
    broken: list[Failure] = field(default_factory=list)
    trace: list[HookTrace] = field(default_factory=list)

    def used(self, power: str) -> dict[Registered, Any]:
        """Who used a power, and for what."""
        return {each: answer.used[power] for each, answer in self.answers if power in answer.used}

    def reasons(self, power: str) -> tuple[str, ...]:
        """The reasons for using a power, each with the hook's name."""
        return tuple(shown(f"{each.contract.name}: {why}", self.event) for each, why in self.used(power).items())

    def context(self, budget: int) -> str:
        """The hooks' texts in their order, as far as each fits whole into what is left of the budget."""
        kept, left_out = [], []
        for each, text in ((each, scrubbed(answer.context, self.event)) for each, answer in self.answers):
            if len(text) <= budget:
                kept += [text] * bool(text)
                budget -= len(text)
            else:
                left_out.append(f"{len(text)} characters of {each.contract.name}")
        return "\n".join(kept + [f"(left out, too long: {', '.join(left_out)})"] * bool(left_out))


@dataclass(frozen=True)
class Hooks:
    """The hooks of a pipeline; cannot be changed once made.

    Attributes:
        hooks: objects of the five shapes, in any order.
        resolvers: name -> (event, {hook name: proposal}) -> the change to be made, for hooks whose contract names it.
        context_chars: how much text the hooks of one point may add, in characters.

    Raises:
        UsageError: for a hook whose shape and contract do not fit, a name used twice, or an unknown resolver.
    """

    hooks: Iterable[Any] = ()
    resolvers: Mapping[str, Callable[[Event, dict[str, Any]], Any]] = field(default_factory=dict)
    context_chars: int = 2000

    def __post_init__(self):
        object.__setattr__(self, "hooks", tuple(self.hooks))
        object.__setattr__(self, "_registered", register(self.hooks, self.resolvers))
        object.__setattr__(self, "resolvers", MappingProxyType(dict(self.resolvers)))

    def __bool__(self) -> bool:
        return bool(self.hooks)

    def standing_at(self, point: HookPoint, tool: str, *shapes: str) -> list[Registered]:
        """The hooks of these shapes that are for this point and tool, in order."""
        return [
            each
            for each in self._registered
            if each.shape in shapes
            and each.contract.point == point
            and fnmatchcase(tool, each.contract.tools)
            and not (each.contract.reentry == "skip" and is_under_way(each.hook))
        ]

    def reentrant(self, point: HookPoint, tool: str) -> str:
        """The name of a hook under way around us that a call of this tool would enter again at this point, or "".

        Such a call must end as reentrant_call. The hook is marked: it has failed, whatever it makes of that.
        """
        inside = [each for each in self.standing_at(point, tool, *SHAPES) if mark_reentry(each.hook)]
        return inside[0].contract.name if inside else ""

    def before(self, event: Event) -> Before:
        """Ask the interceptors and hooks of pre_tool_use. All are asked, so that all reasons are known."""
        _expect(event, HookPoint.PRE_TOOL_USE)
        asked = self._ask(event, "interceptor", "hook")
        arguments, conflict = self._agreed(event, asked.used("input"), plain)
        denials, cancelled = asked.reasons("block"), asked.reasons("cancel")
        failures = [
            *asked.broken,
            *[Failure("hook_failed", conflict)] * bool(conflict),
            *[Failure("hook_denied", "; ".join(denials))] * bool(denials),
            *[Failure("cancelled", "; ".join(cancelled))] * bool(cancelled),
        ]
        return Before(
            min(failures, key=lambda failure: _PRECEDENCE.index(failure.code), default=None),
            denials,
            cancelled,
            tuple(Rule(ASK, "*", id=f"hook {each.contract.name}") for each in asked.used("ask")),
            None if failures else arguments,
            asked.context(self.context_chars),
            tuple(asked.trace),
        )

    def gate_rules(self, query: Query) -> GateAnswers:
        """Ask the policy gates about one canonical operation; one that fails ends the call."""
        operation = query.operation
        about = (query.actor, query.tenant, query.tool, query.contract, operation, operation.arguments)
        event = Event(HookPoint.PRE_TOOL_USE, "", *about)
        rules, trace, failure = [], [], None
        for each in self.standing_at(event.point, query.tool, "policy gate"):
            contract = each.contract
            work = partial(rule_of, each.hook.judge, contract, query, event)
            ended = run_guarded(each.hook, contract.timeout_s, work)
            if ended.problem:
                # Not a denial at its level, which a grant above it could outvote: an error ends the call.
                failure = failure or Failure(ended.code, f"policy gate {contract.name} {ended.problem}")
                trace.append(entry(each, event, ended.problem, ended))
                continue
            rule, why = ended.value
            rules.append(rule)
            trace.append(entry(each, event, f"{rule.verdict}: {why}" if why else str(rule.verdict), ended))
        return GateAnswers(tuple(rules), tuple(trace), failure)

    def after(self, event: Event, tries: int = 1, untouched: bool = False) -> After:
        """Ask the hooks of post_tool_use or tool_failure.

        Args:
            event: with what the execution gave.
            tries: how often the call was tried so far.
            untouched: whether the last try is known to have had no effect.
        """
        _expect(event, HookPoint.POST_TOOL_USE, HookPoint.TOOL_FAILURE)
        asked = self._ask(event, "hook")
        changed, conflict = self._agreed(event, asked.used("output"), lambda made: faithful(made, event))
        problem = "; ".join([*(failure.what for failure in asked.broken), *[conflict] * bool(conflict)])
        wishes = {each.contract.name for each in asked.used("retry")}
        layers = self.standing_at(HookPoint.PRE_TOOL_USE, event.tool, "middleware")
        repeated = layers + self.standing_at(event.point, event.tool, "hook")
        obstacle = problem or no_retry(event, tries, repeated, untouched)
        verdict = f"not granted: {obstacle}" if obstacle else "granted"
        result = event.result
        if result and problem:
            # A hook that was to take something out has failed: what it would have taken out must not be told.
            summary = shown(f"the result is withheld: {problem}", event)
            result = replace(result, summary=summary, body="", data={}, next_page="")
        return After(
            result if problem or changed is None else changed,
            bool(event.result and problem),
            bool(wishes) and not obstacle,
            asked.context(self.context_chars),
            tuple(replace(t, did=f"{t.did} ({verdict})") if t.name in wishes else t for t in asked.trace),
        )

    def ended(self, event: Event) -> tuple[HookTrace, ...]:
        """Tell the listeners; whatever they do, it is only traced."""
        _expect(event, HookPoint.REQUEST_ENDED)
        trace = []
        for each in self.standing_at(event.point, event.tool, "listener"):
            work = partial(tell, each.hook.notify, each.contract, event)
            ended = run_guarded(each.hook, each.contract.timeout_s, work)
            trace.append(entry(each, event, ended.problem or "was told", ended))
        return tuple(trace)

    def around(
        self,
        event: Event,
        proceed: Callable[[], T],
        tries: int = 0,
        untouched: Callable[[T], bool] = lambda value: False,
        took: Callable[[T], int] = lambda value: 1,
        check: Callable[[T, T], T] = lambda told, true: told,
    ) -> Around[T]:
        """Execute inside the middleware, the first in order outermost.

        Args:
            event: of pre_tool_use.
            proceed: carries the call out, once each time; runs in the caller's thread.
            tries: how often the call was tried before.
            untouched: whether a try with this outcome is known to have had no effect.
            took: how many tries were made within one `proceed` with this outcome.
            check: (what a layer gives, what `proceed` gave) -> what is told; raises Breach where it may not be.
        """
        _expect(event, HookPoint.PRE_TOOL_USE)
        layers = self.standing_at(event.point, event.tool, "middleware")
        return Wrapping(event, layers, proceed, tries, untouched, took, check).run()

    def _ask(self, event: Event, *shapes: str) -> _Round:
        """Ask every hook that is for this event, each about the original."""
        asked = _Round(event)
        for each in self.standing_at(event.point, event.tool, *shapes):
            contract = each.contract
            ask = each.hook.intercept if each.shape == "interceptor" else each.hook.run
            ended = run_guarded(each.hook, contract.timeout_s, partial(answer_of, ask, each.shape, contract, event))
            if not ended.problem:
                asked.answers.append((each, ended.value))
                did = ended.value.did
            elif contract.failure == "closed":
                asked.broken.append(Failure(ended.code, f"{each.shape} {contract.name} {ended.problem}"))
                did = ended.problem
            else:
                did = f"{ended.problem}; it fails open, so that is ignored"
            asked.trace.append(entry(each, event, did, ended))
        return asked

    def _agreed(self, event: Event, proposals: dict[Registered, Any], check: Callable[[Any], Any]) -> tuple[Any, str]:
        """(the one change, or None; what stands in its way, or "")."""
        if len({spelling(made) for made in proposals.values()}) <= 1:
            return next(iter(proposals.values()), None), ""
        names = " and ".join(each.contract.name for each in proposals)
        ways = {each.contract.conflicts for each in proposals}
        if len(ways) > 1 or "refuse" in ways:
            return None, f"{names} want different changes"
        (name,) = ways
        by_name = {each.contract.name: made for each, made in proposals.items()}
        resolver = self.resolvers[name]
        ended = run_guarded(
            resolver,
            min(each.contract.timeout_s for each in proposals),
            lambda: check(resolver(copy.deepcopy(event), copy.deepcopy(by_name))),
        )
        return ended.value, ended.problem and f"{names} want different changes, and resolver {name} {ended.problem}"


def _expect(event: Event, *points: HookPoint) -> None:
    if event.point not in points:
        raise UsageError(f"an event of {event.point}: expected {' or '.join(points)}")
