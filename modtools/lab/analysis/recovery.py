"""Errors and what becomes of them: how often they are met, made good, and followed by success.

Errors that a surface brings about by itself are an outcome and are only described. Compared is what follows the
*injected* fault, which is the same for everybody (see `lab.injected_fault`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from modtools.lab.metrics import Estimate, mean

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Recovery:
    """Of one surface.

    Attributes:
        met: share of episodes that met an error; with the injected fault, that came as far as to meet it.
        recovered: of those, the share in which the failed operation was done by a later call.
        completed: of those, the share whose verifier passed.
    """

    met: Estimate
    recovered: Estimate
    completed: Estimate

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def injected(records: Sequence[Record], surface: str) -> Recovery:
    """What follows the injected fault on one surface."""
    mine = [record for record in records if record["surface"] == surface]
    struck = [record for record in mine if record.get("fault")]
    return Recovery(
        mean(mine, lambda record: float(bool(record.get("fault")))),
        mean(struck, lambda record: float(record["fault"]["recovered"])),
        mean(struck, lambda record: float(record["success"])),
    )


def natural(records: Sequence[Record], surface: str) -> Recovery:
    """What follows errors that episodes met by themselves; recovered: some later call succeeded."""
    mine = [record for record in records if record["surface"] == surface]
    met = [record for record in mine if _first_error(record) is not None]
    return Recovery(
        mean(mine, lambda record: float(_first_error(record) is not None)),
        mean(met, lambda record: float(_later_success(record))),
        mean(met, lambda record: float(record["success"])),
    )


def _first_error(record: Record) -> int | None:
    return next((i for i, turn in enumerate(record["turns"]) if turn["outcome"] not in ("success", "finished")), None)


def _later_success(record: Record) -> bool:
    return any(turn["outcome"] == "success" for turn in record["turns"][_first_error(record) + 1 :])
