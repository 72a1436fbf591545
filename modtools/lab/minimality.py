"""Whether the things a reference must learn really take one call each.

A search shows the lines of all files that contain a literal text, so one search might show two secrets at
once. Every pattern that the lines share is tried whose words a reference knows (words of Python, of the task's
text, of the secrets learnt before; punctuation is free). A longer pattern matches fewer lines, hence if any
such search shows all the lines, then so does one for a *longest* shared pattern.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from modtools.lab.families.family import Draft, Secret
from modtools.lab.unit_tests import tests_path
from modtools.surfaces.operations import MAX_MATCHES

WORD = re.compile("[A-Za-z]+|[0-9]+")
PYTHON_WORDS = " ".join([*keyword.kwlist, *dir(builtins), "self unittest TestCase assertEqual"])


@dataclass(frozen=True)
class Line:
    """A line of a file."""

    path: str
    number: int
    text: str


def is_minimal(draft: Draft, files: Mapping[str, str]) -> bool:
    """True where no single search of the files (tests included) shows secrets of two groups."""
    lines = [Line(path, *line) for path in sorted(files) for line in enumerate(files[path].splitlines(), 1)]
    groups = [
        [way for secret in group for way in _ways(secret, draft.before.path(secret.module), lines)]
        for group in draft.secrets
    ]
    known = f"{PYTHON_WORDS} {draft.text}"
    for index, group in enumerate(groups):
        for other in groups[index + 1 :]:
            if any(one_search_shows(lines, way + other_way, known) for way, other_way in product(group, other)):
                return False
        known = " ".join([known, *(line.text for way in group for line in way)])
    return True


def _ways(secret: Secret, path: str, lines: Sequence[Line]) -> list[list[Line]]:
    """The groups of lines each of which tells the secret when it is seen whole."""
    test = [line for line in lines if line.path == tests_path(secret.module)]
    module = [line for line in lines if line.path == path]
    start = next(line.number for line in test if line.text.strip() == f"def test_{secret.tested}(self):")
    stop = next((line.number for line in test if line.number > start and "def test_" in line.text), len(test) + 1)
    values = [line for line in test[start : stop - 1] if "assertEqual" in line.text]
    told = [[line] for line in module + test if re.search(secret.told_by, line.text)]
    return [values, *told] if values else told  # a claim's test holds no values


def one_search_shows(lines: Sequence[Line], wanted: Sequence[Line], known: str) -> bool:
    """True where some search shows all wanted lines; `lines` are all lines in a search's order."""
    for pattern in shared_patterns([line.text for line in wanted], known):
        shown = set(islice((line for line in lines if pattern in line.text), MAX_MATCHES))
        if shown.issuperset(wanted):
            return True
    return False


def shared_patterns(texts: Sequence[str], known: str) -> set[str]:
    """The longest patterns contained in each of `texts` that are made of known words and other characters."""
    words = set(WORD.findall(known.lower()))
    first, *others = texts
    pieces = re.findall(f"{WORD.pattern}|.", first)
    shared: set[str] = set()
    for start in range(len(pieces)):
        for end in range(start + 1, len(pieces) + 1):
            pattern = "".join(pieces[start:end])
            if not all(pattern in other for other in others) or not words.issuperset(WORD.findall(pattern.lower())):
                break
            shared.add(pattern)
    return {pattern for pattern in shared if not any(pattern != other and pattern in other for other in shared)}
