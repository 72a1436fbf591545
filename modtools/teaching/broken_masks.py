"""A gallery of masks, one right and the others each wrong in its own way, over one small schema and vocabulary."""

from __future__ import annotations

import html
import inspect
import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from modtools.masking import Vocabulary
from modtools.teaching.explorer import code, explorer, table
from modtools.teaching.mask_properties import PROPERTIES, Mask, Setting, verdicts

_TOKENS = ("<end>", "<s>", "{", "}", '"', ":", "to", "x", "é", b"\xc3", b"\xa9",
           '{"', '":"', '"}', 'x"', '{"to":"', b'\xa9"', "\\u")  # fmt: skip
_BYTES = [token.encode() if isinstance(token, str) else token for token in _TOKENS]
_SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string", "maxLength": 3}},
    "required": ["to"],
    "additionalProperties": False,
}
SMALL = Setting(_SCHEMA, Vocabulary.from_bytes(_BYTES, eos_id=0, special_ids=[1]), {1: b"<s>"})
"""One key with at most three characters behind it, and 18 tokens: too few to finish a \\u escape."""


def right(setting: Setting, text: bytes) -> set[int]:
    """The kit's own mask."""
    if setting.grammar.start.read(text) is None:
        return set()
    matcher = setting.grammar.matcher(setting.vocabulary)
    matcher.read(text)
    return set(np.flatnonzero(matcher.allowed()).tolist())


def no_straddling(setting: Setting, text: bytes) -> set[int]:
    """Forgets tokens that straddle a boundary: a quotation mark must come alone."""
    tokens = setting.vocabulary.tokens
    return {i for i in right(setting, text) if tokens[i] in (None, b'"') or b'"' not in tokens[i]}


def whole_characters(setting: Setting, text: bytes) -> set[int]:
    """A mask over characters: a token that holds half of one has no place in it."""
    tokens = setting.vocabulary.tokens
    return {i for i in right(setting, text) if "\ufffd" not in (tokens[i] or b"").decode("utf-8", "replace")}


def replaced_characters(setting: Setting, text: bytes) -> set[int]:
    """Decodes with errors="replace", so that half a character passes for a whole one."""
    seen = lambda raw: raw.decode("utf-8", "replace").encode()
    tokens = enumerate(setting.vocabulary.tokens)
    allowed = {i for i, token in tokens if token and setting.can_finish(seen(text + token))}
    return allowed | {setting.vocabulary.eos_id} if setting.grammar.accepts(seen(text)) else allowed


def canonical_only(setting: Setting, text: bytes) -> set[int]:
    """Allows only the tokens that a tokenizer (here: the longest match) would write itself."""
    allowed = set()
    for document in documents(setting):
        at = 0
        for token_id in longest_match(setting, document):
            if document[:at] == text:
                allowed.add(token_id)
            at += len(setting.vocabulary.tokens[token_id])
        if document == text:
            allowed.add(setting.vocabulary.eos_id)
    return allowed


def dead_ends(setting: Setting, text: bytes) -> set[int]:
    """Asks whether the grammar can read a token, not whether the vocabulary can finish what it begins."""
    state = setting.grammar.start.read(text)
    allowed = {i for i, token in enumerate(setting.vocabulary.tokens) if token and state.read(token)}
    return allowed | {setting.vocabulary.eos_id} if state.is_accepting else allowed


def first_byte(setting: Setting, text: bytes) -> set[int]:
    """Looks at the first byte of a token only: "tokens that begin with ..."."""
    state = setting.grammar.start.read(text)
    if state is None:
        return set()
    begun = {i for i, token in enumerate(setting.vocabulary.tokens) if token and state.step(token[0])}
    return begun | {setting.vocabulary.eos_id} if state.is_accepting else begun


def end_anywhere(setting: Setting, text: bytes) -> set[int]:
    """Always allows end-of-sequence."""
    return right(setting, text) | {setting.vocabulary.eos_id}


def end_never(setting: Setting, text: bytes) -> set[int]:
    """Never allows end-of-sequence."""
    return right(setting, text) - {setting.vocabulary.eos_id}


def special_text(setting: Setting, text: bytes) -> set[int]:
    """Reads the printed name of a special token as text."""
    return right(setting, text) | {i for i, name in setting.specials.items() if setting.can_finish(text + name)}


def no_counter(setting: Setting, text: bytes) -> set[int]:
    """Ignores maxLength."""
    return right(_with_schema(setting, '"maxLength"'), text)


def no_required(setting: Setting, text: bytes) -> set[int]:
    """Lets an object close before its required keys came."""
    return right(_with_schema(setting, '"required"'), text)


GALLERY: dict[str, Mask] = {
    mask.__name__: mask
    for mask in (right, no_straddling, whole_characters, replaced_characters, canonical_only, dead_ends, first_byte,
                 end_anywhere, end_never, special_text, no_counter, no_required)
}  # fmt: skip


@lru_cache
def documents(setting: Setting) -> tuple[bytes, ...]:
    """Every document that the vocabulary can spell."""
    return tuple(text for text in setting.walk(Setting.truth) if setting.grammar.accepts(text))


def longest_match(setting: Setting, text: bytes) -> list[int]:
    """A simple tokenizer: the longest token that fits, again and again."""
    ids, at = [], 0
    while at < len(text):
        fitting = [i for i, token in enumerate(setting.vocabulary.tokens) if token and text.startswith(token, at)]
        ids.append(max(fitting, key=lambda i: len(setting.vocabulary.tokens[i])))
        at += len(setting.vocabulary.tokens[ids[-1]])
    return ids


@lru_cache
def _with_schema(setting: Setting, without: str) -> Setting:
    """The same setting, with one keyword of its schema renamed to a word that JSON Schema does not know."""
    schema = json.loads(json.dumps(setting.schema).replace(without, '"x-ignored"'))
    return replace(setting, schema=schema, _finishing={}, _walks={})


def broken_mask_html(mask: str) -> str:
    """One mask of the gallery, by its name: its code, and the verdict on each property with a witness."""
    rows = [
        [
            f"<b>{prop}</b><br>{html.escape(inspect.getdoc(PROPERTIES[prop]))}",
            "&#10007;&nbsp;fails" if witness else "&#10003;&nbsp;holds",
            html.escape(witness),
        ]
        for prop, witness in verdicts(SMALL, GALLERY[mask]).items()
    ]
    return f"{code(inspect.getsource(GALLERY[mask]))}{table(['property', '', 'witness'], rows, raw=True)}"


def break_a_mask() -> Any:
    """The gallery as a widget: choose a mask, read its code, see which properties fail and on what."""
    return explorer(broken_mask_html, mask=tuple(GALLERY))
