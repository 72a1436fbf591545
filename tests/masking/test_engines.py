"""Our masks against llguidance and xgrammar, token by token: every difference is explained, and ours is never wrong.

What is compared: the same walks, in a vocabulary of the embedded model's tokens from which most that are mere letters
are left out. "alike" means closed objects, keys in the order of the schema and no blanks on all sides; "defaults" means
what each engine does when it is given the schema alone. The whole run prints the table that the course shows.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
from collections import Counter, defaultdict

import pytest

from bench.engines import Refused
from maskcheck.alike import byte_vocabulary, compared, narrowed
from maskcheck.differences import Comparison
from maskcheck.engines import LLGuidance, XGrammar
from maskcheck.page import agree
from maskcheck.sample import samples
from modtools.masking import BudgetError, SchemaError

ENGINES = {"llguidance": LLGuidance, "xgrammar": XGrammar}
MOST_TOKENS = 120  # of one walk


@pytest.fixture(scope="session")
def engines(real):
    """By name: the engine on real tokens, and on single bytes; both kept, for they are slow to start."""
    vocabulary = narrowed(real.vocabulary, 40)
    started = {}

    def start(name: str):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"missing here: the package {name}, which is for comparison only")
        if name not in started:
            started[name] = (ENGINES[name](vocabulary), ENGINES[name](byte_vocabulary()))
        return started[name]

    return start


def compare(chosen, engine, small, is_alike: bool, rng: random.Random) -> dict:
    """Two walks through each schema: counts, and for each kind of difference its steps, tokens, schemas, an example."""
    count, kinds = Counter(), defaultdict(lambda: {"steps": 0, "tokens": 0, "schemas": set(), "example": ""})
    for sample in chosen:
        try:
            schema, grammar = compared(sample.schema, is_alike)
        except (SchemaError, BudgetError):
            count["schemas refused here"] += 1
            continue
        try:
            comparison = Comparison(schema, grammar, engine, small, is_alike)
        except Refused:
            count["schemas refused there"] += 1
            continue
        count["schemas"] += 1
        for wander in (0, 12):
            for _, differences in comparison.walk(rng, wander, MOST_TOKENS):
                count["steps"] += 1
                count["steps that differ"] += bool(differences)
                met = set()
                for found in differences:
                    key = (found.only, found.right, found.reason)
                    kinds[key]["steps"] += key not in met
                    kinds[key]["tokens"] += found.tokens
                    kinds[key]["schemas"].add(sample.name)
                    kinds[key]["example"] = (
                        kinds[key]["example"] or f"{sample.name}: {found.example.decode(errors='replace')}"
                    )
                    met.add(key)
    rows = [
        {"only": only, "right": right, "reason": reason, **kind, "schemas": len(kind["schemas"])}
        for (only, right, reason), kind in sorted(kinds.items(), key=lambda item: -item[1]["steps"])
    ]
    return {"engine": engine.name, "alike": is_alike, **count, "differences": rows}


def _wrong(result: dict) -> list[dict]:
    """The differences that nothing explains: wrong masks of ours among them, and prefixes from which no end was found."""
    return [row for row in result["differences"] if not row["reason"] or row["right"] == "-"]


@pytest.mark.parametrize("name", ENGINES)
def test_every_difference_on_small_schemas_is_explained(name, engines, cases):
    rng = random.Random(70)
    chosen = [Case(case["name"], case["schema"]) for case in cases[:10]]
    result = compare(chosen, *engines(name), True, rng)
    assert _wrong(result) == []
    assert result["steps"] >= 60


class Case:
    """A case of the course data as a sample."""

    def __init__(self, name: str, schema: object):
        self.name, self.schema = name, schema


@pytest.mark.whole
@pytest.mark.parametrize(("is_alike", "every"), [(True, 1), (False, 6)], ids=["alike", "defaults"])
@pytest.mark.parametrize("name", ENGINES)
def test_every_difference_on_the_sample_is_explained(shared, name, is_alike, every, engines):
    result = compare(samples(shared)[::every], *engines(name), is_alike, random.Random(71))
    print(json.dumps(result, indent=1))
    assert _wrong(result) == []
    assert not is_alike or [row for row in result["differences"] if row["right"] == "?"] == []
    if os.environ.get("MODTOOLS_RECORD"):  # the counts depend on the versions of the engines: recorded, not compared
        agree("engines", f"{name}, {'alike' if is_alike else 'defaults'}", result)
