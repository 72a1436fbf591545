"""Family add_function: write a new function.

In an existing file the function needs a constant that the text only describes ("the handling rate of that
module"): its name is not told, and `replace` needs a text of the file to put the function beside.

The least number of calls:
- 1: a new file, fully specified.
- 2: an existing file, named. Its constant must be learnt by one call; one call adds the function. Writing
  the whole file instead would need its text, and loses what the other tests try.
- 3: the file is the one that defines a function told by name, so it must be found first. Several modules
  have a constant of that description, and no single search shows the function and the constant of its
  module, or the values the new function's test expects (checked, see modtools.lab.minimality).
- 5: two functions in two such files, told by names that share an ending: one search, and for each file a
  call to learn its constant and a call to add the function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import factorial, perm, prod
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference, Secret
from modtools.lab.packages import Module
from modtools.lab.vocabulary import FIRST, NUMBERS, PARAMETERS, QUALIFIERS, THINGS, arrangements, cast, make_package

EXTRAS, NEW_EXTRAS, FACTORS, RATES = range(2, 41), range(10, 61), range(2, 10), range(2, 41)
PLACES = 3  # where the function stands beside which the new one goes

DESCRIBED = ("handling rate", "storage cost", "packing charge", "sorting time", "transport toll")

NEW = (
    "{function}",
    "def {function}({parameter}):\n"
    '    """Return {parameter} times {factor}, plus {extra}."""\n'
    "    return {parameter} * {factor} + {extra}\n",
    ("(0)", "(3)", "(45)"),
)
BESIDE = (
    "{name}",
    'def {name}(units):\n    """Return units raised by {extra}."""\n    return units + {extra}',
    ("(1)", "(20)"),
)

NEW_FILE_PROGRAM = """\
from pathlib import Path

text = '''\\
{text}'''
Path("{path}").write_text(text)
"""


def build(rng: Random, c: int) -> Draft:
    """One or two functions that use a constant of their module; for c = 1 a module of its own."""
    if c == 1:
        return _new_module(rng)
    count = 2 if c == 5 else 1
    before = make_package(rng, size=9 if c > 2 else 7)
    thing, new_thing = rng.sample(THINGS, 2)
    described = rng.sample(DESCRIBED, count) * 2  # each description fits a module that is meant and one that is not
    homes = rng.sample(list(before.modules), 2 * count)
    words, constant_words = (rng.sample(QUALIFIERS, 2 * count) for _ in range(2))
    names = [f"{word}_{thing}" for word in words]
    constants = [f"{word.upper()}_{_shout(what)}" for word, what in zip(constant_words, described, strict=True)]
    ats = []
    for home, name, constant in zip(homes, names, constants, strict=True):
        beside, rate = cast(BESIDE, name=name, extra=rng.choice(NUMBERS)), rng.choice(RATES)
        ats.append(rng.randint(0, PLACES - 1))
        before = before.plus(home, beside, constants={constant: rate}, at=ats[-1])

    after, parts = before, []
    for home, word, name, what, constant in zip(homes[:count], words, names, described, constants, strict=False):
        part = {"function": f"{word}_{new_thing}", "parameter": rng.choice(PARAMETERS)}
        part["extra"] = str(rng.choice(EXTRAS))
        after = after.plus(home, cast(NEW, factor=constant, **part))
        parts.append({**part, "constant": what, "beside": name})

    # The line before which a function goes is that of a function in `names`, or else of the module's first mould.
    first = [PLACES if at == 0 else PLACES / (PLACES - 1) * len(FIRST) for at in ats[:count]]
    told = perm(len(QUALIFIERS), count) ** 2 * perm(len(DESCRIBED), count) * (len(PARAMETERS) * len(EXTRAS)) ** count
    one_in = arrangements(count) * told * len(THINGS) * prod(first) / factorial(count)
    if c > 2 or ats[0] == 0:  # the other thing is told as well
        one_in *= len(THINGS) - 1

    brief: dict[str, Any] = {"parts": parts}
    if c == 2:
        del parts[0]["beside"]
        brief["path"] = before.path(homes[0])
        wordings = (
            "Add to {path} a function {function}({parameter}). It returns {parameter} times the {constant} of that "
            "file, plus {extra}.",
            "{path} needs a function {function}({parameter}) that returns {parameter} times the file's {constant}, "
            "plus {extra}.",
        )
        return Draft(before, after, rng.choice(wordings).format(**parts[0], **brief), brief, one_in=one_in)
    brief["pattern"] = f"{names[0]}(" if c == 3 else f"_{thing}("
    wordings = (
        "Add a function {function}({parameter}) to the module that defines {beside}(). It returns {parameter} times "
        "the {constant} of that module, plus {extra}.",
        "Beside {beside}() a function {function}({parameter}) is missing. It returns {parameter} times the {constant} "
        "of their module, plus {extra}.",
    )
    wording = rng.choice(wordings)
    text = " ".join(wording.format(**part) for part in parts)
    places, needs = [], []
    for home, name, constant, part in zip(homes, names, constants, parts, strict=False):
        places.append(Secret(home, rf"\b(test_)?({name}|{part['function']})\b", part["function"]))
        needs.append([Secret(home, constant, part["function"])])
    secrets = [places, *needs]
    return Draft(before, after, text, brief, u=count, secrets=secrets, one_in=one_in)


def _shout(described: str) -> str:
    return described.upper().replace(" ", "_")


def _new_module(rng: Random) -> Draft:
    """A function in a file that is not there yet."""
    before = make_package(rng, size=7)
    thing, (word, module_word) = rng.choice(THINGS), rng.sample(QUALIFIERS, 2)
    module = f"{module_word}_{thing}s"
    part = {"function": f"{word}_{thing}", "parameter": rng.choice(PARAMETERS)}
    part |= {"factor": str(rng.choice(FACTORS)), "extra": str(rng.choice(NEW_EXTRAS))}
    after = before.with_module(Module(module, "", definitions=(cast(NEW, **part),)))
    brief = {"path": before.path(module), **part}
    wordings = (
        "Create {path} with a function {function}({parameter}) that returns {parameter} times {factor}, plus {extra}.",
        "Write a new file {path}. Its function {function}({parameter}) returns {parameter} times {factor}, plus "
        "{extra}.",
    )
    told = perm(len(QUALIFIERS), 2) * len(THINGS) * len(PARAMETERS) * len(FACTORS) * len(NEW_EXTRAS)
    one_in = arrangements(0) * told
    return Draft(before, after, rng.choice(wordings).format(**brief), brief, one_in=one_in)


def insertion(part: Mapping[str, str], text: str) -> tuple[str, str] | None:
    """The line of the first definition in a file's text, and the same with the new function before it."""
    constant = re.search(rf"^(\w+_{_shout(part['constant'])}) = ", text, re.MULTILINE)
    first = re.search(r"^(?:def|class) .*$", text, re.MULTILINE)
    if not constant or not first:
        return None
    return first[0], f"{cast(NEW, factor=constant[1], **part).source}\n\n{first[0]}"


def operations(brief: Mapping[str, Any]) -> Reference:
    """Write the new file; or find each file, read it, and add the function before its first definition."""
    if "parts" not in brief:
        yield family.write(brief["path"], cast(NEW, **brief).source)
        return
    parts = {part.get("beside"): part for part in brief["parts"]}
    places = yield from family.locate(brief, list(parts))
    for beside, path in places.items():
        edit = insertion(parts[beside], (yield family.read(path)))
        if edit:
            yield family.replace(path, *edit)


def programs(brief: Mapping[str, Any]) -> Reference:
    """Write the new file; or look at the files, then add the functions."""
    if "parts" not in brief:
        yield family.run_python(NEW_FILE_PROGRAM.format(path=brief["path"], text=cast(NEW, **brief).source))
        return
    files = yield from family.look(brief, [part.get("beside") for part in brief["parts"]])
    edits = []
    for path, text in files.items():
        for part in brief["parts"]:
            if "path" in brief or f"def {part['beside']}(" in text:
                edit = insertion(part, text)
                edits += [(path, *edit)] if edit else []
    if edits:
        yield family.run_python(family.substitute(*edits))


FAMILY = Family("add_function", (1, 2, 3, 5), build, operations, programs)
