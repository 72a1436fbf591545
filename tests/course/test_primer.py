"""The primer's lines run, and print what stands under them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).resolve().parents[2] / "course" / "primer.md").read_text(encoding="utf-8")
PAIRS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)
TITLES = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)


def test_every_part_has_lines_that_run():
    assert len(PAIRS) == len(TITLES) == 6 and TEXT.count("```") == 4 * len(PAIRS)


@pytest.mark.parametrize(("code", "printed"), PAIRS, ids=TITLES)
def test_the_lines_print_what_stands_under_them(code, printed):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "primer", "exec"), {"__name__": "primer"})
    assert out.getvalue() == printed


def test_a_part_is_about_half_a_page():
    parts = re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]
    assert all(100 < len(part.split()) < 300 for part in parts)


def test_the_bootstrap_of_few_binary_pairs_covers_less_than_it_says():
    import numpy as np

    rng, covered, repetitions = np.random.default_rng(0), 0, 3000
    for _ in range(repetitions):
        pairs = rng.choice([-1, 0, 1], size=12, p=[0.2, 0.5, 0.3])
        means = pairs[rng.integers(12, size=(400, 12))].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        covered += low <= 0.1 <= high
    assert 0.89 < covered / repetitions < 0.925
