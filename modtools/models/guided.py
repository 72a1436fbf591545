"""The same network through `guidance`, the production path: what it decodes, what it forces, what it heals.

Where the grammar leaves one way to go on, guidance appends the text's usual tokens without asking the network; they
are read with the next token that is asked for. And it takes back the last tokens of a prompt where these may be the
beginning of a longer token: token healing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from modtools.errors import UsageError
from modtools.models.model import Finish, Message, check_context
from modtools.models.quiet import quiet_transformers

if TYPE_CHECKING:
    from modtools.models.huggingface import HuggingFaceModel


@dataclass(frozen=True)
class GuidedReply:
    """What guidance decoded.

    Attributes:
        text: of the reply.
        token_ids: its tokens, without end-of-sequence; healed prompt tokens come first, with what they became.
        forced: for each of them whether guidance set it without asking the network.
        healed: how many tokens at the end of the prompt were taken back.
        forward_passes: how often the network was asked, the prompt included.
        finish: "stop", or "length" at max_tokens.
    """

    text: str
    token_ids: tuple[int, ...]
    forced: tuple[bool, ...]
    healed: int
    forward_passes: int
    finish: Finish


class Guidance:
    """A loaded model inside guidance's own loop. Nothing is downloaded, and no widget is shown."""

    def __init__(self, model: HuggingFaceModel):
        from guidance.chat import ChatMLTemplate
        from guidance.models import Transformers

        self.model = model
        # echo is the widget, monitoring a thread that watches the machine; the template is for roles, unused here.
        options = {"echo": False, "enable_monitoring": False, "chat_template": ChatMLTemplate}
        with quiet_transformers():
            self._engine = Transformers(model.network, model.prompter.tokenizer, **options)._interpreter.engine

    def json(
        self, messages: Sequence[Message], schema: Any, compact: bool = True, max_tokens: int = 256
    ) -> GuidedReply:
        """The greedy reply that is a document of a schema, as guidance understands it.

        Args:
            messages: the conversation.
            schema: with properties in the declared order; other keys too, unless additionalProperties says no.
            compact: no blanks, as with whitespace=0 in our masks; otherwise any, wherever JSON allows them.
            max_tokens: the longest reply.

        Raises:
            UsageError: a schema that guidance cannot compile; and all that `reply` raises.
        """
        import guidance

        try:
            grammar = guidance.json(
                schema=schema, temperature=0.0, separators=(",", ":"), whitespace_flexible=not compact
            )
        except (TypeError, ValueError) as error:
            raise UsageError(f"guidance cannot compile the schema: {error}") from error
        return self.reply(messages, grammar, max_tokens=max_tokens)

    def reply(self, messages: Sequence[Message], grammar: Any, prefix: str = "", max_tokens: int = 256) -> GuidedReply:
        """A reply in a grammar of guidance.

        Where the text may end and the likeliest token is not allowed, guidance ends it; a mask would take the
        likeliest allowed token.

        Args:
            messages: the conversation.
            grammar: guidance.gen(regex=..., temperature=0.0), for instance; it says how tokens are sampled.
            prefix: what the reply has begun with already; it counts as prompt, and its end may be healed.
            max_tokens: the longest reply.

        Raises:
            UsageError: a message that guidance would read in other tokens.
            ContextOverflowError: prompt and max_tokens exceed the context.
        """
        from guidance.models._engine import EngineState

        if max_tokens < 1:
            raise UsageError(f"max_tokens is {max_tokens}, expected 1 or more")
        prompt = self.model.render(messages)
        prompt_ids = self.model.prompter.encode(messages)
        its_ids = self._engine.tokenizer.encode(prompt.encode())
        if its_ids != prompt_ids:
            same = next(i for i, pair in enumerate(zip_longest(prompt_ids, its_ids)) if pair[0] != pair[1])
            where = self.model.prompter.decode(prompt_ids[same : same + 4])
            raise UsageError(f"guidance reads this prompt in other tokens from {where!r} on; word that differently")
        check_context(self.model, [len(prompt_ids) + self.model.count(prefix)], max_tokens)
        state = EngineState()
        state.prompt = prompt + prefix
        self._forget()
        loop = self._engine(state, grammar.ll_grammar())
        text, tokens, healed, finish, passes = b"", [], None, "stop", 0

        def count(*_) -> None:
            nonlocal passes
            passes += 1

        hook = self.model.network.register_forward_hook(count)
        try:
            with quiet_transformers():
                for step in loop:
                    if healed is None:
                        healed = step.backtrack  # tokens of the prompt
                    elif step.backtrack:
                        del tokens[-step.backtrack :]
                    tokens += [token for token in step.tokens if not token.is_backtracked]
                    text += step.new_bytes
                    if len(tokens) > max_tokens:
                        finish = "length"
                        break
        finally:
            hook.remove()
        tokens = [token for token in tokens if token.token_id != self._engine.tokenizer.eos_token_id][:max_tokens]
        ids = tuple(int(token.token_id) for token in tokens)
        forced = tuple(token.is_input or token.is_force_forwarded for token in tokens)
        return GuidedReply(text.decode(errors="replace"), ids, forced, healed, passes, finish)

    def _forget(self) -> None:
        """Empties the engine's cache, so that what is counted does not depend on earlier replies."""
        from transformers import DynamicCache

        class Cache(DynamicCache):
            """guidance says how many tokens to keep; transformers 5.24 wants to hear how many to drop."""

            def crop(self, length: int) -> None:
                super().crop(length - self.get_seq_length())

        engine = self._engine
        engine._past_key_values, engine._cached_token_ids, engine._cached_logits = (
            Cache(config=self.model.network.config), [], None,
        )  # fmt: skip
