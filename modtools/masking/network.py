"""Rules of a grammar as machines: a network of places, and edges that read a part each (Woods, 1970).

The part may be another rule, or the same one again: then that rule's network is put upon the stack, and the place
after the edge waits below. This is all that recursion needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from modtools.masking.budget import spend
from modtools.masking.machine import Cell, Cells, Machine, Scalar, Value

START = 0


class Terminal(Scalar):
    """A text, a pattern or prose: never empty, since a network has an edge around what may be empty."""

    def describe(self, cell: Cell) -> str:
        return f"before {self.name}" if cell.data == 0 else super().describe(cell)


class Document(Machine):
    """The place before a JSON value; no blanks stand around it."""

    def __init__(self, cells: Cells, value: Value):
        self.cells, self.value = cells, value

    def start(self, below: Cell) -> Cell:
        return self.cells(self, None, below)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        return self.value.begin(cell.below, byte)

    def own(self, cell: Cell) -> frozenset[int]:
        return frozenset()

    def coming(self, cell: Cell) -> tuple[Value, Cell]:
        return self.value, cell.below

    def describe(self, cell: Cell) -> str:
        return "before a JSON value"


class Network(Machine):
    """One rule; the data is the place in it.

    Attributes:
        name: of the rule.
        edges: for each place (part, place after it) for all that may be read next.
        ends: for each place whether the rule may end there.
    """

    def __init__(self, cells: Cells, name: str):
        self.cells, self.name = cells, name
        self.edges: list[tuple[tuple[Machine, int], ...]] = []
        self.ends: list[bool] = []

    def unfold(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells of everything that may be read next: in this rule, in those it begins, in those it ends."""
        queue, seen, found = [cell], set(), []
        while queue:
            at = queue.pop()
            machine = at.machine
            if at in seen:
                continue
            seen.add(at)
            if not isinstance(machine, Network):
                found.append(at)
                continue
            queue += [self._before(part, machine, after, at.below) for part, after in machine.edges[at.data]]
            if machine.ends[at.data]:
                queue.append(at.below)
        return tuple(found)

    def _before(self, part: Machine, network: Network, after: int, below: Cell) -> Cell:
        """The cell before a part. A rule with nothing left to read is not kept waiting."""
        if network.edges[after]:
            below = self.cells(network, after, below)
        return part.start(below)

    def start(self, below: Cell) -> Cell:
        return self.cells(self, START, below)

    def step(self, cell: Cell, byte: int) -> tuple[Cell, ...]:
        return tuple(after for at in self.unfold(cell) for after in at.after(byte))

    def own(self, cell: Cell) -> frozenset[int]:
        return frozenset().union(*(at.machine.legal(at) for at in self.unfold(cell)))

    def is_complete(self, cell: Cell) -> bool:
        return any(at.machine.is_complete(at) for at in self.unfold(cell))

    def describe(self, cell: Cell) -> str:
        return f"in the rule {self.name}"


def finishing(networks: Sequence[Network], reading: bool) -> set[Network]:
    """The networks that some finite text fits; without reading, those that the empty text fits."""
    found: set[Network] = set()
    changed = True
    while changed:
        changed = False
        for network in networks:
            if network not in found and any(network.ends[at] for at in _reached(network, found, reading)):
                found.add(network)
                changed = True
    return found


def left_recursion(networks: Sequence[Network]) -> list[Network]:
    """A chain of networks each of which may begin with the next, the last with the first; empty where there is none."""
    empty = finishing(networks, reading=False)
    begins = {
        network: {part: None for at in _reached(network, empty, False) for part, _ in network.edges[at]}
        for network in networks
    }
    waiting = {network: [part for part in begins[network] if isinstance(part, Network)] for network in networks}
    closed: set[Network] = set()
    for network in networks:
        chain = [network] if network not in closed else []
        while chain:
            if not waiting[chain[-1]]:
                closed.add(chain.pop())
                continue
            first = waiting[chain[-1]].pop()
            if first in chain:
                return chain[chain.index(first) :]
            if first not in closed:
                chain.append(first)
    return []


def _reached(network: Network, passable: set[Network], reading: bool) -> list[int]:
    """The places reached from the start over parts that texts fit, or over networks that may be empty."""
    spend(1, f"the rule {network.name}")
    reached = [START]
    for at in reached:
        for part, after in network.edges[at]:
            fits = part in passable if isinstance(part, Network) else reading
            if fits and after not in reached:
                reached.append(after)
    return reached
