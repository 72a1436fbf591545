"""Why a text is accepted or not, in words: how far it can be read, in which state that is, and what may follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modtools.masking.grammar import Grammar, State
from modtools.masking.vocabulary import Vocabulary


@dataclass(frozen=True)
class Reading:
    """How a text was read.

    Attributes:
        accepted: whether it is a complete document.
        read: bytes of it that could be read.
        state: the state reached, in words.
        refused_because: why it is not accepted, "" where it is.
        next_bytes: the printable bytes that may follow what was read.
    """

    accepted: bool
    read: int
    state: str
    refused_because: str
    next_bytes: str


def read_text(grammar: Grammar, text: bytes) -> Reading:
    """Read a text as far as the grammar goes."""
    state, read = grammar.start, 0
    for byte in text:
        after = state.step(byte)
        if after is None:
            break
        state, read = after, read + 1
    accepted = read == len(text) and state.is_accepting
    allowed = legal_text(state)
    if accepted:
        why = ""
    elif read < len(text):
        shown = text[read : read + 1].decode("ascii", "backslashreplace")
        why = f"byte {read} ({shown!r}) cannot follow; {f'one of {allowed!r}' if allowed else 'nothing printable'} can"
    else:
        why = f"the text ends too early; {f'one of {allowed!r}' if allowed else 'more'} must follow"
    return Reading(accepted, read, state.describe(), why, allowed)


def legal_text(state: State) -> str:
    """The printable ASCII that may follow, as one string: `"}` for a quote and a brace."""
    return "".join(chr(byte) for byte in range(0x20, 0x7F) if state.step(byte) is not None)


def allowed_tokens(mask: np.ndarray, vocabulary: Vocabulary, most: int = 20) -> list[str]:
    """Some of the allowed tokens, the longest first; end-of-sequence, where allowed, as <end>.

    Args:
        mask: the allowed set, shape (V,).
        vocabulary: of the mask.
        most: how many.
    """
    ids = [int(i) for i in np.flatnonzero(mask) if i != vocabulary.eos_id]
    ids.sort(key=lambda i: (-len(vocabulary.tokens[i]), vocabulary.tokens[i]))
    shown = [vocabulary.tokens[i].decode("utf-8", "backslashreplace") for i in ids[:most]]
    return (["<end>"] if mask[vocabulary.eos_id] else []) + shown
