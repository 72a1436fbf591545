"""Rules about single arguments: what a model has to write, and whether the schema helps it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from modtools.schemas.lint.finding import ERROR, NOTE, WARNING, Argument, Finding, arguments, words
from modtools.schemas.tool_list import ToolSchema

MOST_DEPTH = 2  # objects within objects up to which a model is expected to keep the brackets
_QUOTED = r"[`'\"“‘]([\w .:/+-]{1,30})[`'\"”’]"
_ALTERNATIVES = re.compile(rf"{_QUOTED}(?:\s*\([^)]*\))?\s*(?:,|/|\||,?\s+or)\s*(?:or\s+)?{_QUOTED}", re.IGNORECASE)
_ONE_OF = re.compile(
    r"\b(?:one of|either|allowed values?|valid values?|possible values?|accepted values?|choices?|options)(?: (?:are|is|include))?"
    r"\s*:?\s*\(?((?:[\w-]{1,30}(?:,| or |/|\||, or )\s*){1,}[\w-]{1,30})",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\b(?:eg|for example|such as|for instance|example|like)\b", re.IGNORECASE)
_PLACE_NAMES = {"path", "file", "filename", "filepath", "directory", "folder", "dir"}
_MOMENT_NAMES = {"date", "time", "datetime", "timestamp", "deadline", "since", "until"}
_MOMENT_SAID = re.compile(r"iso|rfc|yyyy|epoch|unix|utc|format|hh:mm|seconds|milliseconds|\d{4}-\d\d", re.IGNORECASE)
_PLACE_SAID = re.compile(r"absolute|relative|workspace|root|under|within|glob|pattern|uri|url|/", re.IGNORECASE)
_AMOUNT_NAMES = {"limit", "count", "size", "page", "max", "timeout", "top", "offset"}
_UNIT_NAMES = {"timeout", "duration", "delay", "interval", "ttl", "age", "distance", "weight", "temperature", "length"}
_UNIT_SAID = re.compile(
    r"second|minute|hour|day|week|month|year|\bms\b|milli|metre|meter|\bkm\b|mile|gram|\bkg\b|pound|celsius|fahrenheit|"
    r"kelvin|byte|pixel|percent|character|line|item|token|inch|feet|\bcm\b|\bmm\b|number of",
    re.IGNORECASE,
)


def argument_findings(tool: ToolSchema) -> Iterator[Finding]:
    """What the rules say of every argument of a tool, and of the schema's root."""
    for argument in arguments(tool):
        for rule in _RULES:
            yield from rule(argument)
    properties = tool.schema.get("properties")
    known = set(properties) if isinstance(properties, Mapping) else set()
    for name in tool.schema.get("required", ()) if isinstance(tool.schema.get("required"), (list, tuple)) else ():
        if name not in known and known:
            yield Finding("required_unknown", ERROR, f"{tool.name}, argument {name}", "it is required and not described",
                          f"describe {name} under properties, or take it out of required")  # fmt: skip
    if len(known) > 1 and not tool.schema.get("required"):
        yield Finding("nothing_required", NOTE, tool.name, f"none of its {len(known)} arguments is required, so an empty call "
                      "is valid", "name under required what no call can do without")  # fmt: skip


def free_form_object(argument: Argument) -> Iterator[Finding]:
    """Rule 6: an object without properties makes the model remember its keys."""
    shapes = (
        "properties",
        "additionalProperties",
        "patternProperties",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
        "$ref",
    )
    extra = argument.schema.get("additionalProperties")
    bare = not any(key in argument.schema for key in shapes) or (
        "properties" not in argument.schema and extra in (True, {}) and not argument.schema.get("patternProperties")
    )
    if argument.is_a("object") and bare:
        yield Finding("free_form_object", ERROR, argument.where, "any object is valid, so the model must guess its keys",
                      "name the keys under properties and set additionalProperties to false; if it is a map, say of what "
                      "under additionalProperties")  # fmt: skip


def untyped(argument: Argument) -> Iterator[Finding]:
    """Rule 6: no type at all, or an array of anything."""
    said = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "not", "if")
    if not any(key in argument.schema for key in said):
        yield Finding("untyped", WARNING, argument.where, "the schema admits any value", "give it a type")
    if argument.is_a("array") and not any(
        key in argument.schema for key in ("items", "prefixItems", "contains", "enum")
    ):
        yield Finding("untyped", WARNING, argument.where, "an array of anything is valid", "say what its items are")


def nested(argument: Argument) -> Iterator[Finding]:
    """Rule 1: depth is written in brackets, and small models lose them."""
    depth = len([part for part in argument.path if part != "[]"])
    if depth == MOST_DEPTH + 1 and argument.schema.get("properties") is None:
        yield Finding("nested", NOTE, argument.where, f"it lies {depth} objects deep", "flatten the arguments, or take the "
                      "inner object as an argument of its own")  # fmt: skip


def missing_enum(argument: Argument) -> Iterator[Finding]:
    """Rule 2: a description lists the choices, and the schema admits any text."""
    if not argument.is_a("string") or any(
        key in argument.schema for key in ("enum", "const", "pattern", "anyOf", "oneOf")
    ):
        return
    choices = choices_in(argument.description)
    if choices:
        yield Finding("missing_enum", WARNING, argument.where, f"the description lists the choices ({', '.join(choices[:5])}) and "
                      "the schema admits any text", f'"enum": {_json(choices)}')  # fmt: skip


def choices_in(text: str) -> list[str]:
    """The values that a description names as the only ones; [] where it names examples, or none."""
    for sentence in re.split(r"(?<=[.;])\s+|\n", re.sub(r"\be\.g\.", "eg", text)):
        if _EXAMPLE.search(sentence):
            continue
        if _ALTERNATIVES.search(sentence):
            found = re.findall(_QUOTED, sentence)
            if len(set(found)) > 1:
                return list(dict.fromkeys(found))
        if listed := _ONE_OF.search(sentence):
            found = [each for each in re.split(r",\s*or\s+|,\s*|\s+or\s+|/|\|", listed[1]) if each]
            if len(set(found)) > 1:
                return list(dict.fromkeys(found))
    return []


def text_for_a_type(argument: Argument) -> Iterator[Finding]:
    """A yes or no, or a number, as text."""
    if argument.is_a("string") and re.fullmatch(
        r"(?:\W*(?:true|false|yes|no)\W*(?:or|/|,)?\W*){2}.*", " ".join(choices_in(argument.description)).lower()
    ):
        yield Finding(
            "text_for_a_type", WARNING, argument.where, "it is a yes or no, written as text", '"type": "boolean"'
        )


def unclear_format(argument: Argument) -> Iterator[Finding]:
    """Poka-yoke: a moment, a place or a measure whose form is not said."""
    last = set(words(argument.name)[-1:])
    told = f"{argument.description} {argument.schema.get('format', '')} {argument.schema.get('pattern', '')}"
    fixed = any(key in argument.schema for key in ("enum", "const", "format", "pattern", "examples"))
    if argument.is_a("string") and last & _MOMENT_NAMES and not fixed and not _MOMENT_SAID.search(told):
        yield Finding("unclear_format", WARNING, argument.where, "dates, timestamps and phrases such as 'tomorrow' are all valid",
                      'say the format, e.g. "format": "date", and the time zone')  # fmt: skip
    if argument.is_a("string") and last & _PLACE_NAMES and not fixed and not _PLACE_SAID.search(told):
        yield Finding("unclear_format", NOTE, argument.where, "it does not say what the path is relative to",
                      "say: relative to which root, or absolute")  # fmt: skip
    measured = {"seconds", "ms", "minutes", "hours", "days", "bytes", "pixels", "percent", "km", "kg", "celsius"}
    if argument.is_a("number", "integer") and last & _UNIT_NAMES and not measured & set(words(argument.name)):
        if not _UNIT_SAID.search(told):
            yield Finding("unit_unsaid", WARNING, argument.where, "it does not say in which unit",
                          f"put the unit into the name ({argument.name}_seconds) or the description")  # fmt: skip


def unbounded(argument: Argument) -> Iterator[Finding]:
    """Poka-yoke: an amount without bounds."""
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const")
    if argument.is_a("integer", "number") and set(words(argument.name)) & _AMOUNT_NAMES:
        if not any(key in argument.schema for key in bounds):
            yield Finding("unbounded", NOTE, argument.where, "0, a negative number and a million are all valid",
                          'give "minimum" and "maximum"')  # fmt: skip


def no_description(argument: Argument) -> Iterator[Finding]:
    """Rule 3, for arguments: nothing is said, and the name does not say it either."""
    if argument.path[-1] != "[]" and not argument.description and len("".join(words(argument.name))) <= 3:
        if not any(key in argument.schema for key in ("enum", "const")):
            yield Finding("no_description", WARNING, argument.where, "neither its name nor a description says what it is",
                          "describe it, or give it a name that tells")  # fmt: skip


def _json(choices: list[str]) -> str:
    return "[" + ", ".join(f'"{each}"' for each in choices) + "]"


_RULES: tuple[Any, ...] = (
    free_form_object, untyped, nested, missing_enum, text_for_a_type, unclear_format, unbounded, no_description,
)  # fmt: skip
