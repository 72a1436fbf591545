from __future__ import annotations

import json

import pytest

from modtools.errors import RecordError, UnsupportedError
from modtools.models import Message, Request, Sampling, Usage, load_model

USAGE = {"prompt_tokens": 90, "cached_tokens": 60, "completion_tokens": 7, "message_tokens": [70, 20]}
MODEL = {"name": "embedded-base", "digest": "abc", "info": {"dtype": "float32", "context_tokens": 8192}}


def episode(task: str, *texts: str, **more) -> dict:
    turns = [{"text": text, "finish": "stop", "usage": USAGE, "token_ids": [5, 2]} for text in texts]
    return {"task": task, "surface": "fine", "seed": 0, "turns": turns, **more}


def record(folder, *episodes) -> str:
    (folder / "manifest.json").write_text(json.dumps({"model": MODEL}), "utf-8")
    (folder / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in episodes), "utf-8")
    return f"replay:{folder}"


def ask(task: str, step: int) -> Request:
    return Request((Message("user", "go on"),), key=(task, "fine", 0, step))


def test_recorded_replies_come_back_by_key_whatever_the_order(tmp_path):
    model = load_model(record(tmp_path, episode("a", "a0", "a1"), episode("b", "b0 é")))
    replies = model.generate([ask("b", 0), ask("a", 1), ask("a", 0)], Sampling())
    assert [reply.text for reply in replies] == ["b0 é", "a1", "a0"]
    assert replies[0].usage == Usage(90, 60, 7, (70, 20))
    assert (replies[0].token_ids, replies[0].finish) == ((5, 2), "stop")


def test_it_is_the_recorded_model_and_says_that_it_is_a_replay(tmp_path):
    model = load_model(record(tmp_path, episode("a", "a0")))
    assert (model.name, model.digest, model.context_tokens) == ("replay of embedded-base", "abc", 8192)
    assert model.info["backend"] == "replay" and model.info["dtype"] == "float32"


def test_a_missing_key_is_named(tmp_path):
    model = load_model(record(tmp_path, episode("a", "a0")))
    with pytest.raises(RecordError, match=r"\('a', 'fine', 0, 1\).*this episode has 1 turn"):
        model.generate([ask("a", 1)], Sampling())
    with pytest.raises(RecordError, match=r"\('c', 'fine', 0, 0\)"):
        model.generate([ask("c", 0)], Sampling())


def test_an_episode_that_ended_for_want_of_context_does_so_again(tmp_path):
    model = load_model(record(tmp_path, episode("a", "a0", ended_by="context_exhausted"), episode("b", "b0")))
    assert model.fits(ask("a", 0), 64) and not model.fits(ask("a", 1), 64)
    assert model.fits(ask("b", 0), 64)


def test_counting_scoring_and_masks_are_refused_by_name(tmp_path):
    model = load_model(record(tmp_path, episode("a", "a0")))
    for refused in (lambda: model.count("x"), lambda: model.count_messages(()), lambda: model.render(())):
        with pytest.raises(UnsupportedError, match="'count'"):
            refused()
    with pytest.raises(UnsupportedError, match="'score'"):
        model.score((), "x")


def test_what_is_no_run_folder_is_refused(tmp_path):
    with pytest.raises(RecordError, match="manifest.json does not exist"):
        load_model(f"replay:{tmp_path}")
    record(tmp_path, episode("a", "a0"), {"task": "b"})
    with pytest.raises(RecordError, match="line 2"):
        load_model(f"replay:{tmp_path}")
    record(tmp_path, episode("a", "a0"), episode("a", "other"))
    with pytest.raises(RecordError, match="second episode"):
        load_model(f"replay:{tmp_path}")
