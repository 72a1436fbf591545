"""Family change_condition: a check against a setting holds in other cases from now on.

Two kinds of change. *Sign*: the comparison gets another sign, such as `>=` for `>`. *Bound*: a value above the
setting must also be below a bound, one for all checks or each its own. Settings of similar names and checks
with other signs stay as they are. (Another value of a setting can do what another sign does; it is a call for
the same file, so it spares none.)

The least number of calls:
- 1: file and check stand in the text, and nothing changes without a call.
- 2: the text does not say in which file the check is, so one call must find it before one call can change it.
- 3, 5, 8: one check in each of 2, 4, 7 files. A call changes one file, so there is one call a file, and
  one before them because the text does not say which. A common ending of the settings lets one search find all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import factorial, perm
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference, listed
from modtools.lab.packages import Definition, Package
from modtools.lab.vocabulary import NUMBERS, PARAMETERS, QUALIFIERS, SETTINGS, arrangements, cast, make_package

BOUNDS = range(70, 100)
BOUNDED, COMMON = 0.5, 0.4  # shares of drafts: a bound is added; one for all checks

SIGNS = ((">", ">="), ("<", "<="), (">=", ">"), ("<=", "<"))

PROBES = ("({below})", "({limit})", "({above})", "(500)")
CHECKS = (
    (
        "{word}_applies",
        'def {word}_applies({value}):\n    """Say whether the {word} rule applies."""\n    return {check}',
        PROBES,
    ),
    (
        "{word}_surcharge",
        "def {word}_surcharge({value}):\n"
        '    """Return {value}, and {extra} more where the {word} rule applies."""\n'
        "    if {check}:\n"
        "        return {value} + {extra}\n"
        "    return {value}",
        PROBES,
    ),
    (
        "{word}_level",
        "def {word}_level({value}):\n"
        '    """Return {value}, or the setting and {extra} where the {word} rule applies."""\n'
        "    if {check}:\n"
        "        return {setting} + {extra}\n"
        "    return {value}",
        PROBES,
    ),
    (
        "{word}_selection",
        "def {word}_selection(values):\n"
        '    """Return the values to which the {word} rule applies."""\n'
        "    return [{value} for {value} in values if {check}]",
        ("([])", "([{below}, {limit}, {above}, 500])"),
    ),
)


def build(rng: Random, c: int) -> Draft:
    """One check in each changed file, and two that stay: of a similar setting, and with another sign."""
    count = max(1, c - 1)
    package = make_package(rng, size=max(7, count + 2))
    ending = "_" + rng.choice(SETTINGS)
    words = rng.sample(QUALIFIERS, count + 2)
    settings = [word.upper() + ending for word in words]
    settings[-2] = rng.choice([f"{settings[0]}_OLD", f"{settings[0]}_2"])
    homes = rng.sample(list(package.modules), count + 2)
    moulds = rng.choices(CHECKS, k=count + 2)
    values = rng.choices(PARAMETERS, k=count + 2)
    limits, extras = rng.choices(NUMBERS, k=count + 2), rng.choices(NUMBERS, k=count + 2)
    at = rng.randint(0, 2)
    bounded, common = rng.random() < BOUNDED, rng.random() < COMMON
    was, becomes = (">", "<") if bounded else rng.choice(SIGNS)
    bounds = rng.sample(BOUNDS, count)
    if common:
        bounds = bounds[:1] * count
    checks = [f"{value} {was} {setting}" for value, setting in zip(values, settings, strict=True)]
    other = "<" if ">" in was else ">"
    checks[-1] = f"{values[-1]} {other} {settings[-1]}"
    changed = [f"{value} {becomes} {setting}" for value, setting in zip(values, settings, strict=True)]
    if bounded:
        changed = [f"{s} < {v} < {bound}" for s, v, bound in zip(settings, values, bounds, strict=False)]

    def state(checks: list[str]) -> Package:
        """The package with these checks."""
        made = package
        for index, check in enumerate(checks):
            function = _function(moulds[index], words[index], values[index], check, settings[index],
                                 limits[index], extras[index])  # fmt: skip
            made = made.plus(homes[index], function, constants={settings[index]: limits[index]}, at=at)
        return made

    before, after = state(checks), state(changed[:count] + checks[count:])
    u = len(set(bounds)) if bounded else 1
    told = perm(len(QUALIFIERS), count) * len(SETTINGS) * len(PARAMETERS) ** count / factorial(count)
    how = len(SIGNS) / (1 - BOUNDED) if not bounded else len(BOUNDS) / BOUNDED
    if bounded and count > 1:
        how = len(BOUNDS) / BOUNDED / COMMON if common else perm(len(BOUNDS), count) / BOUNDED / (1 - COMMON)
    one_in = arrangements(count) * told * how
    if c == 1:
        brief: dict[str, Any] = {"path": package.path(homes[0]), "old": checks[0], "new": changed[0]}
        wordings = (
            "In {path} change the condition `{old}` to `{new}`.",
            "The condition `{old}` in {path} is wrong; it must read `{new}`.",
            "Open point: {path} checks `{old}`. Make it `{new}`.",
        )
        return Draft(before, after, rng.choice(wordings).format(**brief), brief, u=u, one_in=one_in)
    pattern = settings[0] if c == 2 else ending
    which = pattern if c == 2 else f"a constant whose name ends with {pattern}"
    if not bounded:
        brief = {"pattern": pattern, "was": was, "becomes": becomes}
        wordings = (
            "Where a value is compared with {which} by `{was}`, compare by `{becomes}`.",
            "Find the check `{was}` against {which}. It must be `{becomes}`.",
        )
        if c > 2:
            wordings = (wordings[0], "Change every check `{was}` against {which} to `{becomes}`.")
    elif common or c == 2:
        brief = {"pattern": pattern, "bound": str(bounds[0])}
        wordings = (
            "Where a value must be above {which}, it must also be below {bound}.",
            "A check that a value is above {which} must also check that it is below {bound}.",
        )
    else:
        brief = {"pattern": ending, "bounds": [[s, str(b)] for s, b in zip(settings, bounds, strict=False)]}
        wordings = (
            "Checks that a value is above a constant also need an upper bound: {pairs}.",
            "Some values that must be above a constant must also be below a bound: {pairs}.",
        )
    pairs = listed([f"below {b} for {s}" for s, b in zip(settings, bounds, strict=False)])
    text = rng.choice(wordings).format(**brief, which=which, pairs=pairs)
    return Draft(before, after, text, brief, u=u, one_in=one_in)


def _function(mould, word: str, value: str, check: str, setting: str, limit: int, extra: int) -> Definition:
    """A function with a check, tried below its limit, at it and above it."""
    numbers = {"limit": limit, "below": limit - 1, "above": limit + 1, "extra": extra}
    return cast(mould, word=word, value=value, check=check, setting=setting, **numbers)


def operations(brief: Mapping[str, Any]) -> Reference:
    """Change the named condition; or search, then change each check that is meant."""
    if "path" in brief:
        yield family.replace(brief["path"], brief["old"], brief["new"])
        return
    sign = re.escape(brief.get("was", ">"))
    check = rf"(\w+) {sign} (\w*{brief['pattern']})\b"
    for path, line in family.hits((yield family.search(brief["pattern"])), check):
        old, value, setting = line.group(0, 1, 2)
        bound = brief.get("bound") or dict(brief.get("bounds", ())).get(setting)
        if "becomes" in brief:
            yield family.replace(path, old, f"{value} {brief['becomes']} {setting}")
        elif bound:
            yield family.replace(path, old, f"{setting} < {value} < {bound}")


def programs(brief: Mapping[str, Any]) -> Reference:
    """One program: an edit of the named condition, a loop over all files, or a loop over files and settings."""
    if "path" in brief:
        yield family.run_python(family.substitute((brief["path"], brief["old"], brief["new"])))
        return
    setting = rf"(\w*{brief['pattern']})\b"
    if "becomes" in brief:
        change = rf'new = re.sub(r" {brief["was"]} {setting}", r" {brief["becomes"]} \1", text)'
    elif "bound" in brief:
        change = rf'new = re.sub(r"(\w+) > {setting}", r"\2 < \1 < {brief["bound"]}", text)'
    else:
        change = (
            "new = text\n"
            "    for name, value in values.items():\n"
            r'        new = re.sub(rf"(\w+) > {name}\b", rf"{name} < \1 < {value}", new)'
        )
    yield family.run_python(family.sweep(change, brief.get("bounds", ())))


FAMILY = Family("change_condition", (1, 2, 3, 5, 8), build, operations, programs)
