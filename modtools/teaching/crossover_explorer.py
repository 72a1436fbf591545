"""What moves the crossover c*: which tasks are meant, what a token costs that was read before, and who is counted."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from modtools.errors import RecordError, UsageError
from modtools.lab.analysis.crossover import PATHS, Crossover, crossover
from modtools.lab.metrics import Record
from modtools.teaching.explorer import explorer, table

EVERY, SOLVED = "every episode", "solved episodes only"
READ_AGAIN = ("schema", "prompt")
PRICES = {"as much as new": 1.0, "half": 0.5, "a tenth": 0.1, "nothing": 0.0}


def priced_tokens(record: Record, read_again_price: float) -> float:
    """Tokens of an episode where reading a token that was read before costs a share of reading a new one.

    Schema and prompt are new at the first turn and read again at every later one; history is read again always.

    Args:
        record: of an episode.
        read_again_price: 1 without a cache, 0 where a cache makes reading again free.
    """
    tokens, turns = record["tokens"], max(1, len(record["turns"]))
    again = tokens["history"] + sum(tokens[part] for part in READ_AGAIN) * (1 - 1 / turns)
    return sum(tokens.values()) - (1 - read_again_price) * again


def found_crossover(
    records: Sequence[Record], path: str = PATHS[0], read_again_price: float = 1.0, counted: str = EVERY
) -> Crossover:
    """c* under a price of reading again, along a path, over all or solved episodes.

    Raises:
        UsageError: for a price outside 0 to 1.
        RecordError: where no episodes are left to compare.
    """
    if not 0 <= read_again_price <= 1:
        raise UsageError(f"price of reading again {read_again_price}: expected 0 to 1")
    kept = [record for record in records if record["success"] or counted == EVERY]
    return crossover(kept, lambda record: priced_tokens(record, read_again_price), path, draws=400)


def crossover_html(found: Crossover) -> str:
    """The answer in a sentence, and the coefficients of the two curves."""
    rows = [[name, *(f"{k} = {v:.0f}" for k, v in curve.items())] for name, curve in found.curves.items()]
    return f"<p>c*: {html.escape(found.text())}</p>" + (table(["curve", "", "", ""], rows) if rows else "")


def crossover_explorer(runs: Mapping[str, Sequence[Record]]) -> Any:
    """A widget: choose a run (a model's, the references'), a path, a price of reading again, and who counts."""

    def render(run: str, path: str, reading_again_costs: str, counted: str) -> str:
        try:
            return crossover_html(found_crossover(runs[run], path, PRICES[reading_again_costs], counted))
        except RecordError as error:
            return f"<p>{html.escape(str(error))}</p>"

    return explorer(render, run=tuple(runs), path=PATHS, reading_again_costs=tuple(PRICES), counted=(EVERY, SOLVED))
