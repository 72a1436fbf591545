"""Masks of five engines side by side: the same schemas, documents and tokens, engine by engine for each schema.

Cold: each schema is compiled anew and each of its documents walked once. What an engine keeps for a vocabulary stays
warm, as in use; what it keeps for a grammar starts empty. Two engines are compared on the documents that both
accept, so that their steps are the same.
"""

from __future__ import annotations

import json
import os
import platform
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bench.engines import ENGINES, versions
from bench.sample import Sample
from bench.vocabularies import load_tokenizer
from bench.worker import WARM_UP, WARM_UP_DOCUMENT, Job, Outcome, Worker
from modtools.errors import MissingPieceError
from modtools.masking import Vocabulary

LONGEST_DOCUMENT = 400  # tokens; what comes after is not walked
NOTES = (
    "A mask's time is that of the engine's own form: ours an array of booleans, the others' a bit mask or a list of "
    "ids; unpacking theirs into booleans is timed apart and not in the ratios.",
    "Documents are in canonical tokens, keys in declared order, separators ', ' and ': '.",
    "Garbage collection is on; it starts clean before each schema, with what belongs to the vocabulary frozen.",
    "A schema on which an engine hits the time limit is counted, and is in no ratio for what it did not finish.",
    "Memory is resident memory of the engine's own process above what it was before the engine was loaded.",
)


def measure(
    samples: Sequence[Sample],
    vocabularies: Sequence[str],
    limit_s: float,
    engines: Sequence[str] = tuple(ENGINES),
    seed: int = 0,
    clock: str = "wall",
    progress: Callable[[str, int, int], None] = lambda vocabulary, done, total: None,
    load: Callable[[str], Any] = load_tokenizer,
) -> dict[str, Any]:
    """Measures the engines that are installed over the vocabularies that are on this machine.

    Args:
        limit_s: seconds that one engine may take for one schema.
        engines: names from ENGINES; ours is always among them.
        seed: of the order of the engines, which changes from schema to schema.
        clock: a name from CLOCKS.
        progress: called with the vocabulary, the schemas done and their number.
        load: from a vocabulary's name to its tokenizer.

    Returns:
        `ratio` (ours / llguidance, mean time per mask, first vocabulary; None without llguidance), `better`,
        `vocabularies` by name, `missing` (what was left out, and why), `engines` (versions), `notes`, `settings`.

    Raises:
        MissingPieceError: none of the vocabularies is on this machine.
    """
    found = {name: version for name, version in versions().items() if name in (*engines, "ours")}
    missing = {name: f"not installed: pip install {ENGINES[name].package}" for name, v in found.items() if v is None}
    results: dict[str, Any] = {}
    for name in vocabularies:
        try:
            tokenizer = load(name)
        except MissingPieceError as error:
            missing[name] = str(error)
            continue
        installed = [engine for engine, version in found.items() if version is not None]
        results[name] = _one_vocabulary(
            name, tokenizer, installed, samples, limit_s, random.Random(seed), clock, progress
        )
    if not results:
        raise MissingPieceError("; ".join(missing[name] for name in vocabularies))
    return {
        "ratio": next(iter(results.values())).get("mean_ratio_to_llguidance"),
        "better": "lower",
        "vocabularies": results,
        "missing": missing,
        "engines": found,
        "notes": NOTES,
        "settings": {
            "schemas": len(samples),
            "seed": seed,
            "limit_s": limit_s,
            "clock": clock,
            "longest_document": LONGEST_DOCUMENT,
        },
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        },
    }


def _one_vocabulary(
    name: str,
    tokenizer: Any,
    engines: Sequence[str],
    samples: Sequence[Sample],
    limit_s: float,
    rng: random.Random,
    clock: str,
    progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    vocabulary = Vocabulary.from_tokenizer(tokenizer)

    def job(sample: Sample) -> Job:
        encoded = [tokenizer.encode(text, add_special_tokens=False) for text in sample.documents]
        return Job(sample.schema, [[*ids, vocabulary.eos_id][:LONGEST_DOCUMENT] for ids in encoded], clock)

    warm_up = job(Sample("warm-up", WARM_UP, (json.dumps(WARM_UP_DOCUMENT, ensure_ascii=False),)))
    workers = {engine: Worker(engine, vocabulary.tokens, vocabulary.eos_id, warm_up) for engine in engines}
    outcomes: dict[str, list[Outcome]] = {engine: [] for engine in engines}
    try:
        for worker in workers.values():
            worker.start()
        for done, sample in enumerate(samples):
            progress(name, done, len(samples))
            given = job(sample)
            for engine in rng.sample(engines, len(engines)):
                outcomes[engine].append(workers[engine].run(given, limit_s))
        progress(name, len(samples), len(samples))
    finally:
        for worker in workers.values():
            worker.stop()
    names = [sample.name for sample in samples]
    data: dict[str, Any] = {"tokens": len(vocabulary)}
    for engine in engines[1:]:
        data |= _ratios(engine, outcomes["ours"], outcomes[engine])
    data["engines"] = {engine: _figures(workers[engine], names, outcomes[engine]) for engine in engines}
    data["largest"] = _largest(names, samples, outcomes["ours"])
    return data


def _spread(values: Sequence[float], scale: float) -> dict[str, float] | None:
    """Mean, median, 99th percentile and worst, times a scale; None of nothing."""
    if not len(values):
        return None
    array = np.asarray(values) * scale
    p50, p99 = np.percentile(array, [50, 99])
    return {"mean": float(array.mean()), "p50": float(p50), "p99": float(p99), "worst": float(array.max())}


def _figures(worker: Worker, names: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The raw figures of one engine."""
    walks = [walk for outcome in outcomes for walk in outcome.walks]
    masks = sum(len(walk.mask_s) for walk in walks)
    count = {
        status: sum(outcome.status == status for outcome in outcomes) for status in ("refused", "limit", "crashed")
    }
    return {
        "schemas": {"compiled": sum(outcome.compile_s is not None for outcome in outcomes), **count},
        "documents": {e: sum(walk.ended == e for walk in walks) for e in ("accepted", "refused", "limit")},
        "masks": masks,
        "mask_us": _spread([s for walk in walks for s in walk.mask_s], 1e6),
        "unpack_us": _spread([s for walk in walks for s in walk.unpack_s], 1e6),
        "advance_us": _spread([s for walk in walks for s in walk.advance_s], 1e6),
        "compile_ms": _spread([o.compile_s for o in outcomes if o.compile_s is not None], 1e3),
        "first_mask_ms": _spread([o.first_mask_s for o in outcomes if o.first_mask_s is not None], 1e3),
        "load_s": worker.load_s,
        "peak_mib": (worker.peak_bytes - worker.base_bytes) / 2**20,
        "cache_hit_rate": sum(walk.cached for walk in walks) / masks if worker.engine == "ours" and masks else None,
        "not_walked": {n: f"{o.status}: {o.reason}" for n, o in zip(names, outcomes) if o.status != "walked"},
    }


def _ratios(engine: str, ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> dict[str, Any]:
    """Ours over theirs: masks of the documents that both accepted, first masks of the schemas that both took."""
    mine, other, documents, schemas, first = [], [], 0, 0, []
    for a, b in zip(ours, theirs):
        both = [(v, w) for v, w in zip(a.walks, b.walks) if v.ended == w.ended == "accepted"]
        documents, schemas = documents + len(both), schemas + bool(both)
        for v, w in both:
            mine += v.mask_s
            other += w.mask_s
        if a.first_mask_s is not None and b.first_mask_s is not None:
            first.append((a.first_mask_s, b.first_mask_s))
    mask_us, their_us = _spread(mine, 1e6), _spread(other, 1e6)
    first_ms = [_spread(column, 1e3) for column in zip(*first)] if first else [None, None]

    def ratio(pair: tuple[dict | None, dict | None], key: str) -> float | None:
        return pair[0][key] / pair[1][key] if pair[0] else None

    return {
        f"mean_ratio_to_{engine}": ratio((mask_us, their_us), "mean"),
        f"p50_ratio_to_{engine}": ratio((mask_us, their_us), "p50"),
        f"p99_ratio_to_{engine}": ratio((mask_us, their_us), "p99"),
        f"first_mask_ratio_to_{engine}": ratio(first_ms, "p50"),
        f"first_mask_mean_ratio_to_{engine}": ratio(first_ms, "mean"),
        f"paired_with_{engine}": {
            "schemas": schemas,
            "documents": documents,
            "masks": len(mine),
            "ours_us": mask_us,
            "theirs_us": their_us,
            "first_masks": len(first),
            "ours_first_ms": first_ms[0],
            "theirs_first_ms": first_ms[1],
        },
    }


def _largest(names: Sequence[str], samples: Sequence[Sample], ours: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Our states, masks and cache hits for the ten largest schemas that we took."""

    taken = [(len(json.dumps(s.schema)), n, o) for n, s, o in zip(names, samples, ours) if o.facts]
    return [
        {
            "schema": name,
            "characters": size,
            **outcome.facts,
            "steps": sum(len(walk.mask_s) for walk in outcome.walks),
            "hits": sum(walk.cached for walk in outcome.walks),
            "compile_ms": outcome.compile_s * 1e3,
        }
        for size, name, outcome in sorted(taken, key=lambda entry: entry[:2], reverse=True)[:10]
    ]
