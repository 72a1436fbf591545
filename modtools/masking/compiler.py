"""From shapes to machines: one value for every set of schemas that must hold together, so recursion closes by itself.

First all values are filled; then those that no finite document fits are found and dropped, so that no prefix is a
dead end; then every oneOf must have turned out to be disjoint: no document fits two of its branches.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from modtools.masking.alternatives import Choice, shapes
from modtools.masking.array import Array
from modtools.masking.budget import spend
from modtools.masking.byte_automaton import json_string, literals, plain_text, spell
from modtools.masking.charset import PRINTABLE
from modtools.masking.counted import CountedString
from modtools.masking.dfa import (
    CharacterDFA,
    any_text,
    can_finish_within,
    intersect,
    lengths,
    product,
    unite,
    without,
    words,
)
from modtools.masking.document import MARK, Document, Place
from modtools.masking.free_keys import FreeKeys, bounded_keys, how_many
from modtools.masking.given import const, scalar_fits, spell_scalar, type_of
from modtools.masking.machine import FREE_STRING, Cells, Machine, Scalar, Value
from modtools.masking.numbers import has_room, number_dfa
from modtools.masking.object import Object
from modtools.masking.shape import SCALARS, ArrayLayer, Conjunction, ObjectLayer, Shape

MAX_CHOICES = 400  # pairs of branches of oneOf to be shown disjoint


class Compiler:
    """Compiles one document; see compile_json_schema for the options."""

    def __init__(self, document: Document, cells: Cells, blanks: int, ordered: bool):
        self.document, self.cells, self.blanks, self.ordered = document, cells, blanks, ordered
        self._values: dict[frozenset[str], Value] = {}
        self._unfilled: list[tuple[Value, Conjunction]] = []
        self._choices: list[Choice] = []
        self.spelled: set[int] = set()  # the bytes of everything that has one spelling
        self._free: dict[Object, tuple[CharacterDFA, dict[Any, Value]]] = {}

    def root(self) -> Value:
        """The value of the whole document.

        Raises:
            SchemaError: a keyword that cannot be honoured, or a schema that no document fits.
            BudgetError: too many states or too much time.
        """
        root = self.value([self.document.root])
        self._fill()
        wide = self._wide()
        choices = {(choice.place.pointer, choice.beside): choice for choice in self._choices}
        pairs = [
            (choice, i, j, wide.value([*choice.beside, choice.branches[i], choice.branches[j]]))
            for choice in choices.values()
            for i, j in itertools.combinations(range(len(choice.branches)), 2)
        ]
        if len(pairs) > MAX_CHOICES:
            self.document.root.refuse("oneOf", f"{len(pairs)} pairs of branches to compare, at most {MAX_CHOICES}")
        wide._fill()
        wide._find_possible()
        self._find_possible()
        for choice, i, j, both in pairs:
            if both.possible:
                reason = (
                    f"branches {i} and {j} may both hold; make them disjoint, by a const for instance, or use anyOf"
                )
                choice.place.refuse("oneOf", reason)
        if not root.possible:
            self.document.root.refuse("schema", "no document fits it, spelled as the table of restrictions allows")
        self._prune()
        return root

    def _wide(self) -> Compiler:
        """Compiles for proofs that no document fits: nothing is narrower than the schema says."""
        document = copy.copy(self.document)
        document.is_wide = True
        return Compiler(document, Cells(), self.blanks, self.ordered)

    def value(self, conjunction: Iterable[Place]) -> Value:
        """The value on which all these schemas hold; the same schemas give the same value."""
        places = {place.pointer: place for place in conjunction}
        key = frozenset(places)
        if key not in self._values:
            spend(1, " and ".join(places) or "(root)")
            self._values[key] = Value(" and ".join(places))
            self._unfilled.append((self._values[key], tuple(places.values())))
        return self._values[key]

    def _fill(self) -> None:
        while self._unfilled:
            value, conjunction = self._unfilled.pop()
            for shape in shapes(self.document, conjunction, self._choices):
                value.alternatives += self._machines(shape)

    def _find_possible(self) -> None:
        """Marks the values that some finite document fits: at first none, then whatever follows from that."""
        values, changed = list(self._values.values()), True
        while changed:
            changed = False
            for value in values:
                if not value.possible and any(_is_possible(machine) for machine in value.alternatives):
                    value.possible = changed = True

    def _prune(self) -> None:
        for value in self._values.values():
            value.alternatives = [machine for machine in value.alternatives if _is_possible(machine)]
            for machine in value.alternatives:
                if isinstance(machine, Array):
                    machine.prune()
                elif isinstance(machine, Object):
                    machine.prune(self._free_keys(machine))

    def _machines(self, shape: Shape) -> list[Machine]:
        if shape.values is not None:
            return self._given(shape)
        machines: list[Machine] = []
        words_of = {"null": [b"null"], "boolean": [b"true", b"false"]}
        plain = {text: True for kind in ("null", "boolean") if kind in shape.types for text in words_of[kind]}
        if plain:
            machines.append(Scalar(self.cells, literals(plain), " or ".join(text.decode() for text in plain)))
        if "integer" in shape.types:
            integer = "number" not in shape.types
            dfa = number_dfa(integer, shape.least, shape.most, shape.multiples)
            if not dfa.is_empty or (self.document.is_wide and not integer and has_room(shape.least, shape.most)):
                machines.append(Scalar(self.cells, plain_text(dfa), "an integer" if integer else "a number"))
        if "string" in shape.types:
            machines += self._string(shape)
        if "object" in shape.types:
            machines.append(self._object(shape))
        if "array" in shape.types:
            machines.append(self._array(shape))
        return machines

    def _string(self, shape: Shape) -> list[Machine]:
        if shape.max_length is not None and shape.max_length < shape.min_length:
            return []
        if not shape.texts and shape.min_length == 0 and shape.max_length is None:
            return [Scalar(self.cells, FREE_STRING, "a string")]
        if not shape.texts:
            return [CountedString(self.cells, shape.min_length, shape.max_length)]
        if shape.max_length is not None:
            pattern = intersect(shape.texts, "a string with patterns")
            counted = CountedString(self.cells, shape.min_length, shape.max_length, pattern)
            return [] if counted.is_empty() else [counted]
        dfa = _text(shape)
        return [] if dfa.is_empty else [Scalar(self.cells, json_string(dfa), "a string with a pattern")]

    def _given(self, shape: Shape) -> list[Machine]:
        """Machines for enum and const: one for all scalars; objects and arrays are opened into schemas."""
        machines: list[Machine] = []
        spelled = {}
        for place in shape.values:
            kind, value = type_of(place.schema), place.schema
            if kind not in shape.types:
                continue
            if kind in SCALARS:
                if scalar_fits(value, kind, shape):
                    try:
                        spelled[spell(value) if kind == "string" else spell_scalar(value)] = True
                    except UnicodeEncodeError:
                        place.refuse("enum", "a lone surrogate stands for no character")
            elif kind == "object":
                layer = ObjectLayer(
                    {k: const(place, k, v) for k, v in value.items()}, (), Place(place.pointer + MARK + MARK, False)
                )
                required = tuple(dict.fromkeys([*shape.required, *value]))
                layers = (layer, *shape.object_layers)
                machines.append(self._object(replace(shape, object_layers=layers, required=required)))
            else:
                first = tuple(const(place, i, v) for i, v in enumerate(value))
                layers = (ArrayLayer(first, Place(place.pointer + MARK + MARK, False)), *shape.array_layers)
                least = max(shape.min_items, len(value))
                machines.append(self._array(replace(shape, array_layers=layers, min_items=least)))
        if spelled:
            self.spelled.update(*spelled)
            machines.append(Scalar(self.cells, literals(spelled), f"one of {len(spelled)} given values"))
        return machines

    def _array(self, shape: Shape) -> Array:
        count = max((len(layer.first) for layer in shape.array_layers), default=0)

        def item(i: int) -> Value:
            places = [layer.first[i] if i < len(layer.first) else layer.rest for layer in shape.array_layers]
            return self.value([place for place in places if place is not None])

        first = [item(i) for i in range(count)]
        return Array(self.cells, self.blanks, first, item(count), shape.min_items, shape.max_items)

    def _object(self, shape: Shape) -> Object:
        layers = shape.object_layers
        names = list(dict.fromkeys([*(name for layer in layers for name in layer.properties), *shape.required]))
        permitted = self._names(shape.names)
        nothing = Place(MARK, False)
        values = []
        for name in names:
            try:
                self.spelled.update(spell(name))
            except UnicodeEncodeError:
                self.document.root.refuse("properties", f"the key {name!r} holds a lone surrogate")
            places = [place for layer in layers for place in _speaking_of(layer, name)]
            fits = permitted is None or permitted.label(name) is not None
            values.append(self.value(places if fits else [nothing]))
        required = sum(1 << names.index(name) for name in shape.required)
        size = (shape.min_properties, shape.max_properties)
        machine = Object(self.cells, self.blanks, names, values, required, self.ordered, size)
        self._free[machine] = self._free_classes(layers, permitted)
        dfa, classes = self._free[machine]
        are_counted = shape.min_properties > 0 and dfa is not any_text()
        machine.free_values = [
            (value, how_many(dfa, label, names) if are_counted else None) for label, value in classes.items()
        ]
        return machine

    def _names(self, conjunction: Conjunction) -> CharacterDFA | None:
        """The strings that propertyNames allows, None for all."""
        if not conjunction:
            return None
        found = [shape for shape in shapes(self.document, conjunction, self._choices) if "string" in shape.types]
        if not found:
            return words([])
        return unite([_text(shape) for shape in found], "propertyNames")

    def _free_classes(self, layers: tuple[ObjectLayer, ...], permitted: CharacterDFA | None):
        """An automaton that sorts keys by the patterns they match, and the value of each class."""
        patterns = [(layer, dfa, place) for layer in layers for dfa, place in layer.patterns]
        if not patterns and permitted is None:
            return any_text(), {True: self.value([layer.other for layer in layers if layer.other is not None])}
        parts = [permitted or any_text(), *(dfa for _, dfa, _ in patterns)]
        values: dict[Any, Value] = {}

        def classify(labels):
            if labels[0] is None:
                return None
            hits = tuple(i for i, label in enumerate(labels[1:]) if label is not None)
            if hits not in values:
                matched = [patterns[i] for i in hits]
                covered = {id(layer) for layer, _, _ in matched}
                others = [layer.other for layer in layers if layer.other is not None and id(layer) not in covered]
                values[hits] = self.value([*(place for _, _, place in matched), *others])
            return ("class", hits)

        dfa = product(parts, classify, "the keys of an object")
        return dfa, {("class", hits): value for hits, value in values.items()}

    def _free_keys(self, machine: Object) -> FreeKeys | None:
        dfa, values = self._free[machine]
        values = {label: value for label, value in values.items() if value.possible}
        if not values:
            return None
        if dfa is any_text():
            return FreeKeys(FREE_STRING, values, bounded=False)
        dfa = product([dfa], lambda labels: labels[0] if labels[0] in values else None, "the keys of an object")
        if any(count is not None for count in dfa.counts):
            dfa = without(dfa, words(machine.names), "the keys of an object")
            if not can_finish_within(dfa, PRINTABLE):
                self.spelled.update(range(0xC2, 0xF5))
            return None if dfa.is_empty else bounded_keys(dfa, values)
        return FreeKeys(json_string(dfa), values, bounded=False)


def _is_possible(machine: Machine) -> bool:
    return machine.is_possible() if isinstance(machine, Array | Object) else True


def _speaking_of(layer: ObjectLayer, name: str) -> list[Place]:
    """The schemas of a layer that the value of a key must satisfy."""
    places = [layer.properties[name]] if name in layer.properties else []
    places += [place for dfa, place in layer.patterns if dfa.label(name) is not None]
    return places or ([layer.other] if layer.other is not None else [])


def _text(shape: Shape) -> CharacterDFA:
    """The strings of a shape as an automaton."""
    parts = list(shape.texts)
    if shape.min_length or shape.max_length is not None:
        if shape.max_length is not None and shape.max_length < shape.min_length:
            return words([])
        parts.append(lengths(shape.min_length, shape.max_length))
    if shape.values is not None:
        parts.append(words(place.schema for place in shape.values if isinstance(place.schema, str)))
    return intersect(parts, "a string with a pattern and a length")
