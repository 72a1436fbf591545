"""The model that the kit runs on by default: SmolLM2-135M-Instruct Q4_1, from the cache, never from a network."""

from __future__ import annotations

from typing import Any

from modtools.contract import digest
from modtools.masking.vocabulary import Vocabulary
from modtools.models.adapter import Adapter, add_adapter
from modtools.models.fetch import MODEL_NAME, PACKAGE, missing, model_path
from modtools.models.folder import read_manifest, recorded_digest
from modtools.models.huggingface import HuggingFaceModel, load_folder


def load_embedded(
    *, device: str | None = None, dtype: str | None = None, adapter: Adapter | None = None
) -> HuggingFaceModel:
    """Loads the embedded model; device and dtype as in load_huggingface.

    Args:
        adapter: what to add to its weights, see `modtools.models.adapter`; None for the base model.

    Raises:
        MissingPieceError: not in the cache, or damaged there; the message says how to get it.
        RecordError: an adapter that does not belong to this model.
    """
    folder = model_path()
    if folder is None:
        raise missing()
    base = recorded_digest(folder)
    info = {
        "model": MODEL_NAME,
        "quantisation": "Q4_1, dequantised to bfloat16",
        "revision": PACKAGE,
        "licence": "Apache-2.0",
        "source": read_manifest(folder)["source"],
    }
    if adapter is None:
        info["notes"] = ["the base model without a tool-use adapter, so expect prose rather than calls"]
        return load_folder(folder, "embedded-base", base, device, dtype, info)
    info["adapter"] = {
        "digest": adapter.digest,
        "surfaces": adapter.facts["surfaces"],
        "held_out": adapter.facts.get("held_out"),
    }
    info["notes"] = ["with the tool-use adapter, trained on the lab's own surfaces: its results speak about itself"]
    model = load_folder(folder, "embedded", digest([base, adapter.digest]), device, dtype, info)
    add_adapter(model.network, adapter, base)
    return model


def vocabulary() -> Vocabulary:
    """The tokens of the embedded model's tokenizer, for masks; the network is not loaded.

    Raises:
        MissingPieceError: not in the cache; the message says how to get it.
    """
    return Vocabulary.from_tokenizer(load_tokenizer())


def load_tokenizer() -> Any:
    """The embedded model's tokenizer alone; errors as `vocabulary`."""
    folder = model_path()
    if folder is None:
        raise missing()
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)
