"""Given values (enum and const): their types, their one spelling, and whether other keywords let them stand."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

from modtools.masking.document import MARK, Place
from modtools.masking.shape import Shape

_EXACT = Context(prec=2_000)
MAX_DIGITS = 900  # of a number; no double has more before its point
MAX_DEPTH = 200  # of a given value


def unspellable(value: Any) -> str | None:
    """Why a value of an enum or a const stands for no JSON, None where it does."""
    waiting = [(value, 0)]
    for inner, depth in waiting:
        if isinstance(inner, float) and not math.isfinite(inner):
            return f"{inner} is no number of JSON"
        if is_long(inner):
            return f"a number of more than {MAX_DIGITS} digits"
        if not isinstance(inner, dict | list | str | int | float | None):
            return f"{inner!r} is no value of JSON"
        if depth > MAX_DEPTH:
            return f"a value nested deeper than {MAX_DEPTH}"
        parts = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        waiting += [(part, depth + 1) for part in parts]
    return None


def is_long(value: Any) -> bool:
    """Whether a value is an integer of more digits than any automaton is made for."""
    return isinstance(value, int) and abs(value) >= 10**MAX_DIGITS


def const(place: Place, step: str | int, value: Any) -> Place:
    """A schema for one part of a given object or array."""
    inner = Place(place.pointer, {step: value}).at(step)
    return Place(inner.pointer + MARK, {"const": inner.schema})


def type_of(value: Any) -> str:
    """The type of a JSON value; 1.0 is an integer."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return {float: "number", str: "string", list: "array", dict: "object"}[type(value)]


def spell_scalar(value: Any) -> bytes:
    """The one spelling of a given number, true, false or null; numbers as ECMA-262 prints them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return (
        {None: b"null", True: b"true", False: b"false"}[value]
        if isinstance(value, bool | None)
        else repr(value).encode()
    )


def scalar_fits(value: Any, kind: str, shape: Shape) -> bool:
    """Whether a given scalar of a type of the shape keeps its other bounds."""
    if kind == "string":
        size_fits = shape.min_length <= len(value) <= (math.inf if shape.max_length is None else shape.max_length)
        return size_fits and all(dfa.label(value) is not None for dfa in shape.texts)
    if kind not in ("integer", "number"):
        return True
    number = Decimal(repr(value))
    low, high = shape.least, shape.most
    return (
        (low is None or number > low[0] or (number == low[0] and not low[1]))
        and (high is None or number < high[0] or (number == high[0] and not high[1]))
        and all(_EXACT.remainder(number, multiple) == 0 for multiple in shape.multiples)
    )
