"""Numbers keep their bounds and multiples by their decimal digits."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from modtools.masking import SchemaError, compile_json_schema


def _random_schema(rng: random.Random) -> dict:
    bound = rng.choice(
        [rng.randrange(-120, 120), round(rng.uniform(-12, 12), rng.randrange(1, 4)), 0, 1, -1, 100, 1e-3]
    )
    other = bound + rng.choice([0, 1, 9, 0.5, 100])
    schema = {"type": rng.choice(["integer", "number"])}
    for kind, value in (("inimum", bound), ("aximum", other)):
        for keyword in rng.sample([f"m{kind}", f"exclusiveM{kind}"], rng.choice([0, 1, 1, 2])):
            schema[keyword] = value + rng.choice([0, 0, 0.5])
    return schema


def _holds(schema: dict, number: Decimal) -> bool:
    bounds = {keyword: Decimal(repr(value)) for keyword, value in schema.items() if keyword != "type"}
    return (
        number >= bounds.get("minimum", number)
        and number <= bounds.get("maximum", number)
        and number > bounds.get("exclusiveMinimum", number - 1)
        and number < bounds.get("exclusiveMaximum", number + 1)
    )


@pytest.mark.parametrize("seed", range(60))
def test_plain_decimals_are_accepted_exactly_inside_the_bounds(seed):
    rng = random.Random(seed)
    schema = _random_schema(rng)
    accepts = {}
    try:
        grammar = compile_json_schema(schema)
    except SchemaError as error:
        assert error.keyword == "schema"
        return
    near = [value for keyword, value in schema.items() if keyword != "type"]
    for _ in range(120):
        value = Decimal(rng.choice([*map(repr, near), str(rng.randrange(-150, 150))]))
        value += Decimal(rng.choice(["0", "0.1", "-0.1", "0.001", "-1", "1", "0.25", "10"]))
        text = format(value.normalize(), "f")
        accepts[text] = grammar.accepts(text.encode())
        is_inside = _holds(schema, value) and (schema["type"] == "number" or "." not in text)
        assert accepts[text] == is_inside, (schema, text)


def test_an_excluded_bound_is_never_reached_by_rounding():
    grammar = compile_json_schema({"type": "number", "exclusiveMaximum": 4})
    for digits in range(1, 25):
        text = "3." + "9" * digits
        assert not grammar.accepts(text.encode()) or json.loads(text) < 4
    assert grammar.accepts(b"3.9999999")


@pytest.mark.parametrize(
    ("multiple", "accepted", "refused"),
    [
        (3, ["0", "-3", "12", "300"], ["1", "-4", "3.0"]),
        (0.25, ["0.5", "-1.25", "7", "0.75"], ["0.3", "0.1", "1.251"]),
        (0.01, ["0.07", "1.1", "19.99"], ["0.001", "1e-2"]),
    ],
)
def test_multiples_are_exact(multiple, accepted, refused):
    grammar = compile_json_schema({"type": "number", "multipleOf": multiple})
    assert [text for text in accepted if not grammar.accepts(text.encode())] == []
    assert [text for text in refused if grammar.accepts(text.encode())] == []


def test_numbers_without_bounds_are_all_of_json():
    grammar = compile_json_schema({"type": "number"})
    assert all(grammar.accepts(text.encode()) for text in ("0", "-0", "1e9", "-1.5E-3", "0.10", "12e+00"))
    assert not any(
        grammar.accepts(text.encode()) for text in ("01", ".5", "1.", "+1", "1e", "NaN", "Infinity", "--1", "")
    )


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("nested", [False, True])
def test_of_an_inclusive_and_an_exclusive_bound_of_one_value_the_exclusive_counts(order, nested):
    for pair, inside in (
        ([{"minimum": 5}, {"exclusiveMinimum": 5}], 6),
        ([{"maximum": 5}, {"exclusiveMaximum": 5}], 4),
    ):
        first, second = pair[::order]
        bounds = {"allOf": [first, second]} if nested else first | second
        grammar = compile_json_schema({"type": "integer"} | bounds)
        assert not grammar.accepts(b"5") and grammar.accepts(str(inside).encode())
