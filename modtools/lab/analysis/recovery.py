"""Errors and what follows them: error rate, recovered, and completed, told apart.

For errors that came about by themselves, who meets one is already an outcome of the surface, so these shares
describe and do not compare. The comparison is made where the same fault was injected: the first state-changing
call was not executed and returned one frozen text. There recovered = a later call does that operation, and
completed = the verifier passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modtools.errors import RecordError
from modtools.lab.metrics import Estimate, Record, mean, ratio


@dataclass(frozen=True)
class Recovery:
    """What became of errors on one surface; every share with a bootstrap over tasks.

    Attributes:
        episodes: all of the surface.
        error_rate: failed requests as a share of requests; the injected one is in neither count.
        met: episodes that met an error (or the fault), as a share of all.
        recovered: of those that met it, the share that got over it.
        completed: of those that met it, the share whose verifier passes.
        both: of those that met it, the share that did both.
    """

    episodes: int
    error_rate: Estimate
    met: Estimate
    recovered: Estimate
    completed: Estimate
    both: Estimate


def natural(records: Sequence[Record]) -> dict[str, Recovery]:
    """Surface -> what became of the errors that came about by themselves.

    An episode met an error where a request of it failed; it recovered where a request after the first such one
    was executed. (What would have been the right operation is not known here, so "executed" is all one can ask.)
    """
    return {
        surface: _recovery(of, _first_failure, lambda record: _executed_after(record, _first_failure(record)))
        for surface, of in _by_surface(records).items()
    }


def injected(records: Sequence[Record]) -> dict[str, Recovery]:
    """Surface -> what became of the injected fault.

    An episode whose first state-changing call never came did not meet the fault.

    Raises:
        RecordError: for an episode that was not run with a fault.
    """
    return {
        surface: _recovery(of, fault_of, lambda record: bool(fault_of(record)["recovered"]))
        for surface, of in _by_surface(records).items()
    }


def fault_of(record: Record) -> Mapping[str, Any] | None:
    """The fault of an episode of the injected-fault experiment, or None where it was not met.

    Raises:
        RecordError: for an episode that was not run with a fault, or whose fault is not complete.
    """
    where = f"episode {record['task']}/{record['surface']}/{record['seed']}"
    if "fault" not in record:
        raise RecordError(f"{where} has no 'fault': it is not one of the injected-fault experiment")
    fault = record["fault"]
    if fault is not None and not {"turn", "operation", "recovered"} <= set(fault):
        raise RecordError(f"{where}: its fault has {', '.join(fault)}; expected turn, operation, recovered")
    return fault


def recovered_share(record: Record) -> float:
    """1 where the fault was met and its operation was done later, else 0; the quantity of H3.

    Raises:
        RecordError: for an episode that did not meet the fault; leave such episodes out by `fault_of`.
    """
    fault = fault_of(record)
    if fault is None:
        raise RecordError(f"episode {record['task']}/{record['surface']}/{record['seed']} did not meet the fault")
    return float(fault["recovered"])


def _recovery(records, error, recovered) -> Recovery:
    """`error` gives what an episode met, or None; `recovered` is asked only of episodes that met it."""
    met = [record for record in records if error(record) is not None]
    return Recovery(
        len(records),
        ratio(records, _failed_requests, lambda record: record["calls"] - bool(record.get("fault"))),
        mean(records, lambda record: float(error(record) is not None)),
        mean(met, lambda record: float(recovered(record))),
        mean(met, lambda record: float(record["success"])),
        mean(met, lambda record: float(recovered(record) and record["success"])),
    )


def _failed(turn: Mapping[str, Any]) -> bool:
    """A request failed where it has a code and did not succeed; a test run that reports failing tests succeeded."""
    return bool(turn["code"]) and turn["outcome"] not in ("success", "finished")


def _failed_requests(record: Record) -> float:
    """Failed requests of an episode, the injected one left out."""
    fault = record.get("fault")
    injected_turn = fault["turn"] if fault else None
    return float(sum(_failed(turn) for index, turn in enumerate(record["turns"]) if index != injected_turn))


def _first_failure(record: Record) -> int | None:
    return next((index for index, turn in enumerate(record["turns"]) if _failed(turn)), None)


def _executed_after(record: Record, index: int) -> bool:
    return any(turn["outcome"] in ("success", "partial") for turn in record["turns"][index + 1 :])


def _by_surface(records: Sequence[Record]) -> dict[str, list[Record]]:
    surfaces: dict[str, list[Record]] = {}
    for record in records:
        surfaces.setdefault(record["surface"], []).append(record)
    return surfaces
