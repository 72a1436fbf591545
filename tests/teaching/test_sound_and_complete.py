"""What notebook 03 teaches with: the checks, the gallery of broken masks, the museum, counts and exact distributions."""

from __future__ import annotations

import itertools
import json

import jsonschema
import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.masking import Vocabulary, compile_json_schema, compile_regex
from modtools.models import Message
from modtools.teaching.broken_masks import GALLERY, SMALL, break_a_mask, broken_mask_html, documents
from modtools.teaching.mask_properties import PROPERTIES, Setting, verdicts
from modtools.teaching.museum import MUSEUM, museum, our_verdict
from modtools.teaching.renormalisation import Walk, by_text, every_walk, normalised, total_variation
from modtools.teaching.tokenisations import count_tokenisations

FAILS = {
    "right": "",
    "no_straddling": "complete",
    "whole_characters": "complete",
    "replaced_characters": "sound, trimmed, end-of-sequence",
    "canonical_only": "complete",
    "dead_ends": "trimmed, never empty",
    "first_byte": "trimmed, never empty",
    "end_anywhere": "sound, end-of-sequence",
    "end_never": "complete, end-of-sequence, never empty",
    "special_text": "special tokens",
    "no_counter": "sound, trimmed, end-of-sequence",
    "no_required": "sound, trimmed, end-of-sequence",
}


def is_valid(schema: object, text: bytes) -> bool:
    """The verdict of json and jsonschema; no text here says a key twice."""
    try:
        return jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))
    except ValueError:
        return False


@pytest.mark.parametrize("name", GALLERY)
def test_each_mask_fails_the_properties_it_breaks_and_no_other(name):
    assert ", ".join(prop for prop, witness in verdicts(SMALL, GALLERY[name]).items() if witness) == FAILS[name]


def test_every_property_is_broken_by_some_mask():
    assert {prop for fails in FAILS.values() for prop in fails.split(", ") if prop} == set(PROPERTIES)


def test_the_truth_is_found_without_the_masks_of_the_kit():
    """Every string of tokens up to a length is tried; documents are judged by jsonschema alone."""
    small = {"enum": ["x", "é"]}
    setting = Setting(small, Vocabulary.from_bytes([None, b'"', b"x", b'x"', b"\xc3", b"\xa9"], eos_id=0))
    sequences = [ids for length in range(5) for ids in itertools.product(range(1, 6), repeat=length)]
    texts = {ids: b"".join(setting.vocabulary.tokens[i] for i in ids) for ids in sequences}
    finished = {ids for ids, text in texts.items() if is_valid(small, text)}
    for prefix in {ids[:n] for ids in finished for n in range(len(ids) + 1)}:
        wanted = {ids[len(prefix)] for ids in finished if ids[: len(prefix)] == prefix and len(ids) > len(prefix)}
        wanted |= {0} if prefix in finished else set()
        assert setting.truth(texts[prefix]) == wanted


def test_every_document_of_the_small_world_is_valid():
    assert len(set(documents(SMALL))) == 167
    assert all(is_valid(SMALL.schema, document) for document in documents(SMALL))


def test_the_gallery_shows_code_verdict_and_witness_and_escapes_them():
    page = broken_mask_html("special_text")
    assert "def special_text" in page and "fails" in page and "holds" in page
    assert "the special token &lt;s&gt;" in page and "<s>" not in page
    box = break_a_mask()
    box.children[0].value = "end_never"
    assert "def end_never" in box.children[-1].value and "it refuses end-of-sequence" in box.children[-1].value


@pytest.mark.parametrize("exhibit", MUSEUM, ids=lambda exhibit: exhibit.title.replace(" ", "_"))
def test_an_exhibit_is_judged_wrongly_by_its_broken_mask_and_rightly_by_ours(exhibit):
    assert exhibit.is_document == is_valid(exhibit.schema, b"".join(exhibit.tokens))
    assert our_verdict(exhibit) == exhibit.is_document != exhibit.broken(exhibit.tokens)
    assert (exhibit.breaks == "complete") == exhibit.is_document


def test_a_broken_mask_of_the_museum_still_judges_other_documents_rightly():
    """What is rebuilt is one bug, not an engine that says no, or yes, to everything."""
    other = {
        "no escaped quotation mark": (b'{"t":"hi"}', True),
        "escapes that JSON does not have": (b'{"t":"a"b"}', False),
        "an integer with a leading zero": (b'{"year":x}', False),
        "a minimum that is ignored": (b'{"n":"3"}', False),
        "a pattern that drops maxLength": (b'{"k":"A"}', False),
        "optional keys in the declared order only": (b'{"end_line":9,"start_line":1}', True),
        "a token that holds half a character": ('"\U0001f600"'.encode(), True),
        "a blank in the tokenizer's spelling": (b'"catdog"', False),
        "a second end token, unknown to the mask": (b'{"t":1<|call|>', False),
    }
    by_title = {exhibit.title: exhibit for exhibit in MUSEUM}
    for title, (document, verdict) in other.items():
        tokens = (document[:-8], b"<|call|>") if document.endswith(b"<|call|>") else (document,)
        assert by_title[title].broken(tokens) == verdict, title


def test_the_museum_shows_one_exhibit_with_its_report():
    box = museum()
    box.children[0].value = "a pattern that drops maxLength"
    page = box.children[-1].value
    assert "writes it: not <b>sound</b>" in page and "refuses it" in page
    assert 'href="https://github.com/mlc-ai/xgrammar/issues/895"' in page


def test_tokenisations_are_counted_as_a_search_counts_them():
    words = Vocabulary.from_bytes([None, b"a", b"b", b"ab", b"ba", b"aba", b"a"], eos_id=0)

    def search(text: bytes) -> int:
        return sum(search(text[len(t) :]) for t in words.tokens if t and text.startswith(t)) if text else 1

    for text in (b"", b"a", b"aba", b"abab", b"bb", b"c"):
        assert count_tokenisations(text, words) == search(text)


def _walks(*steps: list[float], words: Vocabulary, pattern: str) -> list[Walk]:
    """Every walk through a pattern under a model that looks at the position only."""
    walks, finished = [Walk((), (), (), (), compile_regex(pattern).matcher(words))], []
    for step in steps:
        longer = [after for walk in walks for after in walk.after(np.log(step))]
        finished += [walk for walk in longer if walk.matcher.is_finished]
        walks = [walk for walk in longer if not walk.matcher.is_finished]
    assert not walks
    return finished


def test_the_masked_distribution_is_not_the_conditional_one():
    """First a or b with 0.9 and 0.1; then the end, 1/9, or what is legal after b only."""
    words = Vocabulary.from_bytes([None, b"a", b"b"], eos_id=0)
    steps = [0.0, 0.9, 0.1], [1 / 9, 4 / 9, 4 / 9], [1.0, 0.0, 0.0]
    with np.errstate(divide="ignore"):
        walks = _walks(*steps, words=words, pattern="a|bb?")
    conditional, masked = normalised(by_text(walks, lambda w: w.log2_p)), by_text(walks, lambda w: w.log2_q)
    # a weighs 0.9/9, b 0.1/9, bb 0.4/9
    assert conditional == pytest.approx({"a": 9 / 14, "b": 1 / 14, "bb": 4 / 14})
    assert masked == pytest.approx({"a": 0.9, "b": 0.02, "bb": 0.08})
    assert total_variation(conditional, masked) == pytest.approx(0.9 - 9 / 14)
    for walk in walks:
        assert -sum(walk.log2_q) == pytest.approx(-sum(walk.log2_p) + sum(walk.log2_z))


@pytest.fixture(scope="module")
def tiny():
    """The embedded model's tokenizer with a network of random weights."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from modtools.models.fetch import fetch, model_path
    from modtools.models.huggingface import HuggingFaceModel

    fetch()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, eos_token_id=2, initializer_range=0.5,
    )  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(model_path(), local_files_only=True)
    return HuggingFaceModel(LlamaForCausalLM(config).eval(), tokenizer, "tiny", "", {"context_tokens": 64})


def test_every_walk_of_a_network_weighs_what_scoring_says_and_the_masked_ones_sum_to_one(tiny):
    from modtools.models.embedded import vocabulary

    words, messages = vocabulary(), (Message("user", "Which?"),)
    names = ["red", "green", "navy"]
    walks = every_walk(tiny, messages, compile_json_schema({"enum": names}, whitespace=0), words)
    assert len(walks) == len({walk.token_ids for walk in walks})
    assert len(walks) == sum(count_tokenisations(json.dumps(name).encode(), words) for name in names)
    assert sum(by_text(walks, lambda walk: walk.log2_q).values()) == pytest.approx(1)
    for name in names:
        score = tiny.score(messages, json.dumps(name))
        (walk,) = [walk for walk in walks if walk.token_ids[:-1] == score.token_ids]
        assert sum(walk.log2_p[:-1]) == pytest.approx(sum(score.logprobs) / np.log(2), rel=1e-4)


def test_a_language_too_large_to_weigh_whole_is_refused(tiny):
    from modtools.models.embedded import vocabulary

    with pytest.raises(UsageError, match="give a smaller language"):
        every_walk(tiny, (Message("user", "Which?"),), compile_regex("[a-z]{3}"), vocabulary())
