"""What `modtools bench` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table


def _number(value: float | None) -> str:
    """Three significant digits, never as a power of ten."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def mask_tables(data: dict[str, Any]) -> Iterator[Table]:
    """For each vocabulary the ratios, the raw figures, and our largest schemas."""
    for name, figures in data["vocabularies"].items():
        yield _ratio_table(f"{name}: ours / engine, on what both walked", figures)
        yield _raw_table(f"{name}: each engine on all it walked", figures["engines"])
        yield _largest_table(f"{name}: our largest schemas", figures["largest"])


def _ratio_table(title: str, figures: dict[str, Any]) -> Table:
    columns = ("engine", "mean", "p50", "p99", "first mask p50", "mean", "schemas", "documents", "masks")
    table = Table(*columns, title=title)
    for engine in figures["engines"]:
        if engine == "ours":
            continue
        keys = ("mean_ratio", "p50_ratio", "p99_ratio", "first_mask_ratio", "first_mask_mean_ratio")
        paired = figures[f"paired_with_{engine}"]
        counts = [str(paired[key]) for key in ("schemas", "documents", "masks")]
        table.add_row(engine, *(_number(figures[f"{key}_to_{engine}"]) for key in keys), *counts)
    return table


def _raw_table(title: str, engines: dict[str, dict[str, Any]]) -> Table:
    rows = ("schemas compiled", "refused / limit / crashed", "documents accepted", "masks",
            "mask us: mean", "p50", "p99", "worst", "unpack us: mean", "advance us: mean",
            "compile ms: p50", "p99", "worst", "first mask ms: p50", "p99", "load s", "peak MiB", "cache hits")  # fmt: skip
    table = Table("", *engines, title=title)
    cells = [list(_raw(figures)) for figures in engines.values()]
    for row, values in zip(rows, zip(*cells)):
        table.add_row(row, *values)
    return table


def _raw(figures: dict[str, Any]) -> Iterator[str]:
    schemas = figures["schemas"]
    yield str(schemas["compiled"])
    yield f"{schemas['refused']} / {schemas['limit']} / {schemas['crashed']}"
    yield str(figures["documents"]["accepted"])
    yield str(figures["masks"])
    wanted = {
        "mask_us": ("mean", "p50", "p99", "worst"),
        "unpack_us": ("mean",),
        "advance_us": ("mean",),
        "compile_ms": ("p50", "p99", "worst"),
        "first_mask_ms": ("p50", "p99"),
    }
    for key, names in wanted.items():
        for name in names:
            yield _number((figures[key] or {}).get(name))
    for key in ("load_s", "peak_mib", "cache_hit_rate"):
        yield _number(figures[key])


def _largest_table(title: str, largest: list[dict[str, Any]]) -> Table:
    columns = ("schema", "characters", "states", "masks", "steps", "hits", "compile_ms")
    table = Table(*columns, title=title)
    for row in largest:
        table.add_row(*(value if isinstance(value, str) else _number(value) for value in map(row.get, columns)))
    return table


def decode_table(data: dict[str, Any]) -> Table:
    """One row a batch size."""
    columns = ("batch", "constrained / unconstrained", "run by run", "unconstrained ms", "constrained ms",
               "mask us a row", "mask's share")  # fmt: skip
    settings = data["settings"]
    table = Table(
        *columns, title=f"A decoding step of {settings['model']}, {settings['dtype']} on {settings['device']}"
    )
    for batch, figures in data["batches"].items():
        runs = figures["ratio_by_run"]
        table.add_row(
            batch,
            f"{figures['ratio']:.3f}",
            f"{runs['least']:.3f} to {runs['most']:.3f}",
            _number(figures["free_step_ms"]),
            _number(figures["masked_step_ms"]),
            _number(figures["mask_us_per_row"]),
            f"{figures['mask_share_of_step']:.2%}",
        )
    return table


def lab_table(data: dict[str, Any]) -> Table:
    """One row an arm."""
    settings = data["settings"]
    columns = ("arm", "episodes a minute", "seconds", "calls", "tokens read", "tokens written", "same replies")
    title = f"{settings['episodes']} episodes of {settings['model']}, {settings['dtype']}"
    table = Table(*columns, title=f"{title}: {1 / data['ratio']:.1f} times as fast as one by one, "
                  f"{1 / data['ratio_to_batches']:.1f} times as in batches of 16")  # fmt: skip
    for name, arm in data["arms"].items():
        read = arm["tokens_of_prompts"] - arm["tokens_not_read_anew"]
        numbers = (arm["episodes_a_minute"], arm["seconds"], arm["turns"], read, arm["tokens_written"])
        table.add_row(name, *map(_number, numbers), f"{arm['same_replies']:.0%}")
    return table


def pipeline_tables(data: dict[str, Any]) -> Iterator[Table]:
    """What a call costs in each arm, how that compares, where the audited call's time goes, and what it leaves."""
    clock = {"wall": "wall time", "cpu": "processor time"}[data["settings"]["clock"]]
    rows = data["rows"]
    table = Table("calls at once", *(str(row["at_once"]) for row in rows), title=f"A call, in {clock}")
    table.add_row("audited / MCP", *(f"{row['ratio']:.3f}" for row in rows))
    spreads = [row["ratio_by_round"] for row in rows]
    table.add_row("round by round", *(f"{spread['least']:.3f} to {spread['most']:.3f}" for spread in spreads))
    table.add_row("unwritten / MCP", *(f"{row['unwritten_ratio']:.3f}" for row in rows))
    for arm in rows[0]["call_us"]:
        figures = [(row["call_us"][arm], row["threads"][arm]) for row in rows]
        table.add_row(f"{arm}: p50, p99 us", *(f"{_number(us['p50'])}, {_number(us['p99'])}" for us, _ in figures))
        table.add_row(f"{arm}: threads at most", *(str(threads) for _, threads in figures))
    table.add_row("samples", *(str(row["samples"]) for row in rows))
    yield table
    steps = Table("step", "us", title="An audited call, wall time p50")
    for step, us in data["steps_us"].items():
        steps.add_row(step, _number(us))
    yield steps
    audit = Table("", "a call", title="What the audit grows by")
    for name, value in data["audit"].items():
        audit.add_row(name.replace("_", " "), _number(value))
    yield audit
