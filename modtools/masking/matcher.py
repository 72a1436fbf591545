"""A walk through a grammar in tokens: the allowed set of each state, end-of-sequence included."""

from __future__ import annotations

import numpy as np

from modtools.errors import ModtoolsError, UsageError
from modtools.masking.allowed import text_tokens
from modtools.masking.grammar import Grammar
from modtools.masking.reach import Reach
from modtools.masking.vocabulary import Vocabulary

CACHED_BYTES = 64_000_000  # of masks a grammar keeps


class EmptyMaskError(ModtoolsError):
    """No token is allowed, not even end-of-sequence; the message names the state."""


class Matcher:
    """Where one output stands in a grammar.

    A token is allowed when, after its bytes, a document can still be finished through tokens of the vocabulary.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary):
        self.grammar, self.vocabulary = grammar, vocabulary
        self.state, self.is_finished = grammar.start, False
        self._reach = None if grammar.needs <= vocabulary.single_bytes else Reach.of(grammar, vocabulary)

    def allowed(self) -> np.ndarray:
        """The allowed set, shape (V,) bool, yours to change.

        Raises:
            EmptyMaskError: it is empty.
        """
        if self.is_finished:
            raise EmptyMaskError("no token is allowed after end-of-sequence; reset the matcher")
        packed = self.grammar.masks.get((self.state, self.vocabulary))
        if packed is not None:
            return np.unpackbits(packed, count=len(self.vocabulary)).view(bool)
        mask = text_tokens(self.state, self.vocabulary)
        if self._reach is not None:
            self._reach.restrict(self.state, mask)
        mask[self.vocabulary.eos_id] = self.state.is_accepting
        packed = np.packbits(mask)
        if not packed.any():
            raise EmptyMaskError(
                f"no token of the vocabulary leads on from this state: {self.state.describe()}; "
                "use a vocabulary with all single bytes, or a schema that it can spell"
            )
        self._keep(packed)
        return mask

    def _keep(self, packed: np.ndarray) -> None:
        """Keeps a mask with its state, as bits: fresh memory for a byte a token would cost more than the walk."""
        masks = self.grammar.masks
        while masks and (len(masks) + 1) * packed.nbytes > CACHED_BYTES:
            del masks[next(iter(masks))]
        masks[self.state, self.vocabulary] = packed

    def advance(self, token_id: int) -> None:
        """Reads one more token.

        Raises:
            UsageError: it is not allowed here; the matcher stays where it was.
        """
        token = self.vocabulary.tokens[token_id] if 0 <= token_id < len(self.vocabulary) else None
        if token_id == self.vocabulary.eos_id and self.state.is_accepting and not self.is_finished:
            self.is_finished = True
        elif not token:
            raise UsageError(f"token {token_id} is not allowed: {self.state.describe()}")
        else:
            self.read(token)

    def read(self, text: bytes) -> None:
        """Reads some text, whatever tokens spell it.

        Raises:
            UsageError: it cannot stand here; the matcher stays where it was.
        """
        state = self.state.read(text) if not self.is_finished else None
        if state is None or (self._reach is not None and not self._reach.can_finish(state)):
            where = "the end" if self.is_finished else self.state.describe()
            raise UsageError(f"{text!r} is not allowed here: {where}")
        self.state = state

    def is_accepting(self) -> bool:
        """Whether the text so far is a complete document."""
        return self.state.is_accepting

    def reset(self) -> None:
        """Back to the start."""
        self.state, self.is_finished = self.grammar.start, False

    def copy(self) -> Matcher:
        """Another matcher that stands where this one does."""
        other = Matcher(self.grammar, self.vocabulary)
        other.state, other.is_finished = self.state, self.is_finished
        return other
