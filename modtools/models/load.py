"""One way to get a model by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modtools.errors import UsageError
from modtools.models.larger import larger_models
from modtools.models.model import Model


def load_model(spec: str, **options: Any) -> Model:
    """Loads a model.

    Args:
        spec: "embedded" (with the tool-use adapter, where one is shipped); "embedded-base" (without); "scripted";
            "replay:RUN_DIR"; "server:URL" of an OpenAI-compatible server; a short name of larger_models.toml; or the
            folder or hub id of a causal language model.
        options: of the backend: device and dtype (embedded, hugging face), adapter (embedded), revision and allow_download
            (hugging face), model, tokenizer, context_tokens, at_once and timeout_s (server), script, name and context_tokens (scripted).

    Raises:
        MissingPieceError, UsageError, RecordError: as the backend says.
    """
    # Backends are imported where they are wanted: only two of the five need torch.
    if spec in ("embedded", "embedded-base"):
        from modtools.models.adapter import read_adapter
        from modtools.models.embedded import load_embedded

        if spec == "embedded" and "adapter" not in options:
            options = {**options, "adapter": read_adapter()}
        return _call(load_embedded, spec, options)
    if spec == "scripted":
        from modtools.models.scripted import ScriptedModel

        return _call(ScriptedModel, spec, options)
    if spec.startswith("replay:"):
        from modtools.models.replay import ReplayModel

        return _call(ReplayModel, spec, options, Path(spec.removeprefix("replay:")))
    if spec.startswith("server:"):
        from modtools.models.server import ServerModel

        return _call(ServerModel, spec, options, spec.removeprefix("server:"))
    from modtools.models.huggingface import load_huggingface

    if named := larger_models().get(spec):
        return _call(load_huggingface, spec, {"revision": named.revision, **options}, named.id)
    return _call(load_huggingface, spec, options, spec)


def _call(backend: Callable[..., Model], spec: str, options: dict[str, Any], *first: Any) -> Model:
    """Call a backend; an option it does not take, or one that is missing, is the user's error and not a TypeError."""
    signature = inspect.signature(backend)
    try:
        signature.bind(*first, **options)
    except TypeError as error:
        takes = ", ".join(list(signature.parameters)[len(first) :]) or "none"
        raise UsageError(f"model {spec!r}: {error}; its options are: {takes}") from None
    return backend(*first, **options)
