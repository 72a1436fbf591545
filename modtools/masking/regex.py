"""From a pattern to an automaton over characters: Thompson's construction, then sets of states (Rabin and Scott)."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from modtools.masking import charset
from modtools.masking.budget import spend
from modtools.masking.dfa import CharacterDFA, explore
from modtools.masking.pattern import parse_pattern
from modtools.masking.thompson import Construction, Tree


class _NFA(Construction):
    """Edges: `moves` read a character of a set, `jumps` read nothing and may ask to stand at the start or the end."""

    def __init__(self):
        self.moves: list[list[tuple[charset.Ranges, int]]] = []
        self.jumps: list[list[tuple[str, int]]] = []

    def place(self) -> int:
        spend(1, "a pattern")
        self.moves.append([])
        self.jumps.append([])
        return len(self.moves) - 1

    def skip(self, source: int, target: int) -> None:
        self.jumps[source].append(("", target))

    def leaf(self, tree: Tree, source: int, target: int) -> None:
        if tree[0] == "set":
            self.moves[source].append((tree[1], target))
        else:
            self.jumps[source].append((tree[0], target))

    def closure(self, states: frozenset[int], passable: tuple[str, ...]) -> frozenset[int]:
        seen, queue = set(states), list(states)
        for state in queue:
            fresh = [t for condition, t in self.jumps[state] if condition in passable and t not in seen]
            seen.update(fresh)
            queue += fresh
        return frozenset(seen)


@lru_cache(maxsize=512)
def pattern_dfa(pattern: str, whole: bool = False) -> CharacterDFA:
    """The texts in which the pattern is found somewhere, as in JSON Schema; with `whole`, which it matches entirely.

    Raises:
        PatternError: see parse_pattern.
    """
    tree, nfa = parse_pattern(pattern), _NFA()
    before = nfa.place()
    entry = nfa.place()
    nfa.skip(before, entry)
    found = nfa.add(tree, entry)
    if not whole:
        loop = nfa.place()
        nfa.moves[before].append((charset.ANY, loop))
        nfa.moves[loop].append((charset.ANY, loop))
        nfa.skip(loop, entry)
    everything = frozenset([found])

    def expand(states: frozenset[int]):
        if not whole and found in states:
            return [(first, last, everything) for first, last in charset.ANY], True
        edges = [(first, last, t) for state in states for ranges, t in nfa.moves[state] for first, last in ranges]
        cuts = sorted({cut for first, last, _ in edges for cut in (first, last + 1)})
        transitions = []
        for start, after in pairwise(cuts):
            targets = frozenset(t for first, last, t in edges if first <= start <= last)
            if targets:
                targets = nfa.closure(targets, ("",))
                transitions.append((start, after - 1, everything if not whole and found in targets else targets))
        at_end = nfa.closure(states, ("", "start", "end") if states == start_states else ("", "end"))
        return transitions, True if found in at_end else None

    start_states = nfa.closure(frozenset([before]), ("", "start"))
    return explore(start_states, expand, f"the pattern {pattern!r}")
