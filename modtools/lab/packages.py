"""A generated Python package as data: modules of constants, functions and small classes.

A task states the same package before and after a change. Both are built from these parts, and the
changed one is executed in memory, so that what its tests expect is never worked out a second time.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace


@dataclass(frozen=True)
class Definition:
    """A function or class, with ways to try it.

    Attributes:
        name: as the source defines it.
        source: its text, from `def` or `class` to the last line.
        probes: expressions that follow the name in a test, e.g. "(3)" or "(2).add(5).total()";
            their values are plain data.
    """

    name: str
    source: str
    probes: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """One file: a docstring, modules imported from the same package, integer constants, definitions."""

    name: str
    summary: str
    imports: tuple[str, ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()

    def text(self) -> str:
        """The file's text."""
        head = [f'"""{self.summary}"""']
        if self.imports:
            head.append("from . import " + ", ".join(sorted(self.imports)))
        if self.constants:
            head.append("\n".join(f"{name} = {value}" for name, value in self.constants.items()))
        return "\n\n\n".join(["\n\n".join(head), *(each.source.rstrip() for each in self.definitions)]) + "\n"


@dataclass(frozen=True)
class Package:
    """Modules in an order in which each imports earlier ones only; every change gives a new package."""

    name: str
    summary: str
    modules: Mapping[str, Module]

    def path(self, module: str) -> str:
        """The path of a module's file in the workspace, e.g. "depot/orders.py"."""
        return f"{self.name}/{module}.py"

    def files(self) -> dict[str, str]:
        """Path -> text of every file, `__init__.py` (a docstring) included."""
        files = {self.path("__init__"): f'"""{self.summary}"""\n'}
        return files | {self.path(name): module.text() for name, module in self.modules.items()}

    def plus(
        self,
        module: str,
        *definitions: Definition,
        constants: Mapping[str, int] | None = None,
        imports: tuple[str, ...] = (),
        at: int | None = None,
    ) -> Package:
        """With more parts in one module, its definitions inserted at index `at` (default: the end)."""
        old = self.modules[module]
        at = len(old.definitions) if at is None else at
        return self.with_module(
            replace(
                old,
                imports=tuple(dict.fromkeys(old.imports + imports)),
                constants={**old.constants, **(constants or {})},
                definitions=(*old.definitions[:at], *definitions, *old.definitions[at:]),
            )
        )

    def with_module(self, module: Module) -> Package:
        """With a module put in place of the one of that name, or added at the end."""
        return replace(self, modules={**self.modules, module.name: module})

    def load(self) -> dict[str, ModuleType]:
        """Execute the package in memory, touching neither the disk nor `sys.modules`: name -> module."""
        loaded: dict[str, ModuleType] = {}

        def importer(name, globals=None, locals=None, fromlist=(), level=0):
            if level:  # `from . import orders`: the package's own modules, all earlier in the order
                return SimpleNamespace(**loaded)
            return builtins.__import__(name, globals, locals, fromlist, level)

        for name, module in self.modules.items():
            loaded[name] = ModuleType(f"{self.name}.{name}")
            vars(loaded[name])["__builtins__"] = {**vars(builtins), "__import__": importer}
            exec(compile(module.text(), self.path(name), "exec"), vars(loaded[name]))
        return loaded
