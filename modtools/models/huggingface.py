"""Any causal language model of transformers: from a folder, or by its id from the local hub cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modtools.contract import digest
from modtools.errors import MissingPieceError, UsageError
from modtools.models.context import Context, Reading
from modtools.models.decode import decode
from modtools.models.device import choose_device, choose_dtype
from modtools.models.folder import model_digest
from modtools.models.model import (
    Generation,
    Message,
    Request,
    Sampling,
    Score,
    Usage,
    check_context,
    require_for,
)
from modtools.models.prompt import Prompter
from modtools.models.quiet import quiet_transformers
from modtools.models.sampling import log_probability

if TYPE_CHECKING:
    import torch

SCORE_BLOCK = 256  # tokens of a scored text whose logits are held at once


class HuggingFaceModel:
    """A network and its tokenizer behind the protocol of modtools.models.model.

    In float32 greedy replies do not depend on what else is in the batch; in 16 bits near-ties may fall otherwise.
    """

    capabilities = frozenset({"batch", "mask", "logprobs", "score", "count"})

    def __init__(self, network: torch.nn.Module, tokenizer: Any, name: str, digest: str, info: Mapping[str, Any]):
        self.network, self.name, self.digest, self.info = network, name, digest, info
        self.prompter = Prompter(tokenizer, name)
        self.context_tokens = info["context_tokens"]
        ends = network.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        self.ends = frozenset(end for end in [*ends, tokenizer.eos_token_id] if end is not None)

    def render(self, messages: Sequence[Message]) -> str:
        return self.prompter.render(messages)

    def count(self, text: str) -> int:
        return len(self.prompter.encode_text(text))

    def count_messages(self, messages: Sequence[Message]) -> list[int]:
        return self.prompter.count_messages(messages)

    def fits(self, request: Request, max_tokens: int) -> bool:
        return len(self.prompter.encode(request.messages)) + max_tokens <= self.context_tokens

    def generate(self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False) -> list[Generation]:
        prompts = self.prompts(requests, sampling, logprobs)
        return self.reply(requests, prompts, sampling, logprobs)[0]

    def prompts(self, requests: Sequence[Request], sampling: Sampling, logprobs: bool = False) -> list[list[int]]:
        """The token ids of each request's prompt.

        Raises:
            UnsupportedError, UsageError, ContextOverflowError: for what cannot be answered.
        """
        require_for(self, requests, logprobs)
        for index, request in enumerate(requests):
            if sampling.temperature > 0 and request.rng is None:
                raise UsageError(f"request {index}: temperature {sampling.temperature} needs the request's own rng")
        prompts = [self.prompter.encode(request.messages) for request in requests]
        check_context(self, [len(prompt) for prompt in prompts], sampling.max_tokens)
        return prompts

    def reply(
        self,
        requests: Sequence[Request],
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        logprobs: bool = False,
        read: Sequence[Reading | None] | None = None,
    ) -> tuple[list[Generation], list[Reading]]:
        """Answers prompts, and gives what each conversation has then read where `read` is given; see `decode`."""
        if not requests:
            return [], []
        replies = decode(self.network, prompts, requests, sampling, self.ends, self.prompter.decode, logprobs, read)
        cached = [len(each.tokens) if each else 0 for each in read or [None] * len(prompts)]
        generations = [
            Generation(
                text=reply.text,
                token_ids=tuple(reply.token_ids),
                finish=reply.finish,
                usage=Usage(len(prompt), kept, len(reply.token_ids), tuple(self.count_messages(request.messages))),
                logprobs=tuple(reply.logprobs) if logprobs else None,
                legal_mass=tuple(reply.legal_mass) if logprobs and request.mask is not None else None,
                overruled=tuple(reply.overruled) if logprobs and request.mask is not None else None,
            )
            for request, reply, prompt, kept in zip(requests, replies, prompts, cached)
        ]
        return generations, [reply.reading for reply in replies if reply.reading]

    def score(self, messages: Sequence[Message], text: str) -> Score:
        prompt, ids = self.prompter.encode(messages), self.prompter.encode_text(text)
        check_context(self, [len(prompt)], len(ids))
        context = Context(self.network, rows=1)
        last = context.extend([prompt])[0, -1]
        logprobs = []
        for start in range(0, len(ids), SCORE_BLOCK):
            block = ids[start : start + SCORE_BLOCK]
            after = context.extend([block], logits_to_keep=len(block))[0]
            logprobs += [log_probability(row, token) for row, token in zip([last, *after], block)]
            last = after[-1]
        return Score(tuple(ids), tuple(logprobs))


def load_huggingface(
    source: str,
    *,
    revision: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    allow_download: bool = False,
) -> HuggingFaceModel:
    """Loads a model by folder or hub id.

    Args:
        source: a folder, or an id such as "owner/name"; a folder wins.
        revision: branch, tag or commit of a hub id.
        device: "cuda", "cuda:1", "mps" or "cpu"; chosen where None.
        dtype: "float32", "bfloat16" or "float16"; chosen where None.
        allow_download: whether a hub id that is not in the local hub cache may be downloaded.

    Raises:
        MissingPieceError: neither a folder nor in the hub cache, and no download allowed or possible.
        UsageError: an unknown device or dtype, or a model without chat template.
    """
    if Path(source).is_dir():
        folder, identity, revision = Path(source), model_digest(Path(source)), None
        name = folder.resolve().name
    else:
        folder = _from_hub(source, revision, allow_download)
        name, revision = source, folder.name  # the hub's cache names a snapshot's folder by its commit
        identity = digest({"id": source, "commit": revision})
    return load_folder(folder, name, identity, device, dtype, {"revision": revision})


def load_folder(
    folder: Path, name: str, digest: str, device: str | None, dtype: str | None, info: Mapping[str, Any]
) -> HuggingFaceModel:
    """Loads from a folder only; never touches the network."""
    import torch
    import transformers

    device, device_reason = choose_device(device)
    torch_dtype, dtype_reason = choose_dtype(device, dtype)
    with quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            network = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch_dtype, local_files_only=True
            )
        except (OSError, ValueError) as error:
            raise MissingPieceError(
                f"{name}: transformers cannot load a causal model from {folder}: {_first_line(error)}"
            ) from error
    network = network.to(device).eval()
    info = {
        "backend": "huggingface",
        "device": device,
        "dtype": str(torch_dtype).removeprefix("torch."),
        "parameters": network.num_parameters(),
        "context_tokens": network.config.get_text_config().max_position_embeddings,
        "vocabulary": len(tokenizer),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **info,
        "notes": [device_reason, dtype_reason, *info.get("notes", [])],
    }
    return HuggingFaceModel(network, tokenizer, name, digest, info)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _from_hub(model_id: str, revision: str | None, allow_download: bool) -> Path:
    """The snapshot folder of a hub id."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = ["*.json", "*.jinja", "*.safetensors", "*.model", "*.txt"]
    try:
        return Path(
            snapshot_download(model_id, revision=revision, allow_patterns=wanted, local_files_only=not allow_download)
        )
    except HFValidationError as error:
        raise UsageError(f"model {model_id!r}: neither a folder nor an id of the form owner/name") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        if allow_download:
            raise MissingPieceError(f"model {model_id}: could not be downloaded: {error}") from error
        raise MissingPieceError(
            f"model {model_id} is neither a folder nor in the local hub cache (its size is known to the hub only); "
            f"`hf download {model_id}` fetches it, or allow the download (--allow-download, allow_download=True)"
        ) from error
