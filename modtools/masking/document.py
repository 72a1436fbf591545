"""A schema document: its places by JSON pointer, where a $ref leads, and which draft it speaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import unquote, urldefrag, urljoin

from modtools.errors import UnsupportedError

# Keywords whose value is a schema, a list of schemas, a map of schemas.
MARK = "\0"  # in the pointer of a schema that we made from the one at the rest of the pointer
MAX_SHOWN = 200  # characters of a pointer in a message
ONE = ("items", "additionalItems", "additionalProperties", "propertyNames", "not", "if", "then", "else", "contains")
MANY = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


class SchemaError(UnsupportedError):
    """A schema that cannot be compiled.

    Attributes:
        keyword: the keyword that cannot be honoured.
        pointer: where it stands, as a JSON pointer into the schema ("" is the root).
    """

    def __init__(self, keyword: str, pointer: str, reason: str):
        self.keyword, self.pointer = keyword, pointer
        where = pointer if len(pointer) <= MAX_SHOWN else f"{pointer[:MAX_SHOWN]}..."
        super().__init__(f"{keyword} at {where or '(root)'}: {reason}")


@dataclass(frozen=True)
class Place:
    """One schema and where it stands; two places are the same when their pointers are."""

    pointer: str
    schema: Any = field(compare=False)

    def at(self, *steps: str | int) -> Place:
        """The schema so many steps inside this one."""
        pointer, schema = self.pointer, self.schema
        for step in steps:
            pointer += "/" + str(step).replace("~", "~0").replace("/", "~1").replace(MARK, "~2")
            schema = schema[step]
        return Place(pointer, schema)

    def refuse(self, keyword: str, reason: str) -> NoReturn:
        """Raises SchemaError for a keyword of this schema."""
        raise SchemaError(keyword, self.pointer.replace(MARK, "").replace("~2", MARK), reason)


class Document:
    """The whole schema, for looking up references.

    Attributes:
        root: its outermost place.
        siblings_of_ref: whether keywords beside $ref count: they do since draft 2019-09.
        is_wide: whether formats are left out, so that nothing is narrower than the schema: for proofs that no document
            fits.
    """

    def __init__(self, schema: Any):
        self.root, self.is_wide = Place("", schema), False
        dialect = schema.get("$schema", "") if isinstance(schema, dict) else ""
        old = isinstance(dialect, str) and any(f"draft-0{n}" in dialect for n in (3, 4, 6, 7))
        self.siblings_of_ref = not old
        self._by_address: dict[str, Place] = {}
        self._bases: dict[str, str] = {}
        self._index(self.root, "", "id" if old and ("draft-04" in dialect or "draft-03" in dialect) else "$id")

    def _index(self, place: Place, base: str, id_keyword: str) -> None:
        schema = place.schema
        if isinstance(schema, dict):
            own = schema.get(id_keyword)
            if isinstance(own, str) and (self.siblings_of_ref or "$ref" not in schema):
                address = urljoin(base, own)
                self._by_address.setdefault(address.removesuffix("#"), place)
                base = base if own.startswith("#") else urldefrag(address)[0]
            if isinstance(schema.get("$anchor"), str):
                self._by_address.setdefault(f"{base}#{schema['$anchor']}", place)
        self._bases[place.pointer] = base
        if place.pointer == "":
            self._by_address.setdefault(base, place)
        for inner in subschemas(place):
            self._index(inner, base, id_keyword)

    def follow(self, place: Place) -> Place:
        """Where the $ref of a place leads.

        Raises:
            SchemaError: nowhere in this document.
        """
        reference = place.schema["$ref"]
        if not isinstance(reference, str):
            place.refuse("$ref", f"expected a string, got {reference!r}")
        base = self._base(place.pointer.replace(MARK, ""))
        address, fragment = urldefrag(urljoin(base, reference) if not reference.startswith("#") else base + reference)
        target = self._by_address.get(f"{address}#{fragment}" if fragment else address)
        if target is not None:
            return target
        target = self._by_address.get(address)
        if target is None or (fragment and not fragment.startswith("/")):
            place.refuse("$ref", f"{reference!r} leads out of the document; put its target under $defs")
        for step in fragment.split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            holder = target.schema
            if isinstance(holder, list) and step.isascii() and step.isdigit() and int(step) < len(holder):
                target = target.at(int(step))
            elif isinstance(holder, dict) and step in holder:
                target = target.at(step)
            else:
                place.refuse("$ref", f"{reference!r} leads nowhere: there is no {step!r}")
        return target

    def _base(self, pointer: str) -> str:
        """The address against which references at a place are read: its own, or that of the nearest place around."""
        while pointer not in self._bases:
            pointer = pointer.rpartition("/")[0]
        return self._bases[pointer]


def subschemas(place: Place) -> Iterator[Place]:
    """The schemas directly inside a schema."""
    schema = place.schema
    if not isinstance(schema, dict):
        return
    for keyword in ONE:
        if isinstance(schema.get(keyword), dict | bool):
            yield place.at(keyword)
    for keyword in MANY:
        if isinstance(schema.get(keyword), list):
            yield from (place.at(keyword, i) for i in range(len(schema[keyword])))
    for keyword in NAMED:
        if isinstance(schema.get(keyword), dict):
            yield from (place.at(keyword, name) for name in schema[keyword])
