"""From a grammar in EBNF to a pushdown automaton: each rule becomes a network of places.

Refused, so that every prefix can be finished and every state can be computed: a rule that begins with itself, which
would put cells upon the stack without end, and a rule that no finite text fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from modtools.masking.budget import budget, spend
from modtools.masking.byte_automaton import literals, needed_bytes, plain_text
from modtools.masking.compiler import Compiler
from modtools.masking.dfa import CharacterDFA, any_text, without, words
from modtools.masking.document import Document as Schema
from modtools.masking.document import SchemaError
from modtools.masking.ebnf import GrammarError, parse_ebnf
from modtools.masking.grammar import JSON_BYTES, Grammar, check_options
from modtools.masking.machine import Cells, Machine, Root, Value
from modtools.masking.network import START, Document, Network, Terminal, finishing, left_recursion
from modtools.masking.pattern import PatternError
from modtools.masking.regex import pattern_dfa
from modtools.masking.thompson import Construction, Tree

END = 1


def compile_grammar(
    text: str, schemas: Mapping[str, Any] | None = None, whitespace: int = 64, property_order: str = "any"
) -> Grammar:
    r"""The texts of a context-free grammar, written in EBNF; the first rule is the whole text.

    | written | reads |
    |---|---|
    | `name = expression` | a rule; it ends where the next one begins, and may use any rule, itself included |
    | `"text"` | this text; escapes as in JSON; `""` is the empty text |
    | `/pattern/` | a text that the pattern matches from its first to its last character; `/` is written `\/` |
    | `until("text")` | any text, the empty one too, in which this text does not occur |
    | `json({...})`, `json(true)` | a JSON document of the schema; no blanks around it |
    | `json(name)` | the same, the schema taken from `schemas` |
    | `a b`, `a \| b`, `( )` | a, then b; a or b; a group |
    | `a?`, `a*`, `a+` | a at most once; any number of times; at least once |
    | `a{3}`, `a{3,}`, `a{3,5}` | a so many times |
    | `# ...` | a comment, to the end of the line |

    Prose and then a call: `reply = until("<tool_call>") "<tool_call>" json(call) "</tool_call>"`. The prose ends where
    the tag stands for the first time.

    Args:
        text: the grammar.
        schemas: JSON Schemas by the names that json(name) uses.
        whitespace, property_order: inside JSON, as in compile_json_schema.

    Raises:
        GrammarError: broken, with line and column; an unknown name, beside the known ones; a schema or a pattern that
            cannot be honoured; a rule that begins with itself (write a repetition), or that no finite text fits.
        BudgetError: more than 2 s or 50,000 states to compile.
        UsageError: a wrong argument.
    """
    check_options(whitespace, property_order)
    rules = parse_ebnf(text)
    with budget():
        builder = _Builder(text, list(rules), schemas or {}, whitespace, property_order == "declared")
        for name, (_, tree) in rules.items():
            builder.add_rule(name, tree)
        networks = list(builder.networks.values())
        _refuse_endless(text, rules, networks)
    bottom = Root(builder.cells, Value("text"), 0).cell(read=True)
    start = networks[0].start(bottom)
    return Grammar("a grammar", start, frozenset(builder.needs))


class _Builder(Construction):
    """Turns trees into edges; edges that read nothing are closed over when a rule is complete."""

    def __init__(self, text: str, names: list[str], schemas: Mapping[str, Any], blanks: int, ordered: bool):
        self.text, self.schemas, self.blanks, self.ordered = text, schemas, blanks, ordered
        self.cells, self.needs = Cells(), set()
        self.networks = {name: Network(self.cells, name) for name in names}
        self.edges: list[list[tuple[Machine | None, int]]] = []
        self._leaves: dict[int, tuple[Machine | None, bool]] = {}

    def refuse(self, at: int, reason: object) -> NoReturn:
        raise GrammarError(self.text, at, str(reason))

    def add_rule(self, name: str, tree: Tree) -> None:
        """Fills the network of a rule."""
        self.edges = [[], []]
        self.skip(self.add(tree, START), END)
        network = self.networks[name]
        for place in range(len(self.edges)):
            reached = self._without_reading(place)
            network.edges.append(tuple(edge for at in reached for edge in self.edges[at] if edge[0] is not None))
            spend(len(network.edges[-1]), f"the rule {name}")
            network.ends.append(END in reached)

    def place(self) -> int:
        spend(1, "the places of a grammar")
        self.edges.append([])
        return len(self.edges) - 1

    def skip(self, source: int, target: int) -> None:
        self.edges[source].append((None, target))

    def _without_reading(self, place: int) -> dict[int, None]:
        reached, queue = {}, [place]
        while queue:
            at = queue.pop()
            if at not in reached:
                reached[at] = None
                queue += [after for part, after in self.edges[at] if part is None]
        return reached

    def leaf(self, tree: Tree, source: int, target: int) -> None:
        if tree[1] not in self._leaves:
            self._leaves[tree[1]] = self.part(*tree)
        part, may_be_empty = self._leaves[tree[1]]
        if part is not None:
            self.edges[source].append((part, target))
        if may_be_empty:
            self.skip(source, target)

    def part(self, kind: str, at: int, what: Any) -> tuple[Machine | None, bool]:
        """The machine of a leaf, and whether the empty text will do, which no machine reads."""
        if kind == "rule":
            if what not in self.networks:
                self.refuse(at, f"there is no rule {what}; the rules are: {', '.join(self.networks)}")
            return self.networks[what], False
        if kind == "text":
            self.needs.update(what.encode())
            return Terminal(self.cells, literals({what.encode(): True}), repr(what)) if what else None, not what
        if kind in ("pattern", "until"):
            dfa = self.dfa(kind, at, what)
            self.needs |= needed_bytes(dfa)
            return self.read_by(dfa, f"the pattern /{what}/" if kind == "pattern" else "prose")
        if kind == "schema":
            if what not in self.schemas:
                known = ", ".join(self.schemas) or "none"
                self.refuse(at, f"there is no schema {what}; the schemas given are: {known}")
            what = self.schemas[what]
        compiler = Compiler(Schema(what), self.cells, self.blanks, self.ordered)
        try:
            document = Document(self.cells, compiler.root())
        except SchemaError as error:
            self.refuse(at, error)
        self.needs |= JSON_BYTES | compiler.spelled
        return document, False

    def dfa(self, kind: str, at: int, what: str) -> CharacterDFA:
        if kind == "until":
            return _prose(what) if what else self.refuse(at, 'every text holds the empty one; expected until("text")')
        try:
            dfa = pattern_dfa(what, whole=True)
        except PatternError as error:
            self.refuse(at, error)
        return self.refuse(at, f"the pattern /{what}/ matches no text") if dfa.is_empty else dfa

    def read_by(self, dfa: CharacterDFA, name: str) -> tuple[Machine | None, bool]:
        texts = _but_empty(dfa)
        return None if texts.is_empty else Terminal(self.cells, plain_text(texts), name), dfa.labels[0] is not None


# Kept, so that grammars share their automata and a vocabulary is split for those once.
@lru_cache(maxsize=256)
def _prose(mark: str) -> CharacterDFA:
    return without(any_text(), pattern_dfa(re.escape(mark)), f"prose without {mark!r}")


@lru_cache(maxsize=256)
def _but_empty(dfa: CharacterDFA) -> CharacterDFA:
    return without(dfa, words([""]), "a pattern")


def _refuse_endless(text: str, rules: Mapping[str, tuple[int, Tree]], networks: Sequence[Network]) -> None:
    """Refuses rules that would be read without end."""
    chain = [network.name for network in left_recursion(networks)]
    if chain:
        what = f"the rule {chain[0]} begins with itself: {' -> '.join([*chain, chain[0]])}"
        raise GrammarError(text, rules[chain[0]][0], f"{what}; write a repetition: x (y x)* rather than a = a y x | x")
    finite = finishing(networks, reading=True)
    endless = [network.name for network in networks if network not in finite]
    if endless:
        what = f"no finite text fits {'the rule' if len(endless) == 1 else 'the rules'} {', '.join(endless)}"
        raise GrammarError(text, rules[endless[0]][0], f"{what}; add an alternative that ends")
