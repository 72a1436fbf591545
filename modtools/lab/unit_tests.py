"""The unit tests of a package: every definition is tried on its probes, against the values it gives now.

A line that holds an expected value never names the function: the name and the values of a test cannot
be had by one search for the name, so a test tells nothing more cheaply than the code it tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from modtools.lab.packages import Definition, Package


@dataclass(frozen=True)
class Check:
    """One more test, of what must be refused after the change: an attribute that is gone, a way of calling.

    Attributes:
        module: whose test file it belongs to.
        name: of the test method, without "test_".
        refused: an expression on the module that must raise AttributeError or TypeError.
    """

    module: str
    name: str
    refused: str

    @property
    def statements(self) -> Sequence[str]:
        """The test's lines."""
        return ("with self.assertRaises((AttributeError, TypeError)):", f"    {self.module}.{self.refused}")


@dataclass(frozen=True)
class Claim:
    """One more test, of what must hold after the change and no call of a definition shows.

    Attributes:
        module: whose test file it belongs to.
        name: of the test method, without "test_".
        statements: the test's lines; the module is imported under its name.
    """

    module: str
    name: str
    statements: Sequence[str]


def tests_path(module: str) -> str:
    """Where the tests of a module lie in the workspace."""
    return f"tests/test_{module}.py"


def unit_tests(package: Package, checks: Sequence[Check | Claim] = ()) -> dict[str, str]:
    """Path -> text of one test file a module, and of `tests/__init__.py`; the package passes them all."""
    loaded = package.load()
    files = {"tests/__init__.py": f'"""Tests of the {package.name}."""\n'}
    for name, module in package.modules.items():
        methods = [_method(each.name, _value_lines(name, each, loaded[name])) for each in module.definitions]
        methods += [_method(check.name, check.statements) for check in checks if check.module == name]
        files[tests_path(name)] = (
            f'"""Tests of {package.name}.{name}."""\n\n'
            f"import unittest\n\nfrom {package.name} import {name}\n\n\n"
            f"class {name.capitalize()}Test(unittest.TestCase):\n" + "\n".join(methods)
        )
    return files


def _value_lines(module: str, definition: Definition, loaded: ModuleType) -> list[str]:
    """The statements that try one definition of a module that was executed."""
    subject = getattr(loaded, definition.name)
    values = [eval("subject" + probe, {"subject": subject}) for probe in definition.probes]
    return [f"subject = {module}.{definition.name}"] + [
        f"self.assertEqual(subject{probe}, {value!r})" for probe, value in zip(definition.probes, values, strict=True)
    ]


def _method(name: str, body: Sequence[str]) -> str:
    return f"    def test_{name.lower()}(self):\n" + "".join(f"        {line}\n" for line in body)
