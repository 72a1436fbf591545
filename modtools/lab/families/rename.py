"""Family rename: a function gets a new name where it is defined and wherever it is called.

The old name must be gone, so every file that defines or calls it must change, each at one place.

The least number of calls:
- 1: the file is told and nothing calls the function.
- 2: nothing calls it, but its file must be found.
- 3, 5, 8: it is called in 1, 3, 6 other files. A call changes one file, so there is one call a file, and
  one before them because the text does not say which. One search shows the definition and all calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import factorial, perm
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference
from modtools.lab.packages import Package
from modtools.lab.unit_tests import Check
from modtools.lab.vocabulary import QUALIFIERS, THINGS, VERBS, arrangements, cast, make_package

WORK = (
    (
        "{name}",
        'def {name}(units):\n    """Return what one round of units comes to."""\n    return units * {factor} + {extra}',
        ("(0)", "(7)", "(3000)"),
    ),
    (
        "{name}",
        "def {name}(units):\n"
        '    """Return units, held between {extra} and {factor}00."""\n'
        "    return max({extra}, min(units, {factor}00))",
        ("(0)", "(70)", "(3000)"),
    ),
)

CALLER = (
    "{word}_{noun}",
    "def {word}_{noun}(units):\n"
    '    """Return the {word} part of units."""\n'
    "    return {module}.{function}(units) + {extra}",
    ("(4)", "(25)"),
)


def build(rng: Random, c: int) -> Draft:
    """A function in the first module, callers in later ones, functions of similar names beside them."""
    callers = max(0, c - 2)
    package = make_package(rng, size=max(7, callers + 3))
    home, *others = package.modules
    (verb, new_verb), thing = rng.sample(VERBS, 2), rng.choice(THINGS)
    old, new = f"{verb}_{thing}", f"{new_verb}_{thing}"
    modules, words = rng.sample(others, callers), rng.sample(QUALIFIERS, callers)
    mould, at, *extras = rng.choice(WORK), rng.randint(0, 2), *rng.sample(range(2, 60), callers + 1)
    factor = rng.randint(2, 9)

    plural, lines = (cast(rng.choice(WORK), name=old + end, factor=factor, extra=extras[0]) for end in ("s", "_lines"))
    near = cast(CALLER, word="each", noun=thing, module=home, function=f"{old}s", extra=extras[0])
    package = package.plus(home, plural).plus(rng.choice(others), lines).plus(rng.choice(others), near, imports=(home,))

    def state(name: str) -> Package:
        """The package where the function has this name."""
        made = package.plus(home, cast(mould, name=name, factor=factor, extra=extras[0]), at=at)
        for module, word, extra in zip(modules, words, extras[1:], strict=True):
            caller = cast(CALLER, word=word, noun=thing, module=home, function=name, extra=extra)
            made = made.plus(module, caller, imports=(home,), at=at)
        return made

    brief = {"old": old, "new": new}
    if c == 1:
        brief["path"] = package.path(home)
        wordings = (
            "In {path} rename the function {old} to {new}. Nothing calls it yet.",
            "The function {old} in {path} should be called {new}; no other code uses it.",
        )
    else:
        wordings = (
            "Rename the function {old} to {new} everywhere.",
            "The function {old} is to be called {new}, where it is defined and wherever it is called.",
            "Give {old} the name {new} in the whole package; the old name must be gone.",
        )
    text = rng.choice(wordings).format(**brief)
    names = perm(len(VERBS), 2) * len(THINGS)
    one_in = arrangements(1 + callers) * names / factorial(callers)
    return Draft(state(old), state(new), text, brief, checks=(Check(home, f"{old}_is_gone", old),), one_in=one_in)


def operations(brief: Mapping[str, Any]) -> Reference:
    """Search the name with its bracket, then replace it once in each file."""
    old, new = f"{brief['old']}(", f"{brief['new']}("
    if "path" in brief:
        yield family.replace(brief["path"], f"def {old}", f"def {new}")
        return
    for path, line in family.hits((yield family.search(old)), rf"(\w+[. ])\b{re.escape(old)}"):
        yield family.replace(path, line[0], line[1] + new)


def programs(brief: Mapping[str, Any]) -> Reference:
    """One program: the definition in the named file, or the whole word in all files."""
    old, new = brief["old"], brief["new"]
    if "path" in brief:
        yield family.run_python(family.substitute((brief["path"], f"def {old}(", f"def {new}(")))
    else:
        yield family.run_python(family.sweep(rf'new = re.sub(r"\b{old}\b", "{new}", text)'))


FAMILY = Family("rename", (1, 2, 3, 5, 8), build, operations, programs)
