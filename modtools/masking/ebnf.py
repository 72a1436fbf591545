"""Reads a grammar in EBNF: rules whose leaves are texts, patterns, prose and JSON.

An expression becomes a tree of tuples. Leaves know where they stand, as a character of the text:
("text", at, text), ("pattern", at, pattern), ("until", at, text), ("json", at, schema), ("schema", at, name) and
("rule", at, name). Around them are ("cat", trees), ("alt", trees) and ("rep", tree, least, most), where `most` is
None for no end.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from modtools.errors import UsageError
from modtools.masking.thompson import Tree

MAX_DEPTH = 50  # of parentheses
MAX_REPEAT = 1_000
_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_RULE = re.compile(_NAME.pattern + _BLANK.pattern + "=", re.ASCII)
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PATTERN = re.compile(r"/((?:[^/\\\n]|\\.)+)/")
_BOUNDS = re.compile(r"\{\s*(\d+)\s*(,?)\s*(\d*)\s*\}", re.ASCII)
_SIGNS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class GrammarError(UsageError):
    """A grammar that cannot be read or compiled.

    Attributes:
        line, column: where, counted from 1.
    """

    def __init__(self, text: str, at: int, reason: str):
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"grammar, line {self.line}, column {self.column}: {reason}")


def parse_ebnf(text: str) -> dict[str, tuple[int, Tree]]:
    """The rules by their names, in their order: where the rule stands, and its tree.

    Raises:
        GrammarError: the text is no grammar; names that are used are not looked up.
    """
    return _Reader(text).rules()


class _Reader:
    """One pass from left to right; a method a rule of the syntax. Blanks and comments are behind `at` at all times."""

    def __init__(self, text: str):
        self.text, self.at, self.depth = text, 0, 0
        self.match(_BLANK)

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        raise GrammarError(self.text, self.at if at is None else at, reason)

    def match(self, pattern: re.Pattern) -> re.Match | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = _BLANK.match(self.text, found.end()).end()
        return found

    def take(self, wanted: str) -> bool:
        return self.match(re.compile(re.escape(wanted))) is not None

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            self.refuse(f"expected {wanted!r}, got {self.shown()}")

    def shown(self) -> str:
        return repr(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end of the grammar"

    def rules(self) -> dict[str, tuple[int, Tree]]:
        rules: dict[str, tuple[int, Tree]] = {}
        while self.at < len(self.text) or not rules:
            start = self.at
            name = self.match(_NAME)
            if name is None or not self.take("="):
                self.refuse(f"expected a rule, written name = expression, got {self.shown()}")
            if name[0] in rules:
                self.refuse(f"the rule {name[0]} is defined twice; write its alternatives in one rule, with |", start)
            rules[name[0]] = (start, self.alternatives())
        return rules

    def alternatives(self) -> Tree:
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else ("alt", options)

    def sequence(self) -> Tree:
        parts = []
        while not self.is_over():
            parts.append(self.repeated())
        if not parts:
            self.refuse(f'expected an expression, got {self.shown()}; the empty text is written ""')
        return ("cat", parts)

    def is_over(self) -> bool:
        following = self.text[self.at : self.at + 1]
        return following in ("", "|", ")") or _RULE.match(self.text, self.at) is not None

    def repeated(self) -> Tree:
        tree = self.atom()
        while (bounds := self.bounds()) is not None:
            tree = ("rep", tree, *bounds)
        return tree

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in _SIGNS.items():
            if self.take(sign):
                return bounds
        at, found = self.at, self.match(_BOUNDS)
        if found is None:
            return None
        least = int(found[1])
        most = int(found[3]) if found[3] else (None if found[2] else least)
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            self.refuse(f"the repetition {found[0]}: expected {{least,most}} in order, at most {MAX_REPEAT}", at)
        return least, most

    def atom(self) -> Tree:
        at = self.at
        if self.text.startswith('"', at):
            return ("text", at, self.literal())
        if self.text.startswith("/", at):
            pattern = self.match(_PATTERN) or self.refuse("a pattern without end; write / inside it as \\/")
            return ("pattern", at, pattern[1])
        if self.take("("):
            return self.group(at)
        name = self.match(_NAME)
        if name is None:
            self.refuse(f'expected "text", /pattern/, a name or ( ), got {self.shown()}')
        if not self.text.startswith("(", self.at) or name[0] not in ("json", "until"):
            return ("rule", at, name[0])
        self.expect("(")
        inside = self.schema() if name[0] == "json" else ("until", at, self.literal())
        self.expect(")")
        return inside

    def group(self, at: int) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"parentheses nested deeper than {MAX_DEPTH}; give inner parts rules of their own", at)
        tree = self.alternatives()
        self.expect(")")
        self.depth -= 1
        return tree

    def literal(self) -> str:
        at, found = self.at, self.match(_TEXT)
        if found is None:
            self.refuse(f'expected a text between " on one line, got {self.shown()}')
        try:
            text = json.loads(found[0])
            text.encode()
        except ValueError as error:
            self.refuse(f"the text {found[0]} is no JSON string of whole characters: {error}", at)
        return text

    def schema(self) -> Tree:
        at = self.at
        if not self.text.startswith("{", at):
            name = self.match(_NAME) or self.refuse(f"expected a JSON Schema or its name, got {self.shown()}")
            return ("json", at, name[0] == "true") if name[0] in ("true", "false") else ("schema", at, name[0])
        try:
            schema, end = json.JSONDecoder().raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            self.refuse(f"the schema is no JSON: {error.msg}", error.pos)
        self.at = _BLANK.match(self.text, end).end()
        return ("json", at, schema)
