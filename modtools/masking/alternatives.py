"""From schemas that must hold together to a list of shapes, of which one must hold.

References are followed, allOf is merged, anyOf is opened into alternatives, and so is oneOf, whose branches must be
shown to be disjoint afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from modtools.masking.budget import spend
from modtools.masking.document import MARK, Document, Place
from modtools.masking.keywords import narrow
from modtools.masking.shape import Conjunction, Shape

MAX_NESTING = 100  # of anyOf in anyOf


@dataclass(frozen=True)
class Choice:
    """A oneOf that was opened: its branches must be shown to be disjoint before it may count as an anyOf."""

    place: Place
    branches: tuple[Place, ...]
    beside: Conjunction


def shapes(document: Document, conjunction: Iterable[Place], choices: list[Choice], nesting: int = 0) -> list[Shape]:
    """The alternatives of a conjunction; oneOf keywords met on the way are added to `choices`.

    Raises:
        SchemaError: a keyword that cannot be honoured.
    """
    pending: list[tuple[Place, frozenset[str]]] = [(place, frozenset()) for place in conjunction]
    seen: set[str] = set()
    gathered: list[Place] = []
    branchings: list[tuple[Place, ...]] = []
    ones: list[tuple[Place, tuple[Place, ...]]] = []
    while pending:
        place, through = pending.pop(0)
        if place.pointer in through:
            place.refuse("$ref", "leads back to itself without an object, an array or a choice between")
        if place.pointer in seen:
            continue
        seen.add(place.pointer)
        schema = place.schema
        if schema is True or schema == {}:
            continue
        if schema is False:
            return []
        if not isinstance(schema, dict):
            place.refuse("schema", f"expected an object or a boolean, got {schema!r}")
        if "$ref" in schema:
            pending.append((document.follow(place), through | {place.pointer}))
            if not document.siblings_of_ref:
                continue
        pending += [(branch, through | {place.pointer}) for branch in _branches(place, "allOf")]
        gathered.append(place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = _branches(place, keyword)
                branchings.append(branches)
                if keyword == "oneOf" and len(branches) > 1:
                    ones.append((place, branches))
    merged = Shape()
    for place in gathered:
        merged = narrow(merged, place, document.is_wide)
    if nesting > MAX_NESTING:
        reason = f"nested deeper than {MAX_NESTING}, or leads back to itself without an object or an array between"
        place.refuse("anyOf", reason)
    if not branchings:
        return [] if not merged.types else [merged]
    beside = tuple(gathered)
    choices += [Choice(place, branches, _without_choices(beside)) for place, branches in ones]
    if not merged.types:
        return []
    plain = _without_choices(beside)
    found = []
    for one_of_each in itertools.product(*branchings):
        spend(1, f"the alternatives at {place.pointer or '(root)'}")
        found += shapes(document, (*plain, *one_of_each), choices, nesting + 1)
    return found


def _without_choices(places: Iterable[Place]) -> Conjunction:
    """The same schemas without what has been opened already."""
    opened = ("anyOf", "oneOf", "allOf", "$ref")
    return tuple(
        Place(place.pointer + MARK, {k: v for k, v in place.schema.items() if k not in opened})
        if any(keyword in place.schema for keyword in opened)
        else place
        for place in places
    )


def _branches(place: Place, keyword: str) -> tuple[Place, ...]:
    branches = place.schema.get(keyword, [])
    if not isinstance(branches, list):
        place.refuse(keyword, f"expected a list of schemas, got {branches!r}")
    return tuple(place.at(keyword, i) for i in range(len(branches)))
