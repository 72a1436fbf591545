"""The set of families as a whole, and what the families that count, move and change conditions promise."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from modtools.lab.check import transcribe
from modtools.lab.families import FAMILIES, HELD_OUT
from modtools.lab.families.counted import line, needle
from modtools.lab.tasks import STRATA, Task, draw, generate, materialise, reference
from modtools.lab.verify import verify
from modtools.sandbox import strongest_level
from modtools.surfaces import build_surface
from modtools.surfaces.operations import MAX_MATCHES

LEVEL = strongest_level()


def solved(task: Task, folder: Path) -> Path:
    materialise(task, folder)
    transcribe(task, build_surface("fine"), folder, LEVEL)
    return folder


def passes(task: Task, folder: Path) -> bool:
    return verify(task, folder, LEVEL).passed


def test_there_are_eight_families_over_three_strata_or_more_and_four_or_more_in_each_stratum():
    assert len(FAMILIES) >= 8
    assert all(len(set(family.strata) & set(STRATA)) >= 3 for family in FAMILIES.values())
    for c in STRATA:
        assert sum(c in family.strata for family in FAMILIES.values()) >= 4


def test_sixty_tasks_are_twelve_a_stratum_spread_evenly_over_the_families_that_offer_it():
    tasks = draw(12, seed=7)
    assert len({task.digest for task in tasks}) == 60
    for c in STRATA:
        counts = Counter(task.family for task in tasks if task.c == c)
        assert set(counts) == {family.name for family in FAMILIES.values() if c in family.strata}
        assert sum(counts.values()) == 12 and max(counts.values()) - min(counts.values()) <= 1


def actions(name: str) -> set[str]:
    """What the references of a family do on the fine surface."""
    done = set()
    for c in FAMILIES[name].strata:
        for seed in range(4):
            task = generate(name, c, seed)
            lines = [f"{path}:1: {text}" for path, file in task.files.items() for text in file.splitlines()]
            steps, answer = reference(task, "fine"), None
            try:
                while True:
                    step = steps.send(answer)
                    done.add(step.action)
                    shown = [text for text in lines if step.arguments.get("pattern", "") in text]
                    answer = task.files[step.arguments["path"]] if step.action == "read" else "\n".join(shown)
            except StopIteration:
                pass
    return done


def test_the_held_out_family_does_only_what_other_families_do():
    taught = set().union(*(actions(name) for name in FAMILIES if name != HELD_OUT))
    assert {"search", "replace", "write"} <= actions(HELD_OUT) <= taught


@pytest.mark.parametrize(
    ("family", "seen"),
    [("change_condition", {1, 7}), ("count_and_record", {1, 3}), ("move_constant", {3, 7})],
)
def test_at_eight_calls_the_payloads_differ(family, seen):
    assert {generate(family, 8, seed).u for seed in range(20)} == seen


COUNTS = [generate("count_and_record", 2, seed) for seed in range(12)]
WRONG_COUNTS = {
    "functions whose names start with": r"\bdef {what}",  # methods as well
    "constants whose names end with": r"^\w+{what}\w* = ",  # old constants as well
    "functions that use": r"\.{what}",  # uses of the old constant as well
}


def recorded(task: Task, folder: Path) -> tuple[Path, str, int]:
    """The file, the constant and the number that the reference wrote."""
    name = task.brief["counts"][0]["name"]
    file = folder / task.brief["path"]
    return file, name, int(re.search(rf"^{name} = (\d+)$", file.read_text(), re.M)[1])


def test_a_count_is_in_neither_the_text_nor_the_tests():
    kinds = set()
    for task in COUNTS:
        count = task.brief["counts"][0]
        kinds.add(count["kind"])
        number = sum(len(re.findall(line(count), text, re.M)) for text in task.files.values())
        assert number >= 3 and str(number) not in re.findall(r"\d+", task.text)
        written = [text for text in "\n".join(task.tests.values()).splitlines() if count["name"] in text]
        assert written and not any(re.search(rf"\b{number}\b", text) for text in written)
        files = [path for path, text in task.files.items() if re.search(line(count), text, re.M)]
        assert len(files) >= 3, "one file shows the whole count"
    assert kinds == set(WRONG_COUNTS)


def test_look_alikes_mislead_a_count_that_does_not_look_closely(tmp_path):
    for seed, task in enumerate(COUNTS):
        count = task.brief["counts"][0]
        file, name, right = recorded(task, solved(task, tmp_path / str(seed)))
        wrong = WRONG_COUNTS[count["kind"]].format(what=count["what"])
        number = sum(len(re.findall(wrong, text, re.M)) for text in task.files.values())
        assert number > right
        file.write_text(file.read_text().replace(f"{name} = {right}", f"{name} = {number}"))
        assert not passes(task, tmp_path / str(seed))


def test_a_number_that_is_worked_out_on_import_is_not_written_down(tmp_path):
    for seed, task in enumerate(COUNTS[:4]):
        folder = solved(task, tmp_path / str(seed))
        file, name, right = recorded(task, folder)
        assert passes(task, folder)
        file.write_text(file.read_text().replace(f"{name} = {right}", f"{name} = len('{'x' * right}')"))
        assert not passes(task, folder)
        file.write_text(file.read_text().replace(f"{name} = len", f"{name} = 1\n{name} = len"))
        assert not passes(task, folder)


def test_no_ordinary_search_shows_two_counts(tmp_path):
    tasks = [task for seed in range(12) if (task := generate("count_and_record", 3, seed)).u == 2]
    assert len(tasks) >= 3
    for task in tasks:
        everything = sorted({**task.files, **task.tests}.items())
        lines = [(path, number, text) for path, file in everything for number, text in enumerate(file.splitlines())]
        wanted = {
            each for each in lines for count in task.brief["counts"]
            if each[0] in task.files and re.search(line(count), each[2])
        }  # fmt: skip
        python = "def return import from ( ) _ = * + - . , : ): def_ (self):".split()
        words = {
            *re.findall(r"\w+", task.text),
            *map(needle, task.brief["counts"]),
            *python,
            " ",
            "    ",
            " = ",
            "def ",
        }
        for pattern in words:
            assert not wanted <= set([each for each in lines if pattern in each[2]][:MAX_MATCHES]), pattern


def test_a_constant_that_stays_behind_or_does_not_arrive_is_not_moved(tmp_path):
    for seed in range(4):
        task = generate("move_constant", 2, seed)
        folder = solved(task, tmp_path / str(seed))
        assert passes(task, folder)
        source, target = folder / task.brief["source"], folder / task.brief["path"]
        moved = source.read_text()
        source.write_text(task.files[task.brief["source"]])
        assert not passes(task, folder)
        source.write_text(moved)
        target.write_text(target.read_text().replace(task.brief["line"], ""))
        assert not passes(task, folder)


def test_the_old_constant_must_not_move_with_the_new_one(tmp_path):
    for seed in range(4):
        task = generate("move_constant", 8, seed)
        name = task.brief["names"][0]
        near = next(m[0] for text in task.files.values() if (m := re.search(rf"^{name}_\w+ = \d+\n", text, re.M)))
        folder = solved(task, tmp_path / str(seed))
        assert passes(task, folder)
        for file in folder.glob("*/*.py"):
            file.write_text(file.read_text().replace(near, ""))
        assert not passes(task, folder)


def test_a_check_of_a_similar_setting_and_one_with_another_sign_must_stay(tmp_path):
    for seed in range(8):
        task = generate("change_condition", 3, seed)
        pattern = re.escape(task.brief["pattern"])
        folder = solved(task, tmp_path / str(seed))
        assert passes(task, folder)
        sign = task.brief.get("was", ">")
        becomes = task.brief.get("becomes", "==")
        for trap in (rf" {sign} (\w+{pattern}_\w+)\b", rf" {'<' if '>' in sign else '>'} (\w+{pattern})\b(?! <)"):
            folder = solved(task, tmp_path / f"{seed}-{len(trap)}")
            for path, text in task.files.items():
                if len(re.findall(trap, text)) == 1 and (folder / path).read_text() == text:
                    (folder / path).write_text(re.sub(trap, rf" {becomes} \1", text))
                    break
            else:
                raise AssertionError("the trap is missing")
            assert not passes(task, folder)
