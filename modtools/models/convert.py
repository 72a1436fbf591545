"""From 4-bit GGUF weights to a model folder that loads in a moment, once per machine.

The weights are dequantised to bfloat16 whatever the format they are later used in: float32 and float16 runs
then compute with the same numbers and differ only in arithmetic.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from modtools.models.quiet import quiet_transformers


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Writes config, tokenizer with chat template, and bfloat16 safetensors into a folder. Takes about 20 s."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # The bar of the GGUF reader knows no switch, so its stream goes nowhere.
    with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):
        source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained(**source)
        network = AutoModelForCausalLM.from_pretrained(**source)

    restore_digit_split(tokenizer)
    tokenizer.save_pretrained(folder)

    del network.config.quantization_config  # what is saved is no longer quantised
    network.config.architectures = [type(network).__name__]
    network.config.dtype = torch.bfloat16
    network.config.save_pretrained(folder)
    network.generation_config.save_pretrained(folder)
    weights = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in network.state_dict().items()
        if not (name == "lm_head.weight" and network.config.tie_word_embeddings)
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def restore_digit_split(tokenizer) -> None:
    """Makes the tokenizer read each digit apart, as SmolLM2 was trained.

    The GGUF says so (`tokenizer.ggml.pre` = "smollm"); transformers' reader drops it, and then four spaces
    before a digit become three and one.
    """
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
