"""The engines that are compared, each behind the same few steps.

    engine = ENGINES[name](tokens, eos_id)     once a vocabulary
    walk = engine.compile(schema, text)        once a schema, given as parsed JSON and as text
    raw = walk.mask()                          the allowed set in the engine's own representation: what is timed
    walk.unpack(raw)                           the same as booleans, shape (V,)
    walk.advance(token_id); walk.reset()

Each engine gets the settings nearest to JSON Schema: objects open where the schema does not close them, blanks free.
Some fix the order of keys, so documents are given in declared order.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import numpy as np

Tokens = Sequence[bytes | None]


class Refused(Exception):
    """The engine does not take this schema."""


class Bits:
    """One mask as bits in words of 32, which most engines fill."""

    def __init__(self, count: int):
        self.count, self.words = count, np.zeros((count + 31) // 32, dtype=np.int32)
        self.address, self.size_bytes = self.words.ctypes.data, self.words.nbytes

    def allows(self, _raw: Any, token_id: int) -> bool:
        return bool(self.words[token_id >> 5] >> (token_id & 31) & 1)

    def unpack(self, _raw: Any) -> np.ndarray:
        return np.unpackbits(self.words.view(np.uint8), count=self.count, bitorder="little").view(bool)


class Ours:
    """modtools.masking. A mask is an array of booleans already."""

    package = ""

    def __init__(self, tokens: Tokens, eos_id: int):
        from modtools.masking import Vocabulary

        self.vocabulary = Vocabulary(tokens, eos_id)

    def compile(self, schema: Any, text: str) -> OursWalk:
        from modtools.errors import ModtoolsError
        from modtools.masking import compile_json_schema

        try:
            return OursWalk(compile_json_schema(schema).matcher(self.vocabulary))
        except ModtoolsError as error:
            raise Refused(str(error)) from error


class OursWalk:
    def __init__(self, matcher: Any):
        self.matcher = matcher
        self.mask, self.advance, self.reset = matcher.allowed, matcher.advance, matcher.reset

    def is_cached(self) -> bool:
        return (self.matcher.state, self.matcher.vocabulary) in self.matcher.grammar.masks

    def allows(self, raw: np.ndarray, token_id: int) -> bool:
        return bool(raw[token_id])

    def unpack(self, raw: np.ndarray) -> np.ndarray:
        return raw

    def facts(self) -> dict[str, int]:
        grammar = self.matcher.grammar
        return {"states": len(grammar._states), "masks": len(grammar.masks)}


class Llguidance:
    """llguidance with no_forcing: otherwise its mask in a forced region is one canonical token, not all that fit."""

    package = "llguidance"

    def __init__(self, tokens: Tokens, eos_id: int):
        import llguidance

        single = {token: i for i, token in enumerate(tokens) if token and len(token) == 1}

        class Wrapped:
            eos_token_id, bos_token_id = eos_id, None
            special_token_ids = [i for i, token in enumerate(tokens) if token is None]

            def __call__(self, text: bytes | str) -> list[int]:
                text = text.encode() if isinstance(text, str) else text
                return [single[bytes([byte])] for byte in text]

        Wrapped.tokens = [f"<special {i}>".encode() if token is None else token for i, token in enumerate(tokens)]
        self.count = len(tokens)
        slices = llguidance.LLTokenizer.json_slices()
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Wrapped()), slices=slices)

    def compile(self, schema: Any, text: str) -> LlguidanceWalk:
        import llguidance

        grammar = '%llguidance {"no_forcing": true}\nstart: %json ' + text
        matcher = llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.get_error():
            raise Refused(matcher.get_error())
        return LlguidanceWalk(matcher, self.count)


class LlguidanceWalk(Bits):
    def __init__(self, matcher: Any, count: int):
        super().__init__(count)
        self.matcher, self.reset = matcher, matcher.reset

    def mask(self) -> None:
        self.matcher.unsafe_compute_mask_ptr(self.address, self.size_bytes)

    def advance(self, token_id: int) -> None:
        self.matcher.consume_token(token_id)


class Xgrammar:
    """xgrammar, with all processor cores to compile and its cache of whole grammars off: schemas do not repeat."""

    package = "xgrammar"

    def __init__(self, tokens: Tokens, eos_id: int):
        import os

        import xgrammar

        vocabulary = [token or b"" for token in tokens]  # a special token's text would leak into strings
        self.info = xgrammar.TokenizerInfo(vocabulary, vocab_size=len(tokens), stop_token_ids=[eos_id])
        self.compiler = xgrammar.GrammarCompiler(self.info, max_threads=os.cpu_count() or 1, cache_enabled=False)
        self.count = len(tokens)

    def compile(self, schema: Any, text: str) -> XgrammarWalk:
        import xgrammar

        return XgrammarWalk(xgrammar.GrammarMatcher(self.compiler.compile_json_schema(text, strict_mode=False)), self)


class XgrammarWalk(Bits):
    def __init__(self, matcher: Any, engine: Xgrammar):
        import torch

        super().__init__(engine.count)
        self.matcher, self.reset, self.advance = matcher, matcher.reset, matcher.accept_token
        self.tensor = torch.from_numpy(self.words.reshape(1, -1))  # the same memory

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.tensor)


class OutlinesCore:
    """outlines-core: the schema becomes one regular expression, and that an index over the vocabulary."""

    package = "outlines-core"

    def __init__(self, tokens: Tokens, eos_id: int):
        from outlines_core import Vocabulary

        by_bytes: dict[bytes, list[int]] = {}
        for i, token in enumerate(tokens):
            if token:
                by_bytes.setdefault(token, []).append(i)
        self.vocabulary, self.count = Vocabulary(eos_id, by_bytes), len(tokens)

    def compile(self, schema: Any, text: str) -> OutlinesCoreWalk:
        from outlines_core import Guide, Index
        from outlines_core.json_schema import build_regex_from_schema

        return OutlinesCoreWalk(Guide(Index(build_regex_from_schema(text), self.vocabulary)), self.count)


class OutlinesCoreWalk(Bits):
    def __init__(self, guide: Any, count: int):
        super().__init__(count)
        self.guide, self.reset = guide, guide.reset

    def mask(self) -> None:
        self.guide.write_mask_into(self.address, len(self.words), 4)

    def advance(self, token_id: int) -> None:
        self.guide.advance(token_id, False)


class LmFormatEnforcer:
    """lm-format-enforcer; its mask is a list of token ids. Tokens that are no whole characters it cannot use."""

    package = "lm-format-enforcer"

    def __init__(self, tokens: Tokens, eos_id: int):
        from lmformatenforcer import TokenEnforcerTokenizerData

        def decode(ids: list[int]) -> str:
            return b"".join(tokens[i] or b"" for i in ids).decode("utf-8", "replace")

        texts = [(i, decode([i]), False) for i, token in enumerate(tokens) if token]
        whole = [entry for entry in texts if "\ufffd" not in entry[1]]
        self.data, self.count = TokenEnforcerTokenizerData(whole, decode, eos_id, False, len(tokens)), len(tokens)

    def compile(self, schema: Any, text: str) -> LmFormatEnforcerWalk:
        from lmformatenforcer import JsonSchemaParser, TokenEnforcer

        return LmFormatEnforcerWalk(TokenEnforcer(self.data, JsonSchemaParser(schema)), self.count)


class LmFormatEnforcerWalk:
    def __init__(self, enforcer: Any, count: int):
        self.enforcer, self.count, self.ids = enforcer, count, []

    def mask(self) -> list[int]:
        return self.enforcer.get_allowed_tokens(self.ids).allowed_tokens

    def allows(self, raw: list[int], token_id: int) -> bool:
        return token_id in raw

    def unpack(self, raw: list[int]) -> np.ndarray:
        mask = np.zeros(self.count, dtype=bool)
        mask[raw] = True
        return mask

    def advance(self, token_id: int) -> None:
        self.ids.append(token_id)

    def reset(self) -> None:
        self.ids = []


ENGINES = {
    "ours": Ours,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "outlines_core": OutlinesCore,
    "lm_format_enforcer": LmFormatEnforcer,
}


def versions() -> dict[str, str | None]:
    """The installed version of each engine; None where it is not installed."""
    found: dict[str, str | None] = {}
    for name, engine in ENGINES.items():
        try:
            found[name] = importlib.metadata.version(engine.package or "modtools")
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    if found["ours"] is None:  # run from a checkout that was not installed
        import modtools

        found["ours"] = modtools.__version__
    return found
