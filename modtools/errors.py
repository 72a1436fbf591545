"""The error family. A message says what was given, what was expected, and what to do.

These errors are for the person who runs the kit. What a *model* gets wrong is never raised:
it becomes an observation (see modtools.pipeline).
"""


class ModtoolsError(Exception):
    """Base of every error the kit raises on purpose; the command line prints it in one line."""


class UsageError(ModtoolsError):
    """A wrong argument, option or input file."""


class MissingPieceError(ModtoolsError):
    """Something the machine lacks (a model file, a sandbox, a package); the message says how to get it."""


class UnsupportedError(ModtoolsError):
    """A backend was asked for something it does not declare, such as log-probabilities."""


class ContextOverflowError(ModtoolsError):
    """A prompt does not fit the model's context.

    Args:
        prompt_tokens: length of the prompt in tokens.
        reserved_tokens: tokens kept free for the reply.
        context_tokens: the model's context length in tokens.
        request_index: which request of a batch it is, or None.
    """

    def __init__(self, prompt_tokens: int, reserved_tokens: int, context_tokens: int, request_index: int | None = None):
        self.prompt_tokens, self.reserved_tokens, self.context_tokens = prompt_tokens, reserved_tokens, context_tokens
        self.excess_tokens = prompt_tokens + reserved_tokens - context_tokens
        self.request_index = request_index
        which = "" if request_index is None else f"request {request_index}: "
        super().__init__(
            f"{which}the prompt has {prompt_tokens} tokens and {reserved_tokens} are reserved for the reply: "
            f"{self.excess_tokens} more than the context of {context_tokens}; shorten the prompt or reserve fewer"
        )


class RecordError(ModtoolsError):
    """A run folder that cannot be read, resumed or written."""
