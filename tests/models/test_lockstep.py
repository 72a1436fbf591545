"""Conversations that go on: the same replies as when everything is read anew, and less to read."""

from __future__ import annotations

import pytest
import torch

from modtools.models import Message, Request, Sampling
from modtools.models.context import Context
from modtools.models.huggingface import HuggingFaceModel
from modtools.models.lockstep import SHORTEST, Lockstep, conversations
from modtools.models.scripted import ScriptedModel

SYSTEM = Message("system", "You change files by calling tools. " * 8)
S = Sampling(max_tokens=12)


@pytest.fixture(scope="module")
def small(model) -> HuggingFaceModel:
    """A small network with random weights, behind the embedded model's tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=model.network.config.vocab_size, hidden_size=48, intermediate_size=96, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=2048, initializer_range=0.4,
        eos_token_id=model.network.config.eos_token_id,
    )  # fmt: skip
    network = LlamaForCausalLM(config).eval()
    return HuggingFaceModel(network, model.prompter.tokenizer, "small", "0", {"context_tokens": 2048})


def begun(number: int, system=SYSTEM) -> list[Message]:
    """A conversation that is not the others."""
    return [system, Message("user", f"Task {number}: " + "change the file. " * (number + 1))]


def go_on(conversation: list[Message], reply: str, turn: int) -> None:
    conversation += [Message("assistant", reply), Message("user", f"ok: result {turn} " + "line " * (3 * turn))]


def test_every_turn_gives_what_reading_everything_anew_gives(small):
    lockstep, going = Lockstep(small), {number: begun(number) for number in range(5)}
    for turn in range(5):
        requests = [Request(tuple(each)) for each in going.values()]
        kept, anew = lockstep.generate(requests, S), small.generate(requests, S)
        assert [each.token_ids for each in kept] == [each.token_ids for each in anew]
        for each, plain in zip(kept, anew):
            assert each.usage.prompt_tokens == plain.usage.prompt_tokens and plain.usage.cached_tokens == 0
        for (number, conversation), reply in zip(going.items(), kept):
            go_on(conversation, reply.text, turn)
        if turn == 1:
            del going[2]  # one ends
        if turn == 2:
            going[7] = begun(7)  # one begins


def test_the_same_holds_for_the_real_model(model):
    lockstep, going = Lockstep(model), [begun(1), begun(2)]
    for turn in range(3):
        requests = [Request(tuple(each)) for each in going]
        kept, anew = lockstep.generate(requests, S), model.generate(requests, S)
        assert [each.token_ids for each in kept] == [each.token_ids for each in anew]
        assert turn == 0 or all(each.usage.cached_tokens > 60 for each in kept)
        for conversation, reply in zip(going, kept):
            go_on(conversation, reply.text, turn)


def test_a_turn_reads_only_what_is_new(small, monkeypatch):
    read, true = [], Context.extend

    def counted(self, tokens, logits_to_keep=1):
        read.append(sum(len(row) for row in tokens))
        return true(self, tokens, logits_to_keep)

    monkeypatch.setattr(Context, "extend", counted)
    lockstep, one = Lockstep(small), begun(1)
    first = lockstep.generate([Request(tuple(one))], S)[0]
    one += [Message("assistant", "ok"), Message("user", "Go on.")]
    read.clear()
    second = lockstep.generate([Request(tuple(one))], S)[0]
    new = second.usage.prompt_tokens - second.usage.cached_tokens
    assert read[0] == new and new < 40 < first.usage.prompt_tokens <= second.usage.cached_tokens + 20


def test_a_beginning_that_prompts_share_is_read_once(small):
    lockstep = Lockstep(small)
    system = len(small.prompter.encode([SYSTEM])) - 10
    replies = lockstep.generate([Request(tuple(begun(number))) for number in range(3)], S)
    assert all(each.usage.cached_tokens >= system for each in replies)
    later = lockstep.generate([Request((SYSTEM, Message("user", "Something else."))), Request(tuple(begun(9)))], S)
    assert all(each.usage.cached_tokens >= system for each in later)
    other = lockstep.generate([Request((Message("system", "Other words. " * 20), Message("user", "Hm.")))], S)
    assert other[0].usage.cached_tokens == 0


def test_a_conversation_that_was_changed_is_read_from_the_change_on(small):
    lockstep, one = Lockstep(small), begun(3)
    lockstep.generate([Request(tuple(one))], S)
    one[1] = Message("user", one[1].content.replace("Task 3", "Task 4"))
    changed = lockstep.generate([Request(tuple(one))], S)[0]
    anew = small.generate([Request(tuple(one))], S)[0]
    assert changed.token_ids == anew.token_ids
    assert SHORTEST < changed.usage.cached_tokens < changed.usage.prompt_tokens - 20


def test_two_prompts_do_not_share_one_conversation(small):
    lockstep, one = Lockstep(small), begun(1)
    lockstep.generate([Request(tuple(one))], S)
    twins = [Request((*one, Message("assistant", "ok"), Message("user", word))) for word in ("Yes.", "No.")]
    kept, anew = lockstep.generate(twins, S), small.generate(twins, S)
    assert [each.token_ids for each in kept] == [each.token_ids for each in anew]


def test_the_cache_grows_without_losing_anything(small):
    ids = small.prompter.encode(begun(4))
    whole = Context(small.network, 1)
    expected = whole.extend([ids])[0, -1]
    grown = Context(small.network, 1)
    for start in range(0, len(ids), 7):
        got = grown.extend([ids[start : start + 7]])[0, -1]
    assert abs(got - expected).max() < 1e-3
    assert all(
        torch.allclose(a.keys, b.keys, atol=1e-4) for a, b in zip(whole.cache.layers, grown.cache.layers, strict=True)
    )


def test_a_model_that_keeps_nothing_is_asked_as_it_is(small):
    scripted = ScriptedModel(["hello"])
    assert conversations(scripted) is scripted and isinstance(conversations(small), Lockstep)
