"""H1 to H4 as planned: one estimand each, Holm over the four, and a verdict with the power achieved.

The plan gives the smallest effect of interest of each; the predicted directions are those of the lab's source.
A hypothesis that cannot be tested (a surface was not run, the tasks do not differ) is undecided, says why, and
keeps its place in Holm's family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from modtools.errors import UsageError
from modtools.lab.analysis.by_task import DIFFERENCE, LOG_RATIO, Pairs, pair
from modtools.lab.analysis.contrast import ESTIMATED, Contrast, without_interval
from modtools.lab.analysis.gee import Interaction, interaction
from modtools.lab.analysis.paired import compare, holm, mean_contrast
from modtools.lab.analysis.power import MEAN, SIMULATIONS, SLOPE, Design, Power, achieved_power
from modtools.lab.analysis.recovery import fault_of, recovered_share
from modtools.lab.analysis.slopes import slope_contrast
from modtools.lab.metrics import Record, total_tokens

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED)
SURFACE_MISSING = "surface missing"


@dataclass(frozen=True)
class Hypothesis:
    """A planned contrast of two surfaces.

    Attributes:
        name: "H1" to "H4".
        claim: in words.
        left, right: surfaces; the contrast is left against right, per task.
        quantity: of an episode.
        kind: "mean" of the contrast, or its "slope" on c.
        scale: "difference" or "log ratio".
        predicted: sign of the effect, 1 or -1.
        injected: whether it is tested on the episodes with the injected fault.
    """

    name: str
    claim: str
    left: str
    right: str
    quantity: Callable[[Record], float]
    kind: str
    scale: str
    predicted: int
    injected: bool = False


@dataclass(frozen=True)
class Finding:
    """What became of a hypothesis.

    Attributes:
        hypothesis: which.
        contrast: estimate, interval, p, and the bootstrap beside them.
        p_holm: adjusted for the family, or None where there was no test.
        verdict: one of VERDICTS.
        power: of this test at the smallest effect of interest and the level alpha / m that Holm asks of the
            first of m tests, so a lower bound; None where no spread was seen.
        smallest: the smallest effect of interest, with the predicted sign.
        check: of H1, the GEE on the log-odds scale.
        notes: what a reader must know beside the numbers.
    """

    hypothesis: Hypothesis
    contrast: Contrast
    p_holm: float | None
    verdict: str
    power: Power | None
    smallest: float
    check: Interaction | None
    notes: tuple[str, ...]


def success(record: Record) -> float:
    """1 where the verifier passed, else 0."""
    return float(record["success"])


def call_tokens(record: Record) -> float:
    """Tokens of an episode's calls, failed ones included."""
    return float(record["tokens"]["call"])


HYPOTHESES = (
    Hypothesis("H1", "code gains on fine in success as tasks grow more complex", "code", "fine", success, SLOPE,
               DIFFERENCE, 1),
    Hypothesis("H2", "coarse has a higher call overhead than fine", "coarse", "fine", call_tokens, MEAN, DIFFERENCE, 1),
    Hypothesis("H3", "fine recovers from the injected fault more often than coarse", "fine", "coarse", recovered_share,
               MEAN, DIFFERENCE, 1, injected=True),
    Hypothesis("H4", "code gains on fine in total tokens as tasks grow more complex", "code", "fine", total_tokens,
               SLOPE, LOG_RATIO, -1),
)  # fmt: skip


def decide(
    records: Sequence[Record],
    fault_records: Sequence[Record],
    smallest: Mapping[str, float],
    exact_tokens: Mapping[str, float] | None = None,
    alpha: float = 0.05,
    simulations: int = SIMULATIONS,
    seed: int = 0,
) -> list[Finding]:
    """Test the four hypotheses.

    Args:
        records: episodes of the confirmatory run, of one arm.
        fault_records: those of the injected-fault experiment, which H3 is tested on.
        smallest: of each hypothesis the smallest effect of interest, above 0, in its own unit: H1 share of
            successes per unit of c, H2 tokens an episode, H3 share, H4 log ratio per unit of c.
        exact_tokens: surface -> H/b, the exact entropy of a task's choices in tokens an episode, taken off the
            call tokens for H2; 0 where a surface is not named. Equal values leave H2 as it is.
        alpha: level of the family.
        simulations, seed: of the power simulation and the bootstrap.

    Raises:
        UsageError: where `smallest` does not name the four, or not by numbers above 0.
        RecordError: for records that cannot be paired (see `by_task.pair`), a missing surface apart.
    """
    _check_smallest(smallest)
    tests = [_contrast(h, fault_records if h.injected else records, exact_tokens or {}, seed) for h in HYPOTHESES]
    adjusted = holm([contrast.p for contrast, _, _ in tests])
    findings = []
    for hypothesis, (contrast, pairs, notes), p_holm in zip(HYPOTHESES, tests, adjusted):
        effect = hypothesis.predicted * smallest[hypothesis.name]
        power = check = None
        if pairs is not None:
            design = Design(hypothesis.kind, effect, alpha / len(HYPOTHESES), hypothesis.scale)
            power = achieved_power(pairs.c, pairs.contrasts(hypothesis.scale), design, simulations, seed)
            if hypothesis.quantity is success:
                check = interaction(records, hypothesis.left, hypothesis.right)
                notes += _disagreement(contrast, check)
        verdict = _verdict(contrast, p_holm, hypothesis.predicted, alpha)
        findings.append(Finding(hypothesis, contrast, p_holm, verdict, power, effect, check, tuple(notes)))
    return findings


def _contrast(
    hypothesis: Hypothesis, records: Sequence[Record], exact_tokens: Mapping[str, float], seed: int
) -> tuple[Contrast, Pairs | None, list[str]]:
    notes, quantity = [], hypothesis.quantity
    if hypothesis.injected:
        met = [record for record in records if fault_of(record) is not None]
        notes += _exposure(records, met, (hypothesis.left, hypothesis.right), seed)
        records = met
    if quantity is call_tokens:

        def quantity(record: Record) -> float:
            return call_tokens(record) - exact_tokens.get(record["surface"], 0.0)

        notes += _entropy_note(exact_tokens, (hypothesis.left, hypothesis.right))
    ran = {record["surface"] for record in records}
    missing = [surface for surface in (hypothesis.left, hypothesis.right) if surface not in ran]
    if missing:
        note = f"no episodes{' that met the fault' * hypothesis.injected} on {', '.join(missing)}"
        return without_interval(SURFACE_MISSING, None, 0), None, [*notes, note]
    pairs = pair(records, hypothesis.left, hypothesis.right, quantity)
    values = pairs.contrasts(hypothesis.scale)
    contrast = slope_contrast(pairs.c, values, seed) if hypothesis.kind == SLOPE else mean_contrast(values, seed)
    if contrast.outcome != ESTIMATED:
        notes.append(f"no interval: {contrast.outcome}")
    if pairs.unpaired:
        notes.append(f"{len(pairs.unpaired)} tasks have episodes on one of the two surfaces only and are left out")
    if pairs.uneven:
        notes.append(f"{len(pairs.uneven)} tasks have other seeds on {pairs.left} than on {pairs.right}")
    if quantity is success and len({value for side in (pairs.left_values, pairs.right_values)
                                    for of in side for value in of}) == 1:  # fmt: skip
        notes.append("all episodes on both surfaces ended alike: a floor or a ceiling compares no surfaces")
    return contrast, pairs, notes


def _verdict(contrast: Contrast, p_holm: float | None, predicted: int, alpha: float) -> str:
    if p_holm is None or p_holm >= alpha:
        return UNDECIDED
    return SUPPORTED if contrast.estimate * predicted > 0 else CONTRADICTED


def _exposure(records: Sequence[Record], met: Sequence[Record], surfaces: tuple[str, str], seed: int) -> list[str]:
    """How many episodes met the fault. Where some did not, the surfaces are compared on different episodes, so the
    contrast that counts those as not recovered stands beside."""
    shares, complete = [], True
    for surface in surfaces:
        count = [sum(record["surface"] == surface for record in of) for of in (met, records)]
        shares.append(f"{surface} {count[0]} of {count[1]}")
        complete = complete and count[0] == count[1] > 0
    notes = [f"episodes that met the fault: {', '.join(shares)}"]
    if not complete and set(surfaces) <= {record["surface"] for record in records}:
        whole = compare(
            records, *surfaces, lambda record: float((fault_of(record) or {}).get("recovered", False)), seed=seed
        )
        notes.append(f"the others are left out; counted as not recovered they give {whole.text()}")
    return notes


def _entropy_note(exact_tokens: Mapping[str, float], surfaces: Sequence[str]) -> list[str]:
    absent = [surface for surface in surfaces if surface not in exact_tokens]
    if len(absent) == len(surfaces):
        return ["H/b is taken as 0: it is the same on both surfaces and leaves the difference of overheads as it is"]
    if absent:
        raise UsageError(f"H/b is given, but not for {', '.join(absent)}; give it for both surfaces or for none")
    return [f"H/b in tokens: {', '.join(f'{surface} {exact_tokens[surface]:g}' for surface in surfaces)}"]


def _disagreement(contrast: Contrast, check: Interaction) -> list[str]:
    if check.outcome != ESTIMATED:
        return [f"the GEE check has no answer: {check.outcome} ({check.detail})"]
    if contrast.estimate is not None and contrast.estimate * check.estimate < 0:
        return ["on the log-odds scale (GEE) the slope has the other sign"]
    return []


def _check_smallest(smallest: Mapping[str, float]) -> None:
    names = [hypothesis.name for hypothesis in HYPOTHESES]
    if sorted(smallest) != names or not all(0 < value < float("inf") for value in smallest.values()):
        raise UsageError(f"smallest effects {dict(smallest)}: expected a number above 0 for each of {', '.join(names)}")
