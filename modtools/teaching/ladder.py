"""The stage ladder: put a text through the pipeline and see where it stops, and what the model would be told."""

from __future__ import annotations

import html
import itertools
import tempfile
from pathlib import Path
from typing import Any

from modtools.contract import Stage
from modtools.pipeline import FAILURES, STAGE_OF, AuditLog, Request, Result
from modtools.surfaces import build_surface
from modtools.teaching.explorer import code, explorer, table

_FILES = {
    "shop/prices.py": 'RATE = 20\n\n\ndef with_tax(price):\n    """Return price with RATE percent added."""\n'
    "    return price + price * RATE // 100\n",
    "shop/orders.py": "from shop.prices import with_tax\n\n\ndef total(prices):\n"
    "    return sum(with_tax(p) for p in prices)\n",
    "README.md": "A shop with two modules.\n",
}
_DECODER = {
    "yes": "A grammar could rule this out.",
    "world": "Only a grammar that knows the state of the world could rule this out.",
    "no": "No decoder can rule this out.",
}


class Ladder:
    """A little workspace of its own and the pipeline of one surface over it.

    Args:
        surface: "fine" or "coarse".
    """

    def __init__(self, surface: str = "fine"):
        self._folder = tempfile.TemporaryDirectory(prefix="modtools-ladder-")
        root = Path(self._folder.name)
        for path, text in _FILES.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        self.pipeline = build_surface(surface).pipeline(root, None, AuditLog())
        self._ids = itertools.count(1)

    def climb(self, text: str, finish_reason: str = "stop") -> Result:
        """Put one reply through the pipeline."""
        return self.pipeline.run(Request(f"ladder-{next(self._ids)}", text, finish_reason))

    def widget(self, text: str) -> Any:
        """A text box with the model's reply and, below it, the stages."""
        return explorer(
            lambda reply, ended: ladder_html(self.climb(reply, ended)), reply=text, ended=("stop", "length", "lost")
        )


def rungs(result: Result) -> list[tuple[str, str, str]]:
    """(stage, "passed" or "stopped" or "not reached", what was found) for the five stages of Module 2."""
    if result.finished:
        rest = [(str(stage), "not reached", "") for stage in Stage if stage != Stage.EXTRACT]
        return [("extract", "passed", "the reply ends the episode"), *rest]
    failed = result.outcome != "success"
    stopped_at = FAILURES[result.failure.code].stage if failed and result.failure else None
    reached = {STAGE_OF[record.step] for record in result.trace[:-1]}
    lines = []
    for stage in Stage:
        details = [r.detail for r in result.trace if STAGE_OF[r.step] == stage and r.passed and r.detail]
        if stage == stopped_at:
            lines.append((str(stage), "stopped", f"{result.failure.code}: {result.failure.what}"))
        elif stage in reached and (stopped_at is None or list(Stage).index(stage) < list(Stage).index(stopped_at)):
            lines.append((str(stage), "passed", "; ".join(details)))
        else:
            lines.append((str(stage), "not reached", ""))
    return lines


def ladder_text(result: Result) -> str:
    """The ladder as plain lines, with the observation below."""
    lines = [f"{stage:9} {state:12} {found}".rstrip() for stage, state, found in rungs(result)]
    return "\n".join([*lines, f"outcome   {result.outcome}", "", "The model is told:", result.observation.text])


def ladder_html(result: Result) -> str:
    """The ladder as an HTML table, with the observation and what a decoder could have done."""
    marks = {
        "passed": "&#10003; passed",
        "stopped": "&#10007; <b>stopped here</b>",
        "not reached": "&ndash; not reached",
    }
    rows = [[f"<b>{stage}</b>", marks[state], html.escape(found)] for stage, state, found in rungs(result)]
    note = ""
    if result.failure and result.failure.code in FAILURES and result.outcome != "success":
        note = f"<p>{_DECODER[FAILURES[result.failure.code].decoder]}</p>"
    return (
        f"{table(['stage', '', 'found'], rows, raw=True)}<p>Outcome: <b>{result.outcome}</b>. The model is told:</p>"
        f"{code(result.observation.text)}{note}"
    )
