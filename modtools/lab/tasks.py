"""Tasks of Lab 2: a small package, what the model is told, and the unit tests that decide.

c, the stratum, is the least number of fine-surface calls that a reference needs which sees only the text, the
list of files and its earlier observations; each family states why. Two things are left out of the count:
- Patching. A call changes what *its own* file defines; a file that rewrites its neighbours when it is imported
  is a program in disguise, and programs are what the code surface measures. (The verifier makes it hard.)
- Running the tests, which is no counted call: a failing test may show a place that else takes a search.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from modtools import contract
from modtools.errors import UsageError
from modtools.lab.families import FAMILIES
from modtools.lab.families.family import Draft, Reference
from modtools.lab.minimality import is_minimal
from modtools.lab.unit_tests import unit_tests
from modtools.surfaces import SURFACES

STRATA = (1, 2, 3, 5, 8)
BUILD_ATTEMPTS = 500
MOST_TASKS = 1000  # in one draw, so that draws with different seeds have none in common


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        id: family, stratum and seed, e.g. "rename-5-0017".
        family: a name of FAMILIES.
        c: least number of fine-surface calls, the stratum.
        u: distinct edits; one edit applied at several places counts once.
        seed: from which family, stratum and seed give everything else.
        text: what the model is told.
        files: path -> text of the package, one folder.
        tests: path -> text of the unit tests, under tests/; the workspace holds them too.
        brief: the facts of the text that a reference may use; every value stands in the text.
        own_solution: of a task of one's own, the source of its references (see `lab.own_tasks`); "" for a generated one.
    """

    id: str
    family: str
    c: int
    u: int
    seed: int
    text: str
    files: Mapping[str, str]
    tests: Mapping[str, str]
    brief: Mapping[str, Any]
    own_solution: str = ""

    def __post_init__(self):
        missing = [leaf for leaf in _leaves(self.brief) if leaf not in self.text]
        if missing:
            raise UsageError(f"task {self.id}: the brief holds {missing}; expected values that stand in the text")

    @property
    def r(self) -> float:
        """Repetitions: calls for each distinct edit."""
        return self.c / self.u

    @property
    def package(self) -> str:
        """The folder of the package."""
        return next(iter(self.files)).split("/")[0]

    @property
    def digest(self) -> str:
        """SHA-256 over everything that a run depends on."""
        return contract.digest(vars(self))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, str):
        yield value
    else:
        for item in value:
            yield from _leaves(item)


def generate(family: str, c: int, seed: int) -> Task:
    """The task of a family, stratum and seed; the same arguments always give the same task.

    Raises:
        UsageError: an unknown family, or a stratum that the family does not offer.
    """
    draft, files, tests, _ = drafted(family, c, seed)
    return Task(f"{family}-{c}-{seed:04d}", family, c, draft.u, seed, draft.text, files, tests, draft.brief)


def drafted(family: str, c: int, seed: int) -> tuple[Draft, dict[str, str], dict[str, str], int]:
    """(draft, files, tests, drafts tried) of a task: the first draft of its seed that is minimal; errors as `generate`."""
    if family not in FAMILIES:
        raise UsageError(f"unknown family {family!r}; choose one of {', '.join(FAMILIES)}")
    if c not in FAMILIES[family].strata:
        offered = ", ".join(map(str, FAMILIES[family].strata))
        raise UsageError(f"family {family} has no stratum {c!r}; choose one of {offered}")
    rng = Random(f"{family}/{c}/{seed}")
    for tried in range(1, BUILD_ATTEMPTS + 1):
        draft = FAMILIES[family].build(rng, c)
        files, tests = draft.before.files(), unit_tests(draft.after, draft.checks)
        if is_minimal(draft, files | tests):
            return draft, files, tests, tried
    raise RuntimeError(f"family {family}, stratum {c}, seed {seed}: {BUILD_ATTEMPTS} drafts, none of them minimal")


def task_by_id(name: str) -> Task:
    """The task that an id such as "rename-5-0017" names.

    Raises:
        UsageError: where it is no such id.
    """
    family, _, rest = name.partition("-")
    c, _, seed = rest.partition("-")
    if not (c.isdecimal() and seed.isdecimal()):
        raise UsageError(f"task id {name!r}: expected family, stratum and seed, such as rename-5-0017")
    return generate(family, int(c), int(seed))


def draw(per_stratum: int, seed: int, strata: Sequence[int] = STRATA) -> list[Task]:
    """Tasks for a run: `per_stratum` in each stratum, spread evenly over the families that offer it.

    Draws with different seeds have no task in common.
    """
    if per_stratum < 1 or per_stratum * len(strata) > MOST_TASKS:
        raise UsageError(f"{per_stratum} tasks a stratum: expected 1 to {MOST_TASKS // len(strata)}")
    tasks = []
    for c in strata:
        offering = [family.name for family in FAMILIES.values() if c in family.strata]
        if not offering:
            raise UsageError(f"no family has stratum {c!r}; choose from {', '.join(map(str, STRATA))}")
        Random(f"{seed}/{c}").shuffle(offering)
        for index in range(per_stratum):
            tasks.append(generate(offering[index % len(offering)], c, 1000 * seed + len(tasks)))
    return tasks


def reference(task: Task, surface: str) -> Reference:
    """The reference solution: steps out, the observation of each sent back in ("" where it is withheld).

    On "coarse" and "fine" the steps are the same canonical operations; on "code" they are programs.
    """
    if surface not in SURFACES:
        raise UsageError(f"unknown surface {surface!r}; choose one of {', '.join(SURFACES)}")
    if task.own_solution:
        return own_reference(task)["programs" if surface == "code" else "operations"]()
    family = FAMILIES[task.family]
    return family.programs(task.brief) if surface == "code" else family.operations(task.brief)


def own_reference(task: Task) -> dict[str, Callable[[], Reference]]:
    """The generator functions "operations" and "programs" of a task's own solution.

    Raises:
        UsageError: where its source does not run, or does not define the two.
    """
    names: dict[str, Any] = {"__name__": f"{task.id}.reference"}
    try:
        exec(compile(task.own_solution, f"{task.id}/reference.py", "exec"), names)
    except Exception as error:  # whatever a program of somebody's does
        raise UsageError(f"{task.id}/reference.py does not run: {type(error).__name__}: {error}") from None
    missing = [name for name in ("operations", "programs") if not inspect.isgeneratorfunction(names.get(name))]
    if missing:
        raise UsageError(f"{task.id}/reference.py: {' and '.join(missing)} must be a function that yields steps")
    return {name: names[name] for name in ("operations", "programs")}


def materialise(task: Task, folder: Path) -> None:
    """Write package and tests into a folder that is new or empty."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; give a new or empty folder for task {task.id}")
    for path, text in {**task.files, **task.tests}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
