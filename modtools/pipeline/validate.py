"""Stage 3, validation: the arguments against the tool's schema, by the `jsonschema` library.

Two house rules come on top. An object that declares properties is closed unless it says otherwise, so an
argument the tool does not know is refused by name and never dropped. And arguments written as JSON text
inside a string are refused on every surface alike; only a tool without parameters takes "", null or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from modtools.contract import Failure, ToolContract

_CODES = {
    "required": "missing_argument",
    "dependentRequired": "missing_argument",
    "additionalProperties": "unknown_property",
    "unevaluatedProperties": "unknown_property",
    "propertyNames": "unknown_property",
    "type": "wrong_type",
    "enum": "not_in_enum",
    "const": "not_in_enum",
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength")
        + ("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "pattern", "format"),
        "out_of_range",
    ),
}
_TYPES = {
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}
# What to mend first, when several things are wrong.
_ORDER = ("missing_argument", "unknown_property", "wrong_type", "not_in_enum", "out_of_range", "invalid_argument")


def validate_arguments(contract: ToolContract, arguments: Any) -> tuple[dict[str, Any], list[Failure]]:
    """Check the arguments of one call.

    Args:
        contract: of the tool called.
        arguments: as parsed; None where the call had none.

    Returns:
        (arguments as an object, failures in the order in which to mend them); no failures means valid.
    """
    takes_none = not contract.input_schema.get("properties") and not contract.input_schema.get("required")
    if arguments is None or (arguments == "" and takes_none):
        arguments = {}
    if isinstance(arguments, str):
        what = "the arguments are a string"
        return {}, [
            Failure("arguments_as_string", what, "arguments", "the JSON object itself, without quotes around it")
        ]
    if not isinstance(arguments, dict):
        return {}, [Failure("wrong_type", f"the arguments are {_kind(arguments)}", "arguments", "an object")]
    validator = _validator(contract.input_text)
    try:
        errors = list(validator.iter_errors(arguments))
        # A value that fails in a branch also counts as unevaluated: report the failure, not its shadow.
        real = [error for error in errors if error.validator != "unevaluatedProperties"]
        failures = list(dict.fromkeys(_explain(_deepest(error)) for error in real or errors))
    except (OverflowError, RecursionError) as error:
        failures = [
            Failure("invalid_argument", f"the arguments cannot be checked ({error})", "arguments", "smaller values")
        ]
    return arguments, sorted(failures, key=lambda f: (_ORDER.index(f.code), f.where))


def check_result(schema: Mapping[str, Any], data: Any) -> str:
    """What is wrong with a result's data against the output schema, or ""."""
    errors = list(_validator(json.dumps(schema), close=False).iter_errors(data))
    return errors[0].message[:200] if errors else ""


@lru_cache(maxsize=512)
def _validator(schema_text: str, close: bool = True):
    from jsonschema import Draft202012Validator
    from referencing import Registry

    schema = json.loads(schema_text)
    if close:
        schema = _closed(schema, schema)
    # A registry of our own: the library's fetches whatever a "$ref" names.
    return Draft202012Validator(schema, registry=Registry(), format_checker=Draft202012Validator.FORMAT_CHECKER)


_IN_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "$ref", "dependentSchemas")
_OPENERS = ("additionalProperties", "unevaluatedProperties", "patternProperties")


def _closed(schema: Any, root: Mapping[str, Any], is_location: bool = True) -> Any:
    """Close every object that declares properties and does not say how it treats others.

    A *location* is a schema that describes a value of its own (the root, a property, an item). Branches of
    anyOf and the like describe the same value as their parent and must not be closed one by one; there the
    parent gets unevaluatedProperties, which sees through them. The root is closed even if it declares nothing:
    a tool without parameters takes none.
    """
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            # A definition may be used in place, so its own root stays open and is closed where it is referred to.
            inner = key in ("properties", "patternProperties")
            closed[key] = {name: _closed(item, root, inner) for name, item in schema[key].items()}
    for key in ("items", "additionalProperties", "contains"):
        if isinstance(schema.get(key), dict):
            closed[key] = _closed(schema[key], root)
    if isinstance(schema.get("prefixItems"), list):
        closed["prefixItems"] = [_closed(item, root) for item in schema["prefixItems"]]
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            closed[key] = [_closed(item, root, is_location=False) for item in schema[key]]
    for key in ("then", "else"):
        if isinstance(schema.get(key), dict):
            closed[key] = _closed(schema[key], root, is_location=False)
    parts = list(_in_place(schema, root))
    if is_location and not any(key in part for part in parts for key in _OPENERS):
        if schema is root or any(part.get("properties") for part in parts):
            composed = any(key in schema for key in _IN_PLACE)
            closed["unevaluatedProperties" if composed else "additionalProperties"] = False
    return closed


def _in_place(schema: Any, root: Mapping[str, Any], seen: tuple[str, ...] = ()) -> Iterator[dict]:
    """The schema and every schema that describes the same value: branches, and what a local $ref leads to."""
    if not isinstance(schema, dict):
        return
    yield schema
    branches = [b for key in ("allOf", "anyOf", "oneOf") if isinstance(schema.get(key), list) for b in schema[key]]
    branches += [schema.get(key) for key in ("then", "else")]
    if isinstance(schema.get("dependentSchemas"), dict):
        branches += schema["dependentSchemas"].values()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        branches.append(_local(reference, root))
        seen = (*seen, reference)
    for branch in branches:
        yield from _in_place(branch, root, seen)


def _local(reference: str, root: Mapping[str, Any]) -> Any:
    """What "#/$defs/name" refers to, or None where it leads nowhere in this schema."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _deepest(error):
    """The most telling error under an anyOf or oneOf, where the branches differ in type only by one."""
    from jsonschema.exceptions import best_match

    return best_match([error]) if error.context else error


def missing_argument(missing: Sequence[str], others: Sequence[str], where: str) -> Failure:
    """Arguments that are absent, with the names that stand there instead."""
    what = f"{_names(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    expected = f"a value for {_names(missing)}" + (f", not {_names(others)}" if others else "")
    return Failure("missing_argument", what, where, expected)


def unknown_property(extra: Sequence[str], declared: Sequence[str], where: str) -> Failure:
    """Arguments that the tool does not declare, with those that it does."""
    what = f"{_names(extra)} {'is not an argument' if len(extra) == 1 else 'are not arguments'} here"
    return Failure("unknown_property", what, where, f"only {_names(declared)}" if declared else "no arguments")


def wrong_type(value: Any, wanted: Sequence[str], where: str) -> Failure:
    """A value of another JSON type than those wanted."""
    expected = " or ".join(_TYPES.get(kind, kind) for kind in wanted)
    return Failure("wrong_type", f"the value is {_kind(value)}", where, expected)


def _explain(error) -> Failure:
    code = _CODES.get(error.validator, "invalid_argument")
    where = "arguments" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    value, rule = error.validator_value, error.instance
    if error.validator == "required":  # an error for each name; told as one
        declared = error.schema.get("properties", {})
        closed = error.schema.get("additionalProperties") is False
        others = [name for name in rule if name not in declared] if closed else []
        return missing_argument([name for name in value if name not in rule], others, where)
    if code == "missing_argument":
        missing = [name for name in re.findall(r"^(?:'(.*?)'|\"(.*?)\") is a", error.message)[0] if name]
        return missing_argument(missing, [], where)
    if code == "unknown_property":
        declared = list(error.schema.get("properties", {}))
        extra = [name for name in rule if name not in declared and repr(name) in error.message]
        return unknown_property(extra, declared, where)
    if code == "wrong_type":
        return wrong_type(rule, [value] if isinstance(value, str) else value, where)
    if code == "not_in_enum":
        wanted = ", ".join(json.dumps(v) for v in (value if error.validator == "enum" else [value]))
        return Failure(code, f"{_short(rule)} is not one of the values allowed", where, f"one of {wanted[:300]}")
    if code == "out_of_range":
        return Failure(
            code, f"{_short(rule)} breaks {error.validator}", where, f"{error.validator} {json.dumps(value)[:100]}"
        )
    if error.validator in ("anyOf", "oneOf"):
        return Failure(code, f"{_short(rule)} fits no alternative of the schema, or more than one", where)
    return Failure(code, f"the value is refused: {error.message[:150]}", where)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names[:6])


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return _TYPES.get(kinds.get(type(value), ""), "null")
