"""A shape: types with their bounds, which is what is left of schemas when they are merged.

Objects and arrays keep the schemas that speak about their parts as layers: a part must satisfy every layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from modtools.masking.dfa import CharacterDFA
from modtools.masking.document import Place

TYPES = frozenset(["null", "boolean", "integer", "number", "string", "array", "object"])
SCALARS = frozenset(["null", "boolean", "integer", "number", "string"])
Conjunction = tuple[Place, ...]


@dataclass(frozen=True)
class ObjectLayer:
    """What one schema says about the values of an object: by name, by pattern, and of all other keys."""

    properties: Mapping[str, Place]
    patterns: tuple[tuple[CharacterDFA, Place], ...]
    other: Place | None


@dataclass(frozen=True)
class ArrayLayer:
    """What one schema says about the items of an array: the first ones, and the rest."""

    first: tuple[Place, ...]
    rest: Place | None


@dataclass(frozen=True)
class Shape:
    """One alternative. None or empty: no such limit.

    Attributes:
        values: the enum or const values that are left, each with its place.
        least, most: bounds of a number, (value, whether the value itself is excluded).
    """

    types: frozenset[str] = TYPES
    values: tuple[Place, ...] | None = None
    texts: tuple[CharacterDFA, ...] = ()
    min_length: int = 0
    max_length: int | None = None
    least: tuple[Decimal, bool] | None = None
    most: tuple[Decimal, bool] | None = None
    multiples: tuple[Decimal, ...] = ()
    object_layers: tuple[ObjectLayer, ...] = ()
    required: tuple[str, ...] = ()
    names: Conjunction = ()
    min_properties: int = 0
    max_properties: int | None = None
    array_layers: tuple[ArrayLayer, ...] = ()
    min_items: int = 0
    max_items: int | None = None
