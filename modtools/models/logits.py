"""Masks for the generate loop of transformers: network.generate(..., logits_processor=[MaskProcessor(...)])."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from modtools.errors import ModtoolsError, UsageError
from modtools.models.sampling import allowed_set, legal_mass, masked

if TYPE_CHECKING:
    import torch

    from modtools.models.model import TokenMask


class MaskProcessor:
    """Sets the logits of all tokens outside each row's allowed set to minus infinity.

    transformers calls it before temperature, top-k and top-p, as the definition of masked decoding wants it; a row in
    which tokens have been cut before is refused. The prompt is not read. One processor serves one call of generate,
    greedy or sampling; beams would move the rows under their masks and are refused.

    Args:
        masks: one a row of the batch; with num_return_sequences=n, n for each prompt, side by side.
        ends: all end-of-sequence tokens of the model, as HuggingFaceModel.ends has them: each is allowed exactly
            where the mask allows one of them, and ends its row.

    Attributes:
        legal_mass: for each row Z_t of every step, the probability of the allowed set at temperature 1.
    """

    def __init__(self, masks: Sequence[TokenMask], ends: Collection[int]):
        if len({id(mask) for mask in masks}) != len(masks) or not masks or not ends or min(ends) < 0:
            raise UsageError(f"{len(masks)} masks, ends {sorted(ends)}: expected a mask of its own a row, and an end")
        self.masks, self.ends = list(masks), frozenset(ends)
        self.legal_mass: list[list[float]] = [[] for _ in masks]
        self._ended = [False] * len(masks)
        self._seen: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """One step.

        Args:
            input_ids: shape (rows, n), the prompts with all tokens chosen so far.
            scores: shape (rows, head), the logits of the next token; returned as a copy with the masks applied.

        Raises:
            UsageError: other rows than before: beams, or a processor that has served already.
            ModtoolsError: a mask that allows nothing, with its row and step.
        """
        import torch

        self._read(input_ids)
        rows = scores.to("cpu", torch.float32).numpy().astype(np.float64)
        for row, mask in enumerate(self.masks):
            if self._ended[row]:
                continue  # what follows an end is padding, which generate puts there itself
            where = f"row {row}, token {len(self.legal_mass[row])} of the reply"
            if np.isneginf(rows[row]).any():
                raise ModtoolsError(
                    f"{where}: tokens were cut before the mask; put it first, and set no min_new_tokens"
                )
            allowed = allowed_set(mask, rows.shape[1], self.ends, where)
            self.legal_mass[row].append(legal_mass(rows[row], allowed))
            rows[row] = masked(rows[row], allowed)
        return torch.from_numpy(rows).to(scores)

    def _read(self, input_ids: torch.Tensor) -> None:
        """Advances the masks by the tokens chosen since the last step."""
        if input_ids.shape[0] != len(self.masks):
            raise UsageError(f"{input_ids.shape[0]} rows for {len(self.masks)} masks: expected one each; no beams")
        if self._seen is not None:
            if not input_ids[:, :-1].equal(self._seen):
                raise UsageError(
                    "these rows do not continue those of the last step: take a new processor for each call of "
                    "generate, and no beams"
                )
            for row, token_id in enumerate(input_ids[:, -1].tolist()):
                self._ended[row] = self._ended[row] or token_id in self.ends
                if not self._ended[row]:
                    self.masks[row].advance(token_id)
        self._seen = input_ids.clone()
