"""Real schemas with valid and invalid documents: what compiles, and whether the judgement is the same."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from modtools.masking import BudgetError, SchemaError, compile_json_schema

TOOL_LIKE = ("Glaiveai2K", "BFCL", "MCPspec")
# Outside the keywords that are honoured; a schema that uses one is refused by name.
NOT_HONOURED = {
    "not", "if", "dependencies", "uniqueItems", "unevaluatedProperties", "oneOf", "$ref", "format",
}  # fmt: skip


def _load(path: Path) -> tuple[str, dict]:
    return path.stem, json.loads(path.read_text("utf-8"))


def _shuffled(value: object, rng: random.Random) -> object:
    """The same document with the keys of every object in another order."""
    if isinstance(value, dict):
        return {key: _shuffled(value[key], rng) for key in rng.sample(list(value), len(value))}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


def _judge(name: str, sample: dict, count: Counter, rng: random.Random, orders: int) -> list[str]:
    """Compiles one schema and judges its documents, the valid ones in several orders and layouts; returns what is wrong."""
    kind = "tool-like" if name.startswith(TOOL_LIKE) else "other"
    try:
        grammar = compile_json_schema(sample["schema"])
    except SchemaError as error:
        count[kind, "refused", error.keyword] += 1
        return [] if error.keyword in NOT_HONOURED else [f"{name}: {error}"]
    except BudgetError as error:
        count[kind, "refused", "budget"] += 1
        return [f"{name}: {error}"]
    count[kind, "compiled"] += 1
    wrong = []
    for i, test in enumerate(sample["tests"]):
        documents = [test["data"]] + [_shuffled(test["data"], rng) for _ in range(orders)] * test["valid"]
        for n, document in enumerate(documents):
            text = json.dumps(document, ensure_ascii=n % 2 == 0, indent=(None, 2, 4)[n % 3])
            if grammar.accepts(text.encode()) != test["valid"]:
                wrong.append(
                    f"{name}, document {i}: {'valid but refused' if test['valid'] else 'invalid but accepted'}"
                )
            count[kind, "valid" if test["valid"] else "invalid"] += 1
    return wrong


def test_a_small_sample_is_judged_as_its_authors_say(shared):
    rng, count = random.Random(40), Counter()
    paths = rng.sample(sorted((shared / "data/maskbench-sample").glob("*.json")), 40)
    assert [line for path in paths for line in _judge(*_load(path), count, rng, orders=2)] == []
    assert count["tool-like", "compiled"] + count["other", "compiled"] >= 30


@pytest.mark.whole
def test_the_whole_sample_is_judged_as_its_authors_say(shared):
    rng, count = random.Random(41), Counter()
    paths = sorted((shared / "data/maskbench-sample").glob("*.json"))
    wrong = [line for path in paths for line in _judge(*_load(path), count, rng, orders=5)]
    print(*sorted((" ".join(key), n) for key, n in count.items()), sep="\n")
    assert wrong == []
    assert len(paths) == 464
    assert count["tool-like", "compiled"] == 126
    assert count["other", "compiled"] >= 0.88 * 338


@pytest.mark.whole
@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_the_official_suite_is_judged_as_it_says_but_for_the_restrictions(shared, draft):
    count, unsound, refused = Counter(), [], set()
    for path in sorted((shared / "data/json-schema-test-suite/tests" / draft).rglob("*.json")):
        if path.name == "content.json":  # contentEncoding and contentMediaType are annotations since 2019-09
            continue
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            if draft == "draft7" and isinstance(schema, dict):
                schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            try:
                grammar = compile_json_schema(schema)
            except SchemaError as error:
                count["refused", error.keyword] += 1
                continue
            for test in group["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False).encode(errors="surrogatepass")
                accepted = grammar.accepts(text)
                count["accepted" if accepted else "refused", "valid" if test["valid"] else "invalid"] += 1
                if test["valid"] and not accepted and path.parent.name != "format":
                    refused.add(path.name)
                if accepted and not test["valid"]:
                    unsound.append((path.name, group["description"], test["description"]))
    print(*count.items(), sep="\n")
    assert unsound == []
    assert (
        refused - {"const.json", "enum.json", "type.json", "format.json", "float-overflow.json", "vocabulary.json"}
        == set()
    )
