from __future__ import annotations

import pytest

from modtools.errors import ContextOverflowError, UnsupportedError, UsageError
from modtools.models import Message, Request, Sampling, load_model

ASK = (Message("system", "Be brief."), Message("user", "How are you?"))


def ask(*key) -> Request:
    return Request(ASK, key=key)


def test_the_step_in_the_key_says_which_reply_is_due_and_order_does_not_matter():
    model = load_model("scripted", script=["first", "second"])
    replies = model.generate([ask("t", "fine", 0, 1), ask("t", "fine", 0, 0)], Sampling())
    assert [reply.text for reply in replies] == ["second", "first"]


def test_the_longest_matching_beginning_of_the_key_wins():
    model = load_model("scripted", script={("t",): ["any surface"], ("t", "code"): ["on code"]})
    replies = model.generate([ask("t", "fine", 0, 0), ask("t", "code", 0, 0)], Sampling())
    assert [reply.text for reply in replies] == ["any surface", "on code"]


def test_a_function_answers_from_the_messages():
    def shout(messages):
        return messages[-1].content.upper()

    assert load_model("scripted", script=shout).generate([ask()], Sampling())[0].text == "HOW ARE YOU?"


def test_a_script_that_has_run_out_names_the_key():
    model = load_model("scripted", script={("t",): ["only one"]})
    with pytest.raises(UsageError, match=r"run out at key \('t', 'fine', 0, 1\)"):
        model.generate([ask("t", "fine", 0, 1)], Sampling())
    with pytest.raises(UsageError, match=r"no replies for key \('u', 0\)"):
        model.generate([ask("u", 0)], Sampling())
    with pytest.raises(UsageError, match="step"):
        model.generate([ask()], Sampling())


def test_message_counts_sum_to_the_prompt_and_usage_reports_them():
    model = load_model("scripted", script=["ok, done"])
    counts = model.count_messages(ASK)
    assert sum(counts) == model.count(model.render(ASK))
    usage = model.generate([ask(0)], Sampling())[0].usage
    assert (usage.prompt_tokens, usage.message_tokens) == (sum(counts), tuple(counts))
    assert usage.completion_tokens == 4  # "ok" "," " " "done"


def test_length_and_stop_strings_end_a_reply():
    model = load_model("scripted", script=["one two three END four"])
    cut = model.generate([ask(0)], Sampling(max_tokens=3))[0]
    assert (cut.text, cut.finish) == ("one two", "length")
    stopped = model.generate([ask(0)], Sampling(stop=("END",)))[0]
    assert (stopped.text, stopped.finish) == ("one two three ", "stop")


def test_a_prompt_over_the_context_is_an_error_that_says_by_how_much():
    model = load_model("scripted", script=["x"], context_tokens=30)
    long = Request((Message("user", "a " * 20),), key=(0,))
    assert model.fits(ask(0), 5) and not model.fits(long, 5)
    with pytest.raises(ContextOverflowError, match="request 1") as caught:
        model.generate([ask(0), long], Sampling(max_tokens=5))
    assert caught.value.request_index == 1
    assert caught.value.excess_tokens == model.count(model.render(long.messages)) + 5 - 30


def test_what_it_does_not_declare_is_refused_by_name():
    model = load_model("scripted", script=["x"])
    with pytest.raises(UnsupportedError, match="'scripted'.*'logprobs'"):
        model.generate([ask(0)], Sampling(), logprobs=True)
    with pytest.raises(UnsupportedError, match="'score'"):
        model.score(ASK, "x")
    with pytest.raises(UnsupportedError, match="'mask'"):
        model.generate([Request(ASK, mask=object(), key=(0,))], Sampling())


def test_the_digest_follows_the_script():
    digests = {load_model("scripted", script=script).digest for script in (["a"], ["b"], {("t",): ["a"]})}
    assert len(digests) == 3
    assert load_model("scripted", script=["a"]).digest in digests


def test_an_option_that_a_backend_does_not_take_names_those_it_takes():
    with pytest.raises(UsageError, match="'allow_download'.*options are: device, dtype"):
        load_model("embedded", allow_download=True)
    with pytest.raises(UsageError, match="missing a required argument: 'script'"):
        load_model("scripted")


def test_a_script_counted_by_a_model_costs_that_models_tokens():
    counter = load_model("scripted", script=["unused"], context_tokens=900)
    counter.count = lambda text: 10 * len(text)  # an outlandish tokenizer
    counter.count_messages = lambda messages: [10 * len(message.content) for message in messages]
    plain = load_model("scripted", script=["a b"])
    model = load_model("scripted", script=["a b"], counted_by=counter)
    reply = model.generate([ask(0)], Sampling())[0]
    assert (reply.text, reply.usage.completion_tokens) == ("a b", 31)
    assert reply.usage.prompt_tokens == sum(reply.usage.message_tokens) == 10 * sum(len(m.content) for m in ASK)
    assert model.context_tokens == 900 and model.digest != plain.digest
    assert model.fits(ask(0), 600) and not model.fits(ask(0), 700)
    with pytest.raises(UsageError, match="said whole or not at all"):
        model.generate([ask(0)], Sampling(max_tokens=30))
