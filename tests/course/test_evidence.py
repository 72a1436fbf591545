"""The evidence ledger: every claim is complete, and what it names exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = yaml.safe_load((ROOT / "course" / "evidence.yaml").read_text("utf-8"))
KINDS = {"measured", "tested", "source", "corrected", "unverified"}


def test_ids_differ():
    ids = [claim["id"] for claim in CLAIMS]
    assert len(ids) == len(set(ids)) and len(ids) >= 15


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_a_claim_is_complete_and_its_evidence_exists(claim):
    assert claim["kind"] in KINDS and claim["claim"].endswith(".")
    assert set(claim) == {"id", "claim", "kind", "evidence"} | ({"was"} if claim["kind"] == "corrected" else set())
    named = re.findall(r"((?:tests|notebooks)/[\w/]+\.(?:py|ipynb))::([\w-]+)", claim["evidence"])
    if claim["kind"] in ("tested", "corrected"):
        assert named, "names no test"
    if claim["kind"] == "measured":
        assert named or claim["evidence"].startswith("modtools "), "names neither a command nor a notebook cell"
    for path, name in named:
        text = (ROOT / path).read_text("utf-8")
        if path.endswith(".py"):
            assert f"def {name}(" in text, f"{path} has no {name}"
        else:
            assert name in [cell["id"] for cell in json.loads(text)["cells"]], f"{path} has no cell {name}"
