"""Family move_constant, held out: constants move to another module, and their uses follow.

It is made of what other families teach: search or look, replace a line, write a new file, replace a name
wherever it is used. The old module must no longer have the constant, so a copy in both places is no way out.
The modules that use a constant import the new home already. Constants of similar names stay where they are.

The least number of calls:
- 2: line, old and new home stand in the text, and nothing uses the constant. Two files change, one call each.
- 3: the text does not say where the constant is, so one call must find it before two can move it.
- 5: one constant with 2 uses, or three constants without. A call changes one file, so there is one call for
  each old home, one for the new home and one for each use, all in files of their own, and one before them
  because the text does not say which. A common ending lets one search find all.
- 8: one constant with 5 uses, or three constants with one use each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import factorial, perm
from random import Random
from typing import Any

from modtools.lab.families import family
from modtools.lab.families.family import Draft, Family, Reference, listed
from modtools.lab.packages import Module, Package
from modtools.lab.unit_tests import Check, Claim
from modtools.lab.vocabulary import CONSTANTS, NUMBERS, QUALIFIERS, SETTINGS, arrangements, cast, make_package

VALUES = range(61, 100)
NEW_FILE = 0.5  # share of the drafts without uses in which the new home is not there yet

SHAPES = {2: ((1, 0),), 3: ((1, 0),), 5: ((1, 2), (3, 0)), 8: ((1, 5), (3, 3))}  # (constants, uses)
NEW_FILES = "defaults limits options settings".split()
SUMMARY = "Values to set."

USE = (
    "{word}_estimate",
    "def {word}_estimate(units):\n"
    '    """Return the {word} estimate for units."""\n'
    "    start = {target}.{start}(units)\n"
    "    return start + units * {home}.{constant}",
    ("(2)", "(40)"),
)


def build(rng: Random, c: int) -> Draft:
    """Constants in modules that come first in the order, uses in later ones, and an old constant with a use."""
    count, uses = rng.choice(SHAPES[c])
    package = make_package(rng, size=max(7, count + uses + 2))
    first, others = list(package.modules)[: count + 1], list(package.modules)[count + 1 :]
    rng.shuffle(first)
    target, *homes = first
    ending = "_" + rng.choice(SETTINGS)
    names = [word.upper() + ending for word in rng.sample(QUALIFIERS, count)]
    values = rng.sample(VALUES, count)
    near = rng.choice([f"{names[0]}_OLD", f"{names[0]}_2"])
    words = rng.sample(QUALIFIERS, uses + 1)
    start = package.modules[target].definitions[0].name
    lines = package.modules[target].constants
    anchor_name, anchor_value = rng.choice(list(lines.items()))
    anchor = f"{anchor_name} = {anchor_value}"
    new_file = uses == 0 and rng.random() < NEW_FILE
    place = rng.choice(NEW_FILES) if new_file else target

    *users, spare = rng.sample(others, uses + 1)
    use = cast(USE, word=words[-1], target=target, start=start, home=homes[0], constant=near)
    package = package.plus(homes[0], constants={near: rng.choice(NUMBERS)})
    package = package.plus(spare, use, imports=(homes[0], target))

    def state(holders: Sequence[str]) -> Package:
        """The package where these modules hold the constants."""
        made = package.with_module(Module(place, SUMMARY)) if new_file and place in holders else package
        for name, value, holder in zip(names, values, holders, strict=True):
            made = made.plus(holder, constants={name: value})
        for index, module in enumerate(users):
            at = index % count
            words_of = {"word": words[index], "target": target, "start": start, "constant": names[at]}
            made = made.plus(module, cast(USE, home=holders[at], **words_of), imports=(homes[at], target))
        return made

    before, after = state(homes), state([place] * count)
    checks: list[Check | Claim] = []
    for name, value, home in zip(names, values, homes, strict=True):
        checks.append(Check(home, f"{name}_is_gone", name))
        checks.append(Claim(place, f"{name}_is_here", (f"self.assertEqual({place}.{name}, {value})",)))
    brief: dict[str, Any] = {"path": before.path(place)}
    if not new_file:
        brief["anchor"] = anchor
    where = f"into a new file {brief['path']}" if new_file else f"to {brief['path']}, below the line `{anchor}`"
    if c == 2:
        brief |= {"source": before.path(homes[0]), "line": f"{names[0]} = {values[0]}"}
        wordings = (
            "Move the line `{line}` from {source} {where}. Nothing uses it yet.",
            "The line `{line}` is in {source}. Move it {where}; no other code uses it.",
        )
    else:
        brief |= {"names": names, "pattern": names[0] if count == 1 else ending}
        wordings = (
            "Move {spoken} from where you find it {where}.{mend}",
            "Find {spoken} and move it {where}.{mend}",
        )
        if count > 1:
            wordings = ("Move {spoken} from where you find them {where}.{mend}",
                        "Find {spoken} and move them {where}.{mend}")  # fmt: skip
    spoken = "the constant " * (count == 1) + listed(names)
    mend = " Change the code that uses it." if count == 1 else " Change the code that uses them."
    text = rng.choice(wordings).format(**brief, where=where, spoken=spoken, mend=mend if uses else "")
    u = count + 1 + min(uses, count)  # the lines that go, the lines that come, and for each constant its mended use
    told = len(SETTINGS) * perm(len(QUALIFIERS), count) * perm(len(VALUES), count) / factorial(max(count, uses))
    if new_file:
        where = arrangements(count) * len(NEW_FILES) / NEW_FILE
    else:
        # A module has three constants or, as often, an old one beside them; the line may be any.
        share = 0.5 / 4 if anchor_name.endswith("_OLD") else 0.5 + 0.5 * 3 / 4
        where = arrangements(count + 1 + uses) * len(CONSTANTS) * len(NUMBERS) / share
        where /= 1 if uses else 1 - NEW_FILE
    one_in = len(SHAPES[c]) * told * where
    return Draft(before, after, text, brief, u=u, checks=checks, one_in=one_in)


def _arrival(brief: Mapping[str, Any], lines: Sequence[str]) -> tuple[str, str]:
    """The anchor and what stands there afterwards; "" and the whole text for a new file."""
    if "anchor" in brief:
        return brief["anchor"], "\n".join([brief["anchor"], *lines])
    return "", f'"""{SUMMARY}"""\n\n' + "".join(f"{line}\n" for line in lines)


def operations(brief: Mapping[str, Any]) -> Reference:
    """Take each constant out of its module, mend the uses, and put the lines into the new home."""
    if "line" in brief:
        lines = [brief["line"]]
        yield family.replace(brief["source"], f"{brief['line']}\n", "")
    else:
        shown = yield family.search(brief["pattern"])
        home, lines = _module(brief["path"]), []
        names = "|".join(brief["names"])
        for path, found in family.hits(shown, rf"^({names}) = \d+$|\w+\.({names})\b"):
            if found[1]:
                lines.append(found[0])
                yield family.replace(path, f"{found[0]}\n", "")
            else:
                yield family.replace(path, found[0], f"{home}.{found[2]}")
    old, new = _arrival(brief, lines)
    if lines:
        yield family.replace(brief["path"], old, new) if old else family.write(brief["path"], new)


def programs(brief: Mapping[str, Any]) -> Reference:
    """Look at the files that define the constants unless the line is told; then one program moves them."""
    sources = {brief.get("source"): brief.get("line")}
    if "names" in brief:
        define = rf"^({'|'.join(brief['names'])}) = "
        files = family.shown_files((yield family.run_python(family.show_files(define))))
        sources = {path: re.search(rf"{define}\d+$", text, re.MULTILINE)[0] for path, text in files.items()}
    old, new = _arrival(brief, list(sources.values()))
    edits = [(path, f"{line}\n", "") for path, line in sources.items()]
    if not sources:
        return
    if not old:
        yield family.run_python(family.substitute(*edits) + f'Path("{brief["path"]}").write_text({new!r})\n')
    elif "line" in brief:
        yield family.run_python(family.substitute(*edits, (brief["path"], old, new)))
    else:
        change = (
            "new = text\n"
            "    for name in values:\n"
            r'        new = re.sub(rf"^{name} = .*\n", "", new, flags=re.M)' + "\n"
            rf'        new = re.sub(rf"\w+\.{{name}}\b", f"{_module(brief["path"])}.{{name}}", new)' + "\n"
            f"    new = new.replace({old!r}, {new!r})"
        )
        values = [tuple(line.split(" = ")) for line in sources.values()]
        yield family.run_python(family.sweep(change, values))


def _module(path: str) -> str:
    return path.split("/")[-1].removesuffix(".py")


FAMILY = Family("move_constant", (2, 3, 5, 8), build, operations, programs)
