"""Stage 3, validation: the arguments against the tool's schema, by the `jsonschema` library.

Two house rules come on top. An object that declares properties is closed unless it says otherwise, so an
argument the tool does not know is refused by name and never dropped. And arguments written as JSON text
inside a string are refused on every surface alike; only a tool without parameters takes "", null or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    validator = _validator(json.dumps(contract.input_schema))
    try:
        errors = list(validator.iter_errors(arguments))
        # A value that fails in a branch also counts as unevaluated: report the failure, not its shadow.
        real = [error for error in errors if error.validator != "unevaluatedProperties"]
        failures = [_explain(_deepest(error)) for error in real or errors]
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

    schema = json.loads(schema_text)
    if close:
        schema = _closed(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


_IN_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "$ref", "dependentSchemas")
_OPENERS = ("additionalProperties", "unevaluatedProperties", "patternProperties")


def _closed(schema: Any, is_location: bool = True) -> Any:
    """Close every object that declares properties and does not say how it treats others.

    A *location* is a schema that describes a value of its own (the root, a property, an item). Branches of
    anyOf and the like describe the same value as their parent and must not be closed one by one; there the
    parent gets unevaluatedProperties, which sees through them.
    """
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        if isinstance(schema.get(key), dict):
            # A definition may be used in place, so its own root stays open and is closed where it is referred to.
            inner = key in ("properties", "patternProperties")
            closed[key] = {name: _closed(item, inner) for name, item in schema[key].items()}
    for key in ("items", "additionalProperties", "contains"):
        if isinstance(schema.get(key), dict):
            closed[key] = _closed(schema[key])
    if isinstance(schema.get("prefixItems"), list):
        closed["prefixItems"] = [_closed(item) for item in schema["prefixItems"]]
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            closed[key] = [_closed(item, is_location=False) for item in schema[key]]
    composed = any(key in schema for key in _IN_PLACE)
    if is_location and not any(key in schema for key in _OPENERS):
        if composed and _declares(schema):
            closed["unevaluatedProperties"] = False
        elif not composed and schema.get("properties"):
            closed["additionalProperties"] = False
    return closed


def _declares(schema: dict) -> bool:
    """Whether properties are declared here or in a branch, and no branch opens the object again."""
    branches = [b for key in ("allOf", "anyOf", "oneOf") for b in schema.get(key, []) if isinstance(b, dict)]
    if any(key in branch for branch in branches for key in _OPENERS):
        return False
    return bool(schema.get("properties")) or "$ref" in schema or any(_declares(branch) for branch in branches)


def _deepest(error):
    """The most telling error under an anyOf or oneOf, where the branches differ in type only by one."""
    from jsonschema.exceptions import best_match

    return best_match([error]) if error.context else error


def _explain(error) -> Failure:
    code = _CODES.get(error.validator, "invalid_argument")
    where = "arguments" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    value, rule = error.validator_value, error.instance
    if code == "missing_argument":
        missing = [name for name in value if name not in rule] if isinstance(value, list) else []
        return Failure(code, f"{_names(missing)} is missing", where, f"a value for {_names(missing)}")
    if code == "unknown_property":
        declared = list(error.schema.get("properties", {}))
        extra = [name for name in rule if name not in declared and repr(name) in error.message]
        return Failure(
            code, f"{_names(extra)} is not declared here", where, f"only {_names(declared)}" if declared else ""
        )
    if code == "wrong_type":
        wanted = value if isinstance(value, str) else " or ".join(value)
        return Failure(code, f"the value is {_kind(rule)}", where, f"a value of type {wanted}")
    if code == "not_in_enum":
        wanted = ", ".join(json.dumps(v) for v in (value if error.validator == "enum" else [value]))
        return Failure(code, f"{_short(rule)} is not one of the values allowed", where, f"one of {wanted[:300]}")
    if code == "out_of_range":
        return Failure(
            code, f"{_short(rule)} breaks {error.validator}", where, f"{error.validator} {json.dumps(value)[:100]}"
        )
    return Failure(
        code, f"{_short(rule)} fits no alternative of the schema", where, f"a value that satisfies {error.validator}"
    )


def _names(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names[:6])


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: Any) -> str:
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names.get(type(value), "null")
