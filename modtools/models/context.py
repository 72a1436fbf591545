"""What a batch of conversations has read, as the network's key-value cache.

A `Context` grows by `extend`, one call for a whole prompt or for a single token a row; a batch of unequal lists is
padded on the left with holes that nothing attends to. What one row has read can be taken out as a `Reading`, without
holes, and put into another batch later, so that a conversation is not read anew at each of its turns.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Reading:
    """What one conversation has read.

    Attributes:
        tokens: their ids.
        layers: (keys, values) a layer, each of shape (heads, tokens, size of a head).
    """

    tokens: tuple[int, ...]
    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]

    def first(self, count: int) -> Reading:
        """The reading of its first tokens."""
        return Reading(self.tokens[:count], tuple((k[:, :count], v[:, :count]) for k, v in self.layers))


class Context:
    """What a batch of `rows` has read so far.

    Attributes:
        cache: keys and values of every column.
        attended: (rows, columns), 1 where a column holds a token of that row, 0 where it is a hole.
    """

    def __init__(self, network: torch.nn.Module, rows: int):
        import torch

        self.network = network
        self.cache = _growing_cache(network)
        self.attended = torch.zeros((rows, 0), dtype=torch.long, device=network.device)
        # transformers renames the argument in 5.x
        names = inspect.signature(network.forward).parameters
        self.cache_argument = "cache" if "cache" in names else "past_key_values"

    @classmethod
    def of(cls, network: torch.nn.Module, readings: Sequence[Reading | None]) -> Context:
        """A context in which each row has read what its reading says; None: nothing."""
        import torch

        context = cls(network, len(readings))
        width = max((len(each.tokens) for each in readings if each), default=0)
        some = next((each for each in readings if each), None)
        if not some or not width:
            return context
        holes = [width - (len(each.tokens) if each else 0) for each in readings]
        context.attended = torch.tensor([[0] * n + [1] * (width - n) for n in holes], device=network.device)
        for index, layer in enumerate(context.cache.layers):
            for part in (0, 1):
                heads, _, size = some.layers[index][part].shape
                whole = some.layers[index][part].new_zeros((len(readings), heads, width, size))
                for row, (hole, each) in enumerate(zip(holes, readings)):
                    if each:
                        whole[row, :, hole:] = each.layers[index][part]
                layer.put(part, whole)
        return context

    def extend(self, tokens: Sequence[Sequence[int]], logits_to_keep: int = 1) -> np.ndarray:
        """Reads one list of tokens a row; gives float64 logits (rows, logits_to_keep, V) of the last positions."""
        import torch

        width = max(len(row) for row in tokens)
        block = torch.tensor([[0] * (width - len(row)) + list(row) for row in tokens], device=self.attended.device)
        new = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in tokens], device=self.attended.device)
        self.attended = torch.cat([self.attended, new], dim=1)
        positions = (self.attended.cumsum(1) - 1).clamp(min=0)[:, -width:]  # holes do not count
        with torch.inference_mode():
            logits = self.network(
                input_ids=block,
                attention_mask=self.attended,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=logits_to_keep,
                **{self.cache_argument: self.cache},
            ).logits
        return logits[:, -logits_to_keep:].to("cpu", torch.float32).numpy().astype(np.float64)

    def keep(self, rows: Sequence[int]) -> None:
        """Drops every row but these."""
        import torch

        index = torch.tensor(rows, device=self.attended.device)
        self.cache.batch_select_indices(index)
        self.attended = self.attended[index]

    def reading(self, row: int, tokens: Sequence[int]) -> Reading:
        """What a row has read; `tokens` are the ids of it, which the cache does not hold."""
        columns = self.attended[row].bool()
        layers = ((each.keys[row][:, columns], each.values[row][:, columns]) for each in self.cache.layers)
        return Reading(tuple(tokens), tuple(layers))


def can_be_read_on(network: torch.nn.Module) -> bool:
    """Whether every layer of the network's cache keeps all it has read, so that a Reading of it is whole."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    layers = DynamicCache(config=network.config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def _growing_cache(network: torch.nn.Module) -> Any:
    """transformers' cache, its plain layers with room ahead: one copy now and then in place of one at each token."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):
        """Keys and values lie at the front of a buffer (rows, heads, room, size) that doubles when it is full."""

        def update(self, key_states, value_states, *args, **kwargs):
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            self.keys = _appended(self, 0, self.keys, key_states)
            self.values = _appended(self, 1, self.values, value_states)
            return self.keys, self.values

        def put(self, part: int, states: torch.Tensor) -> None:
            """Keys (0) or values (1) of a context that begins with something read."""
            if not self.is_initialized:
                self.lazy_initialization(states, states)
            setattr(self, ("keys", "values")[part], states)

    cache = DynamicCache(config=network.config)
    cache.layers = [RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def _appended(layer: Any, part: int, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Old and new states one after the other, the new written behind the old where there is room."""
    rows, heads, added, size = new.shape
    had = old.shape[-2] if old.numel() else 0
    rooms = layer.__dict__.setdefault("rooms", {})
    room = rooms.get(part)
    # After a selection of rows the old states lie elsewhere.
    if room is None or (had and room.data_ptr() != old.data_ptr()) or room.shape[-2] < had + added or len(room) != rows:
        room = new.new_empty((rows, heads, 2 * (had + added) if had else added + 128, size))
        if had:
            room[:, :, :had] = old
        rooms[part] = room
    room[:, :, had : had + added] = new
    return room[:, :, : had + added]
