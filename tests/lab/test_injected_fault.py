"""The injected fault: the same on every surface, once an episode, and it leaves nothing behind."""

from __future__ import annotations

import json

import pytest

from modtools.lab.check import task_folder, transcribe
from modtools.lab.episode import Budget
from modtools.lab.injected_fault import Fault, with_fault
from modtools.lab.plan import Plan, plan_of
from modtools.lab.run import read_run, run
from modtools.lab.tasks import generate
from modtools.models import load_model
from modtools.pipeline import FINISH, AuditLog, Request
from modtools.sandbox import strongest_level
from modtools.surfaces import SURFACES, build_surface

LEVEL = strongest_level()
TASK = generate("set_value", 3, 5)
PLAN = Plan(strata=(2, 3), per_stratum=1, task_seed=3, budget=Budget(reply_tokens=4000), group=6, inject_fault=True)
SAID = "error: unavailable_tool/busy: another call holds what this one needs. The same call may be tried again."


def reference_calls(name):
    with task_folder(TASK) as folder:
        return [call for call, _ in transcribe(TASK, build_surface(name), folder, LEVEL)]


@pytest.mark.parametrize("name", SURFACES)
def test_the_first_call_that_changes_something_is_not_carried_out(name):
    calls, fault = reference_calls(name), Fault()
    with task_folder(TASK) as folder:
        pipeline = with_fault(build_surface(name), fault).pipeline(folder, LEVEL, AuditLog())
        untouched = {path: path.read_bytes() for path in folder.rglob("*.py")}
        told = []
        for number, call in enumerate(calls):
            told.append(pipeline.run(Request(str(number), call)).observation.text)
            if SAID in told:
                break
        assert told[-1] == SAID and not any(text.startswith("error") for text in told[:-1])
        assert {path: path.read_bytes() for path in folder.rglob("*.py")} == untouched
        fault.look(folder)
        assert fault.operation and not fault.recovered
        again = pipeline.run(Request("again", calls[len(told) - 1]))
        fault.look(folder)
        assert again.outcome == "success" and again.operation.digest == fault.operation and fault.recovered


def test_a_program_that_only_looks_is_let_through():
    fault = Fault()
    with task_folder(TASK) as folder:
        pipeline = with_fault(build_surface("code"), fault).pipeline(folder, LEVEL, AuditLog())

        def program(code):
            return pipeline.run(Request(code, json.dumps({"name": "run_python", "arguments": {"code": code}})))

        assert program("print(1)").outcome == "success" and not fault.operation
        made = program("open('new.txt', 'w').write('x')")
        assert made.observation.text == SAID and not (folder / "new.txt").exists()
        assert program("from pathlib import Path\nPath('new.txt').write_text('x')").outcome == "success"
        fault.look(folder)
        assert fault.recovered  # by another program


def test_a_run_notes_how_each_episode_took_it(tmp_path):
    script = {}
    for task in PLAN.tasks():
        for name in SURFACES:
            with task_folder(task) as folder:
                calls = [call for call, _ in transcribe(task, build_surface(name), folder, LEVEL)]
            # Programs change files in their last call here; elsewhere the first edit follows one look.
            at = len(calls) - 1 if name == "code" else 1
            again = [] if name == "coarse" else [calls[at]]
            script[(task.id, name)] = [*calls[: at + 1], *again, *calls[at + 1 :], FINISH]
    model = load_model("scripted", script=script)
    run(PLAN, model, tmp_path, LEVEL)
    manifest, records = read_run(tmp_path)
    assert plan_of(manifest) == PLAN
    for record in records:
        assert record["fault"]["turn"] == next(i for i, t in enumerate(record["turns"]) if t["observation"] == SAID)
        assert record["fault"]["recovered"] == record["success"] == (record["surface"] != "coarse")


def test_without_it_nothing_is_noted(tmp_path):
    from dataclasses import replace

    script = {(task.id, name): [FINISH] for task in PLAN.tasks() for name in SURFACES}
    run(replace(PLAN, inject_fault=False), load_model("scripted", script=script), tmp_path / "plain", LEVEL)
    assert all("fault" not in record for record in read_run(tmp_path / "plain")[1])
    run(PLAN, load_model("scripted", script=script), tmp_path / "faulty", LEVEL)
    assert all(record["fault"] is None for record in read_run(tmp_path / "faulty")[1])
