"""Family fix_bug: a formula has one wrong operator; its docstring is right, and one failing value is told.

The two constants of the formula stand in the file only, and right and wrong operator always have "times" on
one side. So the error is neither a constant offset nor a constant factor: one failing value does not
determine the formula, and a wrapper around the wrong function cannot repair it.

The least number of calls:
- 2: the file is told. The formula must be learnt by one call, then changed by one.
- 3: first the file must be found. No single search shows where the function is together with its formula
  or with the values its test expects (checked when the task is built, see modtools.lab.minimality).
- 5: two such functions in two files, whose names share an ending. One search finds both; no single search
  shows both formulas, so each takes a call to learn and a call to change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial, perm, prod
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference, Secret, listed
from modtools.lab.packages import Package
from modtools.lab.vocabulary import PARAMETERS, QUALIFIERS, THINGS, arrangements, cast, make_package

ENDS = ("RATE", "FEE", "COST")

SIGNS = {"times": "*", "plus": "+", "minus": "-"}
FAILURES = ("{name}({value}) should be {right} but is {wrong}", "{name}({value}) gives {wrong} instead of {right}")
PROBES = ("(0)", "(2)", "(7)", "(31)")
TOLD = (2, 7, 31)

FLAWED = (
    "{name}",
    'def {name}({parameter}):\n    """Work out one {thing}.\n\n    {spoken}\n    """\n    {body}',
    PROBES,
)
BODIES = ("return {code}", "result = {code}\n    return result")
NEAR = (
    "{name}s",
    'def {name}s({parameter}):\n    """Return {parameter} less {constant}."""\n    return {parameter} - {constant}',
    PROBES,
)


@dataclass(frozen=True)
class Formula:
    """Two operations, from left to right: Formula("bags", "times", "LATE_RATE", "plus", "LATE_FEE")."""

    parameter: str
    operation: str
    constant: str
    other_operation: str
    other_constant: str

    def spoken(self) -> str:
        """As a docstring says it."""
        return f"{self.parameter} {self.operation} {self.constant} then {self.other_operation} {self.other_constant}"

    def code(self) -> str:
        """As Python, in brackets where precedence needs them."""
        left = f"{self.parameter} {SIGNS[self.operation]} {self.constant}"
        if self.other_operation == "times":
            return f"({left}) * {self.other_constant}"
        return f"{left} {SIGNS[self.other_operation]} {self.other_constant}"


def build(rng: Random, c: int) -> Draft:
    """One or two functions with a flawed formula, each beside one of a similar name."""
    count = 2 if c == 5 else 1
    package = make_package(rng, size=9 if c > 2 else 7)
    thing = rng.choice(THINGS)
    homes = rng.sample(list(package.modules), count)
    words, prefixes = rng.sample(QUALIFIERS, count), rng.sample(QUALIFIERS, count)
    names = [f"{word}_{thing}" for word in words]
    at, bodies = rng.randint(0, 2), rng.sample(BODIES, count)
    rights, wrongs, flaws = [], [], []
    for home, name, prefix, parameter in zip(homes, names, prefixes, rng.sample(PARAMETERS, count), strict=True):
        constants = {f"{prefix.upper()}_{end}": rng.randint(3, 30) for end in rng.sample(ENDS, 2)}
        first, second = constants
        operations = [rng.choice(("plus", "minus")), "times"]
        rng.shuffle(operations)
        rights.append(Formula(parameter, operations[0], first, operations[1], second))
        place = rng.choice((0, 1))
        flaws.append(2 * (2 if operations[place] == "times" else 1))  # places, and signs where "times" went
        operations[place] = rng.choice(("plus", "minus")) if operations[place] == "times" else "times"
        wrongs.append(Formula(parameter, operations[0], first, operations[1], second))
        near = cast(NEAR, name=name, parameter=parameter, constant=second)
        package = package.plus(home, near, constants=constants, at=at)

    def state(formulas: list[Formula]) -> Package:
        """The package where the functions compute these formulas."""
        made = package
        for home, name, formula, right, body in zip(homes, names, formulas, rights, bodies, strict=True):
            says = {"thing": thing, "spoken": right.spoken(), "body": body.format(code=formula.code())}
            made = made.plus(home, cast(FLAWED, name=name, parameter=right.parameter, **says), at=at)
        return made

    before, after = state(wrongs), state(rights)
    value, was, becomes = rng.choice(TOLD), before.load(), after.load()
    failures = []
    for home, name in zip(homes, names, strict=True):
        wrong, right = (getattr(loaded[home], name)(value) for loaded in (was, becomes))
        failures.append(rng.choice(FAILURES).format(name=name, value=value, wrong=wrong, right=right))
    brief: dict[str, Any] = {"functions": names}
    told = perm(len(PARAMETERS), count) * perm(len(QUALIFIERS), count) * perm(len(ENDS), 2) ** count
    one_in = arrangements(count) * told * perm(len(BODIES), count) * prod(4 * each for each in flaws) / factorial(count)
    if c > 2:
        one_in *= len(THINGS) * (len(QUALIFIERS) if c == 3 else 1)  # the search tells a name, or its ending
    if c == 2:
        brief["path"] = before.path(homes[0])
        wordings = (
            "A test of {path} fails: {failures}. Find the mistake in the formula and fix it.",
            "In {path} {failures}. Repair the function.",
        )
        text = rng.choice(wordings).format(**brief, failures=listed(failures))
        return Draft(before, after, text, brief, one_in=one_in)
    brief["pattern"] = f"{names[0]}(" if c == 3 else f"_{thing}("
    wordings = (
        "The tests do not pass: {failures}. Find the mistake and fix it.",
        "Wrong results: {failures}. Find the code and repair the formula.",
    )
    text = rng.choice(wordings).format(**brief, failures=listed(failures))
    places = [Secret(home, rf"\b(test_)?{name}\b", name) for home, name in zip(homes, names, strict=True)]
    formulas = [
        [Secret(home, f"{re.escape(wrong.code())}|{right.spoken()}", name)]
        for home, name, wrong, right in zip(homes, names, wrongs, rights, strict=True)
    ]
    return Draft(before, after, text, brief, u=count, secrets=[places, *formulas], one_in=one_in)


def repair(name: str, text: str) -> tuple[str, str] | None:
    """The flawed line of a function, from a file's text, and the line that says what the docstring says."""
    source = re.search(rf"^def {name}\(.*\n(?:(?: .*)?\n)*", text, re.MULTILINE)
    spoken = source and re.search(r"^    (\w+) (\w+) (\w+) then (\w+) (\w+)$", source[0], re.MULTILINE)
    line = source and re.search(r"^(    return |    result = )(.* .* .*)$", source[0], re.MULTILINE)
    return (line[0], line[1] + Formula(*spoken.groups()).code()) if spoken and line else None


def operations(brief: Mapping[str, Any]) -> Reference:
    """Find the functions, read each file, and make the formula say what the docstring says."""
    places = yield from family.locate(brief, brief["functions"])
    for name, path in places.items():
        edit = repair(name, (yield family.read(path)))
        if edit:
            yield family.replace(path, *edit)


def programs(brief: Mapping[str, Any]) -> Reference:
    """Look at the functions' files, then replace the flawed lines."""
    files = yield from family.look(brief, brief["functions"])
    found = [(path, repair(name, text)) for path, text in files.items() for name in brief["functions"]]
    edits = [(path, *edit) for path, edit in found if edit]
    if edits:
        yield family.run_python(family.substitute(*edits))


FAMILY = Family("fix_bug", (2, 3, 5), build, operations, programs)
