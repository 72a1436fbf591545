"""A scripted model that plays the reference solutions: what a perfect actor would score and cost.

It shows the ceiling of a task set and needs no weights; the lab's own tests run on it too.
"""

from __future__ import annotations

from modtools.lab.check import task_folder, transcribe
from modtools.lab.plan import Plan
from modtools.models import Model, load_model
from modtools.models.scripted import ScriptedModel
from modtools.pipeline import FINISH
from modtools.surfaces import build_surface


def reference_model(plan: Plan, sandbox_level: str, counted_by: Model | None = None) -> ScriptedModel:
    """Play every task's reference once on every surface, and make a script of the calls.

    Args:
        plan: its tasks and surfaces.
        sandbox_level: for programs.
        counted_by: the model in whose tokens the references are to be counted; their own small ones where None.
    """
    script: dict[tuple, list[str]] = {}
    for task in plan.tasks():
        for name in plan.surfaces:
            with task_folder(task) as folder:
                transcript = transcribe(task, build_surface(name, plan.switches), folder, sandbox_level)
            script[(task.id, name)] = [call for call, _ in transcript] + [FINISH]
    return load_model("scripted", script=script, name="reference", counted_by=counted_by)
