"""The spellings of one document: orders of keys, blanks, and escapes of those strings that are free."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from modtools.masking import Vocabulary

SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
LONGEST_TOKEN = 24  # bytes, of those that a random tokenisation uses


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same document with the keys of every object in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], rng) for key in rng.sample(list(value), len(value))}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def fixed_strings(schema: Any) -> frozenset[str]:
    """Every string that the table may demand in one spelling: declared keys, enum and const strings."""
    found: set[str] = set()
    if isinstance(schema, dict):
        for keyword in ("properties", "required", "enum", "const"):
            if keyword in schema:
                found |= set(schema[keyword]) if keyword == "properties" else _strings(schema[keyword])
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        found |= fixed_strings(inner)
    return frozenset(found)


def _strings(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_strings, value.values()))
    if isinstance(value, list):
        return set().union(*map(_strings, value))
    return {value} if isinstance(value, str) else set()


def spelled(document: Any, rng: random.Random, fixed: Iterable[str] = (), keys_are_free: bool = True) -> str:
    """A random spelling: blanks anywhere, escapes in strings that are not `fixed`; free keys where they are free."""

    def blanks() -> str:
        return "".join(rng.choices(" \t\n\r", k=rng.choice([0, 0, 1, 3])))

    def text(string: str, is_free: bool = True) -> str:
        if not is_free or string in fixed:
            return json.dumps(string, ensure_ascii=False)
        return '"' + "".join(_character(character, rng) for character in string) + '"'

    def value(part: Any) -> str:
        if isinstance(part, dict):
            members = [f"{blanks()}{text(key, keys_are_free)}{blanks()}:{value(part[key])}" for key in part]
            return blanks() + "{" + (",".join(members) or blanks()) + "}" + blanks()
        if isinstance(part, list):
            return blanks() + "[" + (",".join(map(value, part)) or blanks()) + "]" + blanks()
        return blanks() + (text(part) if isinstance(part, str) else json.dumps(part)) + blanks()

    return value(document)


def _character(character: str, rng: random.Random) -> str:
    """One character of a string: itself where JSON allows that, its short escape, or \\u with digits in any case."""
    units = character.encode("utf-16-be")
    escape = "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    ways = [escape if rng.random() < 0.5 else escape.upper().replace("\\U", "\\u")]
    ways += [SHORT[character]] * 2 if character in SHORT else []
    ways += [character] * 6 if character >= " " and character not in '"\\' else []
    return rng.choice(ways)


def any_tokens(text: bytes, vocabulary: Vocabulary, rng: random.Random) -> list[int]:
    """A random tokenisation, mostly not the canonical one; it does not use the trie that the masks are made with."""
    by_bytes, at, ids = _ids_by_bytes(vocabulary), 0, []
    while at < len(text):
        pieces = (text[at : at + size] for size in range(1, LONGEST_TOKEN + 1) if at + size <= len(text))
        fitting = [by_bytes[piece] for piece in pieces if piece in by_bytes]
        ids.append(rng.choice(rng.choice(fitting)))
        at += len(vocabulary.tokens[ids[-1]])
    return ids


@lru_cache(maxsize=4)
def _ids_by_bytes(vocabulary: Vocabulary) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for i, token in enumerate(vocabulary.tokens):
        if token:
            found.setdefault(token, []).append(i)
    return found
