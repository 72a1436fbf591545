"""Your own tasks: one folder a task, read, proven like the lab's, and packed into one file that a run can take.

    my-tasks/                    a set of tasks; its name is their family
        round-up/                one task; its name is the task's id
            task.toml            text = "what the model is told", c = 2, and u = 1 (the distinct edits)
            workspace/           what the model finds: one folder with the package, and tests/
            reference.py         operations() and programs(), generators of steps: the solution on each surface

A reference yields steps of `modtools.lab.families.family` (search, read, replace, write, run_python) and is sent the
observation of each, "" where it is withheld. It must get what it needs from the text and its observations; then
dropping a call makes it fail, and that is how c is proven. A reference is Python of yours and is run as such, in this
process: import no tasks from people whose programs you would not run.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from modtools.errors import RecordError, UsageError
from modtools.lab.tasks import Task, own_reference
from modtools.lab.verify import expected_tests
from modtools.records import read_lines, write_whole

MAX_FILE_BYTES = 200_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")
_IGNORED = {"__pycache__", ".pytest_cache", ".DS_Store"}


def read_tasks(folder: Path) -> list[Task]:
    """The tasks of a set, by name.

    Raises:
        UsageError: where the folder is none, or a task in it is not as it must be; all of them are named at once.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; expected one with a sub-folder for each task")
    homes = sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in _IGNORED)
    if not homes:
        raise UsageError(f"{folder} holds no tasks; expected a sub-folder for each, with task.toml in it")
    tasks, problems = [], []
    for home in homes:
        try:
            tasks.append(read_task(home, family=folder.resolve().name))
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("; ".join(problems))
    return tasks


def read_task(home: Path, family: str) -> Task:
    """The task in a folder.

    Raises:
        UsageError: where something is missing or wrong; it names the file.
    """
    if not _NAME.fullmatch(home.name):
        raise UsageError(f"{home}: the name of a task has lower-case letters, digits, - and _ only")
    facts = _facts(home / "task.toml")
    workspace = _texts(home / "workspace")
    tests = {path: text for path, text in workspace.items() if path.startswith("tests/")}
    files = {path: text for path, text in workspace.items() if path not in tests}
    packages = {path.split("/")[0] for path in files if "/" in path}
    if len(packages) != 1 or any("/" not in path for path in files):
        found = ", ".join(sorted({path.split("/")[0] for path in files})) or "nothing"
        raise UsageError(f"{home / 'workspace'}: expected tests/ and one folder with the package, found {found}")
    if f"{next(iter(packages))}/__init__.py" not in files:
        raise UsageError(f"{home / 'workspace'}: the package has no __init__.py")
    try:
        decided = list(expected_tests(tests))
    except SyntaxError as error:
        raise UsageError(f"{home / 'workspace' / 'tests'}: a test is no Python: {error}") from None
    if not decided:
        raise UsageError(f"{home / 'workspace' / 'tests'}: no test method of a unittest.TestCase, and those decide")
    if "tests/__init__.py" not in tests:
        tests = {"tests/__init__.py": "", **tests}
    try:
        source = (home / "reference.py").read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{home / 'reference.py'} cannot be read: {error}") from None
    task = Task(home.name, family, facts["c"], facts["u"], 0, facts["text"], files, tests, {}, source)
    own_reference(task)  # raises where it does not load
    return task


def write_set(tasks: Sequence[Task], path: Path) -> None:
    """Write tasks into one file of JSON lines."""
    write_whole(path, "".join(json.dumps(asdict(task), ensure_ascii=False) + "\n" for task in tasks))


def read_set(path: Path) -> tuple[Task, ...]:
    """The tasks of a file that `write_set` wrote.

    Raises:
        RecordError: where a line is no task, or a name stands twice.
    """
    path = Path(path)
    if not path.is_file():
        raise RecordError(f"{path} is no file of tasks; make one: modtools lab import DIR --out {path.name or 'FILE'}")
    tasks = tuple(task_of(record, f"{path}, line {number}") for number, record in enumerate(read_lines(path), 1))
    if not tasks:
        raise RecordError(f"{path} holds no tasks")
    return tasks


def task_of(record: Mapping[str, Any], where: str) -> Task:
    """A task from its fields as plain data.

    Raises:
        RecordError: where it is none.
    """
    try:
        task = Task(**record)
        if isinstance(task.c, int) and task.c >= 1 and task.files and task.tests and task.package:
            return task
    except (TypeError, AttributeError, UsageError):
        pass
    raise RecordError(f"{where}: no task of this version of modtools; import it again: modtools lab import DIR")


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is missing; it needs text and c") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    if unknown := sorted(set(facts) - {"text", "c", "u"}):
        raise UsageError(f"{path}: unknown {', '.join(unknown)}; expected text, c and u")
    facts = {"u": 1, **facts}
    if not isinstance(facts.get("text"), str) or not facts["text"].strip():
        raise UsageError(f"{path}: text is what the model is told; expected a text")
    whole = [type(facts.get(name)) is int for name in ("c", "u")]
    if not all(whole) or not 1 <= facts["u"] <= facts["c"] <= 50:
        raise UsageError(
            f"{path}: c is {facts.get('c')!r} and u {facts['u']!r}; expected whole numbers, 1 <= u <= c <= 50"
        )
    return facts


def _texts(workspace: Path) -> dict[str, str]:
    """Path -> text of every file of a workspace."""
    if not workspace.is_dir():
        raise UsageError(f"{workspace} is missing; it holds the package and tests/")
    texts = {}
    for path in sorted(workspace.rglob("*")):
        name = path.relative_to(workspace).as_posix()
        if path.is_symlink():
            raise UsageError(f"{path} is a link; a workspace holds files only")
        if path.is_dir() or _IGNORED & set(path.parts):
            continue
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise UsageError(f"{path} has more than {MAX_FILE_BYTES} bytes")
            texts[name] = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} is no UTF-8 text: {error}") from None
    return texts
