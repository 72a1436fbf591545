"""Train the tool-use adapter of the embedded model: LoRA on demonstrations, checkpointed and reproducible.

    python course/lab/train_adapter.py --out runs/adapter

Three hours on two cores at the defaults; less on a GPU. Stop it at any time: the same command goes on at the last
checkpoint. The recipe: rank 16 on all seven linear layers of a block, AdamW with a linear decay after a short warm-up,
loss on the model's own replies only, and not on the slips that a demonstration mends. The wide output layer is applied
only where there is loss, which is a tenth of the positions.

At the end OUT/adapter.safetensors (float16) and OUT/adapter.json (base model, surfaces, data, schedule, losses) are
what `modtools.models.adapter` reads.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from demonstrations import FIRST_SEED, Turn, demonstrations
from tqdm import tqdm

from modtools.contract import digest
from modtools.lab.experiments.single_calls import single_call
from modtools.lab.families import HELD_OUT
from modtools.models import Message
from modtools.models.device import choose_device, choose_dtype
from modtools.models.embedded import load_embedded
from modtools.models.prompt import Prompter
from modtools.records import append_line, read_json, read_lines, write_json
from modtools.sandbox import strongest_level
from modtools.surfaces import SURFACES, build_surface

WINDOW = 8  # batches whose examples are sorted by length together
WARM_UP_STEPS = 20
CHECKPOINT_STEPS = 25
HEAD_TOKENS = 48  # by which it is told whether two examples have one system message
SINGLE_CALLS = 5  # every fifth example is a single call
PART_TOKENS = 4096  # read at once; what a backward pass keeps is about 2.4 MB a token in float32


@dataclass(frozen=True)
class Recipe:
    """What decides the adapter, beside the code and the base model."""

    steps: int = 600
    batch: int = 8
    rate: float = 1e-3
    rank: int = 16
    alpha: int = 32
    seed: int = 0

    @property
    def examples(self) -> int:
        """How many demonstrations are seen, each once."""
        return self.steps * self.batch


def examples(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """Examples without end: {"name", "turns": [[role, text, whether it is learnt]]}."""
    tasks = demonstrations(HELD_OUT, strongest_level(), recipe.seed)
    for number in range(recipe.examples):
        if number % SINGLE_CALLS == SINGLE_CALLS - 1:
            single = single_call(random.Random(f"{recipe.seed}/single/{number}"))
            name = f"single/{number}"
            turns = (*map(Turn, single.messages), Turn(Message("assistant", single.answer), learn=True))
        else:
            name, turns = next(tasks)
        yield {"name": name, "turns": [[t.message.role, t.message.content, t.learn] for t in turns]}


def written_examples(recipe: Recipe, path: Path) -> list[dict[str, Any]]:
    """The examples of a file, made and written as far as they are missing."""
    have = read_lines(path)
    if len(have) == recipe.examples:
        return have
    for example in tqdm(
        islice(examples(recipe), len(have), None), "demonstrations", recipe.examples, initial=len(have), mininterval=5
    ):
        append_line(path, example)
        have.append(example)
    return have


def encode(prompter: Prompter, turns: Sequence[Sequence[Any]], end: int) -> tuple[list[int], list[bool]]:
    """Token ids of a conversation as the model will see it, and which of them it is to learn to write."""
    messages = [Message(role, text) for role, text, _ in turns]
    ids = [*prompter.encode(messages[:-1]), *prompter.encode_text(messages[-1].content), end]
    learnt = [False] * len(ids)
    for index, (role, text, learn) in enumerate(turns):
        if role == "assistant" and learn:
            start = len(prompter.encode(messages[:index]))
            reply = [*prompter.encode_text(text), end]
            if ids[start : start + len(reply)] != reply:
                raise ValueError(f"turn {index} is tokenised otherwise inside its conversation: {text[:60]!r}")
            learnt[start : start + len(reply)] = [True] * len(reply)
    return ids, learnt


def batches(encoded: Sequence[tuple[list[int], list[bool]]], recipe: Recipe) -> list[list[int]]:
    """Indices of examples: those with one beginning, and of them neighbours in length, go together.

    That holds within windows of the order, which is drawn from the seed, as is the order of a window's batches.
    """
    order, rng = list(range(len(encoded))), random.Random(recipe.seed)
    rng.shuffle(order)
    made = []
    for start in range(0, len(order), WINDOW * recipe.batch):
        window = order[start : start + WINDOW * recipe.batch]
        heads = Counter(_head(encoded[index]) for index in window)
        rare = {head for head, many in heads.items() if many < recipe.batch}

        def place(index: int) -> tuple[tuple[int, ...], int]:
            head = _head(encoded[index])
            return () if head in rare else head, len(encoded[index][0])

        window.sort(key=place)
        parts = [window[i : i + recipe.batch] for i in range(0, len(window), recipe.batch)]
        rng.shuffle(parts)
        made += parts
    return made


def _head(example: tuple[list[int], list[bool]]) -> tuple[int, ...]:
    return tuple(example[0][:HEAD_TOKENS])


def parts(batch: Sequence[tuple[list[int], list[bool]]]) -> list[list[tuple[list[int], list[bool]]]]:
    """The batch in parts of at most PART_TOKENS, padding included; one long example is a part of its own."""
    made: list[list[tuple[list[int], list[bool]]]] = []
    for row in sorted(batch, key=lambda row: len(row[0])):
        if not made or (len(made[-1]) + 1) * len(row[0]) > PART_TOKENS:
            made.append([])
        made[-1].append(row)
    return made


def loss_of(network: Any, batch: Sequence[tuple[list[int], list[bool]]], dtype: torch.dtype) -> torch.Tensor:
    """Sum of the cross-entropy over what is to be learnt.

    What all rows begin with, the system message with the tools above all, is read once: its keys and values serve
    every row, and gradients flow back through them. That is the same loss for less work.
    """
    from transformers import DynamicCache

    width, device = max(len(ids) for ids, _ in batch), network.device
    ids = torch.tensor([row + [0] * (width - len(row)) for row, _ in batch], device=device)
    attended = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _ in batch], device=device)
    learnt = torch.tensor([row + [False] * (width - len(row)) for _, row in batch], device=device)
    shared = len(os.path.commonprefix([row[:-2] for row, _ in batch]))  # something is left to read for every row
    if any(any(row[: shared + 1]) for _, row in batch):  # nothing of it is learnt
        shared = 0
    inner = network.get_base_model()
    with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
        cache = None
        if shared:
            cache = DynamicCache(config=inner.config)
            inner.model(input_ids=ids[:1, :shared], past_key_values=cache, use_cache=True)
            cache.batch_repeat_interleave(len(batch))
        hidden = inner.model(
            input_ids=ids[:, shared:], attention_mask=attended, past_key_values=cache, use_cache=bool(shared)
        ).last_hidden_state
        logits = inner.lm_head(hidden[:, :-1][learnt[:, shared + 1 :]])
    return torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:][learnt[:, 1:]], reduction="sum")


def train(
    out: Annotated[Path, typer.Option(help="Folder of this training; it is resumed where it was begun before.")],
    steps: int = Recipe.steps,
    batch: int = Recipe.batch,
    rate: float = Recipe.rate,
    seed: int = Recipe.seed,
    device: str | None = None,
    dtype: str | None = None,
) -> None:
    """Make demonstrations, train the adapter, and write it."""
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors.torch import save_file

    recipe = Recipe(steps, batch, rate, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    if (out / "recipe.json").exists() and read_json(out / "recipe.json") != asdict(recipe):
        raise typer.BadParameter(f"{out} holds another training; give another --out, or remove the folder")
    write_json(out / "recipe.json", asdict(recipe))
    device, _ = choose_device(device)
    arithmetic, why = choose_dtype(device, dtype)
    print(f"{why}; {recipe}")
    data = written_examples(recipe, out / "demonstrations.jsonl")

    torch.manual_seed(recipe.seed)
    base = load_embedded(device=device, dtype="float32")
    network = base.network.to(arithmetic)
    layers = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    network = get_peft_model(
        network, LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=layers, task_type="CAUSAL_LM")
    )
    trained = [p for p in network.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.data = parameter.data.float()
    optimiser = torch.optim.AdamW(trained, lr=recipe.rate, weight_decay=0.0)
    encoded = [encode(base.prompter, each["turns"], base.network.config.eos_token_id) for each in data]
    plan, begun, losses = batches(encoded, recipe), 0, []
    if (out / "checkpoint.pt").exists():
        kept = torch.load(out / "checkpoint.pt", map_location=device, weights_only=True)
        set_peft_model_state_dict(network, kept["adapter"])
        optimiser.load_state_dict(kept["optimiser"])
        begun, losses = kept["step"], kept["losses"]

    network.train()
    tokens, begun_s = 0, time.perf_counter()
    with tqdm(total=len(plan), initial=begun, desc="steps", mininterval=10) as bar:
        for step in range(begun, len(plan)):
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate * min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - step / len(plan))
            rows, loss = [encoded[index] for index in plan[step]], 0.0
            learnt_tokens = sum(sum(learnt) for _, learnt in rows)
            for part in parts(rows):
                share = loss_of(network, part, arithmetic) / learnt_tokens
                share.backward()
                loss += share.item()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss)
            tokens += sum(len(ids) for ids, _ in rows)
            bar.update()
            bar.set_postfix(
                loss=f"{sum(losses[-20:]) / len(losses[-20:]):.4f}",
                tokens_s=f"{tokens / (time.perf_counter() - begun_s):.0f}",
            )
            if (step + 1) % CHECKPOINT_STEPS == 0 or step + 1 == len(plan):
                state = {
                    "adapter": get_peft_model_state_dict(network),
                    "optimiser": optimiser.state_dict(),
                    "step": step + 1,
                    "losses": losses,
                }
                torch.save(state, out / "checkpoint.part")
                (out / "checkpoint.part").replace(out / "checkpoint.pt")

    weights = {
        name: tensor.to(torch.float16).contiguous() for name, tensor in get_peft_model_state_dict(network).items()
    }
    save_file(weights, out / "adapter.safetensors", metadata={"format": "pt"})
    write_json(
        out / "adapter.json",
        {
            "base": base.digest,
            "rank": recipe.rank,
            "alpha": recipe.alpha,
            "surfaces": {name: build_surface(name).digest for name in SURFACES},
            "held_out": HELD_OUT,
            "recipe": asdict(recipe),
            "first_seed": FIRST_SEED,
            "data": digest([each["turns"] for each in data]),
            "tokens": sum(len(ids) for ids, _ in encoded),
            "learnt_tokens": sum(sum(learnt) for _, learnt in encoded),
            "losses": [round(loss, 4) for loss in losses],
            "dtype": str(arithmetic).removeprefix("torch."),
            "torch": torch.__version__,
        },
    )
    print(f"wrote {out / 'adapter.safetensors'}")


if __name__ == "__main__":
    typer.run(train)
