"""Any model behind an OpenAI-compatible server: vLLM, llama.cpp, Ollama, `transformers serve`, or a company's own.

The server renders the prompt and samples; this kit only asks. So there are no masks, no log-probabilities and no
scores, and a run repeats only as far as the server keeps to its seeds. The key comes from the environment variable
MODTOOLS_API_KEY and is never written anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from modtools.contract import digest
from modtools.errors import MissingPieceError, UsageError
from modtools.models.model import (
    Generation, Message, Request, Sampling, Score, Usage, check_context, require, require_for,
)  # fmt: skip
from modtools.models.prompt import Prompter

KEY = "MODTOOLS_API_KEY"
_TRIES = 4


class ServerModel:
    """A model on a server.

    Args:
        url: the base address, such as "http://127.0.0.1:8000/v1".
        model: its name there; may be left out where the server lists one model only.
        tokenizer: a folder, or a hub id in the local cache, with the model's tokenizer and chat template. Without it
            nothing can be counted before a reply, and the lab, which splits cost into parts, does not run.
        context_tokens: the longest prompt plus reply; the server's own setting.
        at_once: requests under way at the same time.
        timeout_s: seconds for one reply.

    Raises:
        MissingPieceError: where the server or the openai package cannot be reached.
        UsageError: where it is not said which of several models is meant, or the server has no such model.
    """

    def __init__(
        self,
        url: str,
        model: str = "",
        tokenizer: str = "",
        context_tokens: int = 8192,
        at_once: int = 4,
        timeout_s: float = 300.0,
    ):
        try:
            import openai
        except ImportError as error:
            raise MissingPieceError("models on a server need the openai package: pip install openai") from error

        self.url, self.context_tokens, self.at_once, self.tries = url, context_tokens, at_once, _TRIES
        self._client = openai.OpenAI(
            base_url=url, api_key=os.environ.get(KEY) or "none", timeout=timeout_s, max_retries=_TRIES - 1
        )
        listed = [each.id for each in self._asked(lambda: list(self._client.models.list()))]
        if not model and len(listed) != 1:
            raise UsageError(f"{url} offers {', '.join(listed[:20]) or 'no model'}; say which one is meant")
        self.name = model or listed[0]
        self.prompter = Prompter(_tokenizer(tokenizer), self.name) if tokenizer else None
        self.capabilities = frozenset({"batch", "count"} if tokenizer else {"batch"})
        self.digest = digest({"server": url, "model": self.name})
        self.info = {
            "backend": "server",
            "server": url,
            "tokenizer": tokenizer,
            "context_tokens": context_tokens,
            **({"vocabulary": len(self.prompter.tokenizer)} if self.prompter else {}),
            "notes": ["a server's weights and sampling cannot be pinned from here; a rerun may differ"],
        }

    def render(self, messages: Sequence[Message]) -> str:
        require(self, "count")
        return self.prompter.render(messages)

    def count(self, text: str) -> int:
        require(self, "count")
        return len(self.prompter.encode_text(text))

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        require(self, "count")
        return self.prompter.count_messages(messages)

    def fits(self, request: Request, max_tokens: int) -> bool:
        """Whether the prompt and a reply fit; True where nothing can be counted, and then the server refuses."""
        return not self.prompter or sum(self.count_messages(request.messages)) + max_tokens <= self.context_tokens

    def generate(self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False) -> list[Generation]:
        """As Model.generate; each request is sent with a seed drawn from its own generator.

        Raises:
            MissingPieceError: where the server does not answer as it should, after several tries.
        """
        require_for(self, requests, logprobs)
        if self.prompter:
            check_context(self, [sum(self.count_messages(each.messages)) for each in requests], sampling.max_tokens)
        seeds = [int(each.rng.integers(2**31)) if each.rng is not None else None for each in requests]
        with ThreadPoolExecutor(self.at_once) as pool:
            return list(pool.map(lambda each, seed: self._reply(each, seed, sampling), requests, seeds))

    def score(self, messages: Sequence[Message], text: str) -> Score:
        require(self, "score")

    def _reply(self, request: Request, seed: int | None, sampling: Sampling) -> Generation:
        options: dict[str, Any] = {"seed": seed} if seed is not None else {}
        if sampling.stop:
            options["stop"] = list(sampling.stop)
        answer = self._asked(
            lambda: self._client.chat.completions.create(
                model=self.name,
                messages=[{"role": each.role, "content": each.content} for each in request.messages],
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                **options,
            )
        )
        try:
            choice, usage = answer.choices[0], answer.usage
            text, finish = choice.message.content or "", choice.finish_reason
            read, written = usage.prompt_tokens, usage.completion_tokens
        except (AttributeError, IndexError, TypeError):
            raise self._broken("answered something else than a chat completion with its usage") from None
        counts = tuple(self.count_messages(request.messages)) if self.prompter else ()
        if counts and sum(counts) != read:
            raise UsageError(
                f"{self.url} counts {read} tokens where the tokenizer {self.info['tokenizer']} counts {sum(counts)}: expected "
                f"the tokenizer and chat template of {self.name}"
            )
        if finish not in ("stop", "length"):
            raise self._broken(f"ended a reply by {finish!r}")
        return Generation(text, (), finish, Usage(read, 0, written, counts))

    def _asked(self, question: Any) -> Any:
        """Ask, and put what goes wrong into words; the client has tried several times where that may help."""
        import openai

        try:
            return question()
        except openai.APITimeoutError:
            raise self._broken(
                f"gave no answer in time, {self.tries} times; start it with fewer requests at once"
            ) from None
        except openai.APIConnectionError as error:
            raise self._broken(
                f"cannot be reached ({error.__cause__ or error}); start it, or mend the address"
            ) from None
        except openai.AuthenticationError:
            raise self._broken(f"refuses the key; set the environment variable {KEY}") from None
        except openai.NotFoundError:
            raise self._broken("knows no such model or address; it must end in /v1 on most servers") from None
        except openai.APIStatusError as error:
            raise self._broken(f"answered {error.status_code} ({error.message[:200]})") from None
        except (openai.OpenAIError, ValueError) as error:
            raise self._broken(f"answered what cannot be read ({type(error).__name__})") from None

    def _broken(self, what: str) -> MissingPieceError:
        return MissingPieceError(
            f"the server {self.url} {what}; nothing that has ended is lost, and the same run goes on"
        )


def _tokenizer(source: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError) as error:
        raise MissingPieceError(f"tokenizer {source}: neither a folder nor in the local hub cache ({error})") from error
