"""Family set_value: give settings new values, or take one away that is no longer needed.

The least number of calls:
- 1: file and line stand in the text, and nothing changes without a call. Here the line may also be one to remove.
- 2: the text does not say in which file the setting is (its name does not hint at it), so one call must
  find it before one call can change it.
- 3, 5, 8: one setting in each of 2, 4, 7 files. A call changes one file, so there is one call a file, and
  one before them because the text does not say which. A common ending lets one search find all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import factorial, perm
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference, listed
from modtools.lab.packages import Package
from modtools.lab.unit_tests import Check
from modtools.lab.vocabulary import NUMBERS, QUALIFIERS, SETTINGS, arrangements, cast, make_package

NEW_NUMBERS = range(61, 100)
REMOVED, COMMON = 0.4, 0.5  # shares of drafts: a line goes (c = 1); all settings get one value (c > 2)

USES = (
    (
        "{word}_volume",
        "def {word}_volume(amount):\n"
        '    """Return amount as many times as the setting says."""\n'
        "    return amount * {setting}",
        ("(1)", "(12)"),
    ),
    (
        "{word}_allowance",
        "def {word}_allowance(amount):\n"
        '    """Return amount and what the setting adds to it."""\n'
        "    return amount + {setting}",
        ("(0)", "(30)"),
    ),
    (
        "{word}_ceiling",
        "def {word}_ceiling(amounts):\n"
        '    """Return the amounts, none of them above the setting."""\n'
        "    return [min(each, {setting}) for each in amounts]",
        ("([])", "([1, 4000, 5000])"),
    ),
)


def build(rng: Random, c: int) -> Draft:
    """One setting in each changed file, and one near-duplicate that stays as it is."""
    if c == 1 and rng.random() < REMOVED:
        return _removed(rng)
    count = max(1, c - 1)
    package = make_package(rng, size=max(7, count + 2))
    suffix = "_" + rng.choice(SETTINGS)
    words = rng.sample(QUALIFIERS, count + 1)
    names = [word.upper() + suffix for word in words]
    names[-1] = rng.choice([f"{names[0]}_OLD", f"{names[-1]}S"])
    homes = rng.sample(list(package.modules), count + 1)
    moulds = rng.choices(USES, k=count + 1)
    at = rng.randint(0, 2)

    def state(values: Sequence[int]) -> Package:
        """The package where the settings have these values."""
        made = package
        for word, name, home, mould, value in zip(words, names, homes, moulds, values, strict=True):
            made = made.plus(home, cast(mould, word=word, setting=name), constants={name: value}, at=at)
        return made

    olds = rng.choices(NUMBERS, k=count + 1)
    news = rng.sample(NEW_NUMBERS, count)
    common = count > 1 and rng.random() < COMMON
    if common:
        news = news[:1] * count
    pairs = [[name, str(new)] for name, new in zip(names, news, strict=False)]
    if c == 1:
        path = package.path(homes[0])
        brief = {"path": path, "old": f"{names[0]} = {olds[0]}", "new": f"{names[0]} = {news[0]}"}
        wordings = (
            "In {path} change the line `{old}` to `{new}`.",
            "The setting `{old}` in {path} is out of date; it must read `{new}`.",
            "Open point: {path} says `{old}`. Make it `{new}`.",
        )
    elif c == 2:
        brief = {"pattern": names[0], "values": pairs}
        wordings = (
            "Set {pairs}.",
            "A setting has the wrong value: change {pairs}. Find it first.",
            "Somewhere in the package {pattern} is defined. Change {pairs}.",
        )
    elif common:
        brief = {"pattern": suffix, "value": str(news[0])}
        wordings = (
            "Set every constant whose name ends with {pattern} to {value}.",
            "All settings whose names end with {pattern} must be {value} from now on; change each of them.",
            "Several files define a constant that ends with {pattern}. Give them all the value {value}.",
        )
    else:
        brief = {"pattern": suffix, "values": pairs}
        wordings = (
            "Set {pairs}.",
            "These settings get new values: change {pairs}.",
            "Some settings that end with {pattern} are out of date. Change {pairs}.",
        )
    spoken = listed([f"{name} to {value}" for name, value in pairs])
    text = rng.choice(wordings).format(**brief, pairs=spoken)
    share = 1 - REMOVED if c == 1 else 1 if count == 1 else COMMON if common else 1 - COMMON
    settings = perm(len(QUALIFIERS), count) * len(SETTINGS) * len(NUMBERS) ** count
    one_in = arrangements(count) * settings * perm(len(NEW_NUMBERS), 1 if common else count) / factorial(count) / share
    return Draft(state(olds), state([*news, olds[-1]]), text, brief, u=len(set(news)), one_in=one_in)


def _removed(rng: Random) -> Draft:
    """A setting that nothing uses goes; its near-duplicate, which is used, stays."""
    package = make_package(rng, size=7)
    home, near_home = rng.choices(list(package.modules), k=2)
    word = rng.choice(QUALIFIERS)
    name = f"{word.upper()}_{rng.choice(SETTINGS)}"
    old, near = rng.choice([(f"{name}_OLD", name), (name, f"{name}S")])
    package = package.plus(
        near_home, cast(rng.choice(USES), word=word, setting=near), constants={near: rng.choice(NUMBERS)}
    )
    before = package.plus(home, constants={old: rng.choice(NUMBERS)})
    brief = {"path": package.path(home), "old": f"{old} = {before.modules[home].constants[old]}", "new": ""}
    wordings = (
        "Remove the line `{old}` from {path}. Nothing uses it.",
        "Nothing needs `{old}` in {path} any more; delete that line.",
    )
    text = rng.choice(wordings).format(**brief)
    one_in = arrangements(1) * len(QUALIFIERS) * len(SETTINGS) * 2 * len(NUMBERS) / REMOVED
    return Draft(before, package, text, brief, checks=[Check(home, f"{old}_is_gone", old)], one_in=one_in)


def operations(brief: Mapping[str, Any]) -> Reference:
    """Change the named line; or search, then change each setting that is meant."""
    if "path" in brief:
        yield family.replace(brief["path"], *_edit(brief))
        return
    found = family.hits((yield family.search(brief["pattern"])), rf"^(\w*{brief['pattern']}) = \d+$")
    for path, line in found:
        value = brief.get("value") or dict(brief["values"]).get(line[1])
        if value:
            yield family.replace(path, line[0], f"{line[1]} = {value}")


def programs(brief: Mapping[str, Any]) -> Reference:
    """One program: an edit of the named line, a loop over all files, or a loop over files and settings."""
    if "path" in brief:
        yield family.run_python(family.substitute((brief["path"], *_edit(brief))))
    elif "value" in brief:
        change = rf'new = re.sub(r"^(\w+{brief["pattern"]}) = .*", r"\1 = {brief["value"]}", text, flags=re.M)'
        yield family.run_python(family.sweep(change))
    else:
        change = (
            "new = text\n"
            "    for name, value in values.items():\n"
            '        new = re.sub(rf"^{name} = .*", f"{name} = {value}", new, flags=re.M)'
        )
        yield family.run_python(family.sweep(change, brief["values"]))


def _edit(brief: Mapping[str, Any]) -> tuple[str, str]:
    """The text that goes and the text that comes."""
    return (brief["old"], brief["new"]) if brief["new"] else (f"{brief['old']}\n", "")


FAMILY = Family("set_value", (1, 2, 3, 5, 8), build, operations, programs)
