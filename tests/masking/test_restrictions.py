"""A valid document is refused for exactly one row of the table, and a schema for a keyword of the other table."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from maskcheck.page import PAGE, agree, filled
from maskcheck.reasons import reasons
from maskcheck.sample import Sample, samples
from modtools.masking import NOT_HONOURED, RESTRICTIONS, BudgetError, SchemaError, compile_json_schema
from modtools.masking.keywords import REFUSED

ROWS = {row.name for row in RESTRICTIONS}
GAPS = {row.keyword for row in NOT_HONOURED}
# contentEncoding and contentMediaType are annotations since 2019-09; the optional tests of draft 7 assert them.
ANNOTATIONS = {"content.json"}


def suite(shared: Path, draft: str) -> Iterator[tuple[Path, object, list[dict]]]:
    """The groups of the official suite: file, schema, tests."""
    for path in sorted((shared / "data/json-schema-test-suite/tests" / draft).rglob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            if draft == "draft7" and isinstance(schema, dict):
                schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            yield path, schema, group["tests"]


def judge_suite(shared: Path, draft: str) -> tuple[Counter, list[str]]:
    """Counts, and what contradicts the tables."""
    count, wrong = Counter(), []
    for path, schema, tests in suite(shared, draft):
        try:
            grammar = compile_json_schema(schema)
        except SchemaError as error:
            count["schema refused", error.keyword] += 1
            if error.keyword not in GAPS or (error.keyword == "schema" and any(test["valid"] for test in tests)):
                wrong.append(f"{path.name}: {error}")
            continue
        count["schema", "compiled"] += 1
        for test in tests:
            text = json.dumps(test["data"], ensure_ascii=False)
            is_accepted = grammar.accepts(text.encode(errors="surrogatepass"))
            if test["valid"] and not is_accepted:
                found = reasons(schema, text, formats_are_asserted=path.parent.name == "format")
                count["valid refused", " and ".join(found)] += 1
                if len(found) != 1:
                    wrong.append(f"{path.name}, {test['description']}: {found}")
            elif is_accepted and not test["valid"] and path.name not in ANNOTATIONS:
                wrong.append(f"{path.name}, {test['description']}: invalid but accepted")
            elif is_accepted and not test["valid"]:
                count["invalid accepted", "an annotation, not an assertion"] += 1
            else:
                count["valid accepted" if is_accepted else "invalid refused", ""] += 1
    return count, wrong


@pytest.mark.whole
@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_the_official_suite_is_judged_as_it_says_but_for_one_row_each(shared, draft):
    count, wrong = judge_suite(shared, draft)
    print(draft, *(f"{' '.join(key)}: {n}" for key, n in sorted(count.items())), sep="\n")
    assert wrong == []
    agree("suite", draft, {" ".join(key).strip(): n for key, n in sorted(count.items())})
    assert {row for what, row in count if what == "valid refused"} <= ROWS
    assert count["valid accepted", ""] >= 590


def test_every_keyword_that_is_refused_has_a_row():
    assert set(REFUSED) <= GAPS
    assert len(GAPS) == len(NOT_HONOURED) and len(ROWS) == len(RESTRICTIONS)


def test_the_page_of_the_course_holds_the_tables_as_they_are():
    page = PAGE.read_text("utf-8")
    assert filled(page) == page
    assert page.count("<!-- table: ") == 4


CLOSED = {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
UNDONE = {  # row: schema, options, a valid text that is refused
    "duplicate keys": (True, {}, '{"a":1,"b":2,"a":1}'),
    "lone surrogates": ({"type": "string"}, {}, '"x\\ud83d y"'),
    "one spelling": ({"enum": ["é", 1]}, {}, '"\\u00e9"'),
    "one spelling of bounded names": ({"propertyNames": {"maxLength": 1}}, {}, '{"\\u0061":1}'),
    "whitespace": ({"type": "array"}, {"whitespace": 2}, "[   1]"),
    "property order": (CLOSED, {"property_order": "declared"}, '{"b":1,"a":1}'),
    "integers": ({"type": "integer", "maximum": 5}, {}, "10e-1"),
    "bounded numbers": ({"type": "number", "maximum": 4}, {}, "1e-3"),
    "multiples": ({"type": "number", "multipleOf": 0.5}, {}, "1.50"),
    "formats": ({"format": "date-time"}, {}, '"1998-12-31T23:59:60Z"'),
    "asserted formats": ({"format": "date"}, {}, '"tomorrow"'),
    "own dialects": ({"$schema": "https://example.org/mine", "type": "integer"}, {}, '"a"'),
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_each_row_explains_its_own_refusal_and_no_other_row_does(name):
    schema, options, text = UNDONE[name]
    assert not compile_json_schema(schema, **options).accepts(text.encode())
    assert reasons(schema, text, formats_are_asserted=name != "asserted formats", **options) == [name]


def test_what_the_schema_refuses_is_explained_by_no_row():
    for schema, text in (
        ({"type": "integer"}, "1.5"),
        ({"type": "number", "maximum": 4}, "5"),
        ({"multipleOf": 0.5}, "0.3"),
        (CLOSED, '{"c":1}'),
        ({"format": "date"}, "3x"),
    ):
        assert reasons(schema, text) == []


def judge_sample(chosen: Iterable[Sample]) -> tuple[Counter, list[str]]:
    """Counts, and what contradicts the tables."""
    count, wrong = Counter(), []
    for sample in chosen:
        try:
            grammar = compile_json_schema(sample.schema)
        except SchemaError as error:
            count[sample.kind, "schema refused", error.keyword] += 1
            if error.keyword not in GAPS or (error.keyword == "schema" and sample.valid):
                wrong.append(f"{sample.name}: {error}")
            continue
        except BudgetError as error:
            wrong.append(f"{sample.name}: {error}")
            continue
        count[sample.kind, "schema", "compiled"] += 1
        for document in sample.invalid:
            is_accepted = grammar.accepts(json.dumps(document).encode())
            count[sample.kind, "invalid", "accepted" if is_accepted else "refused"] += 1
            wrong += [f"{sample.name}: {document!r} is accepted"] * is_accepted
        for document in sample.valid:
            is_accepted = grammar.accepts(json.dumps(document).encode())
            found = [] if is_accepted else reasons(sample.schema, json.dumps(document))
            count[sample.kind, "valid", "accepted" if is_accepted else " and ".join(found)] += 1
            wrong += [f"{sample.name}: {document!r} is refused, {found}"] * (not is_accepted and len(found) != 1)
    return count, wrong


def test_a_draw_of_the_sample_is_judged_as_its_authors_say(shared):
    count, wrong = judge_sample(random.Random(40).sample(samples(shared), 40))
    assert wrong == []
    assert count["tool-like", "schema", "compiled"] + count["other", "schema", "compiled"] >= 30


@pytest.mark.whole
def test_the_sample_is_judged_as_its_authors_say_but_for_one_row_each(shared):
    count, wrong = judge_sample(samples(shared))
    print(*(f"{' '.join(key)}: {n}" for key, n in sorted(count.items())), sep="\n")
    assert wrong == []
    agree("sample", None, {" ".join(key): n for key, n in sorted(count.items())})
    assert count["tool-like", "schema", "compiled"] == 126
    assert count["other", "schema", "compiled"] >= 0.88 * 338
    assert count["tool-like", "valid", "refused"] == count["other", "valid", "refused"] == 0
