"""Family count_and_record: count something in the package, and write the number down as a constant.

The tests count for themselves and print no number. They want a plain number, so a file that works it out when it
is imported, which would be a program in disguise, does not pass.

The least number of calls:
- 2: one count, written to a new file or in place of a 0 at a line that is told. What is counted is spread over
  several files, so one search must show it, and one call writes it down.
- 3: two counts in one new file, each a search of its own; or one count whose place must be found by a search too.
- 5: one count in 3 places that are found by one search; or two counts, each for 1 place.
- 8: one count in 6 such places; or three counts in 4 places.
Each place lies in a file of its own, and a call changes one file. A count is not known before each counted thing
was seen; for one thing of each count, and for one place, no single search shows two of them (checked, see
modtools.lab.minimality), and no two lie in one file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import factorial, perm, prod
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.counted import CONSTANTS, FUNCTIONS, USES, Count, Words, line, needle, one_in, plant
from modtools.lab.families.family import Draft, Family, Reference, Secret, listed
from modtools.lab.packages import Module, Package
from modtools.lab.unit_tests import Claim
from modtools.lab.vocabulary import PARAMETERS, QUALIFIERS, arrangements, cast, make_package

OFFERED = [FUNCTIONS, FUNCTIONS, CONSTANTS, USES]
NEW_FILE = 0.5  # share of the drafts with c = 2

NAMES = "AUDIT INDEX REVIEW SURVEY".split()
NEW_FILES = "census figures inventory summary".split()
SIZES = {2: 7, 3: 9, 5: 10, 8: 12}
SHAPES = {2: ((1, 1),), 3: ((2, 0), (1, 1)), 5: ((1, 3), (2, 2)), 8: ((1, 6), (3, 4))}  # (counts, places to find)

NEAR = (
    "{word}_rest",
    'def {word}_rest({value}):\n    """Return {value} without the old count."""\n    return {value} - {constant}',
    ("(1)", "(20)"),
)

PROGRAM = """\
import re
from pathlib import Path

files = [path for path in sorted(Path(".").rglob("*.py")) if path.parts[0] != "tests"]
texts = [path.read_text() for path in files]
counts = {{
{counts}}}
{record}"""
COUNT = '    "{name}": sum(len(re.findall(r"{line}", text, re.M)) for text in texts),\n'
RECORD_NEW = """\
lines = [f"{{name}} = {{count}}\\n" for name, count in counts.items()]
Path("{path}").write_text('\"\"\"{summary}\"\"\"\\n\\n' + "".join(lines))
"""
RECORD_EVERYWHERE = """\
for path, text in zip(files, texts):
    new = text
    for name, count in counts.items():
        new = re.sub(rf"^(\\w*{name}) = 0$", rf"\\1 = {count}", new, flags=re.M)
    if new != text:
        path.write_text(new)
        print("changed", path)
"""
SUMMARY = "What was counted."


def build(rng: Random, c: int) -> Draft:
    """Things to count among look-alikes; a new file, or constants that are 0 beside an old one that stays 0."""
    counts, places = rng.choice(SHAPES[c])
    package = make_package(rng, size=SIZES[c])
    modules = tuple(package.modules)
    words = Words(rng)
    wanted: list[Count] = []
    for kind in rng.sample(OFFERED, counts):
        package, count = plant(package, words, kind, taken=[count.secret.module for count in wanted])
        wanted.append(count)
    names = [f"{name}_COUNT" for name in rng.sample(NAMES, counts)]
    if not places or (c == 2 and rng.random() < NEW_FILE):
        return _new_file(rng, package, wanted, names, len(SHAPES[c]) / (NEW_FILE if c == 2 else 1))

    free = [module for module in modules if module not in {count.secret.module for count in wanted}]
    homes = rng.sample(free, places)
    owners = [*range(counts), *rng.choices(range(counts), k=places - counts)]
    if c in (2, 3):
        constants = names
    else:
        constants = [f"{word.upper()}_{names[i]}" for word, i in zip(rng.sample(QUALIFIERS, places), owners)]
    near = constants[0] + "_OLD"
    mould = cast(NEAR, word=rng.choice(QUALIFIERS), value=rng.choice(PARAMETERS), constant=near)
    package = package.plus(rng.choice(modules), mould, constants={near: 0})

    def state(values: Sequence[int]) -> Package:
        """The package where the constants have these values."""
        made = package
        for home, constant, value in zip(homes, constants, values, strict=True):
            made = made.plus(home, constants={constant: value})
        return made

    before = state([0] * places)
    numbers = [_number(before, count) for count in wanted]
    after = state([numbers[i] for i in owners])
    told = one_in([count.kind for count in wanted], numbers, OFFERED) * perm(len(NAMES), counts)
    # Places are told in the order of their paths: orders of one set of places, each owner's first place being drawn first.
    orders = prod(owners.count(i) for i in range(counts)) * factorial(places - counts)
    told *= arrangements(places) * counts ** (places - counts) / orders
    told *= len(SHAPES[c]) / (1 - NEW_FILE if c == 2 else 1) * (1 if c in (2, 3) else perm(len(QUALIFIERS), places))
    checks = [
        _claim(before, home, constant, wanted[i]) for home, constant, i in zip(homes, constants, owners, strict=True)
    ]
    parts = [{"name": name, "kind": count.kind, "what": count.what} for name, count in zip(names, wanted, strict=True)]
    brief: dict[str, Any] = {"counts": parts}
    if c == 2:
        brief |= {"path": before.path(homes[0]), "line": f"{names[0]} = 0"}
        wordings = (
            "In {path} change the line `{line}`: set it to the number of {spoken}. Write it as a plain number.",
            "Count the {spoken}. The line `{line}` in {path} must hold that number, as a plain number.",
        )
    elif c == 3:
        wordings = (
            "Set the constant {name}, which is 0, to the number of {spoken}. Write it as a plain number.",
            "Count the {spoken}, then find the line `{name} = 0` and put that number there, as a plain number.",
        )
    else:
        for part in parts:
            part["name"] = f"_{part['name']}"
        wordings = ("Some constants are still 0. {each} Write plain numbers.", "{each} Write them as plain numbers.")
    each = " ".join(
        f"Set every constant whose name ends with {part['name']} to the number of {count.spoken}."
        for part, count in zip(parts, wanted, strict=True)
    )
    text = rng.choice(wordings).format(**brief, name=names[0], spoken=wanted[0].spoken, each=each)
    place = Secret(homes[-1], rf"(?i)\b(test_)?{constants[-1]}\b", constants[-1].lower())
    secrets = [] if c == 2 else [[place], *([count.secret] for count in wanted)]
    return Draft(before, after, text, brief, u=counts, checks=checks, secrets=secrets, one_in=told)


def _new_file(rng: Random, before: Package, wanted: Sequence[Count], names: Sequence[str], odds: float) -> Draft:
    """The counts go into a module that is not there yet; one in `odds` drafts comes here."""
    module = rng.choice(NEW_FILES)
    numbers = {name: _number(before, count) for name, count in zip(names, wanted, strict=True)}
    after = before.with_module(Module(module, SUMMARY, constants=numbers))
    checks = [_claim(before, module, name, count) for name, count in zip(names, wanted, strict=True)]
    parts = [{"name": name, "kind": count.kind, "what": count.what} for name, count in zip(names, wanted, strict=True)]
    each = listed([f"{name} is the number of {count.spoken}" for name, count in zip(names, wanted, strict=True)])
    brief = {"path": before.path(module), "counts": parts}
    wordings = (
        "Create {path} with what you count, as plain numbers: {each}.",
        "Write a new file {path} that holds plain numbers: {each}.",
    )
    secrets = [[count.secret] for count in wanted] if len(wanted) > 1 else []
    text = rng.choice(wordings).format(**brief, each=each)
    told = one_in([count.kind for count in wanted], list(numbers.values()), OFFERED) * perm(len(NAMES), len(wanted))
    told *= arrangements(0) * len(NEW_FILES) * odds
    return Draft(before, after, text, brief, u=len(wanted), checks=checks, secrets=secrets, one_in=told)


def _number(package: Package, count: Count) -> int:
    """The count, by the expression of the test."""
    return len(eval(count.found(), {"modules": package.load().values()}))


def _claim(package: Package, module: str, name: str, count: Count) -> Claim:
    """The test that a constant is written as the plain number that is found in the package's modules."""
    modules = sorted(package.modules)
    return Claim(
        module,
        name,
        (
            "import pathlib",
            "import re",
            f"from {package.name} import {', '.join(modules)}",
            f"modules = ({', '.join(modules)})",
            f"found = {count.found()}",
            f"text = pathlib.Path({module}.__file__).read_text()",
            f'written = re.findall(r"^{name}(?:: int)? = (\\d+)\\b", text, re.M)',
            f"self.assertTrue(written == [str(len(found))] and {module}.{name} == len(found))",
        ),
    )


def operations(brief: Mapping[str, Any]) -> Reference:
    """Search what is to be counted, then the places where it is to be written, and write it there."""
    numbers = {}
    for count in brief["counts"]:
        numbers[count["name"]] = len(family.hits((yield family.search(needle(count))), line(count)))
    if "line" in brief:
        (name, number), *_ = numbers.items()
        yield family.replace(brief["path"], brief["line"], f"{name} = {number}")
        return
    if "path" in brief:
        lines = "".join(f"{name} = {number}\n" for name, number in numbers.items())
        yield family.write(brief["path"], f'"""{SUMMARY}"""\n\n{lines}')
        return
    common = next(iter(numbers)) if len(numbers) == 1 else "_COUNT"
    for path, place in family.hits((yield family.search(f"{common} = 0")), r"^(\w+) = 0$"):
        number = next((number for name, number in numbers.items() if place[1].endswith(name)), None)
        if number is not None:
            yield family.replace(path, place[0], f"{place[1]} = {number}")


def programs(brief: Mapping[str, Any]) -> Reference:
    """One program that counts in all files and writes a new file or all places."""
    counts = "".join(COUNT.format(name=count["name"], line=line(count)) for count in brief["counts"])
    if "path" in brief and "line" not in brief:
        record = RECORD_NEW.format(path=brief["path"], summary=SUMMARY)
    else:
        record = RECORD_EVERYWHERE
    yield family.run_python(PROGRAM.format(counts=counts, record=record))


FAMILY = Family("count_and_record", (2, 3, 5, 8), build, operations, programs)
