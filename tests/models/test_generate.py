"""The decoding loop and scoring, on the real embedded model in float32."""

from __future__ import annotations

import numpy as np
import pytest

from modtools.errors import ContextOverflowError, ModtoolsError, UsageError
from modtools.masking import compile_regex
from modtools.models import Message, Request, Sampling

QUESTIONS = (
    "What is the capital of France?",
    "Count from 1 to 5, separated by commas.",
    "Say hello in Spanish. " * 12,
    "def add(a, b):\n    return a - b\n\nWhat is wrong here?",
)


def ask(text: str, **more) -> Request:
    return Request((Message("user", text),), **more)


class Forced:
    """Allows one token at each position, then end-of-sequence; `wide` allows a whole set at each position."""

    def __init__(self, model, sets):
        self.sets, self.size, self.place, self.advanced = sets, model.network.config.vocab_size, 0, []
        self.ends = list(model.ends)

    def allowed(self):
        allowed = np.zeros(self.size, dtype=bool)
        allowed[list(self.sets[self.place]) if self.place < len(self.sets) else self.ends] = True
        return allowed

    def advance(self, token_id):
        self.advanced.append(token_id)
        self.place += 1

    def is_accepting(self):
        return self.place == len(self.sets)


def test_greedy_replies_are_the_same_alone_and_in_any_batch(model):
    sampling = Sampling(max_tokens=12)
    alone = [model.generate([ask(question)], sampling)[0] for question in QUESTIONS]
    together = model.generate([ask(question) for question in reversed(QUESTIONS)], sampling)
    assert [reply.token_ids for reply in reversed(together)] == [reply.token_ids for reply in alone]
    assert alone[0].text == "The capital of France is Paris." and alone[0].finish == "stop"


def test_greedy_replies_equal_those_of_transformers_own_loop(model):
    import torch

    prompt = torch.tensor([model.prompter.encode([Message("user", QUESTIONS[1])])])
    theirs = model.network.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False)
    ours = model.generate([ask(QUESTIONS[1])], Sampling(max_tokens=8))[0]
    assert list(ours.token_ids) == theirs[0, prompt.shape[1] :].tolist()


def test_an_episodes_randomness_does_not_depend_on_its_neighbours(model):
    sampling = Sampling(max_tokens=8, temperature=1.0)
    alone = [
        model.generate([ask(q, rng=np.random.default_rng(i))], sampling)[0].token_ids for i, q in enumerate(QUESTIONS)
    ]
    together = model.generate([ask(q, rng=np.random.default_rng(i)) for i, q in enumerate(QUESTIONS)], sampling)
    assert [reply.token_ids for reply in together] == alone
    assert alone != [reply.token_ids for reply in model.generate([ask(q) for q in QUESTIONS], Sampling(max_tokens=8))]


def test_sampling_without_a_generator_is_refused(model):
    with pytest.raises(UsageError, match="request 1.*rng"):
        model.generate([ask("a", rng=np.random.default_rng(0)), ask("b")], Sampling(temperature=0.5))


def test_a_mask_decides_what_may_be_said_until_end_of_sequence(model):
    digits = [model.prompter.encode_text(digit)[0] for digit in "0123456789"]
    mask = Forced(model, [digits] * 3)
    masked, free = model.generate([ask("Hello!", mask=mask), ask(QUESTIONS[0])], Sampling(max_tokens=10))
    assert masked.text.isdigit() and len(masked.text) == 3 and masked.finish == "stop"
    assert mask.advanced == list(masked.token_ids[:-1]) and masked.token_ids[-1] in model.ends
    assert free.text == "The capital of France is Paris."


def test_a_mask_shorter_than_the_networks_head_forbids_the_rest(model):
    mask = Forced(model, [[44]])
    mask.size = 100
    assert model.generate([ask("Hello!", mask=mask)], Sampling())[0].token_ids[0] == 44


def test_an_empty_allowed_set_is_an_error_that_names_the_position(model):
    with pytest.raises(ModtoolsError, match="request 1, token 2 of the reply.*not accepting"):
        model.generate([ask("a"), ask("b", mask=Forced(model, [[44], [44], [], [44]]))], Sampling(max_tokens=8))


def test_a_mask_belongs_to_one_request_and_is_no_grammar(model):
    shared = Forced(model, [[44]])
    with pytest.raises(UsageError, match="share one mask"):
        model.generate([ask("a", mask=shared), ask("b", mask=shared)], Sampling(max_tokens=2))
    with pytest.raises(UsageError, match="expected a matcher"):
        model.generate([ask("a", mask=compile_regex("a"))], Sampling(max_tokens=2))


def test_a_character_split_over_tokens_is_whole_in_the_text(model):
    ids = model.prompter.encode_text("😀 né 😀")
    assert "\ufffd" in model.prompter.decode(ids[:1])
    reply = model.generate([ask("x", mask=Forced(model, [[i] for i in ids]))], Sampling(stop=("never",)))[0]
    assert reply.text == "😀 né 😀"


def test_a_stop_string_ends_the_reply_and_is_not_part_of_it(model):
    reply = model.generate([ask(QUESTIONS[0])], Sampling(stop=("France", "zzz")))[0]
    assert (reply.text, reply.finish) == ("The capital of ", "stop")
    assert model.prompter.decode(reply.token_ids) == "The capital of France"
    assert reply.usage.completion_tokens == len(reply.token_ids)


def test_max_tokens_ends_the_reply_by_length(model):
    reply = model.generate([ask(QUESTIONS[0])], Sampling(max_tokens=3))[0]
    assert (reply.text, reply.finish, len(reply.token_ids)) == ("The capital of", "length", 3)
    assert reply.usage.prompt_tokens == sum(reply.usage.message_tokens)
    assert list(reply.usage.message_tokens) == model.count_messages(ask(QUESTIONS[0]).messages)


def test_logprobs_of_a_reply_agree_with_scoring_its_text(model):
    reply = model.generate([ask(QUESTIONS[1]), ask(QUESTIONS[0])], Sampling(max_tokens=16), logprobs=True)[1]
    score = model.score([Message("user", QUESTIONS[0])], reply.text)
    assert score.token_ids == reply.token_ids[:-1]  # all but end-of-sequence
    assert np.allclose(score.logprobs, reply.logprobs[:-1], atol=1e-3)
    assert reply.logprobs[-1] < 0


def test_logprobs_under_a_mask_are_those_of_the_unmasked_distribution(model):
    ids = model.prompter.encode_text("Berlin, surely")
    mask = Forced(model, [[i] for i in ids])
    reply = model.generate([ask(QUESTIONS[0], mask=mask)], Sampling(), logprobs=True)[0]
    assert np.allclose(
        model.score([Message("user", QUESTIONS[0])], "Berlin, surely").logprobs, reply.logprobs[:-1], atol=1e-3
    )


def test_a_text_longer_than_one_block_is_scored_as_in_one_piece(model, monkeypatch):
    text = "The capital of France is Paris, and that of Italy is Rome."
    whole = model.score([Message("user", QUESTIONS[0])], text)
    monkeypatch.setattr("modtools.models.huggingface.SCORE_BLOCK", 3)
    parts = model.score([Message("user", QUESTIONS[0])], text)
    assert np.allclose(whole.logprobs, parts.logprobs, atol=1e-3)
    assert len(whole.logprobs) == len(whole.token_ids) == model.count(text)


def test_a_prompt_over_the_context_is_refused_before_anything_is_generated(model):
    long = ask("word " * 8200)
    assert model.fits(ask("short"), 256) and not model.fits(long, 1)
    with pytest.raises(ContextOverflowError, match="request 1: ") as caught:
        model.generate([ask("short"), long], Sampling(max_tokens=10))
    prompt_tokens = sum(model.count_messages(long.messages))
    assert caught.value.excess_tokens == prompt_tokens + 10 - 8192


def test_no_requests_give_no_replies(model):
    assert model.generate([], Sampling()) == []
