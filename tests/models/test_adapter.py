"""The tool-use adapter: what it adds to the weights, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from modtools.errors import RecordError
from modtools.models import Message, Request, Sampling, load_model
from modtools.models.adapter import add_adapter, read_adapter

LAYER = "model.layers.0.self_attn.q_proj"
ASK = Request((Message("user", "Name a colour."),))


@pytest.fixture
def written(tmp_path, model):
    """A function that writes an adapter of one layer into a folder; it returns A and B."""

    def write(base=model.digest, layer=LAYER, rank=2, **facts):
        generator = torch.Generator().manual_seed(3)
        out, into = model.network.get_submodule(LAYER).weight.shape
        a, b = (torch.randn(shape, generator=generator) for shape in ((rank, into), (out, rank)))
        names = [f"base_model.model.{layer}.lora_{part}.weight" for part in "AB"]
        save_file(dict(zip(names, (a, b))), tmp_path / "adapter.safetensors")
        known = {"base": base, "rank": rank, "alpha": 4, "surfaces": {}, "recipe": {}, **facts}
        (tmp_path / "adapter.json").write_text(json.dumps(known))
        return a, b

    return write


def test_it_adds_scaled_products_to_its_layers_and_nothing_elsewhere(model, written, tmp_path):
    a, b = written()
    changed = load_model("embedded", device="cpu", dtype="float32", adapter=read_adapter(tmp_path))
    for name, weight in model.network.state_dict().items():
        expected = weight + 4 / 2 * (b @ a) if name == f"{LAYER}.weight" else weight
        torch.testing.assert_close(changed.network.state_dict()[name], expected)
    assert changed.name == "embedded" and changed.digest != model.digest
    replies = [each.generate([ASK], Sampling(max_tokens=8))[0].text for each in (model, changed)]
    assert replies[0] != replies[1]


def test_the_base_model_is_what_it_was(model):
    base = load_model("embedded-base", device="cpu", dtype="float32")
    assert base.name == "embedded-base" and "without a tool-use adapter" in str(base.info["notes"])


def test_it_is_added_in_float32_where_the_weights_are_kept_in_16_bits(written, tmp_path):
    a, b = written()
    half = load_model("embedded", device="cpu", dtype="bfloat16", adapter=read_adapter(tmp_path))
    base = load_model("embedded-base", device="cpu", dtype="bfloat16")
    exact = base.network.get_submodule(LAYER).weight.float() + 2 * (b @ a)
    np.testing.assert_array_equal(
        half.network.get_submodule(LAYER).weight.detach().float().numpy(), exact.bfloat16().detach().float().numpy()
    )


def test_its_identity_is_its_weights_and_its_base(written, tmp_path):
    written()
    one = read_adapter(tmp_path).digest
    written(alpha=8)
    assert read_adapter(tmp_path).digest != one


def test_a_folder_without_one_holds_none(tmp_path):
    assert read_adapter(tmp_path) is None


def test_what_does_not_belong_to_the_model_is_refused(model, written, tmp_path):
    written(base="another")
    with pytest.raises(RecordError, match="another model"):
        add_adapter(model.network, read_adapter(tmp_path), model.digest)
    written(layer="model.layers.99.self_attn.q_proj")
    with pytest.raises(RecordError, match="does not fit the model at"):
        add_adapter(model.network, read_adapter(tmp_path), model.digest)


def test_half_an_adapter_is_an_error(written, tmp_path):
    written()
    (tmp_path / "adapter.safetensors").unlink()
    with pytest.raises(RecordError, match="lacks adapter.safetensors"):
        read_adapter(tmp_path)
    (tmp_path / "adapter.json").write_text('{"base": "x"}')
    with pytest.raises(RecordError, match="lacks rank, alpha"):
        read_adapter(tmp_path)
