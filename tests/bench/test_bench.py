"""The benchmarks measure what they say: real engines, real documents, a hanging engine stopped and counted."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench import decode, engines, lab, mask, pipeline, sample, tables, vocabularies
from modtools.errors import MissingPieceError, ModtoolsError
from modtools.lab.episode import Budget
from modtools.pipeline import Step

ROOT = Path(__file__).resolve().parents[2]
CALL = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "mode": {"enum": ["text", "bytes"]}, "line": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}
# Hundreds of optional strings of bounded length: as one regular expression without counters, that is a huge automaton.
UNROLLED = {"type": "array", "items": {"type": "string", "minLength": 500, "maxLength": 2000}, "maxItems": 500}


@pytest.fixture(scope="module")
def tokenizer():
    """The embedded model's."""
    from modtools.models.fetch import fetch

    fetch()
    return vocabularies.load_tokenizer("49k")


@pytest.fixture(scope="module")
def figures(tokenizer):
    """A run over three schemas: one that all engines take, one that only some can finish, one that we refuse."""
    documents = ('{"path": "a/é.py", "mode": "text", "line": 12}', '{"path": "b"}')
    samples = [
        sample.Sample("call", CALL, documents),
        sample.Sample("unrolled", UNROLLED, ('["' + "a" * 500 + '"]',)),
        sample.Sample("negation", {"not": {"type": "string"}}, ("1",)),
    ]
    return mask.measure(samples, ["49k"], limit_s=1.0, load=lambda name: tokenizer)


def test_every_engine_walks_the_same_steps(figures, tokenizer):
    engines = figures["vocabularies"]["49k"]["engines"]
    assert set(engines) == {"ours", "llguidance", "xgrammar", "outlines_core", "lm_format_enforcer"}
    steps = sum(
        len(tokenizer.encode(text)) + 1 for text in ('{"path": "a/é.py", "mode": "text", "line": 12}', '{"path": "b"}')
    )
    for engine in set(engines) - {"ours"}:
        paired = figures["vocabularies"]["49k"][f"paired_with_{engine}"]
        assert paired["documents"] >= 2 and paired["masks"] >= steps, engine


def test_the_headline_is_the_ratio_of_the_paired_means(figures):
    data = figures["vocabularies"]["49k"]
    paired = data["paired_with_llguidance"]
    assert figures["better"] == "lower"
    assert (
        figures["ratio"]
        == data["mean_ratio_to_llguidance"]
        == pytest.approx(paired["ours_us"]["mean"] / paired["theirs_us"]["mean"])
    )


def test_an_engine_that_hangs_is_stopped_counted_and_loaded_again(figures):
    outlines = figures["vocabularies"]["49k"]["engines"]["outlines_core"]
    assert outlines["schemas"]["limit"] == 1 and outlines["not_walked"]["unrolled"].startswith("limit")
    assert outlines["documents"]["accepted"] == 2


def test_what_an_engine_refuses_is_named_with_its_reason(figures):
    ours = figures["vocabularies"]["49k"]["engines"]["ours"]
    assert ours["schemas"] == {"compiled": 2, "refused": 1, "limit": 0, "crashed": 0}
    assert "not" in ours["not_walked"]["negation"]


def test_all_engines_agree_on_masks_where_their_languages_agree(tokenizer):
    """After the first character of a key that must be `path`, the same tokens are allowed by all of them."""
    from modtools.masking import Vocabulary

    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    schema = {**CALL, "required": ["path", "mode", "line"]}
    ids = tokenizer.encode('{"p')
    masks = {}
    for name, engine in engines.ENGINES.items():
        walk = engine(vocabulary.tokens, vocabulary.eos_id).compile(schema, json.dumps(schema))
        for token_id in ids:
            assert walk.allows(walk.mask(), token_id), name
            walk.advance(token_id)
        allowed = walk.unpack(walk.mask())
        masks[name] = {vocabulary.tokens[i] for i in allowed.nonzero()[0]}
    assert {name for name, tokens in masks.items() if tokens != masks["ours"]} == set()


def test_without_llguidance_there_is_no_headline(tokenizer):
    samples = [sample.Sample("call", CALL, ('{"path": "b"}',))]
    data = mask.measure(samples, ["49k"], limit_s=1.0, engines=["ours"], load=lambda name: tokenizer)
    assert data["ratio"] is None and set(data["vocabularies"]["49k"]["engines"]) == {"ours"}


def test_a_document_that_is_longer_than_what_is_walked_still_counts(tokenizer):
    long = json.dumps([f"word {i}" for i in range(mask.LONGEST_DOCUMENT)])
    samples = [sample.Sample("words", {"type": "array", "items": {"type": "string"}}, (long,))]
    data = mask.measure(samples, ["49k"], limit_s=20.0, engines=["llguidance"], load=lambda name: tokenizer)
    paired = data["vocabularies"]["49k"]["paired_with_llguidance"]
    assert (paired["documents"], paired["masks"]) == (1, mask.LONGEST_DOCUMENT)


def test_documents_are_written_in_declared_order():
    schema = {"properties": {"a": {}, "b": {"items": {"properties": {"c": {}, "d": {}}}}}}
    text = json.dumps(sample._in_order(schema, {"z": 1, "b": [{"d": 2, "c": 3}], "a": 4}))
    assert text == '{"a": 4, "b": [{"c": 3, "d": 2}], "z": 1}'


def test_a_missing_vocabulary_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MODTOOLS_CACHE", str(tmp_path))
    with pytest.raises(MissingPieceError, match="--fetch"):
        vocabularies.load_tokenizer("200k")


def test_a_masked_step_is_measured_against_a_free_one():
    from modtools.models import load_model
    from modtools.models.embedded import vocabulary

    data = decode.measure(load_model("embedded", device="cpu"), vocabulary(), batches=(2,), steps=5, runs=1)
    assert data["better"] == "lower"
    figures = data["batches"]["2"]
    assert data["ratio"] == figures["ratio"] == pytest.approx(figures["masked_step_ms"] / figures["free_step_ms"])
    assert 0 < figures["mask_us_per_row"] < figures["masked_step_ms"] * 1e3


@pytest.fixture(scope="module")
def calls():
    """Calls of every arm, one and three at once."""
    return pipeline.measure(calls=60, at_once=(1, 3), clock="cpu")


def test_a_call_through_the_pipeline_is_measured_against_mcp_and_the_plain_function(calls):
    assert calls["better"] == "lower" and calls["ratio"] == calls["rows"][0]["ratio"]
    for row, samples in zip(calls["rows"], (60, 20), strict=True):
        us = {arm: figures["p50"] for arm, figures in row["call_us"].items()}
        assert row["samples"] == samples
        assert row["ratio"] == pytest.approx(us["audited"] / us["mcp"])
        assert row["unwritten_ratio"] == pytest.approx(us["unwritten"] / us["mcp"])
        assert 0 < us["function"] < min(us["unwritten"], us["mcp"])
        assert row["ratio_by_round"]["least"] <= row["ratio_by_round"]["p50"] <= row["ratio_by_round"]["most"]


def test_threads_are_counted_where_calls_run_in_them(calls):
    one, three = (row["threads"] for row in calls["rows"])
    assert one["function"] == three["function"] == 0
    assert three["audited"] >= 3 and three["mcp"] >= 1


def test_every_step_is_timed_and_the_audit_is_weighed(calls):
    assert list(calls["steps_us"]) == [str(step) for step in Step] and min(calls["steps_us"].values()) > 0
    assert calls["audit"]["lines"] == 3  # received, executing, terminal
    assert calls["audit"]["artefacts"] == 1  # the text of each call
    path = "src/module_100.py"
    assert calls["audit"]["artefact_bytes"] == pytest.approx(
        len(f'{{"name": "read_file", "arguments": {{"path": "{path}"}}}}'), abs=2
    )
    assert calls["audit"]["line_bytes"] > 3 * 64  # a digest in each line


def test_an_arm_that_answers_with_another_text_is_an_error():
    class Wrong(pipeline.FunctionArm):
        async def sample(self, paths, pool):
            return 0.1, ["something else"]

    read = pipeline.ReadFile()
    with pytest.raises(ModtoolsError, match="something else"):
        asyncio.run(pipeline._seconds(Wrong(read, time.perf_counter), read, 1, None))


def test_without_mcp_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingPieceError, match=r"pip install -e '\.\[bench\]'"):
        pipeline.measure(calls=1)


def test_the_tables_show_the_ratios_the_steps_and_the_audit(calls):
    console = Console(width=80)
    with console.capture() as capture:
        for table in tables.pipeline_tables(calls):
            console.print(table)
    shown = capture.get()
    assert all(f"{row['ratio']:.3f}" in shown for row in calls["rows"])
    assert all(step in shown for step in Step) and "line bytes" in shown


@pytest.mark.parametrize("command", ["mask", "decode", "pipeline"])
def test_outside_a_checkout_it_says_what_to_do(tmp_path, command):
    code = "from modtools.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, "bench", command], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2 and "clone" in done.stderr


@pytest.fixture(scope="module")
def small():
    """A small network with random weights behind the embedded model's tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from modtools.models.fetch import fetch, model_path
    from modtools.models.huggingface import HuggingFaceModel

    fetch()
    tokenizer = AutoTokenizer.from_pretrained(model_path())
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, max_position_embeddings=8192, initializer_range=0.4,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"),
    )  # fmt: skip
    info = {"context_tokens": 8192, "dtype": "float32"}
    return HuggingFaceModel(LlamaForCausalLM(config).eval(), tokenizer, "small", "0", info)


def test_the_labs_arms_run_the_same_episodes_and_write_the_same_replies(small):
    data = lab.measure(small, per_stratum=1, budget=Budget(reply_tokens=8, failures_in_a_row=2))
    assert list(data["arms"]) == ["lockstep", "batches", "one by one"] and data["settings"]["episodes"] == 15
    seconds = {name: arm["seconds"] for name, arm in data["arms"].items()}
    assert data["ratio"] == pytest.approx(seconds["lockstep"] / seconds["one by one"])
    assert data["ratio_to_batches"] == pytest.approx(seconds["lockstep"] / seconds["batches"])
    assert all(arm["same_replies"] == 1 and arm["turns"] >= 30 for arm in data["arms"].values())
    kept = {name: arm["tokens_not_read_anew"] for name, arm in data["arms"].items()}
    assert kept["lockstep"] > 0.6 * data["arms"]["lockstep"]["tokens_of_prompts"] and kept["batches"] == 0


def test_a_lab_arm_with_other_replies_is_an_error(small, monkeypatch):
    true = lab.PlainGenerate._generation

    def wrong(self, *given):
        return replace(true(self, *given), text="something else")

    monkeypatch.setattr(lab.PlainGenerate, "_generation", wrong)
    with pytest.raises(ModtoolsError, match="different replies"):
        lab.measure(small, per_stratum=1, budget=Budget(reply_tokens=8, failures_in_a_row=1))
