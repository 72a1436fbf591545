"""How two engines are made to compare like with like: the schema, the vocabulary, and one spelling of a document."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from modtools.masking import Grammar, Vocabulary, compile_json_schema

PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[a-z]+|[ \t\n\r]+|[{}\[\],:]', re.DOTALL)


def byte_vocabulary() -> Vocabulary:
    """Every byte, then the end; a byte is its own id."""
    return Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), b""], eos_id=256)


def closed(schema: Any, others: bool = False) -> Any:
    """The schema with every object that names its properties and says nothing of others closed, or said to be open."""
    if isinstance(schema, list):
        return [closed(inner, others) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: {name: closed(inner, others) for name, inner in value.items()}
        if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict)
        else value
        if key in ("enum", "const", "default", "examples")
        else closed(value, others)
        for key, value in schema.items()
    }
    if isinstance(schema.get("properties"), dict) and not {"additionalProperties", "patternProperties"} & schema.keys():
        found["additionalProperties"] = others
    return found


def narrowed(vocabulary: Vocabulary, every: int) -> Vocabulary:
    """The vocabulary without most of its tokens of mere letters and blanks, which masks treat alike; ids change."""
    kept = [
        token
        for i, token in enumerate(vocabulary.tokens)
        if token and (len(token) == 1 or not token.strip().isalpha() or i % every == 0)
    ]
    return Vocabulary.from_bytes([b"", *kept], eos_id=0)


def compared(schema: Any, compact: bool) -> tuple[Any, Grammar]:
    """The schema as both sides get it, and our grammar of it."""
    schema = closed(schema) if compact else schema
    options = {"whitespace": 0, "property_order": "declared"} if compact else {}
    return schema, compile_json_schema(schema, **options)


def without_blanks(text: str) -> str:
    """The same document without whitespace."""
    return "".join(part for part in PARTS.findall(text) if not part.isspace())


def plain_strings(text: str) -> str:
    """Every string with the shortest escapes, otherwise raw."""
    return "".join(json.dumps(json.loads(p), ensure_ascii=False) if p[0] == '"' else p for p in PARTS.findall(text))


def plain_numbers(text: str) -> str:
    """Every number as the shortest decimal of its double."""

    def spell(part: str) -> str:
        if part[0] not in "-0123456789":
            return part
        number = float(part)
        if math.isinf(number):
            return part
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)

    return "".join(map(spell, PARTS.findall(text)))


def in_order(schema: Any, text: str) -> str:
    """Keys in the order of the `properties` that name most of them; the text is spelled anew."""
    orders: list[list[str]] = []

    def look_for(part: Any) -> None:
        if isinstance(part, dict) and isinstance(part.get("properties"), dict):
            orders.append(list(part["properties"]))
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            look_for(inner)

    def sort(part: Any) -> Any:
        if isinstance(part, list):
            return [sort(inner) for inner in part]
        if not isinstance(part, dict):
            return part
        order = max(orders, key=lambda names: len(part.keys() & set(names)), default=[])
        keys = sorted(part, key=lambda key: order.index(key) if key in order else len(order))
        return {key: sort(part[key]) for key in keys}

    look_for(schema)
    return json.dumps(sort(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
