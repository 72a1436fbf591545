"""Mask-sound on real vocabularies: whatever a walk through the masks of a real schema writes is a valid document."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from maskcheck.oracle import Oracle
from maskcheck.sample import compiled, real_vocabulary, samples
from maskcheck.walks import walk
from maskcheck.way_out import WayOut

FINISHED = 0.95  # of the walks at least


def _walks(chosen, vocabulary, rng: random.Random) -> tuple[Counter, list[str]]:
    """Two walks through each schema, one that goes to its end at once and one that wanders first."""
    count, wrong = Counter(), []
    for sample, grammar in compiled(chosen):
        count["schemas"] += 1
        oracle, way = Oracle(sample.schema), WayOut()
        for wander in (0, rng.randrange(5, 30)):
            done = walk(grammar, vocabulary, rng, wander, way)
            count["walks"] += 1
            if not done.is_finished:
                count["unfinished"] += 1
                continue
            count["finished"] += 1
            count["tokens"] += len(done.tokens)
            reason = oracle.why_not(done.text)
            if reason is None and not grammar.accepts(done.text):
                reason = "the grammar refuses it"
            if reason is not None:
                wrong.append(f"{sample.name}: {reason}: {done.text[:200]!r}")
    return count, wrong


def test_walks_through_real_masks_end_in_valid_documents(shared, real):
    rng = random.Random(15)
    count, wrong = _walks(rng.sample(samples(shared), 16), real.vocabulary, rng)
    print(dict(count))
    assert wrong == []
    assert count["schemas"] >= 10 and count["finished"] >= FINISHED * count["walks"]


@pytest.mark.whole
@pytest.mark.parametrize("name", ["49k", "128k", "200k"])
def test_walks_through_the_whole_sample_end_in_valid_documents(shared, name):
    real = real_vocabulary(name)
    if real is None:
        pytest.skip(f"no vocabulary of {name} tokens here; `modtools bench mask --fetch` gets it")
    rng = random.Random(name)
    count, wrong = _walks(samples(shared), real.vocabulary, rng)
    print(name, dict(count))
    assert wrong == []
    assert count["schemas"] >= 300
    assert count["finished"] >= FINISHED * count["walks"], f"{count['unfinished']} of {count['walks']} unfinished"
