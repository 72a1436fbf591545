"""Why a document is refused: each row of the restrictions can be undone, by itself, and the document judged again.

Most rows are undone in the text, which keeps its value: 1.0 becomes 1, blanks go, a key is spelled anew. Those about
bounds, multiples, formats and dialects are undone in the schema, by taking the keyword out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from maskcheck.alike import PARTS, without_blanks
from maskcheck.oracle import Oracle, parse
from maskcheck.spellings import fixed_strings
from modtools.errors import ModtoolsError
from modtools.masking import compile_json_schema

_LONE = re.compile(
    r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]..)"
)
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
VALIDATION = (
    "type", "enum", "const", *BOUNDS, "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems",
    "uniqueItems", "minProperties", "maxProperties", "required", "dependentRequired", "format",
)  # fmt: skip
STANDARD = re.compile(r"https?://json-schema\.org/")


def reasons(schema: Any, text: str, formats_are_asserted: bool = True, **options) -> list[str]:
    """The rows of the table that by themselves explain why a text is refused; empty where none does.

    Args:
        formats_are_asserted: whether the one who calls the text valid takes formats for assertions.
        options: of compile_json_schema.
    """
    undone: dict[str, Callable[[], bool]] = {
        "duplicate keys": lambda: _has_twice(text) and accepted(schema, json.dumps(json.loads(text))),
        "lone surrogates": lambda: accepted(schema, _LONE.sub(r"\1x", text)),
        "one spelling": lambda: accepted(schema, _respell(schema, text, fixed=True)),
        "one spelling of bounded names": lambda: accepted(schema, _respell(schema, text, fixed=False)),
        "whitespace": lambda: accepted(schema, without_blanks(text)),
        "integers": lambda: accepted(schema, _integers(schema, text))
        and not accepted(without(schema, [*BOUNDS, "multipleOf"]), text),
        "bounded numbers": lambda: accepted(without(schema, BOUNDS), text) and Oracle(schema).is_valid(text.encode()),
        "multiples": lambda: accepted(without(schema, ["multipleOf"]), text) and Oracle(schema).is_valid(text.encode()),
        "formats": lambda: formats_are_asserted and accepted(without(schema, ["format"]), text),
        "asserted formats": lambda: not formats_are_asserted and accepted(without(schema, ["format"]), text)
        and not Oracle(schema).is_valid(text.encode()),
        "own dialects": lambda: _has_own_dialect(schema) and accepted(without(schema, VALIDATION), text),
    }  # fmt: skip
    if options.get("property_order") == "declared":
        undone["property order"] = lambda: accepted(schema, text, property_order="any")

    def accepted(schema: Any, text: str, **changed) -> bool:
        try:
            grammar = compile_json_schema(schema, **{**options, **changed})
            return grammar.accepts(text.encode(errors="surrogatepass"))
        except ModtoolsError:
            return False

    return [name for name, explains in undone.items() if explains()]


def without(schema: Any, keywords) -> Any:
    """The schema without some keywords, wherever they are keywords; names of properties stay."""
    if not isinstance(schema, dict):
        return [without(inner, keywords) for inner in schema] if isinstance(schema, list) else schema
    named = ("properties", "patternProperties", "$defs", "definitions")
    return {
        key: {name: without(inner, keywords) for name, inner in value.items()}
        if key in named and isinstance(value, dict)
        else value
        if key in ("enum", "const", "required")
        else without(value, keywords)
        for key, value in schema.items()
        if key not in keywords
    }


def _has_twice(text: str) -> bool:
    try:
        parse(text.encode())
    except ValueError as error:
        return "twice" in str(error)
    return False


def _given_numbers(schema: Any) -> set[Decimal]:
    """The numbers that stand in enum and const."""
    found: set[Decimal] = set()

    def look(value: Any, is_given: bool) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool) and is_given:
            found.add(Decimal(repr(value)))
        for key, inner in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            look(inner, is_given or key in ("enum", "const"))

    look(schema, False)
    return found


def _respell(schema: Any, text: str, fixed: bool) -> str:
    """Gives what has one spelling that spelling: declared and given strings and numbers, or else all other keys."""
    tokens, known, numbers = PARTS.findall(text), fixed_strings(schema), _given_numbers(schema)
    solid = [i for i, token in enumerate(tokens) if not token.isspace()]
    keys = {i for i, after in zip(solid, solid[1:]) if tokens[after] == ":"}
    for i, token in enumerate(tokens):
        if token[0] == '"' and (json.loads(token) in known if fixed else i in keys and json.loads(token) not in known):
            tokens[i] = json.dumps(json.loads(token), ensure_ascii=False)
        elif fixed and (number := _decimal(token)) is not None and number in numbers:
            tokens[i] = _shortest(number)
    return "".join(tokens)


def _decimal(token: str) -> Decimal | None:
    """The number that a part of a text spells, None where it is none, or one of more than a thousand digits."""
    if token[0] not in "-0123456789" or len(token) > 1_000 or int(token.lower().partition("e")[2] or 0) > 1_000:
        return None
    return Decimal(token)


def _shortest(number: Decimal) -> str:
    return str(int(number)) if _is_whole(number) else repr(float(number))


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()


def _integers(schema: Any, text: str) -> str:
    """Spells whole numbers that are not given values without fraction and exponent."""
    given = _given_numbers(schema)

    def spell(token: str) -> str:
        number = _decimal(token)
        return token if number is None or number in given or not _is_whole(number) else str(int(number))

    return "".join(map(spell, PARTS.findall(text)))


def _has_own_dialect(schema: Any) -> bool:
    return isinstance(schema, dict) and "$schema" in schema and not STANDARD.match(str(schema["$schema"]))
