"""The judge that owes our compiler nothing: a strict JSON parser, and the jsonschema library without its traps.

Four traps are disarmed. Patterns: jsonschema uses Python's `re`, where \\d and \\w know all of Unicode, $ stands also
before a last line feed, and \\p{L} is unknown; they are rewritten for the `regex` package as ECMA-262 means them.
multipleOf: on doubles 0.07 is no multiple of 0.01; it is decided on the decimal digits. Duplicate keys and lone
surrogates, which json.loads lets pass, are errors of the parser, as are NaN and Infinity. Formats are annotations
unless a FormatChecker is given. One trap is none but must be known: 1.0 is an integer, by the standard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import jsonschema
import regex

SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"}

PRECISE = Context(prec=2_000)  # digits; enough for every double and for what the tests write


class Digits(float):
    """A number with a fraction or an exponent that remembers its digits."""

    def __new__(cls, text: str):
        number = super().__new__(cls, text)
        number.digits = text
        return number


def parse(text: bytes) -> Any:
    """The document.

    Raises:
        ValueError: not JSON in UTF-8, a key twice, half of a surrogate pair, NaN or Infinity.
    """

    def once(pairs: Sequence[tuple[str, object]]) -> dict:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def refuse(constant: str):
        raise ValueError(f"{constant} is not JSON")

    document = json.loads(text.decode(), object_pairs_hook=once, parse_constant=refuse, parse_float=Digits)
    json.dumps(document, ensure_ascii=False).encode()  # UnicodeEncodeError is a ValueError
    return document


@lru_cache(maxsize=4096)
def ecma(pattern: str) -> regex.Pattern:
    """A pattern as ECMA-262 means it with the flag u, for the `regex` package."""
    out, at, inside = [], 0, False
    while at < len(pattern):
        character, after = pattern[at], pattern[at + 1 : at + 2]
        at += 1
        if character == "\\":
            at += 1
            if after in SETS:
                out.append(SETS[after] if inside else f"[{SETS[after]}]")
            elif after in ("D", "W", "S"):
                out.append(f"[^{SETS[after.lower()]}]")
            elif after == "c":
                out.append(regex.escape(chr(ord(pattern[at]) % 32)))
                at += 1
            elif after == "u" and pattern[at : at + 1] == "{":
                digits, _, _ = pattern[at + 1 :].partition("}")
                out.append(regex.escape(chr(int(digits, 16))))
                at += len(digits) + 2
            else:
                out.append("/" if after == "/" else character + after)
        elif inside:
            inside = character != "]"
            out.append("\\" + character if character in "[&|~" else character)
        elif character == "[":
            inside = True
            out.append("[")
        else:
            out.append({"$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}.get(character, character))
    return regex.compile("".join(out))


def _pattern(validator, pattern, instance, schema) -> Iterator[jsonschema.ValidationError]:
    if validator.is_type(instance, "string") and not ecma(pattern).search(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator, patterns, instance, schema) -> Iterator[jsonschema.ValidationError]:
    for pattern, inner in patterns.items() if validator.is_type(instance, "object") else ():
        for key in instance:
            if ecma(pattern).search(key):
                yield from validator.descend(instance[key], inner, path=key, schema_path=pattern)


def _additional(validator, inner, instance, schema) -> Iterator[jsonschema.ValidationError]:
    patterns = [ecma(pattern) for pattern in schema.get("patternProperties", {})]
    for key in instance if validator.is_type(instance, "object") else ():
        if key not in schema.get("properties", {}) and not any(pattern.search(key) for pattern in patterns):
            if inner is False:
                yield jsonschema.ValidationError(f"{key!r} is not allowed")
            else:
                yield from validator.descend(instance[key], inner, path=key)


def _multiple_of(validator, multiple, instance, schema) -> Iterator[jsonschema.ValidationError]:
    if validator.is_type(instance, "number"):
        exact = PRECISE.create_decimal(getattr(instance, "digits", None) or repr(instance))
        if PRECISE.remainder(exact, Decimal(repr(multiple))):
            yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {multiple!r}")


@lru_cache
def _kind(base):
    rules = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional,
        "multipleOf": _multiple_of,
    }
    return jsonschema.validators.extend(base, rules)


class Oracle:
    """Judges the documents of one schema; by jsonschema with all its formats unless `formats` is false."""

    def __init__(self, schema: Any, formats: bool = True):
        base = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        self._validator = _kind(base)(schema, format_checker=base.FORMAT_CHECKER if formats else None)

    def why_not(self, text: bytes) -> str | None:
        """Why a text is no valid document, None where it is one."""
        try:
            document = parse(text)
        except (ValueError, RecursionError) as error:
            return f"not strict JSON: {error}"
        error = next(self._validator.iter_errors(document), None)
        return None if error is None else f"{error.validator}: {error.message}"[:200]

    def is_valid(self, text: bytes) -> bool:
        """Whether a text is strict JSON and a valid document."""
        return self.why_not(text) is None
