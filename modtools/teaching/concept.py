"""A concept check: a question that answers, whichever option is taken."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modtools.errors import UsageError
from modtools.teaching.explorer import explorer

_OPEN = "choose an answer"


@dataclass(frozen=True)
class ConceptCheck:
    """A question with options; each option says why it is right or wrong.

    Attributes:
        question: one sentence or two.
        options: option -> what to say to a reader who takes it.
        right: the right option.
    """

    question: str
    options: Mapping[str, str]
    right: str

    def __post_init__(self):
        if self.right not in self.options:
            raise UsageError(f"the right answer {self.right!r} is not one of the options")

    def answer(self, option: str) -> str:
        """The reply to an option; an unknown one lists the options."""
        if option not in self.options:
            return f"Choose one of: {' | '.join(self.options)}"
        return f"{'Right' if option == self.right else 'Not so'}. {self.options[option]}"

    def widget(self) -> Any:
        """The question as a list to choose from."""

        def render(answer: str) -> str:
            said = "" if answer == _OPEN else self.answer(answer)
            return f"<p>{html.escape(self.question)}</p><p><b>{html.escape(said)}</b></p>"

        return explorer(render, answer=(_OPEN, *self.options))
