"""What a family of tasks is made of, and what its reference solutions are written with.

A reference sees only the task's text (through its `brief`, whose every value stands in the text) and the
observations of its own earlier steps. A step whose observation is withheld gets "" instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from modtools.lab.packages import Package
from modtools.lab.unit_tests import Check, Claim


@dataclass(frozen=True)
class Step:
    """One canonical operation of a reference: "search", "read", "replace", "write" or "run_python"."""

    action: str
    arguments: Mapping[str, str]


Reference = Generator[Step, str, None]

SWEEP = """\
import re
from pathlib import Path

{setup}for path in sorted(Path(".").rglob("*.py")):
    if path.parts[0] == "tests":
        continue
    text = path.read_text()
    {change}
    if new != text:
        path.write_text(new)
        print("changed", path)
"""

SHOW_FILES = """\
import re
from pathlib import Path

for path in sorted(Path(".").rglob("*.py")):
    text = path.read_text()
    if re.search(r"{pattern}", text, re.M):
        print("#", path.as_posix())
        print(text)
"""

SHOW_FILE = """\
from pathlib import Path

path = Path("{path}")
print("#", path.as_posix())
print(path.read_text())
"""


@dataclass(frozen=True)
class Secret:
    """Something the text does not tell and a reference must learn.

    Attributes:
        module: the module that holds it.
        told_by: a regular expression; every line of the module or of its tests that matches tells it.
        tested: a definition; the expected values in its unit test, all of them seen, tell it as well.
    """

    module: str
    told_by: str
    tested: str


@dataclass(frozen=True)
class Draft:
    """A task as its family states it.

    Attributes:
        before, after: the package without and with the change.
        text: what the model is told.
        brief: the facts of the text a reference may use.
        u: distinct edits; one edit applied at several places counts once.
        checks: tests beyond the probes of the changed package.
        secrets: groups of secrets; secrets of *different* groups must not be shown by one search.
        one_in: the operations of this draft's reference come up once in so many drafts of its family and stratum, on
            average: 1 / their probability. Its log2 is their surprisal; the mean of that is the exact entropy of the
            choice (see `lab.choice_entropy`). Drafts that are drawn anew for their secrets are not counted in.
    """

    before: Package
    after: Package
    text: str
    brief: Mapping[str, Any]
    u: int = 1
    checks: Sequence[Check | Claim] = ()
    secrets: Sequence[Sequence[Secret]] = ()
    one_in: float = 1.0


@dataclass(frozen=True)
class Family:
    """A kind of task over several strata.

    Attributes:
        name: of the family.
        strata: the counts of calls it offers.
        build: (random, c) -> Draft.
        operations: brief -> the steps on the coarse and the fine surface.
        programs: brief -> the "run_python" steps on the code surface.
    """

    name: str
    strata: tuple[int, ...]
    build: Callable[[Random, int], Draft]
    operations: Callable[[Mapping[str, Any]], Reference]
    programs: Callable[[Mapping[str, Any]], Reference]


def search(pattern: str) -> Step:
    """Find a literal text in all files."""
    return Step("search", {"pattern": pattern})


def read(path: str) -> Step:
    """Show one file."""
    return Step("read", {"path": path})


def replace(path: str, old: str, new: str) -> Step:
    """Replace the one occurrence of `old` in a file."""
    return Step("replace", {"path": path, "old": old, "new": new})


def write(path: str, content: str) -> Step:
    """Create or overwrite a file."""
    return Step("write", {"path": path, "content": content})


def run_python(code: str) -> Step:
    """Run a program in the workspace."""
    return Step("run_python", {"code": code})


def hits(observation: str, pattern: str) -> list[tuple[str, re.Match]]:
    """What a search showed outside tests/: path and match of each line that matches a regular expression."""
    lines = re.findall(r"^(?!tests/)([^:\n]+\.py):\d+: (.*)$", observation, re.MULTILINE)
    return [(path, match) for path, text in lines if (match := re.search(pattern, text))]


def sweep(change: str, values: Sequence[tuple[str, str]] = ()) -> str:
    """A program that edits every file of the package.

    Args:
        change: a statement that makes `new` out of `text`.
        values: a table the statement may use, as the dict `values`.
    """
    table = "".join(f'    "{name}": {value},\n' for name, value in values)
    return SWEEP.format(setup=f"values = {{\n{table}}}\n" if values else "", change=change)


def locate(brief: Mapping[str, Any], names: Sequence[str]) -> Generator[Step, str, dict[str, str]]:
    """Learn by one search which files define some functions, unless the brief names the file: name -> path."""
    if "path" in brief:
        return dict.fromkeys(names, brief["path"])
    found = hits((yield search(brief["pattern"])), r"^def (\w+)\(")
    return {line[1]: path for path, line in found if line[1] in names}


def look(brief: Mapping[str, Any], names: Sequence[str]) -> Generator[Step, str, dict[str, str]]:
    """Learn by one program which files define some functions, and their text: path -> text."""
    program = SHOW_FILE.format(**brief) if "path" in brief else show_files(rf"^def ({'|'.join(names)})\(")
    return shown_files((yield run_python(program)))


def show_files(pattern: str) -> str:
    """A program that prints every file of the workspace in which a line matches a regular expression."""
    return SHOW_FILES.format(pattern=pattern)


def shown_files(observation: str) -> dict[str, str]:
    """What a program of `show_files` printed: path -> text."""
    _, *parts = re.split(r"^# (\S+\.py)$", observation, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def substitute(*edits: tuple[str, str, str]) -> str:
    """A program that replaces texts in files, given as (path, old, new)."""
    lines = ["from pathlib import Path\n"]
    for path, old, new in edits:
        lines += [f'path = Path("{path}")', f"path.write_text(path.read_text().replace({old!r}, {new!r}))"]
    return "\n".join(lines) + "\n"


def listed(items: Sequence[str]) -> str:
    """One sentence part out of several: "a, b and c"."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
