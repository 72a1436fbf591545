"""Do the linter's rules matter to this model? The same requests, with a good and with a bad schema for each rule.

A trial rewrites the tools of a single call, and the call that answers it, and leaves the request's words alone. Only one
rule is broken at a time. A trial that comes out at nothing is a result about this model: what its adapter saw in
training, its demonstrations of flat, typed arguments, stands beside each as the distance from training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from modtools.contract import ToolContract
from modtools.errors import UsageError
from modtools.lab.experiments.single_calls import STYLES, SingleCall
from modtools.schemas.lint.finding import words
from modtools.schemas.tool_list import ToolSchema

Change = Callable[[SingleCall], SingleCall]
Schema = dict[str, Any]


@dataclass(frozen=True)
class RuleTrial:
    """One rule, and what breaks it.

    Attributes:
        rule: a name of `lint.RULES`.
        good, bad: make a single call that keeps the rule, and one that breaks it.
        applies: whether a single call has anything that the rule is about.
        distance: what of the two the adapter's training had.
    """

    rule: str
    good: Change
    bad: Change
    applies: Callable[[SingleCall], bool]
    distance: str


def trial(rule: str) -> RuleTrial:
    """The trial of a rule.

    Raises:
        UsageError: where there is none.
    """
    if rule not in TRIALS:
        raise UsageError(f"no trial of the rule {rule!r}; choose one of {', '.join(TRIALS)}")
    return TRIALS[rule]


def shown_tools(call: SingleCall) -> list[ToolSchema]:
    """The tools of a single call as the linter takes them."""
    return [ToolSchema(tool.name, tool.description, tool.input_schema) for tool in call.tools]


def rewritten(call: SingleCall, tools: tuple[ToolContract, ...], answer: Mapping[str, Any]) -> SingleCall:
    """The same request with other tools and another right call."""
    system = call.messages[0].content
    before, after = ("\n".join(tool.schema_text for tool in of) for of in (call.tools, tools))
    if before not in system:
        raise UsageError("the system message does not show the call's tools, one a line")
    messages = (replace(call.messages[0], content=system.replace(before, after)), call.messages[1])
    return SingleCall(tools, messages, dict(answer))


def _each_schema(call: SingleCall, change: Callable[[ToolContract], ToolContract]) -> SingleCall:
    return rewritten(call, tuple(change(tool) for tool in call.tools), call.call)


def _properties(call: SingleCall, change: Callable[[str, Schema], Schema]) -> SingleCall:
    def of(tool: ToolContract) -> ToolContract:
        schema = tool.input_schema
        made = {name: change(name, inner) for name, inner in schema["properties"].items()}
        return replace(tool, input_schema={**schema, "properties": made})

    return _each_schema(call, of)


def _described(call: SingleCall) -> SingleCall:
    """Every tool and argument with a description, from its name where it had none."""

    def of(tool: ToolContract) -> ToolContract:
        name = " ".join(words(tool.name))
        return replace(tool, description=tool.description or f"{name.capitalize()}.")

    return _properties(_each_schema(call, of), lambda name, inner: {**inner, "description": inner.get("description")
                                                                    or f"the {' '.join(words(name))} that is meant"})  # fmt: skip


def _bare(call: SingleCall) -> SingleCall:
    bare = _properties(call, lambda name, inner: {key: value for key, value in inner.items() if key != "description"})
    return _each_schema(bare, lambda tool: replace(tool, description=""))


def _without_enums(call: SingleCall) -> SingleCall:
    """The choices in words, where the schema no longer holds the model to them."""

    def change(name: str, inner: Schema) -> Schema:
        if "enum" not in inner:
            return inner
        said = f"one of {', '.join(map(str, inner['enum']))}"
        return {"type": "string", "description": said}

    return _properties(call, change)


def _wrapped(call: SingleCall, schema: Callable[[Schema], Schema], arguments: Schema) -> SingleCall:
    """Another schema of every tool, and the right call's arguments as they then are."""
    tools = tuple(replace(tool, input_schema=schema(dict(tool.input_schema))) for tool in call.tools)
    return rewritten(call, tools, {**call.call, "arguments": arguments})


def _nested(call: SingleCall) -> SingleCall:
    """The arguments two objects deeper."""
    wrapped = {"request": {"details": call.call["arguments"]}}
    return _wrapped(call, lambda schema: _object({"request": _object({"details": schema})}), wrapped)


def _free_form(call: SingleCall) -> SingleCall:
    """One object of anything; the keys stand in the description."""

    def any_object(schema: Schema) -> Schema:
        keys = ", ".join(schema["properties"])
        return _object({"args": {"type": "object", "description": f"the arguments: {keys}"}})

    return _wrapped(call, any_object, {"args": call.call["arguments"]})


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _restyled(call: SingleCall, mixed: bool) -> SingleCall:
    """The tools' names in one style, or each in the next one."""
    names = {}
    for index, tool in enumerate(call.tools):
        parts = words(tool.name)
        verb_first = list(reversed(parts)) if "." in tool.name else parts
        names[tool.name] = STYLES[index % len(STYLES) if mixed else 0](verb_first)
    tools = tuple(replace(tool, name=names[tool.name]) for tool in call.tools)
    return rewritten(call, tools, {**call.call, "name": names[call.call["name"]]})


def _has(call: SingleCall, kind: Callable[[Schema], bool]) -> bool:
    """Whether an argument of the right call is of a kind."""
    (tool,) = (tool for tool in call.tools if tool.name == call.call["name"])
    return any(kind(tool.input_schema["properties"][name]) for name in call.call["arguments"])


TRIALS = {
    each.rule: each
    for each in (
        RuleTrial("nested", _described, lambda call: _nested(_described(call)), lambda call: True,
                  "training had flat arguments only"),
        RuleTrial("missing_enum", _described, lambda call: _without_enums(_described(call)),
                  lambda call: _has(call, lambda schema: "enum" in schema), "training had enumerations and free text"),
        RuleTrial("no_description", _described, _bare, lambda call: len(call.tools) > 1,
                  "three in ten lists of the training had no descriptions"),
        RuleTrial("mixed_styles", lambda call: _restyled(_described(call), False),
                  lambda call: _restyled(_described(call), True), lambda call: len(call.tools) > 1,
                  "training had five styles, one in each list"),
        RuleTrial("free_form_object", _described, lambda call: _free_form(_described(call)), lambda call: True,
                  "training had typed arguments; the coarse surface has free-form ones"),
    )
}  # fmt: skip
"""Rule -> its trial."""
