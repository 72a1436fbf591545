"""Objects: any order of keys, required ones present, none twice.

The declared keys seen so far are a bit mask; free keys seen so far are a set. Rows for all 2^n masks exist only as far
as documents visit them. A declared key is read through its one spelling, any other key as a free string whose text is
looked at when its quote closes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from modtools.masking.byte_automaton import DEAD, literals, spell
from modtools.masking.free_keys import FreeKeys, decoded
from modtools.masking.machine import BLANKS, Cell, Cells, Machine, Scalar, Value

if TYPE_CHECKING:
    from modtools.masking.split import Split

OPEN, CLOSE, COMMA, COLON, QUOTE = b'{},:"'


class Phase(IntEnum):
    """Where in the object."""

    OPENED = 0
    COMMA = 1
    KEY = 2
    COLON = 3
    VALUE = 4
    MEMBER = 5


WHERE = ("after {", "after a comma", "in a key", "after a key", "before a value", "after a member")
OWN = {
    Phase.OPENED: frozenset([QUOTE, CLOSE]),
    Phase.COMMA: frozenset([QUOTE]),
    Phase.COLON: frozenset([COLON]),
    Phase.VALUE: frozenset(),
    Phase.MEMBER: frozenset([COMMA, CLOSE]),
}


class Object(Machine):
    """The data is (phase, blanks so far, declared keys seen as a bit mask, free keys seen, members begun, value).

    Members are counted only where their number is bounded. The value is what must stand after the key just read.

    Attributes:
        names: the declared keys.
        values: what the value of each must be.
        required: bit mask of the keys that must come.
        ordered: whether declared keys come in the order of `names`, free ones after them; a key that was passed over
            counts as seen.
        least, most: how many members; `most` is None for no bound.
        free: what other keys there may be, or None.
        free_values: what the values of those may have to be, each with how many keys that holds for, None where there
            is no end of them.
    """

    def __init__(
        self,
        cells: Cells,
        blanks: int,
        names: Sequence[str],
        values: Sequence[Value],
        required: int,
        ordered: bool,
        size: tuple[int, int | None] = (0, None),
    ):
        self.cells, self.blanks, self.ordered = cells, blanks, ordered
        self.names, self.values, self.required = names, values, required
        self.least, self.most = size
        self.usable, self.free, self.free_values = 0, None, []
        self.declared_key, self.free_key = DeclaredKey(self), FreeKey(self)
        self.opening = frozenset([OPEN])

    def is_possible(self) -> bool:
        """Whether some finite object fits, by what is known of the values so far."""
        free = [size for value, size in self.free_values if value.possible]
        enough = None in free or sum(value.possible for value in self.values) + sum(free) >= self.least
        needed = all(value.possible for i, value in enumerate(self.values) if self.required >> i & 1)
        return enough and needed and (self.most is None or max(self.least, self.required.bit_count()) <= self.most)

    def prune(self, free: FreeKeys | None) -> None:
        """Drops keys whose value cannot be finished."""
        self.usable = sum(1 << i for i, value in enumerate(self.values) if value.possible)
        self.free = free

    def available(self, waiting: Cell) -> int:
        """The declared keys that may come next, as a bit mask."""
        if "available" not in waiting.memo:
            waiting.memo["available"] = self._available(waiting)
        return waiting.memo["available"]

    def _available(self, waiting: Cell) -> int:
        _, _, seen, used, count, _ = waiting.data
        unseen, missing = self.usable & ~seen, self.required & ~seen
        if self.most is not None and count + missing.bit_count() >= self.most:
            unseen &= missing
        if self.ordered and missing:
            unseen &= ((missing & -missing) << 1) - 1
        if self.ordered and self.least > count + 1:
            ahead = self._free_left(used)
            late = [i for i in range(len(self.names)) if (self.usable >> i).bit_count() + ahead < self.least - count]
            unseen &= ~sum(1 << i for i in late)
        return unseen

    def _free_left(self, used: frozenset[str]) -> int:
        return self.free.count(used, self.least) if self.free is not None else 0

    def has_free(self, waiting: Cell) -> bool:
        """Whether a key may come next that is not declared."""
        _, _, seen, used, count, _ = waiting.data
        missing = (self.required & ~seen).bit_count()
        if self.free is None or (self.ordered and missing):
            return False
        if self.most is not None and count + missing >= self.most:
            return False
        if self.ordered and self.least > count and self._free_left(used) < self.least - count:
            return False
        return self.free.is_left(0, b"", used)

    def begin(self, below: Cell, byte: int) -> tuple[Cell, ...]:
        return (self.cells(self, (Phase.OPENED, 0, 0, frozenset(), 0, None), below),) if byte == OPEN else ()

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        phase, blanks, seen, _, count, value = cell.data
        if byte in BLANKS:
            return (self._at(cell, phase, blanks + 1),) if blanks < self.blanks else ()
        if phase == Phase.VALUE:
            return value.begin(self._at(cell, Phase.MEMBER), byte)
        if phase == Phase.COLON:
            return (self._at(cell, Phase.VALUE),) if byte == COLON else ()
        if byte == CLOSE and phase != Phase.COMMA:
            return (cell.below,) if not self.required & ~seen and count >= self.least else ()
        if byte == COMMA and phase == Phase.MEMBER:
            return (self._at(cell, Phase.COMMA),) if self.available(cell) or self.has_free(cell) else ()
        if byte == QUOTE and phase in (Phase.OPENED, Phase.COMMA):
            waiting = self._at(cell, Phase.KEY)
            return self.declared_key.begin(waiting, byte) + self.free_key.begin(waiting, byte)
        return ()

    def _at(self, cell: Cell, phase: Phase, blanks: int = 0) -> Cell:
        _, _, seen, used, count, value = cell.data
        value = value if phase in (Phase.COLON, Phase.VALUE) else None
        return self.cells(self, (phase, blanks, seen, used, count, value), cell.below)

    def after_declared(self, waiting: Cell, index: int) -> Cell:
        """The cell after a declared key."""
        _, _, seen, used, count, _ = waiting.data
        seen |= (2 << index) - 1 if self.ordered else 1 << index
        data = (Phase.COLON, 0, seen, used, self._counted(count), self.values[index])
        return self.cells(self, data, waiting.below)

    def after_free(self, waiting: Cell, name: str, label: object) -> Cell:
        """The cell after a free key."""
        _, _, seen, used, count, _ = waiting.data
        seen = (1 << len(self.names)) - 1 if self.ordered else seen
        data = (Phase.COLON, 0, seen, used | {name}, self._counted(count), self.free.values[label])
        return self.cells(self, data, waiting.below)

    def _counted(self, count: int) -> int:
        return count + 1 if self.most is not None else min(count + 1, self.least)

    def own(self, cell: Cell) -> frozenset[int]:
        return OWN[cell.data[0]]

    def coming(self, cell: Cell) -> tuple[Value, Cell] | None:
        phase, _, _, _, _, value = cell.data
        return (value, self._at(cell, Phase.MEMBER)) if phase == Phase.VALUE else None

    def room_for_blanks(self, cell: Cell) -> int:
        return self.blanks - cell.data[1]

    def describe(self, cell: Cell) -> str:
        phase, _, seen, used, _, _ = cell.data
        said = [name for i, name in enumerate(self.names) if seen >> i & 1] + sorted(used)
        missing = [name for i, name in enumerate(self.names) if (self.required & ~seen) >> i & 1]
        text = f"in an object, {WHERE[phase]}; keys so far: {', '.join(said) or 'none'}"
        return text + (f"; still required: {', '.join(missing)}" if missing else "")


class DeclaredKey(Scalar):
    """A declared key in its one spelling; the data is the state of the trie of all declared keys."""

    def __init__(self, owner: Object):
        super().__init__(owner.cells, literals({spell(name): i for i, name in enumerate(owner.names)}), "a key")
        self.owner = owner
        self._ahead: dict[int, int] = {}

    def ahead(self, state: int) -> int:
        """The keys that can still be reached from a state, as a bit mask."""
        if state not in self._ahead:
            label = self.automaton.labels[state]
            reached = 0 if label is None else 1 << label
            for byte in self.automaton.legal(state):
                reached |= self.ahead(self.automaton.row(state)[byte])
            self._ahead[state] = reached
        return self._ahead[state]

    def filter(self, below: Cell) -> Callable[[int], bool]:
        available = self.owner.available(below)
        return lambda state: self.ahead(state) & available != 0

    def completed(self, below: Cell, label: int) -> Cell:
        return self.owner.after_declared(below, label)

    def describe(self, cell: Cell) -> str:
        reached = self.ahead(cell.data) & self.owner.available(cell.below)
        names = [name for i, name in enumerate(self.owner.names) if reached >> i & 1]
        return f"in a key that may become {' or '.join(map(repr, names))}"


class FreeKey(Machine):
    """A key that is not declared; the data is (state, the bytes so far with the opening quote)."""

    def __init__(self, owner: Object):
        self.owner = owner

    def begin(self, waiting: Cell, byte: int) -> tuple[Cell, ...]:
        if not self.owner.has_free(waiting):
            return ()
        return self._after(0, b"", waiting, byte)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        return self._after(*cell.data, cell.below, byte)

    def _after(self, state: int, spelled: bytes, waiting: Cell, byte: int) -> tuple[Cell, ...]:
        free, used = self.owner.free, waiting.data[3]
        after, spelled = free.automaton.row(state)[byte], spelled + bytes([byte])
        if after == DEAD:
            return ()
        label = free.automaton.labels[after]
        if label is not None:
            name = decoded(spelled)
            fresh = name not in used and name not in self.owner.names
            return (self.owner.after_free(waiting, name, label),) if fresh else ()
        if not free.is_left(after, spelled, used):
            return ()
        return (self.owner.cells(self, (after, spelled), waiting),)

    def clashing(self, cell: Cell, parts: Split) -> Iterator[int]:
        """The rests before which a key is completed that is declared or was used."""
        state, spelled = cell.data
        taken = {*self.owner.names, *cell.below.data[3]}
        if self.owner.free.automaton.boundary[state]:
            so_far = decoded(spelled + b'"')
            for name in taken:
                if name.startswith(so_far):
                    yield from parts.rests_by_text.get(name[len(so_far) :], ())
        else:
            for rest, inside in parts.insides.items():
                if decoded(spelled + inside) in taken:
                    yield rest

    def own(self, cell: Cell) -> frozenset[int]:
        return self.owner.free.automaton.legal(cell.data[0])

    def describe(self, cell: Cell) -> str:
        return f"in a free key that begins with {cell.data[1][1:].decode(errors='replace')!r}"
