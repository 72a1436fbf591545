"""What the family count_and_record has a model count, and the look-alikes that must not be counted.

Three kinds: functions whose names start with a verb, constants whose names end with a setting, and functions
that use one constant. A test counts by itself, from the modules' names, and tells no number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from random import Random

from modtools.lab.families.family import Secret
from modtools.lab.packages import Package
from modtools.lab.vocabulary import NUMBERS, PARAMETERS, QUALIFIERS, SETTINGS, THINGS, VERBS, cast

PLANTED = range(3, 6)  # modules in which there is something to count
FUNCTIONS, CONSTANTS, USES = "functions whose names start with", "constants whose names end with", "functions that use"

# By kind: the text that a search looks for, and what the line of a counted thing matches.
NEEDLES = {FUNCTIONS: "def {what}", CONSTANTS: "{what} = ", USES: ".{what}"}
LINES = {FUNCTIONS: r"^def {what}", CONSTANTS: r"^\w+{what} = ", USES: r"\.{what}\b"}

# By kind: an expression over the modules of a test; its length is the count.
FOUND = {
    FUNCTIONS: '[name for each in modules for name in vars(each) if name.startswith("{what}")]',
    CONSTANTS: '[name for each in modules for name in vars(each) if name.endswith("{what}")]',
    USES: "[value for each in modules for value in vars(each).values()\n"
    '             if "{what}" in getattr(getattr(value, "__code__", None), "co_names", ())]',
}

MOULDS = {
    FUNCTIONS: (
        "{what}{thing}",
        'def {what}{thing}({value}):\n    """Return {value} and what a {thing} adds."""\n    return {value} + {extra}',
        ("(1)", "(20)"),
    ),
    CONSTANTS: (
        "{word}_excess",
        "def {word}_excess({value}):\n"
        '    """Return how far {value} exceeds the setting."""\n'
        "    return {value} - {constant}",
        ("(1)", "(20)"),
    ),
    USES: (
        "{word}_charge",
        "def {word}_charge({value}):\n"
        '    """Return {value} as many times as {constant} says."""\n'
        "    return {value} * {module}.{constant}",
        ("(1)", "(20)"),
    ),
}
RECORD = (
    "{Verb}{Thing}",
    "class {Verb}{Thing}:\n"
    '    """A start of {extra}, and ways to work with it."""\n'
    "\n"
    "    def {what}{thing}(self, amount):\n"
    "        return amount + {extra}",
    ("().{what}{thing}(1)", "().{what}{thing}(20)"),
)


@dataclass(frozen=True)
class Count:
    """Something to count.

    Attributes:
        kind: FUNCTIONS, CONSTANTS or USES.
        what: the start or end of a name, or a name.
        secret: a counted thing that a search must show to show all.
    """

    kind: str
    what: str
    secret: Secret

    @property
    def spoken(self) -> str:
        """As a task's text says it."""
        return f"{self.kind} {self.what}"

    def found(self) -> str:
        """The expression of a test."""
        return FOUND[self.kind].format(what=self.what)


@dataclass
class Words:
    """Draws words without drawing one twice."""

    rng: Random
    used: set[str] = field(default_factory=set)

    def draw(self, words: Sequence[str]) -> str:
        """One of the words that is not used yet."""
        word = self.rng.choice([each for each in words if each not in self.used])
        self.used.add(word)
        return word


def one_in(kinds: Sequence[str], numbers: Sequence[int], offered: Sequence[str]) -> float:
    """1 / the probability that these kinds, drawn in order from those offered, have these names and numbers."""
    odds, left, functions, settings = 1.0, list(offered), 0, 0
    for kind, number in zip(kinds, numbers, strict=True):
        odds *= len(left) / left.count(kind)
        left.remove(kind)
        if kind == FUNCTIONS:
            odds *= len(VERBS) - functions
            functions += 1
        else:
            odds *= (len(SETTINGS) - settings) * (len(QUALIFIERS) if kind == USES else 1)
            settings += 1
        odds /= _chance(kind, number)
    return odds


def _chance(kind: str, number: int) -> float:
    """The probability of a number: one or two things in each planted module, or one constant."""
    if kind == CONSTANTS:
        return 1 / len(PLANTED)
    return sum(comb(modules, number - modules) / 2**modules for modules in PLANTED if number >= modules) / len(PLANTED)


def needle(count: Mapping[str, str]) -> str:
    """What to search for."""
    return NEEDLES[count["kind"]].format(what=count["what"])


def line(count: Mapping[str, str]) -> str:
    """What the lines of counted things match."""
    return LINES[count["kind"]].format(what=re.escape(count["what"]))


def plant(package: Package, words: Words, kind: str, taken: Sequence[str]) -> tuple[Package, Count]:
    """The package with things to count in three to five modules, and look-alikes in two.

    The count's secret lies in none of the modules `taken`, two at most, and as late in the order of paths as can
    be, for a search that is cut off shows what comes first.
    """
    rng = words.rng
    home, *others = package.modules
    if kind == FUNCTIONS:
        what = words.draw(VERBS) + "_"
    elif kind == CONSTANTS:
        what = "_" + words.draw(SETTINGS)
    else:
        what = f"{words.draw(QUALIFIERS).upper()}_{words.draw(SETTINGS)}"
        package = package.plus(home, constants={what: rng.choice(NUMBERS), f"{what}_OLD": rng.choice(NUMBERS)})
    things = rng.sample(THINGS, 12)
    planted = []
    modules = rng.sample(others, rng.choice(PLANTED))
    for module in modules:
        for _ in range(1 if kind == CONSTANTS else rng.randint(1, 2)):
            word = words.draw(QUALIFIERS) if kind != FUNCTIONS else ""
            constant = word.upper() + what if kind == CONSTANTS else what
            function = cast(MOULDS[kind], what=what, thing=things.pop(), word=word, constant=constant, module=home,
                            value=rng.choice(PARAMETERS), extra=rng.choice(NUMBERS))  # fmt: skip
            planted.append((module, function.name, constant))
            package = package.plus(
                module,
                function,
                constants={constant: rng.choice(NUMBERS)} if kind == CONSTANTS else {},
                imports=(home,) if kind == USES else (),
                at=rng.randint(0, 2),
            )
    for module in rng.sample(others, 2):
        package = _look_alike(package, words, kind, what, module, things.pop())
    last, name, constant = max(each for each in planted if each[0] not in taken)
    told_by = rf"\b(test_)?{name}\b" if kind == FUNCTIONS else rf"{constant}\b"
    return package, Count(kind, what, Secret(last, told_by, name))


def _look_alike(package: Package, words: Words, kind: str, what: str, module: str, thing: str) -> Package:
    """A method of a name that counts for functions, or a constant of a name that is nearly right."""
    rng = words.rng
    extra = rng.choice(NUMBERS)
    if kind == FUNCTIONS:
        names = {"Verb": what.strip("_").capitalize(), "Thing": thing.capitalize()}
        return package.plus(module, cast(RECORD, what=what, thing=thing, extra=extra, **names), at=rng.randint(0, 2))
    word, home = words.draw(QUALIFIERS), next(iter(package.modules))
    constant = f"{word.upper()}{what}_OLD" if kind == CONSTANTS else f"{what}_OLD"
    mould = MOULDS[kind]
    function = cast(mould, what=what, word=word, constant=constant, module=home, value=rng.choice(PARAMETERS))
    if kind == CONSTANTS:
        return package.plus(module, function, constants={constant: extra})
    return package.plus(module, function, imports=(home,))
