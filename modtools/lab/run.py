"""Running a plan: episodes as lines of a file, resumable after any death.

A run folder holds manifest.json (what was pinned), episodes.jsonl (one episode a line, each keyed by arm,
task, surface and seed) and audit/ (every call). Start the same run again and it goes on where it stopped: the
keys on file are done, a group with a missing key is run again whole, and only its missing lines are added.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.contract import digest
from modtools.errors import RecordError
from modtools.lab.episode import run_group
from modtools.lab.plan import Plan, differences, manifest_of, setting_of
from modtools.lab.registration import NAME, Registration
from modtools.models import Model
from modtools.pipeline import AuditLog
from modtools.records import append_line, read_json, read_lines, write_json, write_whole


@dataclass(frozen=True)
class Progress:
    """Where a run stands, told after every turn and every episode.

    Attributes:
        done, total: episodes.
        successes: so far, by surface, as (successes, episodes).
        tokens: generated in this process.
    """

    done: int
    total: int
    successes: dict[str, tuple[int, int]]
    tokens: int


def key_of(record: dict[str, Any]) -> tuple:
    """The key of an episode record: (arm, task, surface, seed)."""
    return (record["arm"], record["task"], record["surface"], record["seed"])


def run(
    plan: Plan,
    model: Model,
    out: Path,
    sandbox_level: str,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    registration: Registration | None = None,
) -> list[dict[str, Any]]:
    """Run what is missing of a plan.

    Args:
        plan: what to run.
        model: answers.
        out: the run folder; made, or resumed where it holds the same plan.
        sandbox_level: a level of modtools.sandbox.
        on_progress: told where the run stands.
        registration: what the plan was registered as, before this run; the folder gets a copy of it.

    Returns:
        All episode records, in the plan's order. A KeyboardInterrupt stops it at once and loses nothing on file.

    Raises:
        RecordError: where the folder holds another run, is in use, or cannot be written.
    """
    out = Path(out)
    setting = setting_of(plan, model, sandbox_level)
    manifest = manifest_of(plan, setting, model)
    if registration:
        manifest |= {"confirmatory": True, "registration": registration.note()}
    with _locked(out):
        if registration:
            write_whole(out / NAME, (registration.folder / NAME).read_bytes())
        _pin(out, manifest)
        episodes = out / "episodes.jsonl"
        records = {key_of(record): record for record in _read_episodes(out, manifest)}
        prefix = f"modtools-run-{digest(str(out.resolve()))[:12]}-"
        _remove_leftovers(prefix)
        groups = [
            [((setting.arm, job.task.id, job.surface.name, job.seed), job) for job in group] for group in plan.jobs()
        ]
        order = [key for group in groups for key, _ in group]
        audit = AuditLog(out / "audit")
        tokens = 0

        def tell() -> None:
            on_progress(Progress(len(records), len(order), _successes(records, plan), tokens))

        def count(generated: int) -> None:
            nonlocal tokens
            tokens += generated
            tell()

        tell()
        for group in groups:
            if all(key in records for key, _ in group):
                continue
            jobs = [job for _, job in group]
            for record in run_group(jobs, setting, model, audit, uuid.uuid4().hex[:8], count, prefix):
                if key_of(record) not in records:
                    append_line(episodes, record)
                    records[key_of(record)] = record
                    tell()
        return [records[key] for key in order]


def read_run(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(manifest, episode records) of a run folder, finished or not.

    Raises:
        RecordError: where it is no run folder, or a line is not an episode of this run.
    """
    manifest = read_json(Path(folder) / "manifest.json")
    parts = [("arm", str), ("model", dict), ("pinned", dict), ("made", dict)]
    if not isinstance(manifest, dict) or not all(isinstance(manifest.get(name), kind) for name, kind in parts):
        raise RecordError(f"{folder}: manifest.json is not one of a run; expected {', '.join(n for n, _ in parts)}")
    return manifest, _read_episodes(Path(folder), manifest)


def _read_episodes(folder: Path, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The episodes on file; each must be one of the plan, and stand there once."""
    seen: set[tuple] = set()
    records = read_lines(folder / "episodes.jsonl")
    pinned = manifest["pinned"]
    for number, record in enumerate(records, 1):
        where = f"{folder / 'episodes.jsonl'}, line {number}"
        missing = [name for name in _FIELDS if name not in record]
        if missing:
            raise RecordError(f"{where}: no episode: it has no {', '.join(missing)}")
        key = key_of(record)
        planned = record["task"] in pinned["tasks"] and record["surface"] in pinned["surfaces"]
        if record["arm"] != manifest["arm"] or not planned or record["seed"] not in range(pinned["plan"]["seeds"]):
            raise RecordError(f"{where}: the episode {key} is not one of this run's plan; remove the line")
        if key in seen:
            raise RecordError(f"{where}: the episode {key} stands there twice; remove one of the lines")
        seen.add(key)
    return records


_FIELDS = ("arm", "task", "surface", "seed", "stratum", "success", "ended_by", "calls", "tokens", "outcomes", "turns")


def _successes(records: dict[tuple, dict[str, Any]], plan: Plan) -> dict[str, tuple[int, int]]:
    counts = {name: (0, 0) for name in plan.surfaces}
    for record in records.values():
        successes, episodes = counts[record["surface"]]
        counts[record["surface"]] = (successes + record["success"], episodes + 1)
    return counts


def _remove_leftovers(prefix: str) -> None:
    """The workspaces of a process that died in this run; the lock says that nobody works in them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _pin(out: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, or check that the one on file pins the same."""
    path = out / "manifest.json"
    pinned = json.loads(json.dumps(manifest["pinned"]))
    if not path.exists():
        write_json(path, {**manifest, "pinned_digest": digest(pinned)})
        return
    old = read_json(path)
    changed = differences(old.get("pinned", {}), pinned)
    if changed:
        shown = "; ".join(changed[:4])
        raise RecordError(f"{out} holds another run ({shown}); give another --out, or remove the folder")


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out / ".lock", timeout=0):
            yield
    except Timeout:
        raise RecordError(f"{out} is in use by another process; wait for it, or give another --out") from None
    except OSError as error:
        raise RecordError(f"{out} cannot be a run folder: {error}") from error
