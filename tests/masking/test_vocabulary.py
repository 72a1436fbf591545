"""A vocabulary holds the bytes of tokens, whatever the tokenizer prints for them."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from modtools.errors import UsageError
from modtools.masking import Vocabulary, compile_json_schema


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")


def test_byte_level_bpe_is_read_as_bytes():
    tokenizer = Tokenizer(models.BPE(vocab={"Ġ": 0, "Ã": 1, "©": 2, "a": 3, "Ġa": 4, "Ċ": 5}, merges=[("Ġ", "a")]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    vocabulary = Vocabulary.from_tokenizer(_wrapped(tokenizer))
    assert vocabulary.tokens == [b" ", b"\xc3", b"\xa9", b"a", b" a", b"\n", None]
    assert vocabulary.eos_id == 6


def test_sentencepiece_with_byte_fallback_is_read_as_bytes():
    vocab = {"<unk>": 0, "<0x0A>": 1, "<0xC3>": 2, "▁the": 3, "é": 4}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<unk>"))
    tokenizer.add_special_tokens([AddedToken("<unk>", special=True)])
    vocabulary = Vocabulary.from_tokenizer(_wrapped(tokenizer))
    assert vocabulary.tokens == [None, b"\n", b"\xc3", b" the", "é".encode(), None]


def test_a_tokenizer_that_cannot_spell_every_text_is_refused():
    words = Tokenizer(models.WordLevel(vocab={"a": 0, "<unk>": 1}, unk_token="<unk>"))
    with pytest.raises(UsageError, match="byte"):
        Vocabulary.from_tokenizer(_wrapped(words))


def test_added_tokens_that_are_not_special_are_text():
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken("é b", special=False)])
    assert Vocabulary.from_tokenizer(_wrapped(tokenizer)).tokens[1] == "é b".encode()


def test_the_facts_of_a_token():
    tokens = [None, b"abc", 'é"'.encode(), b"\xa9x\xf0\x9f", b"\xc3"]
    vocabulary = Vocabulary.from_bytes(tokens, eos_id=0)
    facts = [vocabulary.facts(i) for i in range(5)]
    assert [fact.is_string_safe for fact in facts] == [False, True, False, False, False]
    assert [fact.code_points for fact in facts] == [0, 3, 2, 2, 1]
    assert [(fact.bytes_owed, fact.bytes_open) for fact in facts] == [(0, 0), (0, 0), (0, 0), (1, 2), (0, 1)]


def test_an_end_of_sequence_outside_the_vocabulary_is_refused():
    with pytest.raises(UsageError, match="eos_id"):
        Vocabulary.from_bytes([b"a"], eos_id=1)


def test_the_embedded_vocabulary_spells_what_its_tokenizer_writes(need):
    from modtools.models import embedded
    from modtools.models.fetch import model_path

    need(model_path() is not None, "the embedded model; `modtools model fetch` fetches it")
    from transformers import AutoTokenizer

    vocabulary, tokenizer = embedded.vocabulary(), AutoTokenizer.from_pretrained(model_path())
    text = '{"path": "naïve/Ünï\U0001f600.txt",\n  "n": -12.5e3}'
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert b"".join(vocabulary.tokens[i] for i in ids).decode() == text
    assert vocabulary.tokens[vocabulary.eos_id] is None and len(vocabulary) == len(tokenizer)
    matcher = compile_json_schema({"type": "object"}).matcher(vocabulary)
    for token_id in [*ids, vocabulary.eos_id]:
        assert matcher.allowed()[token_id]
        matcher.advance(token_id)


def test_the_end_of_sequence_is_never_text_and_a_token_that_is_no_bytes_is_refused():
    words = Vocabulary([b"a", b"</s>"], 1)
    assert words.tokens == [b"a", None]
    with pytest.raises(UsageError, match="expected bytes"):
        Vocabulary.from_bytes(["a", "b"], eos_id=0)
