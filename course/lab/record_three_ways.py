"""Record the three ways from text to a call on the embedded model, with and without its adapter.

    python course/lab/record_three_ways.py --out runs/three_ways

Short replies (the call alone) and long ones (reasons, then the call), each prompt only, with retries, and constrained.
Stop it at any time: the same command goes on. Every record is a line of OUT/records.jsonl. As long as the package ships no
adapter, both models are the base model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from modtools.errors import RecordError
from modtools.lab.experiments.three_ways import CONSTRAINED, WAYS, Experiment, run_way
from modtools.models import load_model
from modtools.models.embedded import vocabulary
from modtools.records import append_line, read_json, read_lines, write_json

MODELS = ("embedded", "embedded-base")


def record(
    out: Annotated[Path, typer.Option(help="Folder of the recording; it is resumed where it was begun before.")],
    requests: Annotated[int, typer.Option(help="Requests a way; every other one is of unseen tools.")] = 120,
    seed: int = 0,
    dtype: str = "",
) -> None:
    """Ask every model all requests in every form and way."""
    out.mkdir(parents=True, exist_ok=True)
    words = vocabulary()
    for name in MODELS:
        model = load_model(name, **({"dtype": dtype} if dtype else {}))
        asked = {"requests": requests, "seed": seed, name: model.digest, "dtype": model.info["dtype"]}
        known = read_json(out / "asked.json") if (out / "asked.json").exists() else {}
        if any(key in known and known[key] != value for key, value in asked.items()):
            raise RecordError(f"{out} was begun with {known}; give the same numbers and model, or another --out")
        write_json(out / "asked.json", known | asked)
        for reasons in (False, True):
            experiment = Experiment(requests, seed, reply_tokens=256 if reasons else 160, reasons=reasons)
            for way in WAYS:
                key = {"form": "long" if reasons else "short"}
                have = [line for line in read_lines(out / "records.jsonl")
                        if (line["model"], line["form"], line["way"]) == (model.name, key["form"], way)]  # fmt: skip
                skip = frozenset(line["task"] for line in have)
                with tqdm(total=requests, initial=len(skip), desc=f"{name}, {key['form']}, {way}") as bar:
                    mask = words if way == CONSTRAINED else None
                    for line in run_way(model, experiment, way, mask, skip=skip):
                        append_line(out / "records.jsonl", key | line)
                        bar.update()


if __name__ == "__main__":
    typer.run(record)
