"""Three ways from text to a call: each does what its name says, on scripts whose behaviour is known and on the model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from modtools.errors import RecordError, UsageError
from modtools.lab.experiments.three_ways import CONSTRAINED, PROMPT_ONLY, RETRY, WAYS, Experiment, run_way
from modtools.lab.experiments.three_ways_results import grammar_tax, mask_trace, way_result
from modtools.models import load_model
from modtools.models.embedded import vocabulary
from modtools.models.scripted import ScriptedModel

ASKED = Experiment(requests=12, group=5)


def answers(experiment: Experiment) -> dict:
    return {call.messages[1].content + call.messages[0].content: call.answer for _, call in experiment.calls()}


def knowing(wrong_first: str = "") -> ScriptedModel:
    """Knows every answer; where `wrong_first` is given, says that before."""
    known = answers(ASKED)

    def reply(messages):
        if wrong_first and len(messages) == 2:
            return wrong_first
        return known[messages[1].content + messages[0].content]

    return ScriptedModel(reply)


def test_a_model_that_knows_is_right_at_once_on_known_and_unseen_tools():
    records = list(run_way(knowing(), ASKED, PROMPT_ONLY))
    assert [record["task"] for record in records] == list(range(12))
    assert all(record["success"] and record["valid"] and record["attempts"] == 1 for record in records)
    assert sum(record["unseen"] for record in records) == 6
    assert way_result(records, PROMPT_ONLY).correct.value == 1


def test_what_is_valid_and_not_what_was_asked_for_is_not_right():
    experiment = Experiment(requests=30)
    number, (_, call) = next(
        (n, each) for n, each in enumerate(experiment.calls()) if len(each[1].tools) > 1 and "count" in each[1].call["arguments"]
    )  # fmt: skip
    other = {
        **call.call,
        "arguments": {**call.call["arguments"], "count": 12 if call.call["arguments"]["count"] != 12 else 1},
    }
    records = list(run_way(ScriptedModel(lambda messages: json.dumps(other)), experiment, PROMPT_ONLY))
    assert records[number]["valid"] and not records[number]["success"]


def test_key_order_and_the_way_a_number_is_written_do_not_matter():
    known = answers(ASKED)

    def reply(messages):
        call = json.loads(known[messages[1].content + messages[0].content])
        arguments = {k: float(v) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in
                     reversed(call["arguments"].items())}  # fmt: skip
        return json.dumps({"arguments": arguments, "name": call["name"]})

    assert all(record["success"] for record in run_way(ScriptedModel(reply), ASKED, PROMPT_ONLY))


@pytest.mark.parametrize("wrong,stage", [("Certainly!", "extract"), ('{"name": "x", "arguments": {}}', "validate")])
def test_a_retry_hears_what_was_wrong_and_tokens_of_all_turns_are_counted(wrong, stage):
    once = list(run_way(knowing(wrong), ASKED, PROMPT_ONLY))
    again = list(run_way(knowing(wrong), ASKED, RETRY))
    assert not any(record["valid"] for record in once) and all(record["success"] for record in again)
    assert {record["first_stage"] for record in once + again} == {stage}
    assert all(record["attempts"] == 2 for record in again)
    assert all(b["read"] > 2 * a["read"] and b["written"] > a["written"] for a, b in zip(once, again))
    parse = way_result(once, PROMPT_ONLY).parse_failure.value
    assert parse == (1 if stage == "extract" else 0)


def test_retries_are_bounded():
    stubborn = ScriptedModel(lambda messages: "no")
    records = list(run_way(stubborn, replace(ASKED, retries=3), RETRY))
    assert all(record["attempts"] == 4 and not record["valid"] for record in records)


def test_what_is_on_file_is_not_asked_again():
    class Counting(ScriptedModel):
        asked = 0

        def generate(self, requests, sampling, logprobs=False):
            Counting.asked += len(requests)
            return super().generate(requests, sampling, logprobs)

    known = answers(ASKED)
    model = Counting(lambda messages: known[messages[1].content + messages[0].content])
    records = list(run_way(model, ASKED, PROMPT_ONLY, skip=frozenset(range(7))))
    assert [record["task"] for record in records] == list(
        range(7, 12)
    ) and Counting.asked == 7  # a group is asked whole


def test_a_way_that_does_not_exist_or_lacks_its_vocabulary_is_refused():
    for way in ("guess", CONSTRAINED):
        with pytest.raises(UsageError):
            list(run_way(knowing(), ASKED, way))


def test_the_tax_is_paired_and_refuses_other_requests():
    def of(way, successes):
        return [{"task": n, "way": way, "success": each} for n, each in enumerate(successes)]

    tax = grammar_tax(of(CONSTRAINED, [1, 1, 0, 1]) + of(PROMPT_ONLY, [1, 0, 0, 0]))
    assert tax.estimate == 0.5 and tax.n == 4
    with pytest.raises(RecordError):
        grammar_tax(of(CONSTRAINED, [1, 1]) + of(PROMPT_ONLY, [1]))


def test_under_the_mask_every_reply_that_ends_is_valid_and_says_where_the_mask_spoke():
    model = load_model("embedded-base", device="cpu", dtype="float32")
    asked = Experiment(requests=4, reply_tokens=120, group=4)
    records = list(run_way(model, asked, CONSTRAINED, vocabulary()))
    assert all(record["valid"] for record in records if record["finish"] == "stop")
    assert any(record["finish"] == "stop" for record in records)
    trace = mask_trace(records)
    assert trace.steps == sum(record["written"] for record in records) and 0 < trace.overruled < 1
    assert 0 < trace.mean_legal_mass < 1 and trace.first  # the base model wants to say something else
    assert set(WAYS) == {PROMPT_ONLY, RETRY, CONSTRAINED}
