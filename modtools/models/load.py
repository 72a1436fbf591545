"""One way to get a model by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modtools.models.model import Model


def load_model(spec: str, **options: Any) -> Model:
    """Loads a model.

    Args:
        spec: "embedded" or "embedded-base" (today the same: no tool-use adapter is shipped yet); "scripted";
            "replay:RUN_DIR"; or the folder or hub id of a causal language model.
        options: of the backend: device and dtype (embedded, hugging face), revision and allow_download
            (hugging face), script, name and context_tokens (scripted).

    Raises:
        MissingPieceError, UsageError, RecordError: as the backend says.
    """
    # Backends are imported where they are wanted: only two of the four need torch.
    if spec in ("embedded", "embedded-base"):
        from modtools.models.embedded import load_embedded

        return load_embedded(**options)
    if spec == "scripted":
        from modtools.models.scripted import ScriptedModel

        return ScriptedModel(**options)
    if spec.startswith("replay:"):
        from modtools.models.replay import ReplayModel

        return ReplayModel(Path(spec.removeprefix("replay:")), **options)
    from modtools.models.huggingface import load_huggingface

    return load_huggingface(spec, **options)
