"""The four hypotheses of Lab 2, one estimand each, and the verdict on them.

A verdict is `supported` where the effect lies in the predicted direction and Holm's adjusted p is below 0.05;
`contradicted` where it lies in the other direction with the same certainty; else `undecided`, told with the power that
the data had for the smallest effect of interest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.errors import RecordError
from modtools.lab.analysis.paired import Differences, Effect, differences, holm, mean_effect, slope_effect

Record = Mapping[str, Any]
LEVEL = 0.05


@dataclass(frozen=True)
class Hypothesis:
    """One of the four.

    Attributes:
        name: "H1" to "H4".
        claim: the sentence.
        estimand: what is estimated, in words.
        predicted: +1 or -1, the sign of the effect that the claim predicts.
        smallest: the smallest effect of interest, in the estimand's unit; decided before the data.
        faulted: whether it is about the episodes with the injected fault.
        of: records -> the difference of each task.
        effect: Differences -> Effect.
    """

    name: str
    claim: str
    estimand: str
    predicted: int
    smallest: float
    faulted: bool
    of: Callable[[Sequence[Record]], Differences]
    effect: Callable[..., Effect]


@dataclass(frozen=True)
class Verdict:
    """What the data say of a hypothesis.

    Attributes:
        hypothesis: its name.
        verdict: "supported", "contradicted", "undecided", or "not tested" with the reason in `why`.
        effect: the estimate; None where it was not tested.
        p_holm: adjusted over the four; None where there is no p value.
        power: chance to find the smallest effect of interest with this many tasks that scatter like these; None where
            they do not differ at all.
        why: one sentence.
    """

    hypothesis: str
    verdict: str
    effect: Effect | None
    p_holm: float | None
    power: float | None
    why: str


def _success(record: Record) -> float:
    return float(record["success"])


def _total(record: Record) -> float:
    return float(sum(record["tokens"].values()))


def _recovered(record: Record) -> float:
    return float(bool(record.get("fault") and record["fault"]["recovered"]))


def _struck_on_both(records: Sequence[Record], one: str, other: str) -> list[Record]:
    """The episodes of tasks and seeds at which the fault struck on both surfaces."""
    struck = {
        s: {(r["task"], r["seed"]) for r in records if r["surface"] == s and r.get("fault")} for s in (one, other)
    }
    both = struck[one] & struck[other]
    return [r for r in records if r["surface"] in (one, other) and (r["task"], r["seed"]) in both]


HYPOTHESES = (
    Hypothesis(
        "H1",
        "The more operations a task needs, the more the code surface gains on the fine one.",
        "slope on c of the per-task difference code - fine in success, a call",
        +1,
        0.04,
        False,
        lambda records: differences(records, "code", "fine", _success),
        slope_effect,
    ),
    Hypothesis(
        "H2",
        "The coarse surface pays more tokens a call than the information needs.",
        # H/b is the same on all surfaces for a task, so the difference of overheads is that of call tokens.
        "per-task difference coarse - fine in call overhead, tokens a task",
        +1,
        10.0,
        False,
        lambda records: differences(records, "coarse", "fine", lambda record: record["tokens"]["call"]),
        mean_effect,
    ),
    Hypothesis(
        "H3",
        "After the same fault the fine surface recovers more often than the coarse one.",
        "per-task difference fine - coarse in recovery after the injected fault, where it struck on both",
        +1,
        0.1,
        True,
        lambda records: differences(_struck_on_both(records, "fine", "coarse"), "fine", "coarse", _recovered),
        mean_effect,
    ),
    Hypothesis(
        "H4",
        "The more operations a task needs, the fewer tokens code needs beside the fine surface.",
        "slope on c of the per-task log ratio code / fine in total tokens, a call",
        -1,
        0.05,
        False,
        lambda records: differences(records, "code", "fine", _total, lambda a, b: float(np.log(a / b))),
        slope_effect,
    ),
)


def verdicts(
    records: Sequence[Record], faulted: Sequence[Record] = (), family: Sequence[Hypothesis] = HYPOTHESES
) -> list[Verdict]:
    """Test a family of hypotheses, with Holm's correction over all of it.

    Args:
        records: of the run.
        faulted: of the run with the injected fault; without any, what is about it is not tested.
        family: the four.
    """
    effects: list[tuple[Effect | None, Differences | None, str]] = []
    for each in family:
        try:
            found = each.of(faulted if each.faulted else records)
            effects.append((each.effect(found), found, ""))
        except RecordError as error:
            effects.append((None, None, str(error)))
    adjusted = holm([effect.p if effect else None for effect, _, _ in effects])
    return [
        _verdict(each, effect, found, why, p)
        for each, (effect, found, why), p in zip(family, effects, adjusted, strict=True)
    ]


def _verdict(each: Hypothesis, effect: Effect | None, found: Differences | None, why: str, p: float | None) -> Verdict:
    if effect is None or found is None:
        return Verdict(each.name, "not tested", None, None, None, why)
    power = achieved_power(each, found)
    if p is None:
        why = f"all {effect.n} tasks agree, so there is no interval and no test"
        return Verdict(each.name, "undecided", effect, None, power, why)
    said = f"{effect.value:.3g} ({effect.low:.3g} to {effect.high:.3g}), Holm's p {p:.2g}, {effect.n} tasks"
    if p < LEVEL:
        verdict = "supported" if effect.value * each.predicted > 0 else "contradicted"
        return Verdict(each.name, verdict, effect, p, power, said)
    told = "" if power is None else f"; power for {each.smallest:g} was {power:.2f}"
    return Verdict(each.name, "undecided", effect, p, power, said + told)


def achieved_power(each: Hypothesis, found: Differences, draws: int = 400, seed: int = 0) -> float | None:
    """How often the smallest effect of interest would be found, uncorrected, with tasks that scatter like these.

    Tasks are drawn with replacement; the effect that they show is taken out of them, and the smallest one of interest
    put in.
    """
    values, size = found.values, each.smallest * each.predicted
    shape = found.c - found.c.mean() if each.effect is slope_effect else np.ones_like(found.c)
    shown = each.effect(found, boot=False).value
    if len(values) < 4 or np.allclose(values - shown * shape, (values - shown * shape)[0]):
        return None
    rng, hits, valid = np.random.default_rng(seed), 0, 0
    for _ in range(draws):
        drawn = rng.integers(len(values), size=len(values))
        try:
            effect = each.effect(
                Differences(found.tasks, found.c[drawn], (values + (size - shown) * shape)[drawn]), boot=False
            )
        except RecordError:  # all drawn tasks of one complexity
            continue
        valid += effect.p is not None
        hits += effect.p is not None and effect.p < LEVEL and effect.value * each.predicted > 0
    return hits / valid if valid else None
