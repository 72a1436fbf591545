"""What three ways from text to a call cost and gave: rates with intervals, and the grammar tax as a paired difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.errors import RecordError
from modtools.lab.analysis.contrast import Contrast
from modtools.lab.analysis.paired import mean_contrast
from modtools.lab.experiments.three_ways import CONSTRAINED, PROMPT_ONLY
from modtools.lab.metrics import Estimate, mean, success

Record = Mapping[str, Any]
SYNTAX = ("extract", "parse")


@dataclass(frozen=True)
class WayResult:
    """What became of all requests, one way.

    Attributes:
        way: its name.
        parse_failure: share whose first reply died at extraction or parsing.
        invalid: share without a valid call in the end.
        correct: share whose call in the end is the one that was asked for.
        attempts: replies a request.
        read, written: tokens a request.
        seconds: a request, its share of a batch; compiling the mask included.
    """

    way: str
    parse_failure: Estimate
    invalid: Estimate
    correct: Estimate
    attempts: Estimate
    read: Estimate
    written: Estimate
    seconds: Estimate


def way_result(records: Sequence[Record], way: str) -> WayResult:
    """Rates (Wilson) and means (bootstrap over requests) of one way.

    Raises:
        RecordError: where no record is of that way.
    """
    of = [record for record in records if record["way"] == way]
    if not of:
        raise RecordError(f"no record is of the way {way!r}; found {', '.join(sorted({r['way'] for r in records}))}")

    def share(what: Callable[[Record], bool]) -> Estimate:
        return success([{"task": record["task"], "success": what(record)} for record in of])

    return WayResult(
        way,
        share(lambda record: record["first_stage"] in SYNTAX),
        share(lambda record: not record["valid"]),
        share(lambda record: record["success"]),
        *(mean(of, lambda record, key=key: record[key]) for key in ("attempts", "read", "written")),
        mean(of, lambda record: record["seconds"] + record["compile_s"]),
    )


def grammar_tax(records: Sequence[Record], left: str = CONSTRAINED, right: str = PROMPT_ONLY) -> Contrast:
    """Correctness under the mask less correctness without it, on the same requests, by paired t with a bootstrap beside.

    Below 0 the mask costs correctness; above 0 it brings more of it than it costs.

    Raises:
        RecordError: where the two were not asked the same requests.
    """
    sides = [{r["task"]: float(r["success"]) for r in records if r["way"] == way} for way in (left, right)]
    if not sides[0] or set(sides[0]) != set(sides[1]):
        raise RecordError(f"{left} has {len(sides[0])} requests and {right} {len(sides[1])}; expected the same ones")
    return mean_contrast(np.array([sides[0][task] - sides[1][task] for task in sorted(sides[0])]))


@dataclass(frozen=True)
class MaskTrace:
    """How hard the mask pressed, over all steps of all replies.

    Attributes:
        steps: sampled tokens.
        mean_legal_mass: mean Z_t.
        hard_steps: share with Z_t below one half: what the model wanted was mostly illegal.
        overruled: share at which the model's likeliest token was refused.
        free_replies: share of replies that were never overruled.
        first: positions of the first overruled token of each reply that has one.
    """

    steps: int
    mean_legal_mass: float
    hard_steps: float
    overruled: float
    free_replies: float
    first: tuple[int, ...]


def mask_trace(records: Sequence[Record]) -> MaskTrace:
    """The trace of the constrained replies.

    Raises:
        RecordError: where there are none.
    """
    of = [record for record in records if record["way"] == CONSTRAINED and record["legal_mass"]]
    if not of:
        raise RecordError(f"no record is of the way {CONSTRAINED!r} with its legal mass")
    masses = np.concatenate([record["legal_mass"] for record in of])
    refused = [record["overruled"] for record in of]
    return MaskTrace(
        len(masses),
        float(masses.mean()),
        float((masses < 0.5).mean()),
        sum(map(len, refused)) / len(masses),
        sum(not each for each in refused) / len(of),
        tuple(each[0] for each in refused if each),
    )
