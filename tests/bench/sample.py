"""The schemas of the sample and their valid documents, drawn with a seed."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.errors import MissingPieceError, UsageError


@dataclass(frozen=True)
class Sample:
    """A schema with its valid documents as text, keys in the order in which the schema declares them."""

    name: str
    schema: Any
    documents: tuple[str, ...]


def read_sample(folder: Path, count: int | None, seed: int) -> list[Sample]:
    """`count` schemas drawn with a seed, or all, in random order.

    Raises:
        MissingPieceError: no schemas there.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise MissingPieceError(
            f"no schemas in {folder}; give --sample DIR with files of the MaskBench form "
            '({"schema": ..., "tests": [{"valid": ..., "data": ...}]}), or set MODTOOLS_SHARED'
        )
    rng = random.Random(seed)
    return [_read(path) for path in rng.sample(paths, len(paths) if count is None else min(count, len(paths)))]


def _read(path: Path) -> Sample:
    try:
        content = json.loads(path.read_text("utf-8"))
        schema = content["schema"]
        documents = [_in_order(schema, test["data"]) for test in content["tests"] if test["valid"]]
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} has not the MaskBench form: {type(error).__name__}: {error}") from error
    return Sample(path.stem, schema, tuple(json.dumps(document, ensure_ascii=False) for document in documents))


def _in_order(schema: Any, value: Any) -> Any:
    """The same value with declared keys first; what lies behind $ref and alternatives stays as it is."""
    inner = schema if isinstance(schema, dict) else {}
    if isinstance(value, list):
        return [_in_order(inner.get("items"), item) for item in value]
    if not isinstance(value, dict):
        return value
    declared = inner.get("properties", {})
    keys = [key for key in declared if key in value] + [key for key in value if key not in declared]
    return {key: _in_order(declared.get(key, inner.get("additionalProperties")), value[key]) for key in keys}
