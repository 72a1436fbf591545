"""How far a state is from the end of a document: what a walk needs to be biased to close.

The distance is a count of bytes, worked out from the machines on the stack. It is exact for strings, numbers and
declared keys, and an estimate where keys are free; a walk that follows it comes to an end, which the tests count.
"""

from __future__ import annotations

from modtools.masking.array import Array
from modtools.masking.byte_automaton import DEAD, ByteAutomaton, spell
from modtools.masking.grammar import State
from modtools.masking.counted import CountedString
from modtools.masking.machine import Cell, Root, Scalar, Value
from modtools.masking.object import DeclaredKey, FreeKey, Object, Phase

FAR = 10_000
FREE_KEY = 5  # bytes of a free key with its quotes and colon
FREE_MEMBER = 8  # the same with a comma and a small value


class WayOut:
    """Distances in one grammar."""

    def __init__(self):
        self._values: dict[Value, int] = {}
        self._states: dict[State, int] = {}
        self._owed: dict[tuple[Object, int, int], int] = {}
        self._automata: dict[tuple[ByteAutomaton, int], int] = {}

    def of(self, state: State | None) -> int:
        """The fewest bytes from a state to the end."""
        if state is None:
            return FAR
        if state not in self._states:
            self._states[state] = min(self._stack(cell) for cell in state.cells)
        return self._states[state]

    def _stack(self, cell: Cell | None) -> int:
        total = 0
        while cell is not None:
            total += self._rest(cell)
            cell = cell.below
        return total

    def _rest(self, cell: Cell) -> int:
        machine, data = cell.machine, cell.data
        if isinstance(machine, Root):
            return 0 if data[0] else self._value(machine.value)
        if isinstance(machine, CountedString):
            return self._automaton(machine.automaton, data[0]) + max(0, machine.least - data[1])
        if isinstance(machine, Object):
            phase, _, seen, _, count, value = data
            open_member = (phase == Phase.COLON) + self._value(value) if phase in (Phase.COLON, Phase.VALUE) else 0
            if phase == Phase.COMMA:
                open_member = self._another(machine, cell)
            return open_member + self._members(machine, seen, count)
        if isinstance(machine, DeclaredKey):
            ahead = machine.ahead(data) & machine.owner.available(cell.below)
            names = [i for i in range(len(machine.owner.names)) if ahead >> i & 1]
            seen, count = cell.below.data[2], cell.below.data[4]
            base = self._members(machine.owner, seen, count)
            ways = [
                len(spell(machine.owner.names[i]))
                - machine.automaton.keys[data][1]  # bytes read so far
                + 1
                + self._value(machine.owner.values[i])
                + self._members(machine.owner, seen | 1 << i, count + 1)
                - base
                for i in names
            ]
            return min(ways, default=FAR)
        if isinstance(machine, Scalar):
            return self._automaton(machine.automaton, data)
        if isinstance(machine, FreeKey):
            values = [self._value(value) for value in machine.owner.free.values.values()]
            return self._automaton(machine.owner.free.automaton, data[0]) + 1 + min(values, default=FAR)
        if isinstance(machine, Array):
            least, count = machine.least, data[2]
            items = [
                machine.first[i] if i < len(machine.first) else machine.rest for i in range(count, max(count, least))
            ]
            return 1 + sum(1 + self._value(item) for item in items)
        raise TypeError(f"no distance for {type(machine).__name__}")

    def _another(self, machine: Object, waiting: Cell) -> int:
        """The bytes of one more member after a comma, beyond those that must come anyway, whose commas are counted."""
        if machine.available(waiting) & machine.required or waiting.data[4] < machine.least:
            return -1
        unseen = [i for i in range(len(machine.names)) if machine.available(waiting) >> i & 1]
        ways = [1 + len(spell(machine.names[i])) + self._value(machine.values[i]) for i in unseen]
        if machine.has_free(waiting):
            ways += [FREE_KEY + self._value(value) for value in machine.free.values.values()]
        return min(ways, default=FAR)

    def _members(self, machine: Object, seen: int, count: int) -> int:
        """The bytes of the members that must still come, and of the brace."""
        missing = machine.required & ~seen
        few = max(0, machine.least - count - missing.bit_count())
        if (machine, missing, few) not in self._owed:
            pairs = [(machine.names[i], machine.values[i]) for i in range(len(machine.names)) if missing >> i & 1]
            spelled = sum(2 + len(spell(name)) + self._value(value) for name, value in pairs)
            self._owed[machine, missing, few] = 1 + spelled + few * FREE_MEMBER
        return self._owed[machine, missing, few]

    def _value(self, value: Value) -> int:
        if value not in self._values:
            self._values[value] = FAR  # while it is worked out: a way round is no way out
            self._values[value] = min((self._machine(machine) for machine in value.alternatives), default=FAR)
        return self._values[value]

    def _machine(self, machine) -> int:
        if isinstance(machine, CountedString):
            return 2 + machine.least
        if isinstance(machine, Scalar):
            return self._automaton(machine.automaton, 0)
        if isinstance(machine, Object):
            return 1 + self._members(machine, 0, 0)
        return 2 + sum(
            1 + self._value(machine.first[i] if i < len(machine.first) else machine.rest) for i in range(machine.least)
        )

    def _automaton(self, automaton: ByteAutomaton, state: int) -> int:
        """The fewest bytes from a state to one with a label."""
        if (automaton, state) not in self._automata:
            reached, steps = {state}, 0
            frontier = [state]
            while frontier and not any(automaton.labels[at] is not None for at in frontier) and steps < FAR:
                ahead = {target for at in frontier for target in automaton.row(at) if target != DEAD} - reached
                reached |= ahead
                frontier, steps = list(ahead), steps + 1
            self._automata[automaton, state] = steps if frontier else FAR
        return self._automata[automaton, state]
