"""What the adapter is trained on: true conversations, errors and their repairs alike on every surface, one family held out."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from random import Random

import pytest

from demonstrations import FIRST_SEED, STYLES, demonstrate, demonstrations, renamed, slip_of, varied
from modtools.lab.families import FAMILIES, HELD_OUT
from modtools.lab.tasks import generate
from modtools.pipeline import FINISH
from modtools.sandbox import strongest_level
from modtools.surfaces import SURFACES, build_surface

LEVEL = strongest_level()


@pytest.fixture(scope="module")
def shown():
    return list(islice(demonstrations(HELD_OUT, LEVEL), 60))


def slips(demonstration) -> list[str]:
    return [t.message.content for t in demonstration if t.message.role == "assistant" and not t.learn]


def test_surfaces_take_turns_and_the_held_out_family_is_not_shown(shown):
    assert Counter(name.rpartition("/")[2] for name, _ in shown) == dict.fromkeys(SURFACES, 20)
    families = {name.rpartition("-")[0].rpartition("-")[0] for name, _ in shown}
    assert HELD_OUT in FAMILIES and HELD_OUT not in families and families <= set(FAMILIES)
    assert all(int(name.partition("/")[0].rpartition("-")[2]) >= FIRST_SEED for name, _ in shown)


def test_every_call_to_be_learnt_works_and_each_slip_is_followed_by_its_repair(shown):
    for name, turns in shown:
        assert [turn.message.role for turn in turns[:2]] == ["system", "user"]
        assert turns[-1].learn and turns[-1].message.content == FINISH
        for turn, answer in zip(turns[2:-1:2], turns[3::2], strict=False):
            assert answer.message.content.startswith("error") == (not turn.learn), name
        assert len(slips(turns)) <= 1


def test_slips_are_about_as_frequent_on_every_surface():
    counts = Counter()
    for name, turns in islice(demonstrations(HELD_OUT, LEVEL, seed=1), 150):
        counts[name.rpartition("/")[2]] += len(slips(turns))
    assert min(counts[name] for name in SURFACES) >= 10 and max(counts.values()) <= 30


def test_the_same_seed_gives_the_same_demonstrations(shown):
    again = list(islice(demonstrations(HELD_OUT, LEVEL), 6))
    assert again == shown[:6]
    assert list(islice(demonstrations(HELD_OUT, LEVEL, seed=1), 6)) != again


@pytest.mark.parametrize("switch", ["edit_command", "search_lists", "informative_errors", "result_header"])
def test_other_switches_are_shown_as_they_are(switch):
    surface = next(s for s in map(varied, map(Random, range(200))) if s.switches.get(switch) is False)
    turns = demonstrate(generate("set_value", 3, 1), surface, Random(0), False, LEVEL)
    assert all(turn.learn for turn in turns if turn.message.role == "assistant")
    names = {json.loads(t.message.content).get("name") for t in turns if t.message.role == "assistant"}
    assert ("replace_in_file" in names) == (switch != "edit_command")


@pytest.mark.parametrize("style", STYLES)
def test_another_style_of_naming_is_what_prompt_and_calls_use(style):
    surface = renamed(build_surface("fine"), style)
    turns = demonstrate(generate("set_value", 2, 1), surface, Random(0), False, LEVEL)
    names = {json.loads(t.message.content)["name"] for t in turns[2:-1] if t.message.role == "assistant"}
    assert names <= {tool.contract.name for tool in surface.tools} and "search_files" not in names
    assert all(f'"{name}"' in turns[0].message.content for name in names)


def test_every_kind_of_slip_fits_every_surface():
    calls = {
        "coarse": '{"name": "do", "arguments": {"op": "replace", "args": {"path": "a/b.py", "old": "x = 1", "new": "x = 2"}}}',
        "fine": '{"name": "replace_in_file", "arguments": {"path": "a/b.py", "old": "x = 1", "new": "x = 2"}}',
        "code": json.dumps(
            {"name": "run_python", "arguments": {"code": "from pathlib import Path\nprint(Path('a'))\n"}}
        ),
    }
    for call in calls.values():
        made = {slip_of(call, Random(seed)) for seed in range(100)}
        assert call in made and len(made - {call, None}) >= 5
