"""Training the adapter: only what is to be learnt is learnt, a stopped training goes on as if it had not been."""

from __future__ import annotations

import json
import random

import pytest
import torch
import train_adapter
from demonstrations import Turn
from safetensors.torch import load_file
from train_adapter import Recipe, batches, encode, loss_of, train

from modtools.lab.experiments.single_calls import single_call
from modtools.models import Message
from modtools.models.adapter import add_adapter, read_adapter
from modtools.models.fetch import fetch, model_path
from modtools.models.huggingface import HuggingFaceModel
from modtools.surfaces import SURFACES, build_surface


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    fetch()
    return AutoTokenizer.from_pretrained(model_path())


@pytest.fixture
def small(tokenizer, monkeypatch):
    """A function that makes one and the same small network; the training takes it for the embedded model."""
    from transformers import LlamaConfig, LlamaForCausalLM

    def make(**options):
        torch.manual_seed(7)
        config = LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=2048, eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"),
        )  # fmt: skip
        return HuggingFaceModel(LlamaForCausalLM(config), tokenizer, "small", "d1", {"context_tokens": 2048})

    def singles(recipe):
        for number in range(recipe.examples):
            single = single_call(random.Random(number))
            turns = [[m.role, m.content, False] for m in single.messages] + [["assistant", single.answer, True]]
            yield {"name": str(number), "turns": turns}

    monkeypatch.setattr(train_adapter, "load_embedded", make)
    monkeypatch.setattr(train_adapter, "examples", singles)
    monkeypatch.setattr(train_adapter, "CHECKPOINT_STEPS", 2)
    return make


def run(out, **options):
    train(out, steps=5, batch=2, device="cpu", dtype="float32", **options)
    return load_file(out / "adapter.safetensors"), json.loads((out / "adapter.json").read_text())


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(small, tmp_path, monkeypatch):
    whole, facts = run(tmp_path / "whole")
    steps, true = [], train_adapter.loss_of

    def stopped(*given):
        steps.append(1)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return true(*given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(train_adapter, "loss_of", stopped)
        run(tmp_path / "stopped")
    assert not (tmp_path / "stopped" / "adapter.safetensors").exists()
    resumed, again = run(tmp_path / "stopped")
    assert again["losses"] == facts["losses"] and len(facts["losses"]) == 5
    assert all(torch.equal(weight, resumed[name]) for name, weight in whole.items())


def test_what_is_written_says_what_it_is_and_can_be_added_to_the_model(small, tmp_path):
    weights, facts = run(tmp_path)
    assert facts["surfaces"] == {name: build_surface(name).digest for name in SURFACES} and facts["base"] == "d1"
    assert {part for name in weights for part in ("q_proj", "down_proj") if part in name} == {"q_proj", "down_proj"}
    before, after = small(), small()
    add_adapter(after.network, read_adapter(tmp_path), "d1")
    changed = [n for n, w in before.network.state_dict().items() if not torch.equal(w, after.network.state_dict()[n])]
    assert len(changed) == 2 * 7 and facts["losses"][-1] < facts["losses"][0]


def test_another_recipe_in_the_same_folder_is_refused(small, tmp_path):
    run(tmp_path)
    with pytest.raises(Exception, match="another training"):
        run(tmp_path, seed=1)


def test_slips_and_what_the_world_says_are_not_learnt(small):
    prompter = small().prompter
    turns = [
        Turn(Message("system", "Tools.")),
        Turn(Message("user", "Task: x")),
        Turn(Message("assistant", '{"name": "wrong"}')),
        Turn(Message("user", "error: no")),
        Turn(Message("assistant", '{"name": "right"}'), learn=True),
        Turn(Message("user", "ok: done")),
        Turn(Message("assistant", '{"finish": true}'), learn=True),
    ]
    end = prompter.tokenizer.convert_tokens_to_ids("<|im_end|>")
    ids, learnt = encode(prompter, [[t.message.role, t.message.content, t.learn] for t in turns], end)
    text = prompter.tokenizer.decode([token for token, learn in zip(ids, learnt, strict=True) if learn])
    assert text == '{"name": "right"}<|im_end|>{"finish": true}<|im_end|>'


@pytest.mark.parametrize("shared", [0, 1, 12])
def test_the_loss_is_the_mean_over_what_is_learnt_whatever_the_padding_and_what_is_shared(small, shared):
    from peft import LoraConfig, get_peft_model

    model = small()
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM", init_lora_weights=False)
    network = get_peft_model(model.network, config).eval()
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    beginning = list(range(20, 20 + shared))
    rows = [([*beginning, 5, 6, 7, 8], [False] * (shared + 2) + [True] * 2),
            ([*beginning, 9, 10, 11, 12, 13, 14], [False] * (shared + 5) + [True])]  # fmt: skip
    losses = []
    for ids, learnt in rows:
        logits = model.network(torch.tensor([ids])).logits[0]
        losses += [
            torch.nn.functional.cross_entropy(logits[i - 1], torch.tensor(ids[i])) for i, on in enumerate(learnt) if on
        ]
    expected = torch.stack(losses).sum()
    got = loss_of(network, rows, torch.float32)
    torch.testing.assert_close(got, expected)
    for mine, plain in zip(torch.autograd.grad(got, trained), torch.autograd.grad(expected, trained), strict=True):
        torch.testing.assert_close(mine, plain)


def test_every_example_is_in_one_batch_and_neighbours_are_alike_in_length():
    encoded = [([0] * random.Random(i).randint(10, 900), []) for i in range(200)]
    made = batches(encoded, Recipe(steps=25))
    assert sorted(index for batch in made for index in batch) == list(range(200))
    spread = [max(len(encoded[i][0]) for i in b) - min(len(encoded[i][0]) for i in b) for b in made]
    assert sum(spread) / len(spread) < 250
    apart = [([i % 2] * 60 + [i], []) for i in range(64)]
    assert all(len({apart[i][0][0] for i in batch}) == 1 for batch in batches(apart, Recipe(steps=8)))
    assert made == batches(encoded, Recipe(steps=25))
    assert made != batches(encoded, Recipe(steps=25, seed=1))
