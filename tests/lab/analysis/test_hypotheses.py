"""Verdicts on runs with a planted truth: right ones, none by chance, and reasons where there is no test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats import multitest

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.by_task import pair
from modtools.lab.analysis.gee import interaction
from modtools.lab.analysis.hypotheses import HYPOTHESES, call_tokens, decide, success
from modtools.lab.analysis.paired import compare
from modtools.lab.analysis.power import Design, achieved_power
from modtools.lab.analysis.slopes import slope_on_c

SMALLEST = {"H1": 0.03, "H2": 5.0, "H3": 0.15, "H4": 0.03}


def planted(run, sign: int, seed: int = 0, tasks: int = 60) -> tuple[list, list]:
    """A run and a fault run in which every hypothesis holds (sign 1), is wrong (-1), or no surface differs (0)."""
    slope = {"code": 0.04 * sign, "fine": -0.04 * sign, "coarse": 0.0}
    factor = {"code": -0.1 * sign, "fine": 0.1 * sign, "coarse": 0.4 * sign}

    def cost(surface: str, c: int) -> float:
        return 300 * np.exp(factor[surface] * (1 if surface == "coarse" else c))

    records = run(lambda s, c: 0.5 + slope[s] * (c - 4), cost, tasks, seed=seed)
    for record in records:  # H2 is about call tokens, so fine must not grow past coarse in them
        record["tokens"]["call"] = 100 * np.exp(0.5 * sign * (record["surface"] == "coarse")) + len(record["task"])
    rng = np.random.default_rng(seed + 1000)
    recovery = {"fine": 0.5 + 0.25 * sign, "coarse": 0.5 - 0.25 * sign, "code": 0.5}
    faults = []
    for record in records:
        record["tokens"]["call"] += 10 * rng.standard_normal()
        recovered = bool(rng.random() < recovery[record["surface"]])
        fault = {"turn": 0, "operation": "d", "recovered": recovered} if rng.random() < 0.9 else None
        faults.append(record | {"fault": fault})
    return records, faults


@pytest.mark.parametrize(("sign", "verdict"), [(1, "supported"), (-1, "contradicted")])
def test_a_planted_truth_is_found(run, sign, verdict):
    findings = decide(*planted(run, sign), SMALLEST)
    assert [f.hypothesis.name for f in findings] == ["H1", "H2", "H3", "H4"]
    assert [f.verdict for f in findings] == [verdict] * 4
    for finding in findings:
        assert finding.contrast.low < finding.contrast.estimate < finding.contrast.high
        assert finding.contrast.boot_low < finding.contrast.estimate < finding.contrast.boot_high
        assert finding.contrast.p <= finding.p_holm < 0.05
        assert finding.smallest == finding.hypothesis.predicted * SMALLEST[finding.hypothesis.name]
        assert 0 < finding.power.value <= 1
    assert [f.check is not None for f in findings] == [True, False, False, False]
    assert findings[0].check.outcome == "estimated" and sign * findings[0].check.estimate > 0


def test_each_estimand_is_the_one_planned(run):
    records, faults = planted(run, 1)
    h1, h2, h3, h4 = decide(records, faults, SMALLEST)
    assert h1.contrast == slope_on_c(records, "code", "fine", success)
    assert h1.check == interaction(records, "code", "fine")
    assert h2.contrast == compare(records, "coarse", "fine", call_tokens)
    met = [record for record in faults if record["fault"]]
    assert h3.contrast == compare(met, "fine", "coarse", lambda r: float(r["fault"]["recovered"]))
    assert h4.contrast == slope_on_c(records, "code", "fine", lambda r: sum(r["tokens"].values()), "log ratio")
    adjusted = multitest.multipletests([f.contrast.p for f in (h1, h2, h3, h4)], method="holm")[1]
    assert [f.p_holm for f in (h1, h2, h3, h4)] == pytest.approx(list(adjusted))
    count = {s: sum(r["surface"] == s for r in met) for s in ("fine", "coarse")}
    assert h3.notes[0].endswith(f"fine {count['fine']} of 300, coarse {count['coarse']} of 300")
    whole = compare(faults, "fine", "coarse", lambda r: float(bool(r["fault"]) and r["fault"]["recovered"]))
    assert h3.notes[1] == f"the others are left out; counted as not recovered they give {whole.text()}"


def test_power_is_at_the_level_of_holms_first_step(run):
    records, faults = planted(run, 0, tasks=20)
    h1, h2, h3, h4 = decide(records, faults, SMALLEST)
    for finding, left, right in ((h2, "coarse", "fine"), (h3, "fine", "coarse")):
        of = [r for r in faults if r["fault"]] if finding is h3 else records
        pairs = pair(of, left, right, finding.hypothesis.quantity)
        design = Design("mean", SMALLEST[finding.hypothesis.name], alpha=0.0125)
        assert finding.power == achieved_power(pairs.c, pairs.contrasts(), design)
        assert 0 < finding.power.value < 1
    assert 0 < h1.power.value < 1 and h4.power.tasks == 20


@pytest.mark.whole
def test_nothing_is_found_where_nothing_is(run):
    """Family-wise error over 300 runs without any effect: at most alpha, as far as 300 can tell."""
    wrong = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        records, faults = planted(run, 0, seed, tasks=20) if seed < 20 else _flat(rng)
        wrong += any(f.verdict != "undecided" for f in decide(records, faults, SMALLEST, simulations=2))
    assert wrong <= binom.ppf(0.999, 300, 0.05)


def _flat(rng) -> tuple[list, list]:
    """A small run without effects, quick to make: one seed, 20 tasks."""
    records = [
        {"arm": "a", "task": f"t{i:02d}", "surface": s, "seed": 0, "stratum": (1, 2, 3, 5, 8)[i % 5], "u": 1,
         "success": bool(rng.random() < 0.5), "tokens": {"call": rng.gamma(4, 20), "prompt": rng.gamma(4, 90)}}
        for i in range(20) for s in ("coarse", "fine", "code")
    ]  # fmt: skip
    return records, [
        r | {"fault": {"turn": 0, "operation": "d", "recovered": bool(rng.random() < 0.5)}} for r in records
    ]


def test_the_exact_entropy_is_taken_off_and_equal_values_change_nothing(run):
    records, faults = planted(run, 1, tasks=20)
    plain = decide(records, faults, SMALLEST)[1]
    same = decide(records, faults, SMALLEST, {"coarse": 7.0, "fine": 7.0})[1]
    other = decide(records, faults, SMALLEST, {"coarse": 10.0, "fine": 7.0})[1]
    assert same.contrast.estimate == pytest.approx(plain.contrast.estimate)
    assert other.contrast.estimate == pytest.approx(plain.contrast.estimate - 3)
    assert "taken as 0" in plain.notes[0] and same.notes[0] == "H/b in tokens: coarse 7, fine 7"
    with pytest.raises(UsageError, match="not for fine"):
        decide(records, faults, SMALLEST, {"coarse": 10.0})


def test_a_missing_surface_is_named_and_keeps_the_family_at_four(run):
    records, _ = planted(run, 1)
    without = [record for record in records if record["surface"] != "code"]
    h1, h2, h3, h4 = decide(without, [], SMALLEST)
    assert [f.contrast.outcome for f in (h1, h2, h3, h4)] == ["surface missing", "estimated", *["surface missing"] * 2]
    assert [f.verdict for f in (h1, h2, h3, h4)] == ["undecided", "supported", "undecided", "undecided"]
    assert h1.notes == ("no episodes on code",) and h1.power is None and h1.p_holm is None and h1.check is None
    assert h3.notes[-1] == "no episodes that met the fault on fine, coarse"
    assert h2.p_holm == pytest.approx(4 * h2.contrast.p)


def test_floors_and_single_tasks_are_undecided_and_say_why(run, record):
    floor = run(lambda s, c: 0.0, lambda s, c: 100.0, tasks=20)
    h1, *_ = decide(floor, [], SMALLEST)
    assert (h1.verdict, h1.contrast.outcome, h1.power) == ("undecided", "no variation", None)
    assert any("floor or a ceiling" in note for note in h1.notes)
    assert any("separated (code: no episode succeeded)" in note for note in h1.notes)
    lone = [record("t", surface) for surface in ("coarse", "fine", "code")]
    outcomes = [f.contrast.outcome for f in decide(lone, [r | {"fault": None} for r in lone], SMALLEST)]
    assert outcomes == ["too few tasks", "too few tasks", "surface missing", "too few tasks"]


def test_a_recovery_that_never_differs_is_decided_by_its_signs(record):
    faults = [
        record(f"t{i:02d}", s, fault={"turn": 0, "operation": "d", "recovered": s == "fine"})
        for i in range(20) for s in ("fine", "coarse")
    ]  # fmt: skip
    h3 = decide([], faults, SMALLEST)[2]
    assert (h3.contrast.outcome, h3.contrast.estimate, h3.verdict) == ("no variation", 1.0, "supported")
    assert h3.p_holm == pytest.approx(4 * 2.0**-19)


def test_records_and_plans_that_do_not_fit_are_refused(run):
    records, faults = planted(run, 1, tasks=10)
    for wrong in ({}, SMALLEST | {"H1": 0.0}, SMALLEST | {"H1": float("nan")}, SMALLEST | {"H5": 1.0}):
        with pytest.raises(UsageError, match="a number above 0 for each of H1, H2, H3, H4"):
            decide(records, faults, wrong)
    with pytest.raises(RecordError, match="no 'fault'"):
        decide(records, records, SMALLEST)
    broken = next(record for record in records if record["surface"] == "fine")
    broken["tokens"]["prompt"] = float("nan")
    with pytest.raises(RecordError, match="the quantity is nan"):
        decide(records, faults, SMALLEST)


def test_the_four_are_the_lab_plans():
    assert [(h.name, h.left, h.right, h.kind, h.scale, h.predicted, h.injected) for h in HYPOTHESES] == [
        ("H1", "code", "fine", "slope", "difference", 1, False),
        ("H2", "coarse", "fine", "mean", "difference", 1, False),
        ("H3", "fine", "coarse", "mean", "difference", 1, True),
        ("H4", "code", "fine", "slope", "log ratio", -1, False),
    ]
