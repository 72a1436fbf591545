"""Larger models for a GPU, named in one file: larger_models.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from modtools.errors import RecordError

FILE = Path(__file__).with_name("larger_models.toml")
BYTES_16_BIT = 2


@dataclass(frozen=True)
class LargerModel:
    """A causal language model on the hub.

    Attributes:
        name: short, for the command line.
        id, revision: on the hub.
        licence: of its weights.
        parameters_billion: from its card.
        tried: whether the lab was ever run on it by us.
        note: what a user should know.
    """

    name: str
    id: str
    revision: str
    licence: str
    parameters_billion: float
    tried: bool
    note: str

    @property
    def weights_gb(self) -> float:
        """Memory of its weights in 16-bit numbers, in 10^9 bytes; a run needs a few more for what it reads."""
        return self.parameters_billion * BYTES_16_BIT


@cache
def larger_models() -> dict[str, LargerModel]:
    """Name -> model.

    Raises:
        RecordError: where the file is not as it must be.
    """
    try:
        entries = tomllib.loads(FILE.read_text(encoding="utf-8"))
        return {name: LargerModel(name, **entry) for name, entry in entries.items()}
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{FILE} cannot be used: {error}") from None
