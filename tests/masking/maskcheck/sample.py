"""The sample of real schemas with valid and invalid documents, and the vocabularies they are walked in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.vocabularies import load_tokenizer
from modtools.errors import MissingPieceError
from modtools.masking import BudgetError, Grammar, SchemaError, Vocabulary, compile_json_schema

TOOL_LIKE = ("Glaiveai2K", "BFCL", "MCPspec")


@dataclass(frozen=True)
class Sample:
    """One schema of the sample with its documents."""

    name: str
    schema: Any
    valid: tuple[Any, ...]
    invalid: tuple[Any, ...]

    @property
    def kind(self) -> str:
        """tool-like, or other."""
        return "tool-like" if self.name.startswith(TOOL_LIKE) else "other"


@lru_cache
def samples(shared: Path) -> tuple[Sample, ...]:
    """All schemas of the sample, by name."""
    found = []
    for path in sorted((shared / "data/maskbench-sample").glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        documents = {flag: tuple(t["data"] for t in data["tests"] if t["valid"] is flag) for flag in (True, False)}
        found.append(Sample(path.stem, data["schema"], documents[True], documents[False]))
    return tuple(found)


def compiled(chosen: Iterable[Sample]) -> Iterator[tuple[Sample, Grammar]]:
    """The samples with their grammars, but for those whose schema is refused; test_restrictions.py reports these."""
    for sample in chosen:
        try:
            yield sample, compile_json_schema(sample.schema)
        except (SchemaError, BudgetError):
            continue


@dataclass(frozen=True, eq=False)
class RealVocabulary:
    """A tokenizer of a model, and its tokens as bytes."""

    name: str
    tokenizer: Any
    vocabulary: Vocabulary

    def ids(self, text: str) -> list[int]:
        """The canonical tokens of a text."""
        return self.tokenizer.encode(text, add_special_tokens=False)


@lru_cache
def real_vocabulary(name: str) -> RealVocabulary | None:
    """The vocabulary of so many tokens, None where this machine does not have it; 49k is the embedded model's."""
    try:
        tokenizer = load_tokenizer(name)
    except MissingPieceError:
        return None
    return RealVocabulary(name, tokenizer, Vocabulary.from_tokenizer(tokenizer))
