"""From messages to a prompt's text and tokens, by the model's own chat template.

Text inside a message never becomes a control token: a file that contains "<|im_end|>" is read as those
characters, not as the end of a turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

from modtools.errors import UsageError
from modtools.models.model import Message

MARK = "\ue000"  # a private-use character; enough of them in a row find a message's text inside the prompt


class Prompter:
    """Renders and counts with one tokenizer.

    Args:
        tokenizer: of transformers, with a chat template.
        model_name: for messages of errors.

    Raises:
        UsageError: a tokenizer without a chat template.
    """

    def __init__(self, tokenizer: Any, model_name: str):
        self.tokenizer, self.model_name = tokenizer, model_name
        self.control_texts = tuple(t.content for t in tokenizer.added_tokens_decoder.values() if t.special)
        if not tokenizer.chat_template:
            raise UsageError(
                f"{model_name} has no chat template, so conversations cannot be put to it; "
                "take an instruction-tuned model, or add chat_template.jinja to its folder"
            )

    def render(self, messages: Sequence[Message], opening: bool = True) -> str:
        """The prompt's text; with `opening` the beginning of the assistant's turn is part of it."""
        from jinja2 import TemplateError

        if not messages:
            raise UsageError("a conversation needs at least one message")
        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=opening)
        except TemplateError as error:
            raise UsageError(f"{self.model_name}'s chat template refuses this conversation: {error}") from error

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """The prompt's token ids."""
        return self._tokens(messages, self.render(messages))[0]

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        """Tokens that each message adds: header, content and, where all turns close alike, the closing mark.

        A token belongs to the message in which it begins. The first entry includes what the template puts before
        the first message, the last the opening of the assistant's turn.
        """
        text = self.render(messages)
        _, begins = self._tokens(messages, text)
        ends = [end for _, end in self._spans(messages, text)]
        closing = self.render(messages, opening=False)[ends[-1] :]
        borders = [0] + [end + len(closing) * text.startswith(closing, end) for end in ends[:-1]] + [len(text)]
        places = [bisect_left(begins, border) for border in borders[:-1]] + [len(begins)]
        return [after - before for before, after in pairwise(places)]

    def encode_text(self, text: str) -> list[int]:
        """Token ids of plain text, never a control token."""
        return self.tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a reply; control tokens leave no text."""
        return self.tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _tokens(self, messages: Sequence[Message], text: str) -> tuple[list[int], list[int]]:
        """Token ids of the rendered text, and the character at which each begins."""
        pieces = [(0, len(text), False)]  # start, end, whether it is a message's own text
        if any(control in message.content for message in messages for control in self.control_texts):
            borders = [0, *chain.from_iterable(self._spans(messages, text)), len(text)]
            pieces = [(start, end, index % 2 == 1) for index, (start, end) in enumerate(pairwise(borders))]
        ids, begins = [], []
        for start, end, is_content in pieces:
            tokens = self.tokenizer(
                text[start:end], add_special_tokens=False, split_special_tokens=is_content, return_offsets_mapping=True
            )
            ids += tokens.input_ids
            begins += [start + begin for begin, _ in tokens.offset_mapping]
        return ids, begins

    def _spans(self, messages: Sequence[Message], text: str) -> list[tuple[int, int]]:
        """Start and end of each message's content in the rendered text, whatever the template puts around it."""
        mark, spans = MARK, []
        while mark in text:
            mark += MARK
        for index, message in enumerate(messages):
            marked_turn = Message(message.role, f"{mark}|{message.content}|{mark}")
            marked = self.render([*messages[:index], marked_turn, *messages[index + 1 :]])
            start, after = marked.find(mark), len(marked) - marked.rfind(mark) - len(mark)
            spans.append((start, len(text) - after))
        return spans
