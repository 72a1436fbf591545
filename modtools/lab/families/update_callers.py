"""Family update_callers: a function's signature changes, and so does every call of it.

Two kinds of change. *Required*: a parameter loses its default, and each call now passes it by keyword, one
value for all calls or each its own. *Keyword*: a parameter becomes keyword-only. The tests refuse the old
way of calling, so neither a kept default nor a tolerant signature spares the callers.

The least number of calls (3, 5, 8): the definition and its 1, 3, 6 callers lie in files of their own. A call
changes one file, so there is one call a file, and one before them because the text does not say which.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial, perm
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference, listed
from modtools.lab.packages import Package
from modtools.lab.unit_tests import Check
from modtools.lab.vocabulary import NUMBERS, QUALIFIERS, THINGS, VERBS, arrangements, cast, make_package

EXTRAS, VALUES = range(2, 60), range(2, 30)
REQUIRED, COMMON = 0.6, 0.5  # shares of drafts: the parameter loses its default; all calls pass one value

WEIGHTS = "factor margin rate scale share weight".split()
ARGUMENTS = "bags bolts boxes coils drums jars kegs planks rolls sacks tins trays".split()

FUNCTION = (
    "{name}",
    "def {name}({signature}):\n"
    '    """Return units weighed by {parameter}."""\n'
    "    return units * {parameter} + {extra}",
    ("(3, {parameter}=4)", "(5, {parameter}=0)"),
)

CALLER = (
    "{word}_{noun}",
    "def {word}_{noun}({argument}):\n"
    '    """Return the {word} part of {argument}."""\n'
    "    return {module}.{function}({passed}) + {extra}",
    ("(4)", "(25)"),
)


def build(rng: Random, c: int) -> Draft:
    """A function in the first module, callers in later ones, a function of a similar name beside it."""
    callers = c - 2
    package = make_package(rng, size=max(7, callers + 3))
    home, *others = package.modules
    thing = rng.choice(THINGS)
    name = f"{rng.choice(VERBS)}_{thing}"
    parameter = rng.choice(WEIGHTS)
    modules, words = rng.sample(others, callers), rng.sample(QUALIFIERS, callers)
    arguments = rng.sample(ARGUMENTS, callers)
    extras = rng.sample(EXTRAS, callers + 1)
    default, *values = rng.sample(VALUES, callers + 1)
    required, common = rng.random() < REQUIRED, rng.random() < COMMON
    if common or not required:
        values = values[:1] * callers
    at = rng.randint(0, 2)
    near = {"name": f"{name}s", "parameter": parameter, "signature": f"units, {parameter}"}
    package = package.plus(home, cast(FUNCTION, extra=rng.choice(NUMBERS), **near))

    def state(signature: str, passed: str) -> Package:
        """The package where the function has this signature and the calls pass this."""
        function = cast(FUNCTION, name=name, signature=signature, parameter=parameter, extra=extras[0])
        made = package.plus(home, function, at=at)
        for module, word, argument, value, extra in zip(modules, words, arguments, values, extras[1:], strict=True):
            call = {"function": name, "passed": passed.format(argument=argument, value=value), "module": home}
            caller = cast(CALLER, word=word, noun=thing, argument=argument, extra=extra, **call)
            made = made.plus(module, caller, imports=(home,), at=at)
        return made

    told = len(VERBS) * len(THINGS) * len(WEIGHTS) * perm(len(ARGUMENTS), callers) / factorial(callers)
    if not required:
        how = len(VALUES) / (1 - REQUIRED)
    else:  # the default, and one value or several
        share = 1 if callers == 1 else COMMON if common else 1 - COMMON
        how = perm(len(VALUES), 2 if common else callers + 1) / REQUIRED / share
    one_in = arrangements(1 + callers) * told * how

    brief: dict[str, Any] = {"function": name, "parameter": parameter}
    by_keyword = f"{{argument}}, {parameter}={{value}}"
    if not required:
        before, after = state(f"units, {parameter}", "{argument}, {value}"), state(f"units, *, {parameter}", by_keyword)
        refused = Check(home, f"{name}_by_position", f"{name}(3, 4)")
        brief["kind"] = "keyword-only"
        wordings = (
            "Make the parameter {parameter} of {function} {kind}, and pass it by keyword in every call.",
            "The function {function} should take {parameter} as a {kind} parameter. Change all its calls too.",
        )
        text = rng.choice(wordings).format(**brief)
        return Draft(before, after, text, brief, u=2, checks=(refused,), one_in=one_in)
    before, after = state(f"units, {parameter}={default}", "{argument}"), state(f"units, {parameter}", by_keyword)
    refused = Check(home, f"{name}_without_{parameter}", f"{name}(3)")
    wordings = (
        "The parameter {parameter} of {function} loses its default. {calls}",
        "Make {parameter} a required parameter of {function}, without a default. {calls}",
    )
    if common:
        brief["value"] = str(values[0])
        calls = f"Every call then passes {parameter}={values[0]}."
    else:
        brief["values"] = [[argument, str(value)] for argument, value in zip(arguments, values, strict=True)]
        each = [f"{parameter}={value} with {argument}" for argument, value in brief["values"]]
        calls = f"The calls then pass {listed(each)}."
    text = rng.choice(wordings).format(**brief, calls=calls)
    return Draft(before, after, text, brief, u=1 + len(set(values)), checks=(refused,), one_in=one_in)


def operations(brief: Mapping[str, Any]) -> Reference:
    """Search the name with its bracket, then change the definition and each call."""
    name, parameter = brief["function"], brief["parameter"]
    for path, line in family.hits((yield family.search(f"{name}(")), rf"(def )?\b{name}\((\w+)(?:, (\w+))?.*?\)"):
        old, definition, argument, second = line.group(0, 1, 2, 3)
        if definition:
            new = f"def {name}({argument}, {'*, ' if 'kind' in brief else ''}{parameter})"
        else:
            value = second or brief.get("value") or dict(brief["values"])[argument]
            new = f"{name}({argument}, {parameter}={value})"
        yield family.replace(path, old, new)


def programs(brief: Mapping[str, Any]) -> Reference:
    """One program that changes the definition and the calls in a loop over all files."""
    name, parameter = brief["function"], brief["parameter"]
    if "kind" in brief:
        define = rf'new = re.sub(r"def {name}\((\w+), {parameter}\)", r"def {name}(\1, *, {parameter})", text)'
        call = rf'new = re.sub(r"\.{name}\((\w+), (\w+)\)", r".{name}(\1, {parameter}=\2)", new)'
    else:
        define = rf'new = re.sub(r"def {name}\((\w+), {parameter}=\w+\)", r"def {name}(\1, {parameter})", text)'
        call = rf'new = re.sub(r"\.{name}\((\w+)\)", r".{name}(\1, {parameter}={brief.get("value")})", new)'
    if "values" in brief:
        call = (
            "for argument, value in values.items():\n"
            f'        new = new.replace(f".{name}({{argument}})", f".{name}({{argument}}, {parameter}={{value}})")'
        )
    yield family.run_python(family.sweep(f"{define}\n    {call}", brief.get("values", ())))


FAMILY = Family("update_callers", (3, 5, 8), build, operations, programs)
