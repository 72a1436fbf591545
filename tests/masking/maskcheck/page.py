"""The tables of course/masks_and_their_limits.md, made from the code and from the recorded counts.

The whole tests count anew and compare. Run them with MODTOOLS_RECORD=1 to write counts and page; an ordinary test
compares the page with code and counts.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

from modtools.masking import NOT_HONOURED, RESTRICTIONS

COURSE = Path(__file__).parents[3] / "course"
PAGE, COUNTS = COURSE / "masks_and_their_limits.md", COURSE / "mask_counts.json"
_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def counts() -> dict:
    """The recorded counts."""
    return json.loads(COUNTS.read_text("utf-8"))


def agree(part: str, name: str | None, found: dict) -> None:
    """Compares what was counted with the record; with MODTOOLS_RECORD set, writes it there instead."""
    recorded = counts() if COUNTS.exists() else {"suite": {}, "sample": {}, "engines": {}}
    if os.environ.get("MODTOOLS_RECORD"):
        if name is None:
            recorded[part] = found
        else:
            recorded[part][name] = found
        COUNTS.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
    known = counts()[part]
    assert (known if name is None else known[name]) == found, (
        "not as recorded; see MODTOOLS_RECORD in maskcheck/page.py"
    )


def _table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def restrictions() -> str:
    """What is refused although the schema allows it, with how many documents of the official suite each row costs."""
    suite = counts()["suite"]

    def refused(name: str) -> int:
        return sum(draft.get(f"valid refused {name}", 0) for draft in suite.values())

    rows = [
        [row.name, row.refused, row.why, refused(row.name), "later" if row.is_late else "first"] for row in RESTRICTIONS
    ]
    return _table(["row", "refused", "why", "suite", "written"], rows)


def not_honoured() -> str:
    """The keywords with which a schema is refused, with how many schemas of the suite and of the sample they cost."""
    suite, sample = counts()["suite"], counts()["sample"]

    def refused(keyword: str, parts) -> int:
        wanted = f"schema refused {keyword}"
        return sum(n for part in parts for key, n in part.items() if key == wanted or key.endswith(f" {wanted}"))

    rows = [
        [f"`{row.keyword}`", row.refused, row.why, refused(row.keyword, suite.values()), refused(row.keyword, [sample])]
        for row in NOT_HONOURED
    ]
    return _table(["keyword", "refused", "why", "suite", "sample"], rows)


def coverage() -> str:
    """What was counted over the sample and the two drafts of the suite."""
    recorded = counts()
    rows = []
    for name, part in (*recorded["suite"].items(), *_by_kind(recorded["sample"])):
        part = Counter(part)
        refused = sum(n for key, n in part.items() if key.startswith("schema refused"))
        valid = {key: n for key, n in part.items() if key.startswith("valid")}
        rows.append([
            name, part["schema compiled"], refused, part["invalid refused"],
            sum(n for key, n in part.items() if key.startswith("invalid accepted")),
            part["valid accepted"], sum(valid.values()) - part["valid accepted"],
        ])  # fmt: skip
    head = [
        "documents of",
        "compiled",
        "refused schemas",
        "invalid refused",
        "invalid accepted",
        "valid accepted",
        "valid refused",
    ]
    return _table(head, rows)


def _by_kind(sample: dict) -> list[tuple[str, dict]]:
    kinds = ("tool-like", "other")
    return [
        (f"sample, {k}", {key.removeprefix(f"{k} "): n for key, n in sample.items() if key.startswith(k)})
        for k in kinds
    ]


def differences() -> str:
    """Where other engines' masks differ from ours, and why."""
    rows = [
        [run["engine"], "alike" if run["alike"] else "defaults", row["only"], row["reason"], row["right"], row["steps"],
         row["schemas"], _shown(row["example"])]
        for run in counts()["engines"].values()
        for row in run["differences"]
    ]  # fmt: skip
    return _table(["engine", "set", "only allowed by", "why", "right", "steps", "schemas", "example"], rows)


def _shown(example: str) -> str:
    """The end of an example without the name of its schema, as code, what cannot be printed as an escape."""
    text = example.partition(": ")[2][-60:]
    return f"`` {text.encode('unicode_escape').decode()} ``"


def filled(page: str) -> str:
    """The page with its tables made anew."""
    makers = {maker.__name__: maker for maker in (restrictions, not_honoured, coverage, differences)}
    return _BLOCK.sub(lambda block: block[1] + "\n" + makers[block[2]]() + "\n" + block[3], page)
