"""The model that the kit runs on by default: SmolLM2-135M-Instruct Q4_1, from the cache, never from a network."""

from __future__ import annotations

from modtools.masking.vocabulary import Vocabulary
from modtools.models.fetch import MODEL_NAME, PACKAGE, missing, model_path
from modtools.models.folder import read_manifest, recorded_digest
from modtools.models.huggingface import HuggingFaceModel, load_folder


def load_embedded(*, device: str | None = None, dtype: str | None = None) -> HuggingFaceModel:
    """Loads the embedded model; device and dtype as in load_huggingface.

    Raises:
        MissingPieceError: not in the cache, or damaged there; the message says how to get it.
    """
    folder = model_path()
    if folder is None:
        raise missing()
    info = {
        "model": MODEL_NAME,
        "quantisation": "Q4_1, dequantised to bfloat16",
        "revision": PACKAGE,
        "licence": "Apache-2.0",
        "source": read_manifest(folder)["source"],
        "notes": ["the base model; no tool-use adapter is shipped yet, so expect prose rather than calls"],
    }
    return load_folder(folder, "embedded-base", recorded_digest(folder), device, dtype, info)


def vocabulary() -> Vocabulary:
    """The tokens of the embedded model's tokenizer, for masks; the network is not loaded.

    Raises:
        MissingPieceError: not in the cache; the message says how to get it.
    """
    folder = model_path()
    if folder is None:
        raise missing()
    from transformers import AutoTokenizer

    return Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(folder, local_files_only=True))
