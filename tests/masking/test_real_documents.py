"""Mask-complete and grammar-faithful on real documents: every valid one in every order, spelling and tokenisation."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from maskcheck.sample import compiled, samples
from maskcheck.spellings import any_tokens, fixed_strings, shuffled, spelled

ORDERS = 5


def _refused_at(grammar, vocabulary, ids: list[int]) -> int | None:
    """The first step at which a token, or the end after the last, is not allowed; None where all are."""
    matcher = grammar.matcher(vocabulary)
    for step, token_id in enumerate([*ids, vocabulary.eos_id]):
        if not matcher.allowed()[token_id]:
            return step
        matcher.advance(token_id)
    return None


def _texts(sample, rng: random.Random):
    """Spellings of the valid documents of a sample that no row of the table refuses: (text, document)."""
    fixed = fixed_strings(sample.schema)
    keys_are_free = not any(word in json.dumps(sample.schema) for word in ("patternProperties", "propertyNames"))
    for document in sample.valid:
        yield json.dumps(document, ensure_ascii=False)
        for n in range(ORDERS):
            other = shuffled(document, rng)
            yield (
                json.dumps(other, indent=4, ensure_ascii=False) if n == 0 else spelled(other, rng, fixed, keys_are_free)
            )


def _judge(chosen, real, rng: random.Random, tokenised: int) -> tuple[Counter, list[str]]:
    """By document all spellings; by tokens the first `tokenised` of each schema, canonical and at random."""
    count, wrong = Counter(), []
    for sample, grammar in compiled(chosen):
        count["schemas"] += 1
        for n, text in enumerate(_texts(sample, rng)):
            count["valid, by document"] += 1
            if not grammar.accepts(text.encode()):
                wrong.append(f"{sample.name}: refused {text[:300]!r}")
            elif n < tokenised:
                for how, ids in (
                    ("canonical", real.ids(text)),
                    ("any", any_tokens(text.encode(), real.vocabulary, rng)),
                ):
                    count[f"valid, {how} tokens"] += 1
                    step = _refused_at(grammar, real.vocabulary, ids)
                    if step is not None:
                        wrong.append(f"{sample.name}: {how} token {step} of {text[:300]!r}")
        for document in sample.invalid:
            text = json.dumps(document, ensure_ascii=False)
            for how, ids in (("canonical", real.ids(text)), ("any", any_tokens(text.encode(), real.vocabulary, rng))):
                count[f"invalid, {how} tokens"] += 1
                if _refused_at(grammar, real.vocabulary, ids) is None:
                    wrong.append(f"{sample.name}: {how} tokens lead through {text[:300]!r}")
    return count, wrong


def test_real_documents_are_allowed_token_by_token_and_invalid_ones_are_not(shared, real):
    rng = random.Random(16)
    count, wrong = _judge(rng.sample(samples(shared), 16), real, rng, tokenised=3)
    print(dict(count))
    assert wrong == []
    assert count["valid, canonical tokens"] >= 15 and count["invalid, any tokens"] >= 5


@pytest.mark.whole
def test_all_real_documents_are_allowed_token_by_token_and_invalid_ones_are_not(shared, real):
    rng = random.Random(17)
    count, wrong = _judge(samples(shared), real, rng, tokenised=1_000)
    print(dict(count))
    assert wrong == []
    assert count["schemas"] >= 420
