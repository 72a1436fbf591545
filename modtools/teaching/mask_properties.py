"""The properties of a mask, each a check of its own, judged by a slow truth that tries everything.

For small finite languages only: every text that a mask can lead to is visited, and from each an end is searched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modtools.masking import Grammar, Vocabulary, compile_json_schema

MOST_TEXTS = 2_000  # a broken mask may lead on for ever


@dataclass(frozen=True, eq=False)
class Setting:
    """A schema with finitely many documents, and a vocabulary.

    Attributes:
        schema: a JSON Schema; documents are compact.
        vocabulary: the tokens.
        specials: what a special token's id is called in print; its token is never text.
    """

    schema: Any
    vocabulary: Vocabulary
    specials: dict[int, bytes] = field(default_factory=dict)
    _finishing: dict[bytes, bool] = field(default_factory=dict, repr=False)
    _walks: dict[Mask, dict[bytes, set[int]]] = field(default_factory=dict, repr=False)

    @cached_property
    def grammar(self) -> Grammar:
        """The compiled schema, without blanks."""
        return compile_json_schema(self.schema, whitespace=0)

    def can_finish(self, text: bytes) -> bool:
        """Whether some tokens of the vocabulary lead from this text to a document."""
        if text not in self._finishing:
            state = self.grammar.start.read(text)
            self._finishing[text] = state is not None and (
                state.is_accepting or any(self.can_finish(text + token) for token in self.vocabulary.tokens if token)
            )
        return self._finishing[text]

    def truth(self, text: bytes) -> set[int]:
        """The allowed set by its definition: each token is tried, and an end is searched behind it."""
        allowed = {i for i, token in enumerate(self.vocabulary.tokens) if token and self.can_finish(text + token)}
        return allowed | {self.vocabulary.eos_id} if self.grammar.accepts(text) else allowed

    def walk(self, mask: Mask) -> dict[bytes, set[int]]:
        """Every text that a mask can lead to, the shortest walks first, with the ids it allows there."""
        if mask not in self._walks:
            walk, queue = {}, [b""]
            for text in queue:
                if text not in walk and len(walk) < MOST_TEXTS:
                    walk[text] = mask(self, text)
                    queue += [text + (self.vocabulary.tokens[i] or b"") for i in sorted(walk[text])]
            self._walks[mask] = walk
        return self._walks[mask]

    def show(self, token_id: int) -> str:
        """A token in print."""
        if token_id == self.vocabulary.eos_id:
            return "end-of-sequence"
        if token_id in self.specials:
            return f"the special token {self.specials[token_id].decode()}"
        return quoted(self.vocabulary.tokens[token_id])


Mask = Callable[[Setting, bytes], set[int]]
"""From the text so far to the ids that may come next."""


def quoted(text: bytes) -> str:
    """A byte string in print; bytes that are no character as \\xNN."""
    return f"«{text.decode('utf-8', 'backslashreplace')}»"


def sound(setting: Setting, mask: Mask) -> str:
    """Every finished output is a document."""
    for text, allowed in setting.walk(mask).items():
        if setting.vocabulary.eos_id in allowed and not setting.grammar.accepts(text):
            return f"{quoted(text)} may end, and is no document"
    return ""


def complete(setting: Setting, mask: Mask) -> str:
    """Every way to spell every document in tokens is allowed."""
    for text, wanted in setting.walk(Setting.truth).items():
        if missing := sorted(wanted - mask(setting, text)):
            return f"after {quoted(text)} it refuses {setting.show(missing[0])}, and a document goes on so"
    return ""


def trimmed(setting: Setting, mask: Mask) -> str:
    """After every allowed token a document can still be reached."""
    for text, allowed in setting.walk(mask).items():
        for token_id in sorted(allowed):
            token = setting.vocabulary.tokens[token_id]
            if token and not setting.can_finish(text + token):
                return f"after {quoted(text)} it allows {quoted(token)}, and no document can be reached from there"
    return ""


def end_of_sequence(setting: Setting, mask: Mask) -> str:
    """The end is allowed exactly where the text is a document."""
    for text, allowed in setting.walk(mask).items():
        if (setting.vocabulary.eos_id in allowed) != setting.grammar.accepts(text):
            verb = "refuses" if setting.grammar.accepts(text) else "allows"
            return f"after {quoted(text)} it {verb} end-of-sequence"
    return ""


def special_tokens(setting: Setting, mask: Mask) -> str:
    """No special token passes for text."""
    for text, allowed in setting.walk(mask).items():
        if leaked := sorted(allowed & setting.specials.keys()):
            return f"after {quoted(text)} it allows {setting.show(leaked[0])}"
    return ""


def never_empty(setting: Setting, mask: Mask) -> str:
    """The decoder never stands before an empty set."""
    for text, allowed in setting.walk(mask).items():
        if not allowed:
            return f"after {quoted(text)} nothing is allowed"
    return ""


PROPERTIES: dict[str, Callable[[Setting, Mask], str]] = {
    "sound": sound,
    "complete": complete,
    "trimmed": trimmed,
    "end-of-sequence": end_of_sequence,
    "special tokens": special_tokens,
    "never empty": never_empty,
}
"""Each check by its name; it returns a witness against the property, or "" where the property holds."""


def verdicts(setting: Setting, mask: Mask) -> dict[str, str]:
    """For each property the witness against it, "" where it holds."""
    return {name: check(setting, mask) for name, check in PROPERTIES.items()}
