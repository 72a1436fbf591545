"""What each keyword of a schema says: it narrows a shape, or is refused by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from modtools.masking.dfa import CharacterDFA
from modtools.masking.document import Place
from modtools.masking.formats import DEFINED, FORMATS
from modtools.masking.given import MAX_DIGITS, is_long, unspellable
from modtools.masking.numbers import is_multiple_supported
from modtools.masking.pattern import PatternError
from modtools.masking.regex import pattern_dfa
from modtools.masking.shape import TYPES, ArrayLayer, ObjectLayer, Shape

# Assertions of JSON Schema (2019-09 and 2020-12, and those before) that are refused wherever they would matter.
REFUSED = {  # keyword: the type it speaks about, None for any
    **dict.fromkeys(("not", "if", "then", "else", "$dynamicRef", "$recursiveRef", "extends", "disallow")),
    **dict.fromkeys(("contains", "uniqueItems", "unevaluatedItems"), "array"),
    **dict.fromkeys(("dependentSchemas", "dependentRequired", "dependencies", "unevaluatedProperties"), "object"),
    "divisibleBy": "number",
}


def narrow(shape: Shape, place: Place, is_wide: bool) -> Shape:
    """The shape with the keywords of one more schema; see Document.is_wide."""
    shape = _narrow_values(shape, place)
    for keyword, kind in REFUSED.items():
        if keyword in place.schema and not _is_idle(keyword, place.schema) and kind in (None, *shape.types):
            place.refuse(keyword, "not supported; take it out, or say the same with the supported keywords")
    shape = _narrow_string(shape, place, is_wide)
    shape = _narrow_number(shape, place)
    shape = _narrow_object(shape, place)
    return _narrow_array(shape, place)


def _is_idle(keyword: str, schema: Mapping[str, Any]) -> bool:
    """Whether a keyword that is not supported says nothing here."""
    value = schema[keyword]
    if keyword in ("then", "else"):
        return "if" not in schema
    if keyword in ("unevaluatedProperties", "unevaluatedItems"):
        return value is True
    idle = {
        "uniqueItems": False,
        "minProperties": 0,
        "dependentSchemas": {},
        "dependentRequired": {},
        "dependencies": {},
    }
    return keyword in idle and value == idle[keyword]


def _narrow_values(shape: Shape, place: Place) -> Shape:
    schema = place.schema
    if "type" in schema:
        given = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        unknown = [name for name in given if not isinstance(name, str) or name not in TYPES]
        if unknown:
            place.refuse("type", f"{unknown[0]!r} is no type of JSON")
        types = frozenset(given) | ({"integer"} if "number" in given else set())
        shape = replace(shape, types=shape.types & types)
    for keyword in ("enum", "const"):
        if keyword in schema:
            listed = isinstance(schema[keyword], list)
            if keyword == "enum" and not listed:
                place.refuse("enum", f"expected a list, got {schema[keyword]!r}")
            values = (
                [place.at("enum", i) for i in range(len(schema["enum"]))] if keyword == "enum" else [place.at("const")]
            )
            for value in values:
                if reason := unspellable(value.schema):
                    place.refuse(keyword, reason)
            if shape.values is not None:
                values = [v for v in shape.values if any(same(v.schema, other.schema) for other in values)]
            shape = replace(shape, values=tuple(values))
    return shape


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def _narrow_string(shape: Shape, place: Place, is_wide: bool) -> Shape:
    schema, texts = place.schema, list(shape.texts)
    if "string" not in shape.types:
        return shape
    if "pattern" in schema:
        texts.append(_pattern(place, "pattern", schema["pattern"]))
    name = schema.get("format", "")
    if not isinstance(name, str):
        place.refuse("format", f"expected a string, got {name!r}")
    if name in FORMATS:
        texts += [] if is_wide else [pattern_dfa(FORMATS[name], whole=True)]
    elif name in DEFINED:
        place.refuse("format", f"{name!r} is not supported; supported are {', '.join(FORMATS)}")
    least, most = _count(place, "minLength"), _count(place, "maxLength")
    return replace(
        shape,
        texts=tuple(texts),
        min_length=max(shape.min_length, least or 0),
        max_length=_smaller(shape.max_length, most),
    )


def _pattern(place: Place, keyword: str, pattern: Any) -> CharacterDFA:
    if not isinstance(pattern, str):
        place.refuse(keyword, f"expected a string, got {pattern!r}")
    try:
        return pattern_dfa(pattern)
    except PatternError as error:
        place.refuse(keyword, str(error))


def _narrow_number(shape: Shape, place: Place) -> Shape:
    schema = place.schema
    if not shape.types & {"integer", "number"}:
        return shape
    for minimum, exclusive, attribute in (
        ("minimum", "exclusiveMinimum", "least"),
        ("maximum", "exclusiveMaximum", "most"),
    ):
        is_flag = isinstance(schema.get(exclusive), bool)  # draft 4 says exclusiveMinimum: true beside minimum
        bounds = [(minimum, is_flag and schema[exclusive])] if minimum in schema else []
        bounds += [(exclusive, True)] if exclusive in schema and not is_flag else []
        for keyword, excluded in bounds:
            bound = (_decimal(place, keyword, schema[keyword]), excluded)
            known = getattr(shape, attribute)
            sign = 1 if attribute == "least" else -1
            if known is None or (sign * bound[0], excluded) > (sign * known[0], known[1]):
                shape = replace(shape, **{attribute: bound})
    if "multipleOf" in schema:
        multiple = _decimal(place, "multipleOf", schema["multipleOf"])
        if not is_multiple_supported(multiple):
            place.refuse("multipleOf", f"{multiple} is not supported; supported are positive decimals of few digits")
        shape = replace(shape, multiples=(*shape.multiples, multiple))
    return shape


def _decimal(place: Place, keyword: str, value: Any) -> Decimal:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        place.refuse(keyword, f"expected a number, got {value!r}")
    if is_long(value):
        place.refuse(keyword, f"expected a number of at most {MAX_DIGITS} digits")
    return Decimal(repr(value))


def _narrow_object(shape: Shape, place: Place) -> Shape:
    schema = place.schema
    if "object" not in shape.types:
        return shape
    layers = shape.object_layers
    if any(keyword in schema for keyword in ("properties", "patternProperties", "additionalProperties")):
        properties = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        for keyword, value in (("properties", properties), ("patternProperties", patterns)):
            if not isinstance(value, dict):
                place.refuse(keyword, f"expected an object, got {value!r}")
        layer = ObjectLayer(
            {name: place.at("properties", name) for name in properties},
            tuple((_pattern(place, "patternProperties", p), place.at("patternProperties", p)) for p in patterns),
            place.at("additionalProperties") if "additionalProperties" in schema else None,
        )
        layers = (*layers, layer)
    required = schema.get("required", [])
    if isinstance(required, bool):  # draft 3, long gone, but seen in the wild: an annotation since draft 4
        required = []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        place.refuse("required", f"expected a list of strings, got {required!r}")
    fresh = [name for name in dict.fromkeys(required) if name not in shape.required]
    names = (place.at("propertyNames"),) if "propertyNames" in schema else ()
    return replace(
        shape,
        object_layers=layers,
        required=(*shape.required, *fresh),
        names=(*shape.names, *names),
        min_properties=max(shape.min_properties, _count(place, "minProperties") or 0),
        max_properties=_smaller(shape.max_properties, _count(place, "maxProperties")),
    )


def _narrow_array(shape: Shape, place: Place) -> Shape:
    schema = place.schema
    if "array" not in shape.types:
        return shape
    key = "items" if isinstance(schema.get("items"), list) else "prefixItems"  # a list of items: before 2020-12
    if not isinstance(schema.get(key, []), list):
        place.refuse(key, f"expected a list of schemas, got {schema[key]!r}")
    first = tuple(place.at(key, i) for i in range(len(schema.get(key, []))))
    rest_key = "additionalItems" if key == "items" else "items"
    rest = place.at(rest_key) if rest_key in schema else None
    layers = (*shape.array_layers, ArrayLayer(first, rest)) if first or rest else shape.array_layers
    return replace(
        shape,
        array_layers=layers,
        min_items=max(shape.min_items, _count(place, "minItems") or 0),
        max_items=_smaller(shape.max_items, _count(place, "maxItems")),
    )


def _count(place: Place, keyword: str) -> int | None:
    if keyword not in place.schema:
        return None
    value = place.schema[keyword]
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole or value < 0:
        place.refuse(keyword, f"expected a number of 0 or more, got {value!r}")
    return int(value)


def _smaller(left: int | None, right: int | None) -> int | None:
    return min((bound for bound in (left, right) if bound is not None), default=None)
