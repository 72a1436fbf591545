"""A run's plan and its manifest: everything that could change a number, pinned before the first episode."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

import modtools
from modtools.contract import digest
from modtools.errors import RecordError, UsageError
from modtools.lab.episode import Budget, Job, Setting
from modtools.lab.own_tasks import task_of
from modtools.lab.prompt import schema_tokens
from modtools.lab.tasks import STRATA, Task, draw
from modtools.models import Model
from modtools.pipeline import WORKSPACE_POLICY
from modtools.surfaces import SURFACES, FineSwitches, Surface, build_surface

_VERSIONS = ("numpy", "torch", "transformers", "tokenizers", "jsonschema", "scipy", "pandas", "statsmodels")


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        surfaces: names, in the order of the report.
        strata: complexities c to draw tasks from.
        per_stratum: tasks a stratum.
        seeds: repetitions of each task on each surface.
        task_seed: from which the tasks are drawn.
        temperature: of the sampling; 0 takes the likeliest token, and seeds then repeat each other.
        budget: of an episode.
        switches: of the fine surface.
        group: episodes that go in lockstep. It is part of the plan, since in 16-bit arithmetic a batch's
            make-up can change a reply.
        inject_fault: whether the first call of each episode that changes something fails (`lab.injected_fault`).
        own: tasks of one's own (`lab.own_tasks`); where there are some they are run, and none is drawn.
    """

    surfaces: tuple[str, ...] = SURFACES
    strata: tuple[int, ...] = STRATA
    per_stratum: int = 3
    seeds: int = 1
    task_seed: int = 0
    temperature: float = 0.0
    budget: Budget = field(default_factory=Budget)
    switches: FineSwitches = field(default_factory=FineSwitches)
    group: int = 15
    inject_fault: bool = False
    own: tuple[Task, ...] = ()

    def __post_init__(self):
        if self.per_stratum < 1 or self.seeds < 1 or self.group < 1 or not 0 <= self.temperature < 100:
            raise UsageError(
                f"per_stratum {self.per_stratum}, seeds {self.seeds}, group {self.group}, temperature "
                f"{self.temperature}: expected the first three at least 1, and 0 <= temperature < 100"
            )
        names = [task.id for task in self.own]
        if len(set(names)) < len(names):
            raise UsageError(f"two tasks have the name {max(names, key=names.count)}; every task needs its own")
        if not self.surfaces or len(set(self.surfaces)) < len(self.surfaces):
            raise UsageError(f"surfaces {self.surfaces}: expected some of {', '.join(SURFACES)}, each once")

    def tasks(self) -> list[Task]:
        """The tasks: one's own, or drawn from the seed."""
        if self.own:
            return list(self.own)
        return draw(self.per_stratum, self.task_seed, self.strata)

    def jobs(self) -> list[list[Job]]:
        """All episodes, in the groups in which they are run."""
        built = [build_surface(name, self.switches) for name in self.surfaces]
        tasks = self.tasks()
        jobs = [Job(task, s, seed) for seed in range(self.seeds) for task in tasks for s in built]
        return [jobs[i : i + self.group] for i in range(0, len(jobs), self.group)]


# The preset of `make lab`: one task a stratum, three surfaces, one seed, and a budget that ends a run of a model
# which cannot act within minutes on two cores.
QUICK = Plan(per_stratum=1, budget=Budget(reply_tokens=256, failures_in_a_row=2))


def setting_of(plan: Plan, model: Model, sandbox_level: str) -> Setting:
    """What the plan's episodes share, with the arm's name worked out."""
    surfaces = {name: build_surface(name, plan.switches) for name in plan.surfaces}
    check_trained_on(model)
    arm = {"model": model.digest, "switches": asdict(plan.switches), "decoding": _decoding(plan)}
    name = f"{model.name.removeprefix('replay of ')}-{digest(arm)[:8]}"
    schema = _schema_tokens(model, surfaces)
    return Setting(name, plan.temperature, plan.budget, sandbox_level, schema, plan.inject_fault)


def check_trained_on(model: Model) -> None:
    """See that the surfaces are still those that the model's adapter was trained on.

    Raises:
        RecordError: where one has changed since; its words are part of what the adapter has learnt.
    """
    for name, trained in model.info.get("adapter", {}).get("surfaces", {}).items():
        if build_surface(name).digest != trained:
            raise RecordError(f"the {name} surface is not the one that the adapter of {model.name} was trained on: train "
                              "it anew (course/lab/train_adapter.py), or run --model embedded-base")  # fmt: skip


def check_recorded_with(manifest: Mapping[str, Any]) -> None:
    """See that the surfaces are still those that a run was recorded with; its replies answer their words.

    Raises:
        RecordError: where one has changed since.
    """
    switches = FineSwitches(**manifest["pinned"]["plan"]["switches"])
    for name, pinned in manifest["pinned"]["surfaces"].items():
        if build_surface(name, switches).digest != pinned["digest"]:
            raise RecordError(f"the {name} surface is not the one that this run was recorded with, so its replies cannot be "
                              "replayed; take the version of modtools that its manifest names")  # fmt: skip


def manifest_of(plan: Plan, setting: Setting, model: Model) -> dict[str, Any]:
    """The manifest: `pinned` must be equal for a run to be resumed or compared; the rest tells where it ran."""
    surfaces = {name: build_surface(name, plan.switches) for name in plan.surfaces}
    return {
        "arm": setting.arm,
        "model": {"name": model.name, "digest": model.digest, "info": dict(model.info)},
        "pinned": {
            "plan": asdict(plan),
            "model": model.digest,
            "dtype": model.info.get("dtype"),
            "decoding": _decoding(plan),
            "surfaces": {
                name: {"digest": s.digest, "schema_tokens": setting.schema_tokens[name], "switches": s.switches}
                for name, s in surfaces.items()
            },
            "policy": WORKSPACE_POLICY.digest,
            "tasks": {task.id: task.digest for task in plan.tasks()},
            "sandbox_level": setting.sandbox_level,
            "versions": _versions(),
        },
        "confirmatory": False,
        "made": {
            "platform": platform.platform(),
            "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
    }


def plan_of(manifest: Mapping[str, Any]) -> Plan:
    """The plan a manifest holds.

    Raises:
        RecordError: where it is not a manifest of this version, or its tasks can no longer be made.
    """
    try:
        pinned = manifest["pinned"]
        fields = dict(pinned["plan"])
        own = tuple(task_of(task, "the plan's own tasks") for task in fields["own"])
        fields |= {"surfaces": tuple(fields["surfaces"]), "strata": tuple(fields["strata"]), "own": own}
        plan = Plan(**{**fields, "budget": Budget(**fields["budget"]), "switches": FineSwitches(**fields["switches"])})
        wanted = pinned["tasks"]
    except (KeyError, TypeError) as error:
        raise RecordError(f"the manifest is not one of this version of modtools: {error!r}") from error
    made = {task.id: task.digest for task in plan.tasks()}
    changed = sorted(set(wanted.items()) ^ set(made.items()))
    if changed:
        raise RecordError(
            f"the task generator has changed since this run was made; first different task: {changed[0][0]}"
        )
    return plan


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[str]:
    """Where two `pinned` parts differ, one line each, for the error of a resume that does not fit.

    What a user chose comes first; digests, which only follow from it, come last.
    """
    lines: list[str] = []
    for key in sorted(set(old) | set(new), key=lambda key: (key != "plan", "digest" in key, key)):
        left, right = old.get(key), new.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            lines += differences(left, right, f"{path}{key}.")
        elif left != right:
            lines.append(f"{path}{key} was {_brief(left)} and is now {_brief(right)}")
    return lines


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:21]}..."


def _decoding(plan: Plan) -> dict[str, Any]:
    return {"mask": "free", "temperature": plan.temperature, "reply_tokens": plan.budget.reply_tokens}


def _schema_tokens(model: Model, surfaces: Mapping[str, Surface]) -> dict[str, int]:
    if "count" in model.capabilities:
        return {name: schema_tokens(model, surface) for name, surface in surfaces.items()}
    if not hasattr(model, "manifest"):
        raise UsageError(f"{model.name} cannot count tokens, and the lab splits costs into parts: name its --tokenizer")
    recorded = model.manifest["pinned"]["surfaces"]  # a replay counts no tokens: its recording holds them
    return {name: recorded[name]["schema_tokens"] for name in surfaces}


def _versions() -> dict[str, str]:
    found = {"modtools": modtools.__version__, "python": sys.version.split()[0]}
    for package in _VERSIONS:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
