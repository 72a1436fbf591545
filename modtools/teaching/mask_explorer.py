"""The mask explorer: give the beginning of a document and see which tokens may follow, which may not, and why.

`explore` is a pure function; the widget only shows what it finds. The model reads a typed prefix in its tokenizer's
canonical tokens. Its own way to the same text may have been another one, with other probabilities after it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from modtools.errors import UsageError
from modtools.masking import Grammar, Vocabulary
from modtools.masking.explain import Reading, read_text
from modtools.models.model import Message
from modtools.teaching.explorer import explorer, table

if TYPE_CHECKING:
    import numpy as np

    from modtools.masking.grammar import State
    from modtools.models.huggingface import HuggingFaceModel

END = "<end>"
NO_MODEL = "No model here, so no probabilities: the mask needs none."
_LONGEST = 32  # characters of a token that are shown


@dataclass(frozen=True)
class TopToken:
    """A token among the likeliest; `probability` is its share, of all tokens or of the allowed ones."""

    token: str
    probability: float
    allowed: bool


@dataclass(frozen=True)
class MaskView:
    """What is known after a prefix.

    Attributes:
        refused: why the prefix has left the language, "" where it has not; if it has, nothing below is filled.
        state: the state in words.
        may_end: whether the text may end here.
        allowed, of: how many tokens are allowed (end-of-sequence counts), of how many.
        examples: some allowed tokens, the shortest first.
        straddling: the allowed tokens that end a part of the document and go on, the longest first.
        mass: Z_t, the probability of all allowed tokens together at temperature 1; None without probabilities.
        before, after: the likeliest tokens without the mask and with it.
        verdict: whether the token asked about may follow, and why not; "" where none was asked about.
    """

    refused: str
    state: str = ""
    may_end: bool = False
    allowed: int = 0
    of: int = 0
    examples: tuple[str, ...] = ()
    straddling: tuple[str, ...] = ()
    mass: float | None = None
    before: tuple[TopToken, ...] = ()
    after: tuple[TopToken, ...] = ()
    verdict: str = ""


def explore(
    grammar: Grammar,
    vocabulary: Vocabulary,
    prefix: str,
    probabilities: np.ndarray | None = None,
    token: str = "",
    most: int = 6,
) -> MaskView:
    """What the mask says after a prefix.

    Args:
        probabilities: of the next token, shape (V,) or wider, at temperature 1.
        token: the text of a token to judge, or END.
        most: how many likely tokens and examples to list.

    Raises:
        UsageError: fewer probabilities than tokens.
    """
    text = prefix.encode("utf-8")
    reading = read_text(grammar, text)
    if reading.read < len(text):
        return MaskView(refused=_why(reading))
    matcher = grammar.matcher(vocabulary)
    matcher.read(text)
    state, mask = matcher.state, matcher.allowed()
    ids = [int(i) for i in mask.nonzero()[0] if i != vocabulary.eos_id]
    ids.sort(key=lambda i: (len(vocabulary.tokens[i]), vocabulary.tokens[i]))
    straddling = [i for i in ids if straddles(state, vocabulary.tokens[i])]
    mass, before, after = None, (), ()
    if probabilities is not None:
        if len(probabilities) < len(vocabulary):
            raise UsageError(f"{len(probabilities)} probabilities for {len(vocabulary)} tokens; expected one a token")
        inside = probabilities[: len(vocabulary)] * mask
        mass = float(inside.sum())
        before = _top(probabilities, vocabulary, mask, most)
        after = _top(inside / mass, vocabulary, mask, most) if mass else ()
    return MaskView(
        refused="",
        state=reading.state,
        may_end=state.is_accepting,
        allowed=int(mask.sum()),
        of=len(vocabulary),
        examples=tuple(shown(vocabulary, i) for i in ids[:most]),
        straddling=tuple(shown(vocabulary, i) for i in reversed(straddling)),
        mass=mass,
        before=before,
        after=after,
        verdict=_verdict(grammar, vocabulary, mask, text, token) if token else "",
    )


def straddles(state: State, token: bytes) -> bool:
    """Whether a token that can be read from a state crosses into another part of the document and goes on there.

    A part is what one machine of the grammar reads: a string, a key, an object's punctuation. So `"}` straddles
    inside a string, and `abc"` does not.
    """
    parts = {cell.machine for cell in state.cells}
    for byte in token[:-1]:
        state = state.step(byte)
        reached = {cell.machine for cell in state.cells}
        if not reached <= parts:
            return True
        parts = reached
    return False


def shown(vocabulary: Vocabulary, token_id: int) -> str:
    """A token as it is printed: quoted, with blanks and control characters visible."""
    token = vocabulary.tokens[token_id] if token_id < len(vocabulary) else None
    if token is None:
        return END if token_id == vocabulary.eos_id else f"<special {token_id}>"
    try:
        text = repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        text = repr(token)
    text = re.sub(" {3,}", lambda blanks: f"␣×{len(blanks[0])}", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 12]}… ({len(token)} bytes)"


def next_probabilities(model: HuggingFaceModel, messages: Sequence[Message], prefix: str) -> np.ndarray:
    """The model's distribution over the next token, shape (V,), where its reply to `messages` begins with `prefix`."""
    import numpy as np

    from modtools.models.context import Context

    tokens = model.prompter.encode(messages) + model.prompter.encode_text(prefix)
    logits = Context(model.network, rows=1).extend([tokens])[0, -1]
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def mask_text(view: MaskView) -> str:
    """The view as plain lines."""
    if view.refused:
        return f"the prefix is refused: {view.refused}"
    return "\n".join(f"{name:12} {said}" for name, said in _lines(view)) + "".join(
        f"\n{title}: {', '.join(f'{top.token} {top.probability:.4g}' for top in tops)}" for title, tops in _tops(view)
    )


def mask_html(view: MaskView) -> str:
    """The view as HTML tables."""
    if view.refused:
        return f"<p><b>The prefix is refused</b>: {html.escape(view.refused)}</p>"
    facts = table([], [list(line) for line in _lines(view)])
    rows = [_cells(before) + _cells(after) for before, after in zip_longest(view.before, view.after)]
    tops = table(["likeliest, no mask", "p", "likeliest, masked", "p"], rows) if rows else f"<p>{NO_MODEL}</p>"
    return f"{facts}<br>{tops}"


def mask_explorer(
    grammars: Mapping[str, Grammar],
    vocabulary: Vocabulary,
    prefix: str,
    model: HuggingFaceModel | None = None,
    messages: Sequence[Message] = (),
) -> Any:
    """A widget: choose a grammar, type a prefix or cut characters off its end with the slider, ask about a token.

    Args:
        grammars: name -> grammar.
        prefix: the text to begin with.
        model: gives probabilities; without it the widget shows the mask alone.
        messages: what the model is asked.
    """

    def render(grammar: str, prefix: str, cut_back: int, token: str) -> str:
        text = prefix[: max(0, len(prefix) - cut_back)]
        probabilities = next_probabilities(model, messages, text) if model else None
        return mask_html(explore(grammars[grammar], vocabulary, text, probabilities, token))

    return explorer(render, grammar=tuple(grammars), prefix=prefix, cut_back=range(41), token="")


def _lines(view: MaskView) -> list[tuple[str, str]]:
    crossing = f"{len(view.straddling)} (they end a part of the document and go on)"
    if view.straddling:
        crossing += f", such as {', '.join(view.straddling[:4])}"
    lines = [
        ("state", view.state),
        ("may end here", "yes" if view.may_end else "no"),
        ("allowed", f"{view.allowed} of {view.of} tokens, such as {', '.join(view.examples) or END}"),
        ("straddling", crossing),
    ]
    if view.mass is not None:
        lines.append(("Z_t", f"{view.mass:.4g} of the model's probability lies on allowed tokens"))
    return lines + ([("your token", view.verdict)] if view.verdict else [])


def _cells(top: TopToken | None) -> list[str]:
    if top is None:
        return ["", ""]
    return [top.token if top.allowed else f"{top.token} (refused)", f"{top.probability:.4g}"]


def _tops(view: MaskView) -> list[tuple[str, tuple[TopToken, ...]]]:
    return [(title, tops) for title, tops in (("no mask", view.before), ("masked", view.after)) if tops]


def _top(shares: np.ndarray, vocabulary: Vocabulary, mask: np.ndarray, most: int) -> tuple[TopToken, ...]:
    ids = [int(i) for i in (-shares).argsort(kind="stable")[:most] if shares[i] > 0]
    return tuple(TopToken(shown(vocabulary, i), float(shares[i]), i < len(vocabulary) and bool(mask[i])) for i in ids)


def _verdict(grammar: Grammar, vocabulary: Vocabulary, mask: np.ndarray, text: bytes, token: str) -> str:
    """Whether a token may follow, and why not."""
    if token == END:
        reading = read_text(grammar, text)
        return "may follow: the document is complete" if reading.accepted else f"refused: {_why(reading)}"
    added = token.encode("utf-8")
    reading = read_text(grammar, text + added)
    ids = [i for i, known in enumerate(vocabulary.tokens) if known == added]
    whole = "" if ids else " (no single token of this vocabulary has this text)"
    if reading.read < len(text) + len(added):
        return f"refused: {_why(reading)}{whole}"
    if ids and not mask[ids[0]]:
        return "refused: after it no document can be finished through tokens of this vocabulary"
    return f"may follow, then: {reading.state}{whole}"


def _why(reading: Reading) -> str:
    """Why a text is refused; where most characters may follow, only how many."""
    if len(reading.next_bytes) < 20:
        return reading.refused_because
    many = f"{len(reading.next_bytes)} printable characters"
    return reading.refused_because.replace(repr(reading.next_bytes), many)
