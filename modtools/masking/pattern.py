"""Reads regular expressions as JSON Schema means them: ECMA-262 over Unicode, as far as they are regular.

A pattern becomes a tree of tuples: ("set", ranges), ("cat", trees), ("alt", trees), ("rep", tree, least, most),
("start",) for ^ and ("end",) for $. `most` is None where a repetition has no end.
"""

from __future__ import annotations

import re
from typing import NoReturn

from modtools.errors import UnsupportedError
from modtools.masking import charset
from modtools.masking.thompson import Tree

MAX_REPEAT = 10_000
ESCAPED_SETS = {
    "d": charset.DIGIT,
    "D": charset.complement(charset.DIGIT),
    "w": charset.WORD,
    "W": charset.complement(charset.WORD),
    "s": charset.SPACE,
    "S": charset.complement(charset.SPACE),
}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_PAIRED = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")
SYNTAX = "^$\\.*+?()[]{}|/-"


class PatternError(UnsupportedError):
    """A regular expression that is broken, or not regular; the message names the construct and its place."""


def parse_pattern(text: str) -> Tree:
    """The tree of a pattern.

    Raises:
        PatternError: broken, or a construct without a finite automaton here.
    """
    return _Reader(text).whole()


class _Reader:
    """One pass over the pattern from left to right; a method a rule of the syntax."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.names: set[str] = set()

    def refuse(self, what: str) -> NoReturn:
        raise PatternError(f"pattern {self.text!r}: {what} at character {self.at}; write it as a regular pattern")

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, wanted: str) -> bool:
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) * found
        return found

    def whole(self) -> Tree:
        tree = self.alternatives()
        if self.at < len(self.text):
            self.refuse("unmatched )")
        return tree

    def alternatives(self) -> Tree:
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else ("alt", tuple(options))

    def sequence(self) -> Tree:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        return ("cat", tuple(parts))

    def repeated(self) -> Tree:
        tree = self.atom()
        bounds = self.bounds()
        if bounds is None:
            return tree
        if tree[0] in ("start", "end"):
            self.refuse("a repeated anchor")
        self.take("?")  # lazy or greedy: the same language
        if self.bounds() is not None:
            self.refuse("a repeated repetition")
        return ("rep", tree, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self.take(sign):
                return bounds
        end = self.text.find("}", self.at)
        if self.peek() != "{" or end < 0:
            return None
        least, comma, most = self.text[self.at + 1 : end].partition(",")
        if not (least.isascii() and least.isdigit() and (most == "" or (most.isascii() and most.isdigit()))):
            return None  # a brace that starts no repetition stands for itself
        bounds = (int(least), int(most) if most else (None if comma else int(least)))
        if max(bounds[0], bounds[1] or 0) > MAX_REPEAT:
            self.refuse(f"a repetition beyond {MAX_REPEAT}")
        if bounds[1] is not None and bounds[1] < bounds[0]:
            self.refuse("a repetition whose bounds are out of order")
        self.at = end + 1
        return bounds

    def atom(self) -> Tree:
        if self.take("("):
            return self.group()
        if self.take("["):
            return ("set", self.bracket())
        if self.take("."):
            return ("set", charset.NOT_LINE_END)
        if self.take("^"):
            return ("start",)
        if self.take("$"):
            return ("end",)
        if self.peek() == "\\":
            return ("set", self.escape(inside=False))
        if self.peek() in ("*", "+", "?"):
            self.refuse("nothing to repeat")
        return ("set", self.literal())

    def group(self) -> Tree:
        if self.take("?"):
            if self.take("<") and self.peek() not in ("=", "!"):
                name, end, _ = self.text[self.at :].partition(">")
                if not end or not name.isidentifier() or name in self.names:
                    self.refuse(f"the group name {name[:20]!r}, broken or used before,")
                self.names.add(name)
                self.at += len(name) + 1
            elif not self.take(":"):
                self.refuse(f"the look-around or flag (?{self.peek(2)}")
        tree = self.alternatives()
        if not self.take(")"):
            self.refuse("a group without end")
        return tree

    def bracket(self) -> charset.Ranges:
        negated, ranges = self.take("^"), []
        while not self.take("]"):
            if not self.peek():
                self.refuse("a character class without end")
            first = self.member()
            if self.peek() == "-" and self.peek(2) not in ("-", "-]"):
                start = self.at
                self.at += 1
                last = self.member()
                if len(first) == len(last) == 1 and first[0][0] == first[0][1] and last[0][0] == last[0][1]:
                    if last[0][0] < first[0][0]:
                        self.refuse("a range out of order")
                    ranges.append((first[0][0], last[0][0]))
                    continue
                self.at = start + 1  # [\w-.]: the dash stands for itself
                last = charset.characters("-")
                ranges += [*first, *last]
                continue
            ranges += first
        found = charset.union(ranges)
        return charset.complement(found) if negated else found

    def member(self) -> charset.Ranges:
        return self.escape(inside=True) if self.peek() == "\\" else self.literal()

    def literal(self) -> charset.Ranges:
        character = self.peek()
        self.at += 1
        if 0xD800 <= ord(character) <= 0xDFFF:
            self.refuse("a lone surrogate")
        return charset.characters(character)

    def escape(self, inside: bool) -> charset.Ranges:
        self.at += 1
        letter = self.peek()
        self.at += 1
        if letter in ESCAPED_SETS and letter:
            return ESCAPED_SETS[letter]
        if letter in CONTROLS and not (letter == "0" and self.peek().isdigit()):
            return charset.characters(CONTROLS[letter])
        if letter == "b" and inside:
            return charset.characters("\b")
        if letter in ("x", "u"):
            return self.code_point(letter)
        if letter in ("p", "P") and self.take("{"):
            return self.category(negated=letter == "P")
        if letter == "c" and self.peek().isascii() and self.peek().isalpha():
            self.at += 1
            return charset.characters(chr(ord(self.text[self.at - 1]) % 32))
        if letter in SYNTAX and letter or (letter and not (letter.isascii() and letter.isalnum())):
            return charset.characters(letter)
        self.at -= 2
        self.refuse({"b": "the word boundary \\b", "B": "the word boundary \\B"}.get(letter, f"the escape \\{letter}"))

    def code_point(self, letter: str) -> charset.Ranges:
        if letter == "u" and self.take("{"):
            digits, _, _ = self.text[self.at :].partition("}")
            self.at += 1
        else:
            digits = self.peek(2 if letter == "x" else 4)
        self.at += len(digits)
        value = int(digits, 16) if digits and all(c in "0123456789abcdefABCDEF" for c in digits) else -1
        low = int(self.text[self.at + 2 : self.at + 6], 16) if _PAIRED.match(self.text, self.at) else 0
        if 0xD800 <= value <= 0xDBFF and low:
            self.at += 6
            value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
        if not charset.intersection(charset.ANY, ((value, value),)):
            self.refuse(f"the code point \\{letter}{digits}")
        return ((value, value),)

    def category(self, negated: bool) -> charset.Ranges:
        name, _, _ = self.text[self.at :].partition("}")
        ranges = charset.category(name.removeprefix("General_Category=").removeprefix("gc=")) if name else ()
        if not ranges:
            self.refuse(f"the property \\p{{{name}}}, which is no general category")
        self.at += len(name) + 1
        return charset.complement(ranges) if negated else ranges
