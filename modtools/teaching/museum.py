"""A museum of real bugs in engines that constrain decoding: each rebuilt small enough to run, and linked.

An exhibit shows one document in the tokens in which it was written. `broken` is a minimal rebuilding of what the
linked report describes, not the engine's code; the engine may have mended it since.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from modtools.masking import Vocabulary, compile_json_schema, compile_regex
from modtools.teaching.explorer import code, explorer, table
from modtools.teaching.mask_properties import quoted

Reads = Callable[[Sequence[bytes]], bool]
"""Whether a document, given token by token, can be written."""


@dataclass(frozen=True)
class Exhibit:
    """One bug.

    Attributes:
        title: what went wrong, in a few words.
        schema: a JSON Schema that shows it.
        tokens: a document that shows it, token by token.
        is_document: whether the schema accepts that document.
        broken: the wrong verdict.
        breaks: the property that the wrong verdict breaks.
        report: where the bug was reported: an address.
        specials: those of the tokens that are special: never text.
    """

    title: str
    schema: Any
    tokens: tuple[bytes, ...]
    is_document: bool
    broken: Reads
    breaks: str
    report: str
    specials: tuple[bytes, ...] = ()

    def shown(self) -> str:
        """The document in print, token by token."""
        return "".join(quoted(token) for token in self.tokens)


def our_verdict(exhibit: Exhibit) -> bool:
    """Whether the kit's mask lets the document be written in these tokens and end after them."""
    ordinary = [token for token in exhibit.tokens if token not in exhibit.specials]
    tokens = [b"<end>", *exhibit.specials, *ordinary, *(bytes([byte]) for byte in range(256))]
    specials = range(1, 1 + len(exhibit.specials))
    vocabulary = Vocabulary.from_bytes(tokens, eos_id=0, special_ids=specials)
    matcher = compile_json_schema(exhibit.schema).matcher(vocabulary)
    for token in exhibit.tokens:
        token_id = tokens.index(token)
        if not matcher.allowed()[token_id]:
            return False
        matcher.advance(token_id)
    return bool(matcher.allowed()[vocabulary.eos_id])


def _closed(properties: dict, required: Sequence[str] = ()) -> dict:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _by_regex(pattern: str) -> Reads:
    """The verdict of an engine that turned the schema into this pattern."""
    return lambda tokens: compile_regex(pattern).accepts(b"".join(tokens))


def _by_schema(schema: Any) -> Reads:
    """The verdict of an engine that understood this schema instead."""
    return lambda tokens: compile_json_schema(schema).accepts(b"".join(tokens))


def _by_characters(schema: Any) -> Reads:
    """The verdict of an engine whose tokens must be whole characters."""

    def reads(tokens: Sequence[bytes]) -> bool:
        whole = all("\ufffd" not in token.decode("utf-8", "replace") for token in tokens)
        return whole and compile_json_schema(schema).accepts(b"".join(tokens))

    return reads


def _by_print(schema: Any) -> Reads:
    """The verdict of an engine that takes a token's printed spelling, Ġ for a blank, for its text."""
    return lambda tokens: compile_json_schema(schema).accepts(b"".join(tokens).replace(b" ", "Ġ".encode()))


def _stops_at(end: bytes, schema: Any) -> Reads:
    """The verdict of an engine that does not know an end token: ordinary text for the mask, the end for the loop."""

    def reads(tokens: Sequence[bytes]) -> bool:
        return tokens[-1] == end and compile_json_schema(schema).start.read(b"".join(tokens)) is not None

    return reads


def _fails_open(schema: Any) -> Reads:
    """The verdict of an engine that constrains nothing when it cannot read a pattern: here any with a backslash."""
    return lambda tokens: "\\" in schema["pattern"] or compile_json_schema(schema).accepts(b"".join(tokens))


_TEXT = _closed({"t": {"type": "string"}}, ["t"])
_WORDS = {"type": "string", "pattern": "^[a-z]+ [a-z]+$"}
_LINES = _closed({"start_line": {"type": "integer"}, "end_line": {"type": "integer"}})
_BANG = {"type": "string", "pattern": "^hello there indeed\\!$"}
_GITHUB = "https://github.com"

MUSEUM = (
    Exhibit(
        "no escaped quotation mark",
        _TEXT,
        (b'{"t":"', rb"say \"hi\"", b'"}'),
        True,
        _by_regex(r'\{"t":"([^"\\]|\\\\)*"\}'),
        "complete",
        f"{_GITHUB}/dottxt-ai/outlines/issues/935",
    ),
    Exhibit(
        "escapes that JSON does not have",
        _TEXT,
        (b'{"t":"', rb"won\'t", b'"}'),
        False,
        _by_regex(r'\{"t":"([^"\\]|\\.)*"\}'),
        "sound",
        f"{_GITHUB}/dottxt-ai/outlines/issues/759",
    ),
    Exhibit(
        "an integer with a leading zero",
        _closed({"year": {"type": "integer"}}, ["year"]),
        (b'{"year":', b"02", b"}"),
        False,
        _by_regex(r'\{"year":-?[0-9]+\}'),
        "sound",
        f"{_GITHUB}/cactus-compute/needle/issues/85",
    ),
    Exhibit(
        "a minimum that is ignored",
        _closed({"n": {"type": "number", "minimum": 0}}, ["n"]),
        (b'{"n":', b"-3", b"}"),
        False,
        _by_schema(_closed({"n": {"type": "number"}}, ["n"])),
        "sound",
        f"{_GITHUB}/dottxt-ai/outlines-core/issues/147",
    ),
    Exhibit(
        "an alternation that swallows the quotation marks",
        _closed({"v": {"type": "string", "pattern": "cat|dog"}}, ["v"]),
        (b'{"v":"', b"cat", b'"}'),
        True,
        _by_regex(r'\{"v":("cat|dog")\}'),
        "complete",
        f"{_GITHUB}/dottxt-ai/outlines-core/issues/267",
    ),
    Exhibit(
        "the same alternation, from its other side",
        _closed({"v": {"type": "string", "pattern": "cat|dog"}}, ["v"]),
        (b'{"v":"', b"cat", b"}"),
        False,
        _by_regex(r'\{"v":("cat|dog")\}'),
        "sound",
        f"{_GITHUB}/dottxt-ai/outlines-core/issues/267",
    ),
    Exhibit(
        "a pattern that drops maxLength",
        _closed({"k": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}}, ["k"]),
        (b'{"k":"', b"abcdef", b'"}'),
        False,
        _by_schema(_closed({"k": {"type": "string", "pattern": "^[a-z]+$"}}, ["k"])),
        "sound",
        f"{_GITHUB}/mlc-ai/xgrammar/issues/895",
    ),
    Exhibit(
        "a declared key that passes as an additional one",
        {"type": "object", "properties": {"a": {"const": "foo"}, "b": {"const": "bar"}}, "required": ["b"]},
        (b'{"b":"bar",', b'"a":"BAD"', b"}"),
        False,
        _by_regex(r'\{("a":"foo",)?"b":"bar"(,"[a-z]+":"[a-zA-Z]*")*\}'),
        "sound",
        f"{_GITHUB}/guidance-ai/guidance/issues/1039",
    ),
    Exhibit(
        "optional keys in the declared order only",
        _LINES,
        (b'{"start_line":', b"1,", b'"end_line":', b"9", b"}"),
        True,
        _by_regex(r'\{("end_line":[0-9]+(,"start_line":[0-9]+)?|"start_line":[0-9]+)?\}'),
        "complete",
        f"{_GITHUB}/ggml-org/llama.cpp/issues/15216",
    ),
    Exhibit(
        "a token that holds half a character",
        {"enum": ["\U0001f600"]},
        (b'"', b"\xf0\x9f", b"\x98\x80", b'"'),
        True,
        _by_characters({"enum": ["\U0001f600"]}),
        "complete",
        f"{_GITHUB}/ggml-org/llama.cpp/issues/2501",
    ),
    Exhibit(
        "a blank in the tokenizer's spelling",
        _WORDS,
        (b'"', b"cat", b" dog", b'"'),
        True,
        _by_print(_WORDS),
        "complete",
        f"{_GITHUB}/mlc-ai/xgrammar/pull/484",
    ),
    Exhibit(
        "a second end token, unknown to the mask",
        _TEXT,
        (b'{"t":"', b"half", b"<|call|>"),
        False,
        _stops_at(b"<|call|>", _TEXT),
        "keeping special tokens out",
        f"{_GITHUB}/vllm-project/vllm/issues/52146",
        specials=(b"<|call|>",),
    ),
    Exhibit(
        "a grammar that cannot be read, and then no mask at all",
        _BANG,
        (b"Sure, ", b"here it is"),
        False,
        _fails_open(_BANG),
        "sound",
        f"{_GITHUB}/ggml-org/llama.cpp/issues/19051",
    ),
)


def exhibit_html(exhibit: str) -> str:
    """One exhibit, by its title: the schema, the document in tokens, and three verdicts."""
    shown = next(one for one in MUSEUM if one.title == exhibit)
    word = {True: "writes it", False: "refuses it"}
    rows = [
        ["schema", code(json.dumps(shown.schema, indent=1))],
        ["document, token by token", code(shown.shown())],
        ["by the schema", "valid" if shown.is_document else "invalid"],
        ["the broken mask", f"{word[shown.broken(shown.tokens)]}: not <b>{html.escape(shown.breaks)}</b>"],
        ["the kit's mask", word[our_verdict(shown)]],
        ["reported", f'<a href="{html.escape(shown.report)}">{html.escape(shown.report)}</a>'],
    ]
    return table([], rows, raw=True)


def museum() -> Any:
    """The museum as a widget: choose an exhibit."""
    return explorer(exhibit_html, exhibit=tuple(exhibit.title for exhibit in MUSEUM))
