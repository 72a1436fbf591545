"""The compiled language is the schema's, both ways, but for the restrictions: small random schemas and documents."""

from __future__ import annotations

import calendar
import itertools
import json
import random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from modtools.masking import SchemaError, compile_json_schema

NAMES = st.sampled_from(["a", "ab", "b", "é"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, -1.25, 2.5]),
    st.sampled_from(["", "a", "ab", "é\n", "b\\"]),
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["object", "array", "string", "integer", "number", "boolean", ["string", "object"], ["null", "array"]]
        ),
        "minimum": st.integers(-3, 5),
        "exclusiveMaximum": st.integers(0, 12),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["a", "^b?$", "^[^a]"]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 3),
        "enum": st.lists(SCALARS | st.lists(SCALARS, max_size=2), min_size=1, max_size=3),
    },
)


def _with_parts(inner):
    schema = inner | st.booleans()
    parts = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, schema, max_size=3),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "^.$"]), schema, max_size=2),
            "additionalProperties": schema,
            "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^[ab]"}, True]),
            "items": schema,
            "prefixItems": st.lists(schema, min_size=1, max_size=2),
            "anyOf": st.lists(schema, min_size=1, max_size=2),
            "allOf": st.lists(schema, min_size=1, max_size=2),
            "oneOf": st.lists(schema, min_size=1, max_size=2),
        },
    )
    return st.builds(lambda plain, parts: {**plain, **parts}, PLAIN, parts)


SCHEMAS = st.recursive(PLAIN, _with_parts, max_leaves=5)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(schema=SCHEMAS, documents=st.lists(DOCUMENTS, min_size=4, max_size=8), seed=st.integers(0, 1000))
def test_documents_are_judged_as_jsonschema_judges_them(schema, documents, seed, is_valid):
    rng = random.Random(seed)
    try:
        grammar = compile_json_schema(schema)
    except SchemaError as error:
        if error.keyword == "schema":
            valid = [document for document in documents if is_valid(schema, json.dumps(document).encode())]
            assert valid == [], "no document fits, it was said"
        assume(False)
    for document in documents:
        if isinstance(document, dict):
            keys = rng.sample(list(document), len(document))
            document = {key: document[key] for key in keys}
        text = json.dumps(document, ensure_ascii=False, indent=rng.choice([None, 1])).encode()
        assert grammar.accepts(text) == is_valid(schema, text), text


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(schema=SCHEMAS, seed=st.integers(0, 10_000))
def test_what_a_random_walk_writes_is_valid_and_no_state_is_a_dead_end(schema, seed, is_valid):
    rng = random.Random(seed)
    try:
        grammar = compile_json_schema(schema, whitespace=1)
    except SchemaError:
        assume(False)
    state, text = grammar.start, b""
    for step in range(250):
        if state.is_accepting:
            assert is_valid(schema, text), text
            if step > 10 or rng.random() < 0.3:
                return
        bytes_ahead = [byte for byte in range(256) if state.step(byte) is not None]
        assert bytes_ahead or state.is_accepting, state.describe()
        if not bytes_ahead:
            return
        closing = [byte for byte in bytes_ahead if byte in b'"]}']
        byte = rng.choice(closing if closing and rng.random() < 0.5 else bytes_ahead)
        state, text = state.step(byte), text + bytes([byte])


@pytest.mark.parametrize(
    "host", ["a" * 63 + ".com", "x" * 61 + "-y.com", "b." + "a" * 59, "a-" + "b" * 61 + ".x", "ab-c.d"]
)
def test_host_names_may_have_labels_of_63_characters(host):
    names = compile_json_schema({"type": "string", "format": "hostname"})
    assert names.accepts(f'"{host}"'.encode())
    assert not names.accepts(f'"a{"a" * 63}.com"'.encode()) and not names.accepts(b'"ab--c.d"')


def test_leap_days_are_those_of_the_calendar():
    dates = compile_json_schema({"type": "string", "format": "date"})
    wrong = [y for y in range(1, 10_000) if dates.accepts(f'"{y:04}-02-29"'.encode()) != calendar.isleap(y)]
    assert wrong == []


def test_every_one_of_several_choices_must_hold():
    pairs = [[{"required": ["a"]}, {"required": ["b"]}], [{"required": ["c"]}, {"required": ["d"]}]]
    pairs.append([{"required": ["e"]}, {"required": ["f"]}])
    grammar = compile_json_schema({"type": "object", "allOf": [{"anyOf": pair} for pair in pairs]})
    for keys in itertools.chain.from_iterable(itertools.combinations("abcdef", n) for n in range(7)):
        holds = all({*pair} & {*keys} for pair in ("ab", "cd", "ef"))
        assert grammar.accepts(json.dumps(dict.fromkeys(keys, 1)).encode()) == holds, keys
