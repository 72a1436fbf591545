"""What a hook answers, held against its contract: schemas, form and powers.

All of this runs on the hook's own time and under its guard (`modtools.pipeline.hooks.guard`): an answer that breaks the
contract is a failure of the hook, like an exception.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from modtools.contract import Outcome, ToolResult, canonical_json
from modtools.pipeline.hooks.guard import Breach
from modtools.pipeline.hooks.contract import Event, HookContract
from modtools.pipeline.policy import ASK, DENY, Query, Rule, Verdict
from modtools.pipeline.validate import check_result


@dataclass(frozen=True)
class Refusal:
    """An interceptor's or a middleware's no, with the reason in words that the model may read."""

    why: str


@dataclass(frozen=True)
class HookAnswer:
    """What a hook wants; each field but `context` needs its power in the contract.

    Attributes:
        deny, ask, cancel, retry: the reason, or None where it does not want that. "" is a reason too.
        arguments: in place of the event's, or None.
        result: in place of the event's, or None. Its words may change; how the call ended may not.
        context: text for the model.
    """

    deny: str | None = None
    ask: str | None = None
    cancel: str | None = None
    retry: str | None = None
    arguments: Mapping[str, Any] | None = None
    result: ToolResult | None = None
    context: str = ""

    @property
    def used(self) -> dict[str, Any]:
        """Power -> what it is used for, for the powers that this answer uses."""
        wanted = {
            "block": self.deny,
            "ask": self.ask,
            "cancel": self.cancel,
            "retry": self.retry,
            "input": self.arguments,
            "output": self.result,
        }
        return {power: value for power, value in wanted.items() if value is not None}

    @property
    def did(self) -> str:
        """The same in words, for a trace; what text was added for the model is named too, though it needs no power."""
        words = [f"{power}: {value}" if isinstance(value, str) else power for power, value in self.used.items()]
        return "; ".join([*words, *[f"{len(self.context)} characters of context"] * bool(self.context)]) or "nothing"


def answer_of(ask: Callable[[Event], Any], shape: str, contract: HookContract, event: Event) -> HookAnswer:
    """Ask a hook or an interceptor, and hold its answer against its contract.

    Raises:
        Breach: it, or the event, is not what the contract says.
    """
    check_input(contract, event)
    answer = ask(copy.deepcopy(event))
    if shape == "interceptor":
        answer = _of_interceptor(answer)
    if answer is None:
        return HookAnswer()
    if not isinstance(answer, HookAnswer):
        raise Breach(f"returned {type(answer).__name__} where HookAnswer or None was due")
    words = (answer.deny, answer.ask, answer.cancel, answer.retry)
    if not isinstance(answer.context, str) or not all(word is None or isinstance(word, str) for word in words):
        raise Breach("gave a reason or a context that is no text")
    if extra := sorted(set(answer.used) - contract.powers):
        raise Breach(f"used {', '.join(extra)}, which its contract does not list")
    arguments, result = answer.arguments, answer.result
    if arguments is not None:
        arguments = plain(arguments)
        _check_output(contract, arguments)
        if spelling(arguments) == spelling(event.arguments):  # what changes nothing conflicts with nothing
            arguments = None
    if result is not None:
        result = faithful(result, event)
        _check_output(contract, result.data)
        if spelling(result) == spelling(event.result):
            result = None
    return replace(answer, arguments=arguments, result=result)


def _of_interceptor(answer: Any) -> HookAnswer | None:
    """Its two powers, and no way to say anything else."""
    if isinstance(answer, Refusal):
        return HookAnswer(deny=answer.why)
    if isinstance(answer, Mapping):
        return HookAnswer(arguments=answer)
    if answer is not None:
        raise Breach(f"returned {type(answer).__name__} where arguments, Refusal or None was due")
    return None


def check_input(contract: HookContract, event: Event) -> None:
    """Raise Breach where the event is not what the contract expects. Quotes no value: it may be secret."""
    if contract.input_schema is not None and check_result(contract.input_schema, event.data):
        raise Breach("was given what breaks its input schema")


def _check_output(contract: HookContract, data: Any) -> None:
    if contract.output_schema is not None and check_result(contract.output_schema, data):
        raise Breach("returned what breaks its output schema")


def plain(value: Any) -> dict[str, Any]:
    """A copy of a JSON object; Breach for what is none, or does not survive being written as JSON."""
    try:
        copied = json.loads(canonical_json(dict(value)))
    except (TypeError, ValueError):
        copied = None
    if copied != value:
        raise Breach("returned what is not a JSON object")
    return copied


def faithful(result: Any, event: Event) -> ToolResult:
    """A copy of a changed result; Breach where it is none, tells another end, or breaks the tool's own schema."""
    original = event.result
    if not isinstance(result, ToolResult) or original is None:
        raise Breach(f"returned {type(result).__name__} where a changed ToolResult was due")
    if any(getattr(result, f) != getattr(original, f) for f in ("outcome", "code", "operation_id")):
        raise Breach("changed how the call ended, not only what is told of it")
    result = replace(result, data=plain(result.data))
    schema = event.contract.output_schema
    if schema and result.outcome == Outcome.SUCCESS and check_result(schema, result.data):
        raise Breach("returned a result that breaks the tool's output schema")
    return result


def spelling(value: Any) -> str:
    """Equal for equal changes."""
    if isinstance(value, ToolResult):
        value = [value.summary, value.body, dict(value.data), value.next_page]
    return canonical_json(value)


def tell(notify: Callable[[Event], Any], contract: HookContract, event: Event) -> None:
    """Tell a listener. What it returns ends here."""
    check_input(contract, event)
    notify(copy.deepcopy(event))


def rule_of(judge: Callable[[Query], Any], contract: HookContract, query: Query, event: Event) -> tuple[Rule, str]:
    """Ask a policy gate: its verdict as a rule for exactly this operation at its ceiling, and why.

    Raises:
        Breach: it gave no verdict, or one that its contract does not list.
        UsageError: a verdict that cannot stand at its level.
    """
    check_input(contract, event)
    answer = judge(copy.deepcopy(query))
    verdict, why = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, "")
    if verdict not in tuple(Verdict) or not isinstance(why, str):
        raise Breach(f"gave no verdict; expected one of {', '.join(Verdict)}, or a pair of it and the reason")
    power = {DENY: "block", ASK: "ask"}.get(verdict)
    if power and power not in contract.may:
        raise Breach(f"used {power}, which its contract does not list")
    return gate_rule(verdict, contract, query), why


def gate_rule(verdict: Verdict, contract: HookContract, query: Query) -> Rule:
    """A gate's verdict, bound to one operation."""
    resources = query.operation.resources
    return Rule(
        verdict,
        _exactly(query.operation.action),
        # One pattern cannot name several resources; the other parts still bind the rule.
        _exactly(resources[0]) if len(resources) == 1 else "*",
        level=contract.ceiling,
        id=f"gate {contract.name}",
        actor=_exactly(query.actor),
        tenant=_exactly(query.tenant),
        workspace=_exactly(query.workspace),
        tool=_exactly(query.tool),
    )


def _exactly(text: str) -> str:
    """A shell pattern that matches this text alone."""
    return re.sub(r"([*?\[])", r"[\1]", text)
