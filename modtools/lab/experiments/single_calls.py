"""Single calls on random lists of tools: a request in words, and the one call that answers it.

A fifth of the adapter's demonstrations are such calls, so that it knows more than the lab's three surfaces; and the
experiments on masks and schemas ask for them. Names come in several styles, schemas good and bad: with and without
descriptions, with enums or free text, with optional arguments, with neighbours that differ in one word. OTHER words and
parameters are in no demonstration.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import Any

from modtools.contract import ToolContract
from modtools.models import Message

VERBS = "book cancel convert count find list move order pay print rate reserve send show sort track translate".split()
NOUNS = (
    "address article bill booking cable camera concert course dish flight forecast hotel invoice letter lesson map meal "
    "message meter museum note parcel photo recipe report room route seat song table taxi ticket tool train trip"
).split()


@dataclass(frozen=True)
class Parameter:
    """One parameter: its schema, how a request speaks of it, and its values."""

    name: str
    schema: dict[str, Any]
    phrases: tuple[str, ...]
    values: tuple[Any, ...]
    description: str


def _text(name: str, description: str, phrases: tuple[str, ...], values: str) -> Parameter:
    return Parameter(name, {"type": "string"}, phrases, tuple(values.split(",")), description)


def _choice(name: str, description: str, phrases: tuple[str, ...], values: str) -> Parameter:
    options = values.split(",")
    return Parameter(name, {"type": "string", "enum": options}, phrases, tuple(options), description)


PARAMETERS = (
    _text(
        "city", "name of the city", ("in {v}", "for the city of {v}"), "Oslo,Porto,Lima,Kyoto,Turin,Accra,Quito,Leeds"
    ),
    _text(
        "date", "day, as YYYY-MM-DD", ("on {v}", "for {v}"), "2026-01-09,2026-03-21,2027-05-30,2026-11-02,2027-08-14"
    ),
    _text(
        "customer", "name of the customer", ("for {v}", "on behalf of {v}"), "Ada,Bo,Chen,Dara,Emil,Farah,Goran,Hana"
    ),
    _text(
        "email", "e-mail address", ("to {v}", "with a copy to {v}"), "ops@example.org,lab@example.com,desk@example.net"
    ),
    _text("id", "identifier", ("number {v}", "with the id {v}"), "A-17,B-2040,C-9,K-381,Q-55,Z-7012"),
    _text(
        "title",
        "title in full",
        ('called "{v}"', 'with the title "{v}"'),
        "Blue hour,The long way,North wind,Two rivers",
    ),
    _choice("unit", "unit of the result", ("in {v}",), "metres,miles,grams,pounds,litres"),
    _choice("priority", "how urgent it is", ("with {v} priority",), "low,normal,high"),
    _choice("format", "format of the output", ("as {v}",), "csv,json,pdf,text"),
    _choice("language", "language of the text", ("in {v}",), "Dutch,Finnish,Greek,Hindi,Korean"),
    Parameter("count", {"type": "integer", "minimum": 1}, ("{v} of them", "{v} times"), (*range(1, 13),), "how many"),
    Parameter("days", {"type": "integer"}, ("for {v} days", "over {v} days"), (2, 3, 5, 7, 10, 14), "number of days"),
    Parameter("amount", {"type": "number"}, ("for {v} euros", "worth {v}"), (4.5, 12.25, 80.0, 99.9, 310.75), "sum"),
    Parameter("urgent", {"type": "boolean"}, ("urgently", "and it is urgent"), (True,), "whether it is urgent"),
    Parameter("notify", {"type": "boolean"}, ("without telling anybody",), (False,), "whether to tell people"),
    Parameter(
        "tags",
        {"type": "array", "items": {"type": "string"}},
        ("tagged {v}", "with the tags {v}"),
        (["red"], ["new", "spare"], ["home", "late", "big"]),
        "labels",
    ),
)

OTHER_VERBS = "brew dim feed fold hire ignite lend mow paint prune scan stitch tune weigh".split()
OTHER_NOUNS = "aquarium barrel beehive canvas drone fence goat greenhouse harp kiln lantern orchard piano quilt".split()
OTHER_PARAMETERS = (
    _text("tenant_code", "code of the tenant", ("for tenant {v}", "under the code {v}"), "T9,NORTH-4,blue.2,x77"),
    _text("note", "note in full", ('with the note "{v}"', 'adding "{v}"'), "Mind the step,Ring twice,Keep it dry"),
    _choice("strength", "how strong", ("at {v} strength",), "gentle,medium,full"),
    _choice("colour", "colour", ("in {v}",), "amber,crimson,teal"),
    Parameter("layers", {"type": "integer", "minimum": 1, "maximum": 9}, ("in {v} layers",), (2, 3, 4, 6), "layers"),
    Parameter("angle", {"type": "number"}, ("at {v} degrees",), (12.5, 45.0, 90.25), "angle in degrees"),
    Parameter("dry_run", {"type": "boolean"}, ("only as a trial",), (True,), "whether nothing is changed"),
)

STYLES = (
    lambda words: "_".join(words),
    lambda words: words[0] + "".join(word.capitalize() for word in words[1:]),
    lambda words: "".join(word.capitalize() for word in words),
    lambda words: "-".join(words),
    lambda words: ".".join(reversed(words)),
)

SYSTEM = """{opening} The tools:
{tools}
Reply with one call and nothing after it: {{"name": "<tool>", "arguments": {{...}}}}"""
OPENINGS = (
    "You help people by calling tools.",
    "You answer a request by calling one tool.",
    "You are an assistant with tools.",
)
REQUESTS = ("{what}", "Please {what}.", "I need you to {what}.", "Can you {what}?", "{what}, please.")


@dataclass(frozen=True)
class SingleCall:
    """A request that one call answers.

    Attributes:
        tools: the contracts that the model is shown, in their order.
        messages: the system message with the tools, and the request.
        call: {"name", "arguments"} that answers it.
    """

    tools: tuple[ToolContract, ...]
    messages: tuple[Message, Message]
    call: dict[str, Any]

    @property
    def answer(self) -> str:
        """The reply that is right."""
        return json.dumps(self.call, ensure_ascii=False)


def single_call(rng: Random, unseen: bool = False) -> SingleCall:
    """A request with one to eight tools.

    Args:
        rng: draws it.
        unseen: whether tools and parameters are of the OTHER kind, which no demonstration has.
    """
    verbs, nouns, offered = (OTHER_VERBS, OTHER_NOUNS, OTHER_PARAMETERS) if unseen else (VERBS, NOUNS, PARAMETERS)
    style, described = rng.choice(STYLES), rng.random() < 0.7
    names = _names(rng, rng.randint(1, 8), verbs, nouns)
    parameters = [rng.sample(offered, rng.randint(1, 4)) for _ in names]
    required = [rng.sample(own, rng.randint(1, len(own))) for own in parameters]
    tools = [
        _contract(style(name), name, own, needed, described)
        for name, own, needed in zip(names, parameters, required, strict=True)
    ]
    wanted = rng.randrange(len(names))
    given = [each for each in parameters[wanted] if each in required[wanted] or rng.random() < 0.5]
    arguments = {each.name: rng.choice(each.values) for each in given}
    phrases = [rng.choice(each.phrases).format(v=_spoken(arguments[each.name])) for each in given]
    rng.shuffle(phrases)
    article = "an" if names[wanted][1][0] in "aeiou" else "a"
    what = " ".join([f"{names[wanted][0]} {article} {names[wanted][1]}", *phrases])
    request = rng.choice(REQUESTS).format(what=what)
    system = SYSTEM.format(opening=rng.choice(OPENINGS), tools="\n".join(tool.schema_text for tool in tools))
    asked = Message("system", system), Message("user", request[:1].upper() + request[1:])
    return SingleCall(tuple(tools), asked, {"name": tools[wanted].name, "arguments": arguments})


def _names(rng: Random, number: int, verbs: list[str], nouns: list[str]) -> list[tuple[str, str]]:
    """Different (verb, noun), some of which share a word."""
    names: list[tuple[str, str]] = []
    while len(names) < number:
        near = rng.choice(names) if names and rng.random() < 0.4 else None
        verb = near[0] if near and rng.random() < 0.5 else rng.choice(verbs)
        noun = near[1] if near and verb != near[0] else rng.choice(nouns)
        if (verb, noun) not in names:
            names.append((verb, noun))
    return names


def _contract(
    name: str, words: tuple[str, str], parameters: list[Parameter], required: list[Parameter], described: bool
) -> ToolContract:
    properties = {
        each.name: {**each.schema, **({"description": each.description} if described else {})} for each in parameters
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in parameters if each in required],
        "additionalProperties": False,
    }
    return ToolContract(name, f"{words[0].capitalize()} a {words[1]}." if described else "", schema)


def _spoken(value: Any) -> str:
    return " and ".join(value) if isinstance(value, list) else re.sub(r"\.0$", "", str(value))
