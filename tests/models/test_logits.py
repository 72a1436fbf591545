"""Masks in the generate loop of transformers, and the probability they leave, in float32."""

from __future__ import annotations

import numpy as np
import pytest

from modtools.errors import ModtoolsError, UsageError
from modtools.masking import Vocabulary, compile_json_schema, compile_regex
from modtools.models import Message, Request, Sampling
from modtools.models.context import Context
from modtools.models.logits import MaskProcessor
from modtools.models.sampling import allowed_set

QUESTIONS = ("Where is Paris?", "Say hello to the whole world, please, and then some more.")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 3}, "big": {"type": "boolean"}},
          "required": ["city", "big"], "additionalProperties": False}  # fmt: skip


@pytest.fixture(scope="module")
def words(model) -> Vocabulary:
    return Vocabulary.from_tokenizer(model.prompter.tokenizer)


def prompts(model, questions=QUESTIONS):
    """Token ids and attention mask of some questions, padded on the left."""
    model.prompter.tokenizer.padding_side = "left"
    ids = [model.prompter.encode([Message("user", question)]) for question in questions]
    return model.prompter.tokenizer.pad({"input_ids": ids}, return_tensors="pt")


def written(model, output, inputs) -> list[list[int]]:
    """The tokens of each reply, its end token included, the padding left out."""
    rows = []
    for row in output[:, inputs["input_ids"].shape[1] :].tolist():
        ends = [place for place, token_id in enumerate(row) if token_id in model.ends]
        rows.append(row[: ends[0] + 1] if ends else row)
    return rows


def test_a_batch_under_masks_says_what_the_kits_own_loop_says_with_the_same_legal_mass(model, words):
    grammars = [compile_json_schema(SCHEMA, whitespace=1), compile_regex("(yes|no), [a-z]{2}\\.")]
    processor, inputs = MaskProcessor([g.matcher(words) for g in grammars], model.ends), prompts(model)
    output = model.network.generate(**inputs, logits_processor=[processor], max_new_tokens=40, do_sample=False)
    requests = [Request((Message("user", q),), mask=g.matcher(words)) for q, g in zip(QUESTIONS, grammars)]
    ours = model.generate(requests, Sampling(max_tokens=40), logprobs=True)
    assert written(model, output, inputs) == [list(reply.token_ids) for reply in ours]
    assert all(g.accepts(reply.text.encode()) for g, reply in zip(grammars, ours))
    assert len({len(reply.token_ids) for reply in ours}) == 2  # one row ends before the other
    for theirs, reply in zip(processor.legal_mass, ours):
        assert np.allclose(theirs, reply.legal_mass, rtol=1e-3) and 0 < min(theirs) < max(theirs) <= 1 + 1e-9


def test_sampling_with_top_k_top_p_and_temperature_stays_in_the_language(model, words):
    import torch

    torch.manual_seed(0)
    grammar, inputs = compile_regex("[ab]{2}[xyz]"), prompts(model, QUESTIONS[:1])
    processor = MaskProcessor([grammar.matcher(words) for _ in range(6)], model.ends)
    output = model.network.generate(**inputs, logits_processor=[processor], max_new_tokens=9, do_sample=True, top_k=2,
                                    top_p=0.9, temperature=2.0, num_return_sequences=6)  # fmt: skip
    texts = [model.prompter.decode(row) for row in written(model, output, inputs)]
    assert all(grammar.accepts(text.encode()) for text in texts) and len(set(texts)) > 1


def test_legal_mass_is_the_allowed_probability_and_surprisals_add_up(model, words):
    grammar = compile_json_schema(SCHEMA, whitespace=1)
    request = Request((Message("user", QUESTIONS[0]),), np.random.default_rng(5), grammar.matcher(words))
    reply = model.generate([request], Sampling(max_tokens=60, temperature=1.0), logprobs=True)[0]
    assert reply.finish == "stop" and grammar.accepts(reply.text.encode())
    ids, prompt = list(reply.token_ids), model.prompter.encode(request.messages)
    logits = Context(model.network, 1).extend([prompt + ids[:-1]], logits_to_keep=len(ids))[0]
    matcher, masked_bits, refused = grammar.matcher(words), 0.0, []
    for row, token_id, mass in zip(logits, ids, reply.legal_mass, strict=True):
        p, allowed = np.exp(row) / np.exp(row).sum(), matcher.allowed()
        assert np.isclose(p[: len(allowed)][allowed].sum(), mass, rtol=1e-3)
        refused.append(not allowed[row.argmax()])
        q = np.exp(row[: len(allowed)][allowed])
        masked_bits -= np.log2(np.exp(row[token_id]) / q.sum())
        matcher.advance(token_id)
    assert list(reply.overruled) == refused and True in refused and False in refused
    bits = -np.log2(np.e) * sum(reply.logprobs) + sum(np.log2(reply.legal_mass))
    assert np.isclose(masked_bits, bits, atol=0.02) and -np.log2(np.e) * sum(reply.logprobs) > bits + 1


def test_legal_mass_is_given_only_for_log_probabilities_under_a_mask(model, words):
    plain = model.generate([Request((Message("user", "hi"),))], Sampling(max_tokens=1), logprobs=True)[0]
    mask = compile_regex("a").matcher(words)
    unasked = model.generate([Request((Message("user", "hi"),), mask=mask)], Sampling(max_tokens=1))[0]
    assert plain.legal_mass is None and unasked.legal_mass is None


def test_every_end_token_is_allowed_exactly_where_the_text_may_end(words):
    matcher, ends = compile_regex("a?").matcher(words), [0, words.eos_id, len(words) + 3]
    assert allowed_set(matcher, len(words) + 9, ends, "")[ends].all()
    matcher = compile_regex("a").matcher(words)
    allowed = allowed_set(matcher, len(words) + 9, ends, "")
    assert not allowed[ends].any() and not allowed[len(words) :].any()


def test_any_of_several_end_tokens_ends_a_reply_and_is_not_read_by_the_mask(model, words):
    import torch

    processor = MaskProcessor([compile_regex("a").matcher(words)], [words.eos_id, 0])
    head = model.network.config.vocab_size + 64
    a = words.tokens.index(b"a")
    seen = torch.tensor([[5, 6, 7]])
    first = processor(seen, torch.zeros(1, head))
    assert first.isfinite().nonzero()[:, 1].tolist() == [a]
    second = processor(torch.cat([seen, torch.tensor([[a]])], 1), torch.zeros(1, head))
    assert second.isfinite().nonzero()[:, 1].tolist() == sorted([0, words.eos_id])
    after = processor(torch.tensor([[5, 6, 7, a, 0]]), torch.ones(1, head))
    assert after.eq(1).all() and np.allclose(processor.legal_mass, [[1 / head, 2 / head]])


def test_misuse_is_refused(model, words):
    import torch
    from transformers import TopKLogitsWarper

    grammar, inputs = compile_regex("[a-z]{9}"), prompts(model, QUESTIONS[:1])
    processor = MaskProcessor([grammar.matcher(words)], model.ends)
    with pytest.raises(UsageError, match="2 rows for 1 masks.*no beams"):
        model.network.generate(**inputs, logits_processor=[processor], max_new_tokens=3, num_beams=2)
    model.network.generate(**inputs, logits_processor=[processor], max_new_tokens=2)
    with pytest.raises(UsageError, match="new processor"):
        model.network.generate(**inputs, logits_processor=[processor], max_new_tokens=2)
    late = [TopKLogitsWarper(3), MaskProcessor([grammar.matcher(words)], model.ends)]
    with pytest.raises(ModtoolsError, match="row 0, token 0.*cut before the mask"):
        model.network.generate(**inputs, logits_processor=late, max_new_tokens=2)
    mask = grammar.matcher(words)
    with pytest.raises(UsageError, match="a mask of its own"):
        MaskProcessor([mask, mask], model.ends)
    with pytest.raises(UsageError, match="ends"):
        MaskProcessor([mask], [-1])
    with pytest.raises(UsageError, match="expected ids below"):
        MaskProcessor([mask], [10**6])(torch.tensor([[1]]), torch.zeros(1, len(words)))
    moved = MaskProcessor([grammar.matcher(words), grammar.matcher(words)], model.ends)
    moved(torch.tensor([[1], [2]]), torch.zeros(2, len(words)))
    with pytest.raises(UsageError, match="do not continue"):
        moved(torch.tensor([[2, 70], [1, 70]]), torch.zeros(2, len(words)))
