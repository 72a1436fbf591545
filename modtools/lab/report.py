"""The report of a run: Markdown, HTML and figures, written from the records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from modtools.contract import Stage
from modtools.errors import RecordError
from modtools.lab import metrics
from modtools.lab.acceptance import Criterion, acceptance, acceptance_text, write_memo
from modtools.lab.findings import findings, findings_text
from modtools.lab.findings_figures import findings_figures
from modtools.lab.metrics import Record
from modtools.lab.report_figures import cost_figure, death_figure, success_figure
from modtools.pipeline import FAILURES
from modtools.records import write_whole

_NO_SKILL = 0.05


def summary(manifest: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Every figure of the report as plain data: what `--json` writes.

    Raises:
        RecordError: for a run without episodes.
    """
    if not records:
        raise RecordError("the run has no episodes yet; run it first: modtools lab run --out DIR")
    surfaces = [s for s in manifest["pinned"]["surfaces"] if any(r["surface"] == s for r in records)]
    strata = sorted({r["stratum"] for r in records})
    of = {name: [r for r in records if r["surface"] == name] for name in surfaces}

    def cells(name: str) -> dict[str, Any]:
        by_stratum = {str(c): asdict(metrics.success([r for r in of[name] if r["stratum"] == c])) for c in strata}
        return {"all": asdict(metrics.success(of[name])), "by_stratum": by_stratum}

    return {
        "arm": manifest["arm"],
        "model": manifest["model"]["name"],
        "episodes": len(records),
        "success": {name: cells(name) for name in surfaces},
        "families": {
            family: {n: asdict(metrics.success([r for r in of[n] if r["family"] == family])) for n in surfaces}
            for family in sorted({r["family"] for r in records})
        },
        "held_out": manifest["model"]["info"].get("adapter", {}).get("held_out"),
        "calls": {name: asdict(metrics.mean(of[name], lambda r: r["calls"])) for name in surfaces},
        "tokens": {name: asdict(metrics.mean(of[name], metrics.total_tokens)) for name in surfaces},
        "token_parts": {name: metrics.token_parts(of[name]) for name in surfaces},
        "schema_tokens": {n: manifest["pinned"]["surfaces"][n]["schema_tokens"] for n in surfaces},
        "died_at": {name: _estimates(metrics.stage_shares(of[name])) for name in surfaces},
        "codes": {
            name: dict(sum((Counter(r["codes"]) for r in of[name]), Counter()).most_common()) for name in surfaces
        },
        "ended_by": {name: dict(Counter(r["ended_by"] for r in of[name])) for name in surfaces},
    }


def write_report(folder: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> Path:
    """Write report.md, report.html and figures/ into the run folder, and a draft of memo.md where there is none.

    Returns:
        The path of report.md.
    """
    folder = Path(folder)
    data = summary(manifest, records)
    found = findings(folder, manifest, records)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    pictures = []
    drawn = {"success": success_figure(data), "died": death_figure(data), "cost": cost_figure(data)}
    for name, figure in (drawn | findings_figures(records, found)).items():
        figure.save(folder / "figures" / f"{name}.png")
        pictures.append(figure.markdown(f"figures/{name}.png"))
    write_memo(folder, found)
    text = _markdown(manifest, records, data, pictures, found, acceptance(folder, manifest, records, found))
    write_whole(folder / "report.md", text)
    write_whole(folder / "report.html", _html(text))
    return folder / "report.md"


def success_table(data: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """(header, rows) of success by surface and stratum, for the report, the terminal and the notebook."""
    strata = list(next(iter(data["success"].values()))["by_stratum"])
    header = ["surface", *(f"c={c}" for c in strata), "all", "calls", "tokens"]
    rows = []
    for name, cell in data["success"].items():
        shares = [_share(cell["by_stratum"][c]) for c in strata]
        calls = metrics.Estimate(**data["calls"][name]).text(1)
        tokens = metrics.Estimate(**data["tokens"][name]).text(0)
        rows.append([name, *shares, metrics.Estimate(**cell["all"]).text(), calls, tokens])
    return header, rows


def finding(data: Mapping[str, Any]) -> str:
    """What the run says in a sentence or three, and what it cannot say."""
    best = max(cell["all"]["value"] for cell in data["success"].values())
    if best > _NO_SKILL:
        shares = ", ".join(f"{name} {cell['all']['value']:.2f}" for name, cell in data["success"].items())
        return f"Success by surface: {shares}."
    deaths = {
        (name, stage): e["value"] or 0.0 for name, shares in data["died_at"].items() for stage, e in shares.items()
    }
    requests = sum(data["died_at"][name]["extract"]["n"] for name in data["died_at"])
    stage_means = {
        s: sum(v for (_, stage), v in deaths.items() if stage == s) / len(data["success"]) for s in map(str, Stage)
    }
    worst, share = max(stage_means.items(), key=lambda item: item[1])
    return (
        f"The model solves next to nothing: the best surface reaches {best:.2f}. This is a floor, and a floor "
        f"compares no surfaces. It does show where calls die: of {requests} requests, {share:.0%} end in the stage "
        f"'{worst}' (mean over the surfaces)."
    )


def _markdown(
    manifest: Mapping[str, Any],
    records: Sequence[Record],
    data: dict[str, Any],
    pictures: list[str],
    found: Mapping[str, Any],
    criteria: Sequence[Criterion],
) -> str:
    model, made, pinned = manifest["model"], manifest["made"], manifest["pinned"]
    info = ", ".join(f"{k} {v}" for k, v in model["info"].items() if isinstance(v, (str, int, float)))
    notes = " ".join(f"{note[:1].upper()}{note[1:]}." for note in model["info"].get("notes", []))
    header, rows = success_table(data)
    parts = [[n, *(f"{v:.0f}" for v in p.values()), f"{sum(p.values()):.0f}"] for n, p in data["token_parts"].items()]
    died = [
        [n, *(metrics.Estimate(**shares[s]).text() for s in metrics.STAGES)] for n, shares in data["died_at"].items()
    ]
    codes = [
        [code, str(FAILURES[code].stage), FAILURES[code].decoder, FAILURES[code].meaning,
         *(str(data["codes"][n].get(code, 0)) for n in data["codes"])]
        for code in FAILURES if any(code in counts for counts in data["codes"].values())
    ]  # fmt: skip
    blocks = [
        "# Lab run: three tool surfaces on the same tasks",
        f"Model: {model['name']} ({info}). {notes}".strip(),
        f"{len(records)} episodes: {len(pinned['tasks'])} tasks, surfaces {', '.join(data['success'])}, "
        f"{pinned['plan']['seeds']} seed(s), temperature {pinned['plan']['temperature']}, "
        f"sandbox {pinned['sandbox_level']}. "
        f"{'Confirmatory' if found['confirmatory'] else 'Exploratory'}; see the hypotheses below.",
        f"**{finding(data)}**",
        "## Success",
        "Share of episodes in which the task's own tests pass afterwards. Intervals are 95 %; c is the number of "
        "calls a reference needs on the fine surface.",
        _table(header, rows),
        pictures[0],
        "## Success by family of tasks",
        _families_text(data),
        findings_text(found),
        *pictures[3:],
        "## Where calls die",
        "Share of requests that end in each stage. Intervals draw whole tasks with replacement.",
        _table(["surface", *metrics.STAGES], died),
        pictures[1],
        "The codes, with the number of requests on each surface. *Decoder*: could constrained decoding have "
        "removed it?",
        _table(["code", "stage", "decoder", "meaning", *data["codes"]], codes) if codes else "No request failed.",
        "## What it cost",
        "Mean tokens an episode, by part. Schema and prompt are read again at every turn; history is what was "
        "read before.",
        _table(["surface", *metrics.TOKEN_PARTS, "total"], parts),
        pictures[2],
        f"Description cost of a surface, once: "
        f"{', '.join(f'{n} {t} tokens' for n, t in data['schema_tokens'].items())}.",
        "## How episodes ended",
        _table(
            ["surface", "ended by"],
            [[n, ", ".join(f"{k} {v}" for k, v in e.items())] for n, e in data["ended_by"].items()],
        ),
        "## Where it ran",
        f"{', '.join(f'{name} {v}' for name, v in pinned['versions'].items())}, {made['platform']}, arm {data['arm']}. "
        f"manifest.json pins model, surfaces, tasks, policy, budget and decoding by digest.",
        "## Acceptance",
        acceptance_text(criteria),
    ]
    return "\n\n".join(blocks) + "\n"


def _families_text(data: Mapping[str, Any]) -> str:
    """Success by family; the one that the model was not trained on stands last and is named."""
    held_out, surfaces = data["held_out"], list(data["success"])
    names = sorted(data["families"], key=lambda name: (name == held_out, name))
    rows = [
        [f"**{name}, held out of training**" if name == held_out else name]
        + [metrics.Estimate(**data["families"][name][surface]).text() for surface in surfaces]
        for name in names
    ]
    table = _table(["family", *surfaces], rows)
    if held_out not in data["families"]:
        return table
    return f"{table}\n\nThe model's adapter was trained on all families but {held_out}."


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _share(cell: Mapping[str, Any]) -> str:
    if cell["value"] is None:
        return "none"
    return f"{round(cell['value'] * cell['n'])}/{cell['n']}"


def _estimates(shares: Mapping[str, metrics.Estimate]) -> dict[str, Any]:
    return {name: asdict(estimate) for name, estimate in shares.items()}


_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
body{color:#222;background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #bbb;padding:.25rem .6rem;text-align:left}
img{max-width:100%;background:#fff}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#555}}"""


def _html(markdown: str) -> str:
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(markdown)
    title = markdown.splitlines()[0].lstrip("# ")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}</body></html>\n"
    )
