"""The exact probability of a reference's operations, told by each family, against a generator small enough to exhaust.

The word lists and ranges are cut to two or three entries, so that a family can draft only some hundreds of different
sequences of operations. All of them are drawn; then their probabilities, as `Draft.one_in` tells them, must sum to 1,
each must be the frequency with which it was drawn, and the mean surprisal must be the entropy of what was drawn.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from dataclasses import replace
from math import log2, sqrt
from random import Random

import pytest

from modtools.errors import UsageError
from modtools.lab import vocabulary
from modtools.lab.choice_entropy import choice_bits, choice_entropy
from modtools.lab.families import FAMILIES
from modtools.lab.tasks import draw, task_by_id

SMALL = {
    "PACKAGES": 1, "QUALIFIERS": 3, "VERBS": 2, "THINGS": 2, "PARAMETERS": 2, "SETTINGS": 2, "NUMBERS": 2, "NEW_NUMBERS": 2,
    "EXTRAS": 2, "NEW_EXTRAS": 2, "FACTORS": 2, "RATES": 2, "BOUNDS": 3, "VALUES": 4, "WEIGHTS": 1, "ARGUMENTS": 1,
    "DESCRIBED": 2, "NAMES": 2, "NEW_FILES": 2, "SIGNS": 2, "CONSTANTS": 3,
}  # fmt: skip
FILES = 7


def small(monkeypatch, name: str, cut: dict) -> None:
    """Cut the lists of a family and of what it builds on."""
    sizes = SMALL | cut
    modules = [vocabulary, importlib.import_module(f"modtools.lab.families.{name}")]
    if name == "count_and_record":  # there CONSTANTS is a kind
        modules.append(importlib.import_module("modtools.lab.families.counted"))
    for module in modules:
        for what, many in sizes.items():
            if not isinstance(getattr(module, what, ""), (str, dict)):
                monkeypatch.setattr(module, what, getattr(module, what)[:many])
    monkeypatch.setattr(vocabulary, "NOUNS", dict(list(vocabulary.NOUNS.items())[:FILES]))


def operations(draft, family) -> tuple:
    """What the reference does, played on the texts in memory."""
    texts, steps, observation = {**draft.before.files()}, [], None
    solution = family.operations(draft.brief)
    try:
        while True:
            step = solution.send(observation)
            steps.append((step.action, *sorted(step.arguments.items())))
            observation = ""
            if step.action == "search":
                found = [
                    f"{path}:{number}: {line}"
                    for path in sorted(texts)
                    for number, line in enumerate(texts[path].splitlines(), 1)
                    if step.arguments["pattern"] in line
                ]
                observation = "\n".join(found)
            elif step.action == "read":
                observation = texts[step.arguments["path"]]
    except StopIteration:
        return tuple(steps)


COUNT = {"QUALIFIERS": 16, "THINGS": 14, "SETTINGS": 1, "PLANTED": 2, "VERBS": 3}
CASES = [
    ("set_value", 1, {}, 8000),
    ("set_value", 2, {}, 4000),
    ("set_value", 3, {"NUMBERS": 1, "SETTINGS": 1}, 12000),
    ("rename", 1, {}, 1000),
    ("rename", 2, {}, 1000),
    ("rename", 5, {"THINGS": 1}, 8000),
    ("fix_bug", 2, {"PARAMETERS": 1, "ENDS": 2, "QUALIFIERS": 1}, 12000),
    ("add_function", 1, {}, 4000),
    ("add_function", 2, {"QUALIFIERS": 2, "DESCRIBED": 1, "PARAMETERS": 1}, 8000),
    ("change_condition", 1, {}, 8000),
    ("change_condition", 2, {}, 8000),
    ("change_condition", 3, {"QUALIFIERS": 4, "SETTINGS": 1, "PARAMETERS": 1, "BOUNDS": 2}, 40000),
    ("update_callers", 3, {"VERBS": 1, "THINGS": 1}, 12000),
    ("move_constant", 2, {"SETTINGS": 1, "QUALIFIERS": 2, "VALUES": 1, "NUMBERS": 1}, 20000),
    ("move_constant", 3, {"SETTINGS": 1, "QUALIFIERS": 2, "VALUES": 1, "NUMBERS": 1}, 20000),
    ("count_and_record", 2, COUNT | {"OFFERED": 3}, 20000),
]


QUICK = 4000  # drafts up to which a case is part of every test run
PARAMETERS = [
    pytest.param(*case, id=f"{case[0]}-{case[1]}", marks=[pytest.mark.whole] * (case[3] > QUICK)) for case in CASES
]


@pytest.mark.parametrize(("name", "c", "cut", "drafts"), PARAMETERS)
def test_the_probabilities_of_all_drafts_sum_to_one_and_are_their_frequencies(monkeypatch, name, c, cut, drafts):
    small(monkeypatch, name, cut)
    family, rng = FAMILIES[name], Random(0)
    seen, odds, surprisals = Counter(), defaultdict(set), []
    for _ in range(drafts):
        draft = family.build(rng, c)
        steps = operations(draft, family)
        seen[steps] += 1
        odds[steps].add(round(draft.one_in, 6))
        surprisals.append(log2(draft.one_in))
    assert all(len(of) == 1 for of in odds.values()), "one sequence of operations, two probabilities"
    p = {steps: 1 / next(iter(of)) for steps, of in odds.items()}
    missed = sum((1 - each) ** drafts for each in p.values())  # sequences one would expect not to have drawn, at least
    assert missed < 0.02 * len(p), f"too few drafts: {len(p)} sequences seen"
    assert sum(p.values()) == pytest.approx(1, abs=0.02)
    for steps, each in p.items():
        assert abs(seen[steps] - drafts * each) < 6 * sqrt(drafts * each) + 6
    entropy = -sum(each * log2(each) for each in p.values())
    assert sum(surprisals) / drafts == pytest.approx(entropy, abs=0.05)


def test_a_tasks_surprisal_grows_with_what_it_tells_and_is_no_secret_of_its_text():
    easy, hard = choice_bits(task_by_id("set_value-1-0001")), choice_bits(task_by_id("set_value-8-0001"))
    assert 20 < easy < 40 < hard < 200
    # What is drawn for one setting: package, file, name, ending, old value, new value, and that no line goes.
    expected = log2(28 * 36 * 26 * 10 * 59 * 39 / 0.6)
    assert (
        choice_bits(next(t for t in (task_by_id(f"set_value-1-{i:04d}") for i in range(9)) if t.brief["new"]))
        == expected
    )


def test_the_entropy_of_a_run_is_the_mean_over_its_tasks():
    tasks = draw(6, seed=3)
    found = choice_entropy(tasks)
    assert found.bits == pytest.approx(sum(map(choice_bits, tasks)) / 30) and found.tasks == 30 and 0 <= found.error < 5
    assert 0 < found.slack < 2
    assert choice_entropy([task for task in tasks if task.family in ("rename", "set_value")]).slack == 0
    with pytest.raises(UsageError, match="needs some"):
        choice_entropy([])
    with pytest.raises(UsageError, match="was not generated"):
        choice_bits(replace(tasks[0], own_solution="x"))


def test_orders_of_places_are_counted_as_they_can_be_drawn():
    """Places are drawn one for each count in turn, then the rest; as a set of places each comes up in so many orders."""
    from itertools import permutations, product
    from math import factorial, prod

    for counts, places in ((1, 3), (2, 2), (3, 4), (2, 4)):
        owners_drawn = [(*range(counts), *rest) for rest in product(range(counts), repeat=places - counts)]
        seen = Counter(
            frozenset(zip(order, owners, strict=True))
            for order in permutations(range(places))
            for owners in owners_drawn
        )
        for pairs, orders in seen.items():
            owners = [owner for _, owner in pairs]
            assert orders == prod(owners.count(i) for i in range(counts)) * factorial(places - counts)
