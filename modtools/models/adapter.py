"""The tool-use adapter: low-rank changes to the embedded model, added to its weights when it is loaded.

The file is what peft writes for LoRA (Hu et al., arXiv 2106.09685): for each changed layer two thin matrices A (r, in)
and B (out, r); the layer's weight becomes W + (alpha / r) B A. Added once, it costs nothing at each token.
`course/lab/train_adapter.py` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modtools.contract import digest
from modtools.errors import RecordError
from modtools.models.cache import file_sha256
from modtools.records import read_json

if TYPE_CHECKING:
    import torch

SHIPPED = Path(__file__).with_name("tool_use")
_FACTS = ("base", "rank", "alpha", "surfaces", "recipe")


@dataclass(frozen=True)
class Adapter:
    """An adapter on disk.

    Attributes:
        weights: path of its safetensors file.
        facts: what adapter.json says of it: base model, rank, alpha, digests of the surfaces, recipe, losses.
        digest: SHA-256 over weights, base model, rank and alpha.
    """

    weights: Path
    facts: dict[str, Any]
    digest: str


def read_adapter(folder: Path = SHIPPED) -> Adapter | None:
    """The adapter in a folder; None where the folder holds none.

    Raises:
        RecordError: where a part of it is missing or wrong.
    """
    folder = Path(folder)
    if not (folder / "adapter.json").exists():
        return None
    facts = read_json(folder / "adapter.json")
    missing = [name for name in _FACTS if not isinstance(facts, dict) or name not in facts]
    if missing or not (folder / "adapter.safetensors").exists():
        raise RecordError(f"{folder} is no whole adapter; it lacks {', '.join(missing) or 'adapter.safetensors'}")
    weights = folder / "adapter.safetensors"
    identity = digest([file_sha256(weights), facts["base"], facts["rank"], facts["alpha"]])
    return Adapter(weights, facts, identity)


def add_adapter(network: torch.nn.Module, adapter: Adapter, base: str) -> None:
    """Add an adapter to a network's weights, in float32 whatever format they are kept in.

    Args:
        network: the base model.
        adapter: see `read_adapter`.
        base: digest of the base model, which must be the one that the adapter was trained on.

    Raises:
        RecordError: for another base model, or weights that fit no layer of it.
    """
    import torch
    from safetensors.torch import load_file

    if adapter.facts["base"] != base:
        raise RecordError(f"{adapter.weights} was trained on another model than this one; train it anew")
    weights, scale = load_file(adapter.weights), adapter.facts["alpha"] / adapter.facts["rank"]
    names = sorted({name.rsplit(".lora_", 1)[0] for name in weights})
    for name in names:
        try:
            layer = network.get_submodule(name.removeprefix("base_model.model."))
            a, b = (weights[f"{name}.lora_{part}.weight"].float() for part in "AB")
            change = (scale * (b @ a)).to(layer.weight.device)
            with torch.no_grad():
                layer.weight.copy_((layer.weight.float() + change).to(layer.weight.dtype))
        except (AttributeError, KeyError, RuntimeError) as error:
            raise RecordError(f"{adapter.weights} does not fit the model at {name}: {error}") from None
