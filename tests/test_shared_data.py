"""The public cases beside the checkout: each that concerns what is built has its test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COVERED = set(range(1, 16)) - {2, 4}  # these two wait for MCP servers


def _marked_cases() -> set[int]:
    """The n of every @pytest.mark.case(n, ...) on a test of the suite."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case":
                        found |= {argument.value for argument in mark.args}
    return found


def test_each_covered_pipeline_case_is_listed_and_has_a_test(shared):
    listed = {int(n) for n in re.findall(r"(?m)^(\d+)\. ", (shared / "cases/pipeline.md").read_text(encoding="utf-8"))}
    assert COVERED <= listed
    assert COVERED - _marked_cases() == set(), "no test is marked pytest.mark.case(n) for these"
    assert _marked_cases() <= listed, "tests are marked with cases that the list does not have"
