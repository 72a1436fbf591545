"""Two other engines behind one face for comparing allowed sets: llguidance with no_forcing, and xgrammar.

Their tokenizers are set up as in the benchmarks. Without no_forcing llguidance allows one canonical token wherever the
text is forced, which is not the allowed set.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bench.engines import Llguidance, Refused, Xgrammar
from modtools.masking import Vocabulary


class LLGuidance:
    """llguidance on one vocabulary."""

    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.tokenizer = Llguidance(vocabulary.tokens, vocabulary.eos_id).tokenizer

    def grammar(self, schema: Any, compact: bool) -> LLGuidanceGrammar:
        """The grammar of a schema; compact: without any blanks, otherwise with the engine's defaults."""
        return LLGuidanceGrammar(self, schema, compact)


class LLGuidanceGrammar:
    """One schema in llguidance; a walk is given as the list of its tokens."""

    def __init__(self, engine: LLGuidance, schema: Any, compact: bool):
        import llguidance

        self.vocabulary = engine.vocabulary
        if not isinstance(schema, dict):
            schema = {} if schema else {"not": {}}
        if compact:
            spaced = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
            schema = {"x-guidance": spaced, **schema}
        grammar = '%llguidance {"no_forcing": true}\nstart: %json ' + json.dumps(schema)
        self._matcher = llguidance.LLMatcher(engine.tokenizer, grammar, log_level=0)
        if self._matcher.get_error():
            raise Refused(self._matcher.get_error().splitlines()[0][:200])
        self._start = self._matcher.deep_copy()

    def reset(self) -> None:
        """Back to the start; after an error only a fresh copy goes on."""
        self._matcher = self._start.deep_copy()

    def advance(self, token_id: int) -> bool:
        """Reads a token; whether it was allowed."""
        return self._matcher.consume_tokens([token_id]) and not self._matcher.get_error()

    def allowed(self) -> np.ndarray:
        """The allowed set, shape (V,) bool."""
        if self._matcher.is_stopped():  # nothing but the end can follow
            only_end = np.zeros(len(self.vocabulary), dtype=bool)
            only_end[self.vocabulary.eos_id] = self._matcher.is_accepting()
            return only_end
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little")
        return bits[: len(self.vocabulary)].astype(bool)

    def is_accepting(self) -> bool:
        """Whether the text so far is a document."""
        return bool(self.allowed()[self.vocabulary.eos_id])


class XGrammar:
    """xgrammar on one vocabulary."""

    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.compiler = Xgrammar(vocabulary.tokens, vocabulary.eos_id).compiler

    def grammar(self, schema: Any, compact: bool) -> XGrammarGrammar:
        """The grammar of a schema; compact: without any blanks, otherwise with the engine's defaults."""
        return XGrammarGrammar(self, schema, compact)


class XGrammarGrammar:
    """One schema in xgrammar; see LLGuidanceGrammar."""

    def __init__(self, engine: XGrammar, schema: Any, compact: bool):
        import xgrammar

        self.vocabulary = engine.vocabulary
        # Objects are closed in the schema itself where they are to be closed, so that strict_mode adds nothing.
        options = {"any_whitespace": False, "separators": (",", ":"), "strict_mode": False} if compact else {}
        try:
            compiled = engine.compiler.compile_json_schema(json.dumps(schema), **options)
        except (RuntimeError, ValueError) as error:
            raise Refused(str(error).splitlines()[0][:200]) from error
        self._matcher = xgrammar.GrammarMatcher(compiled)
        self._bits = xgrammar.allocate_token_bitmask(1, len(self.vocabulary))

    def reset(self) -> None:
        """Back to the start."""
        self._matcher.reset()

    def advance(self, token_id: int) -> bool:
        """Reads a token; whether it was allowed."""
        return not self._matcher.is_terminated() and self._matcher.accept_token(token_id)

    def allowed(self) -> np.ndarray:
        """The allowed set, shape (V,) bool."""
        if self._matcher.is_terminated():
            return np.zeros(len(self.vocabulary), dtype=bool)
        self._matcher.fill_next_token_bitmask(self._bits)
        bits = np.unpackbits(self._bits.numpy().view(np.uint8).ravel(), bitorder="little")
        return bits[: len(self.vocabulary)].astype(bool)

    def is_accepting(self) -> bool:
        """Whether the text so far is a document."""
        return bool(self.allowed()[self.vocabulary.eos_id])
