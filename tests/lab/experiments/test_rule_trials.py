"""Trials of the linter's rules: the bad schema breaks the rule, the good one keeps it, and nothing else moves."""

from __future__ import annotations

from random import Random

import pytest

from modtools.errors import UsageError
from modtools.lab.experiments.rule_trials import TRIALS, shown_tools, trial
from modtools.lab.experiments.single_calls import single_call
from modtools.lab.experiments.three_ways import PROMPT_ONLY, Experiment, run_way
from modtools.models.scripted import ScriptedModel
from modtools.pipeline.validate import validate_arguments
from modtools.schemas.lint import RULES, lint


def calls(rule: str):
    made = (single_call(Random(f"trial/{seed}"), unseen=seed % 2 == 0) for seed in range(60))
    return [call for call in made if TRIALS[rule].applies(call)]


def rules_of(call) -> set[str]:
    return {finding.rule for finding in lint(shown_tools(call))}


@pytest.mark.parametrize("rule", TRIALS)
def test_the_bad_schema_breaks_the_rule_and_the_good_one_keeps_it(rule):
    assert rule in RULES
    found = [(rules_of(TRIALS[rule].good(call)), rules_of(TRIALS[rule].bad(call))) for call in calls(rule)]
    assert len(found) >= 15 and all(rule not in good for good, _ in found)
    assert all(rule in bad for _, bad in found)


@pytest.mark.parametrize("rule", TRIALS)
def test_the_right_call_is_valid_with_either_schema_and_the_request_is_the_same(rule):
    for call in calls(rule):
        for change in (TRIALS[rule].good, TRIALS[rule].bad):
            made = change(call)
            (tool,) = [tool for tool in made.tools if tool.name == made.call["name"]]
            assert validate_arguments(tool, made.call["arguments"])[1] == []
            assert made.messages[1] == call.messages[1] and len(made.tools) == len(call.tools)
            assert all(tool.schema_text in made.messages[0].content for tool in made.tools)


def test_a_trial_runs_through_the_pipeline_on_the_same_requests():
    experiment = Experiment(requests=20, group=8)
    chosen = TRIALS["nested"]
    known = {}
    for _, call in experiment.calls():
        for change in (chosen.good, chosen.bad):
            made = change(call)
            known[made.messages[0].content + made.messages[1].content] = made.answer
    model = ScriptedModel(lambda messages: known[messages[0].content + messages[1].content])
    for change in (chosen.good, chosen.bad):
        records = list(run_way(model, experiment, PROMPT_ONLY, change=lambda call, c=change: c(call)))
        assert len(records) == 20 and all(record["success"] for record in records)
    some = list(
        run_way(model, experiment, PROMPT_ONLY, change=lambda call: chosen.good(call) if len(call.tools) > 4 else None)
    )
    assert 0 < len(some) < 20 and all(record["tools"] > 4 for record in some)


def test_an_unknown_rule_names_those_that_have_a_trial():
    with pytest.raises(UsageError, match="missing_enum"):
        trial("no_such_rule")
