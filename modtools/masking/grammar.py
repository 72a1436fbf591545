"""A compiled grammar: a pushdown automaton over bytes, and the states it is in while it reads.

A state is a set of configurations, because alternatives that overlap are read side by side. Equal states are one
object, and remember where each byte leads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modtools.errors import UsageError
from modtools.masking.budget import BudgetError, budget
from modtools.masking.byte_automaton import needed_bytes, plain_text
from modtools.masking.compiler import Compiler
from modtools.masking.dfa import any_text
from modtools.masking.document import Document
from modtools.masking.machine import Cell, Cells, Root, Scalar, Value
from modtools.masking.regex import pattern_dfa

if TYPE_CHECKING:
    from modtools.masking.matcher import Matcher
    from modtools.masking.vocabulary import Vocabulary

# Every character of a JSON string has a spelling in printable ASCII, so only half-read ones need more.
JSON_BYTES = needed_bytes(any_text())


MAX_CONFIGURATIONS = 1_000


class State:
    """A set of configurations.

    Where alternatives overlap and recur their number may double with every byte: beyond MAX_CONFIGURATIONS reading on
    is a BudgetError.

    Attributes:
        cells: the configurations.
        is_accepting: whether the text may end here.
    """

    __slots__ = ("_grammar", "_next", "cells", "is_accepting")

    def __init__(self, grammar: Grammar, cells: frozenset[Cell]):
        self._grammar, self.cells = grammar, cells
        self._next: dict[int, State | None] = {}
        self.is_accepting = any(cell.machine.is_complete(cell) for cell in cells)

    def step(self, byte: int) -> State | None:
        """The state after one more byte, None where the text has left the language."""
        if byte not in self._next:
            after = frozenset(cell for before in self.cells for cell in before.after(byte))
            if len(after) > MAX_CONFIGURATIONS:
                raise BudgetError(f"{len(after)} ways to read the text at once; make the alternatives overlap less")
            self._next[byte] = self._grammar.state(after) if after else None
        return self._next[byte]

    def read(self, text: bytes) -> State | None:
        """The state after some more bytes, None where the text has left the language."""
        state: State | None = self
        for byte in text:
            state = state.step(byte)
            if state is None:
                return None
        return state

    def describe(self) -> str:
        """The state in words: each configuration from its innermost frame outwards."""
        return "; or ".join(sorted({" < ".join(_frames(cell)) for cell in self.cells}))


def _frames(cell: Cell | None) -> list[str]:
    frames = []
    while cell is not None:
        frames.append(cell.machine.describe(cell))
        cell = cell.below
    return frames


class Grammar:
    """A language of byte strings; made by compile_json_schema, compile_regex or compile_grammar.

    Attributes:
        name: of what it was made.
        start: the state before the first byte.
        needs: with a token for each of these bytes a vocabulary can finish whatever can be finished.
        masks: by state and vocabulary, the oldest first; for modtools.masking.matcher.
        reaches: for modtools.masking.reach.
    """

    MAX_STATES = 100_000

    def __init__(self, name: str, start: Cell, needs: frozenset[int]):
        self.name, self.needs = name, needs
        self.masks: dict = {}
        self.reaches: dict = {}
        self._states: dict[frozenset[Cell], State] = {}
        self.start = self.state(frozenset([start]))

    def state(self, cells: frozenset[Cell]) -> State:
        """The state with these configurations."""
        state = self._states.get(cells)
        if state is None:
            if len(self._states) > self.MAX_STATES:
                self._states.clear()  # only sharing is lost
            state = self._states[cells] = State(self, cells)
        return state

    def accepts(self, text: bytes) -> bool:
        """Whether the text is a complete document of the language."""
        state = self.start.read(text)
        return state is not None and state.is_accepting

    def matcher(self, vocabulary: Vocabulary) -> Matcher:
        """A walk through this grammar in the tokens of a vocabulary."""
        from modtools.masking.matcher import Matcher

        return Matcher(self, vocabulary)


def check_options(whitespace: int, property_order: str) -> None:
    """Raises UsageError for options that compile_json_schema does not know."""
    if property_order not in ("any", "declared"):
        raise UsageError(f"property_order is {property_order!r}, expected 'any' or 'declared'")
    if not isinstance(whitespace, int) or whitespace < 0:
        raise UsageError(f"whitespace is {whitespace!r}, expected a number of characters from 0")


def compile_json_schema(schema: Any, whitespace: int = 64, property_order: str = "any") -> Grammar:
    """The documents that a JSON Schema (2020-12, or 7 where it says so) accepts, but for RESTRICTIONS.

    Args:
        schema: the schema as parsed JSON: an object or a boolean.
        whitespace: how many blanks may stand wherever JSON allows them; 0 for compact documents.
        property_order: "any", or "declared" for the order of `properties`.

    Raises:
        SchemaError: a keyword that cannot be honoured, with its place; or no document fits.
        BudgetError: more than 2 s or 50,000 states to compile.
        UsageError: a wrong argument.
    """
    check_options(whitespace, property_order)
    with budget():
        cells = Cells()
        compiler = Compiler(Document(schema), cells, whitespace, property_order == "declared")
        start = Root(cells, compiler.root(), whitespace).cell(read=False)
    return Grammar("a JSON Schema", start, JSON_BYTES | compiler.spelled)


def compile_regex(pattern: str) -> Grammar:
    """The texts that a regular expression matches from their first to their last character, in UTF-8.

    Raises:
        PatternError: broken, or a construct that is not regular.
        BudgetError: too many states.
        UsageError: the pattern matches nothing.
    """

    name, cells = f"the pattern {pattern!r}", Cells()
    with budget():
        dfa = pattern_dfa(pattern, whole=True)
    if dfa.is_empty:
        raise UsageError(f"{name} matches no text")
    text = Scalar(cells, plain_text(dfa), name)
    return Grammar(name, cells(text, 0, Root(cells, Value("text"), 0).cell(read=True)), needed_bytes(dfa))
