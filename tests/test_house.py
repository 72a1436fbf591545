"""The rules of the house: what may import what, how long a file is, what every public name must have."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from modtools.teaching.setup_cell import BRANCH, REPOSITORY, badge

ROOT = Path(__file__).resolve().parents[1]

# A module may import its own folder and lower floors.
FLOORS = {
    "errors": 0,
    "contract": 1,
    "digests": 1,
    "results": 1,
    "records": 1,
    "figures": 1,
    "masking": 1,
    "sandbox": 1,
    "models": 2,
    "schemas": 2,
    "catalogue": 2,
    "pipeline": 3,
    "surfaces": 4,
    "protocols": 4,
    "lab": 5,
    "teaching": 6,
    "cli": 7,
    "__init__": -1,
}
HEAVY = {
    "torch",
    "transformers",
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "seaborn",
    "statsmodels",
    "jsonschema",
    "pydantic",
    "ipywidgets",
    "IPython",
    "nbformat",
    "jupytext",
    "typer",
    "rich",
    "yaml",
}
MAX_LINES = 300
SOURCES = sorted((ROOT / "modtools").rglob("*.py"))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported(path: Path) -> Iterator[str]:
    """Every module that `path` imports, at any depth of it: "json", "modtools.pipeline.parse"."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; spell it modtools.…"
            yield from (f"modtools.{name.name}" for name in node.names) if node.module == "modtools" else [node.module]


def _inside(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_imports_run_downwards():
    wrong = []
    for path in SOURCES:
        parts = path.relative_to(ROOT / "modtools").with_suffix("").parts
        for name in _imported(path):
            package, _, inner = name.partition(".")
            target = inner.split(".")[0]
            if package != "modtools" or not target or target.startswith("__"):
                continue
            same_folder = target == parts[0] or (len(parts) == 1 and (ROOT / f"modtools/{target}.py").exists())
            floor = FLOORS[parts[0]]
            if not (FLOORS[target] < floor or (same_folder and FLOORS[target] == floor)):
                wrong.append(f"{_inside(path)} imports {name}")
    assert wrong == []


def test_a_file_is_one_concept_and_short():
    lengths = {_inside(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_every_file_and_every_public_name_says_what_it_is():
    silent = []
    for path in SOURCES:
        tree = _tree(path)
        defined = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        silent += [_inside(path)] * (not ast.get_docstring(tree))
        silent += [
            f"{_inside(path)}: {node.name}" for node in defined if node.name[0] != "_" and not ast.get_docstring(node)
        ]
    assert silent == []


def test_no_error_is_swallowed():
    swallowed = []
    for path in SOURCES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ExceptHandler):
                catches_all = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
                only_passes = all(isinstance(statement, ast.Pass) for statement in node.body)
                if node.type is None or (catches_all and only_passes):
                    swallowed.append(f"{_inside(path)}, line {node.lineno}")
    assert swallowed == []


def test_importing_the_kit_loads_nothing_heavy():
    code = "import json, sys, modtools, modtools.contract, modtools.figures; print(json.dumps([*sys.modules]))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True).stdout)
    assert HEAVY & {name.split(".")[0] for name in loaded} == set()


def _texts() -> Iterator[tuple[str, str]]:
    """Every text file of the repository: (path in it, content)."""
    folders = (".ci", "course", "exercises", "modtools", "notebooks", "solutions", "tests")
    paths = [*ROOT.glob("*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        content = path.read_bytes()
        if b"\0" not in content:
            yield path.relative_to(ROOT).as_posix(), content.decode("utf-8")


def test_no_file_names_a_folder_of_the_machine_it_was_written_on():
    folders = {str(ROOT), sys.prefix, os.path.realpath(sys.executable)}
    pattern = "|".join(re.escape(folder) for folder in folders)
    assert [name for name, text in _texts() if re.search(pattern, text)] == []
    homes = re.compile(r"(?<![\w/])/(root|home|Users)/|[A-Z]:\\\\+Users")
    assert [name for name, text in _texts() if name.endswith(".ipynb") and homes.search(text)] == []


def test_the_address_of_the_repository_stands_in_one_place():
    spelled = [name for name, text in _texts() if REPOSITORY in text and not name.endswith(".ipynb")]
    assert spelled == ["modtools/teaching/setup_cell.py"]


def test_every_badge_opens_a_file_of_the_repository():
    badges = {
        name: re.findall(r"colab\.research\.google\.com/github/([^)\s\"]+)", text)
        for name, text in _texts()
        if name.endswith((".ipynb", ".md"))
    }
    prefix = f"{REPOSITORY.removeprefix('https://github.com/')}/blob/{BRANCH}/"
    for name, targets in badges.items():
        if name.endswith(".ipynb"):
            assert targets == [prefix + name] and badge(name)
        for target in targets:
            assert target.startswith(prefix) and (ROOT / target.removeprefix(prefix)).is_file(), f"{name}: {target}"


def _name(requirement: str) -> str:
    """The normalised name of a distribution: "huggingface-hub"."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[]", requirement)[0]).lower()


def _requirements() -> tuple[set[str], set[str]]:
    """The names that pyproject.toml lists: for the library, and for its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sum(project["optional-dependencies"].values(), [])
    return {_name(entry) for entry in project["dependencies"]}, {_name(entry) for entry in extras} - {"modtools"}


def test_every_requirement_is_pinned_for_every_platform():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set.union(*_requirements()) - {_name(name) for name in pins} == set()
    assert [version for version in pins.values() if "+" in version] == [], "a local version is for one platform only"


def test_the_library_requires_what_it_imports_and_nothing_else():
    roots = {name.split(".")[0] for path in SOURCES for name in _imported(path)}
    providers = importlib.metadata.packages_distributions()
    imported = {_name(providers[root][0]) for root in roots - sys.stdlib_module_names - {"__future__", "modtools"}}
    needed, extra = _requirements()
    assert imported - needed - extra == set(), "imported, not required"
    # transformers reads GGUF files with accelerate and gguf; the notebooks import ipywidgets.
    assert needed - imported <= {"accelerate", "gguf", "ipywidgets"}, "required, not imported"
