"""Loading: folders, hub ids, and what the loaded model says about itself."""

from __future__ import annotations

import sys

import pytest

from modtools.errors import MissingPieceError
from modtools.models import Message, Request, Sampling, load_model

connections: list = []
watching = False


def _watch(event, arguments):
    if watching and event in ("socket.connect", "socket.getaddrinfo"):
        connections.append(arguments)


sys.addaudithook(_watch)  # cannot be taken away again, hence the switch


@pytest.fixture
def tiny_folder(model, tmp_path):
    """A folder with a network of two small layers and the embedded model's tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, eos_token_id=[2, 0],
    )  # fmt: skip
    folder = tmp_path / "tiny"
    LlamaForCausalLM(config).save_pretrained(folder)
    model.prompter.tokenizer.save_pretrained(folder)
    return folder


def test_a_folder_is_loaded_and_described(tiny_folder):
    tiny = load_model(str(tiny_folder), device="cpu", dtype="float32")
    assert (tiny.name, tiny.context_tokens, tiny.ends) == ("tiny", 64, {0, 2})
    assert (tiny.info["dtype"], tiny.info["device"]) == ("float32", "cpu")
    assert "as asked" in tiny.info["notes"][0]
    reply = tiny.generate([Request((Message("user", "hi"),))], Sampling(max_tokens=4))[0]
    assert 1 <= len(reply.token_ids) <= 4


def test_the_digest_of_a_folder_follows_its_weights(tiny_folder):
    import torch
    from transformers import LlamaForCausalLM

    before = load_model(str(tiny_folder), device="cpu", dtype="float32").digest
    assert load_model(str(tiny_folder), device="cpu", dtype="float32").digest == before
    network = LlamaForCausalLM.from_pretrained(tiny_folder)
    with torch.no_grad():
        network.model.norm.weight[0] += 1
    network.save_pretrained(tiny_folder)
    assert load_model(str(tiny_folder), device="cpu", dtype="float32").digest != before


def test_a_folder_without_weights_names_what_transformers_misses(tiny_folder):
    (tiny_folder / "model.safetensors").unlink()
    with pytest.raises(MissingPieceError, match="tiny.*model.safetensors"):
        load_model(str(tiny_folder))


def test_a_hub_id_that_is_not_here_is_not_downloaded_unasked():
    with pytest.raises(MissingPieceError, match="hf download no-such-owner/no-such-model.*allow_download"):
        load_model("no-such-owner/no-such-model")


def test_the_embedded_model_loads_without_touching_the_network_and_says_what_it_is(model):
    global watching
    watching = True
    try:
        embedded = load_model("embedded-base", device="cpu")
    finally:
        watching = False
    assert connections == []
    assert embedded.name == "embedded-base" and embedded.digest == model.digest
    assert "Q4_1" in embedded.info["model"] and "Q4_1" in embedded.info["quantisation"]
    assert any("without a tool-use adapter" in note for note in embedded.info["notes"])
    assert any("dtype" in note for note in embedded.info["notes"])


def test_loading_leaves_transformers_logging_as_it_was(model):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_model("embedded", device="cpu", dtype="float32")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
