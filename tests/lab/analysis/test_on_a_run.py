"""The analysis reads what a run writes: a model that only talks, on real tasks and surfaces."""

from __future__ import annotations

import pytest

from modtools.lab.analysis.costs import cost_parts
from modtools.lab.analysis.crossover import crossover
from modtools.lab.analysis.hypotheses import decide
from modtools.lab.analysis.pass_k import pass_k
from modtools.lab.analysis.recovery import natural
from modtools.lab.plan import Plan
from modtools.lab.run import read_run, run
from modtools.models.scripted import ScriptedModel
from modtools.sandbox import strongest_level


@pytest.fixture(scope="module")
def talked(tmp_path_factory) -> list[dict]:
    out = tmp_path_factory.mktemp("talked")
    plan = Plan(per_stratum=1, surfaces=("fine", "code", "coarse"))
    run(plan, ScriptedModel(lambda messages: "I see.", name="talker"), out, strongest_level())
    return read_run(out)[1]


def test_a_floor_is_analysed_and_decides_nothing_about_success(talked):
    h1, h2, h3, h4 = decide(talked, [], {"H1": 0.03, "H2": 5, "H3": 0.1, "H4": 0.03})
    assert [f.contrast.outcome for f in (h1, h2, h3)] == ["no variation", "no variation", "surface missing"]
    assert [f.verdict for f in (h1, h2, h3)] == ["undecided"] * 3
    assert (h1.contrast.n, h1.check.outcome) == (5, "separated")
    assert h4.contrast.estimate is not None


def test_its_costs_errors_and_attempts_are_told(talked):
    for parts in cost_parts(talked).values():
        assert sum(e.value for part, e in parts.items() if part != "total") == pytest.approx(parts["total"].value)
    found = natural(talked)
    assert [(f.error_rate.value, f.met.value, f.recovered.value) for f in found.values()] == [(1.0, 1.0, 0.0)] * 3
    assert pass_k(talked, "fine", 1).at_k.value == 0.0
    assert crossover(talked).c_star is None
