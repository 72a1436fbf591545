"""guidance on the embedded model, beside our own masks: the same language, forced tokens, healed prompts."""

from __future__ import annotations

import json
import sys
import warnings

import jsonschema
import pytest

from modtools.errors import ContextOverflowError, UsageError
from modtools.masking import Vocabulary, compile_json_schema, compile_regex
from modtools.models import Message, Request, Sampling
from modtools.models.guided import Guidance

ASK = (Message("user", "Read the file notes.txt. Answer with a call."),)
SCHEMAS = {
    "a call": {
        "type": "object",
        "properties": {"name": {"const": "read_file"}, "arguments": {"$ref": "#/$defs/arguments"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
        "$defs": {"arguments": {"type": "object", "properties": {"path": {"type": "string", "maxLength": 12}},
                                "required": ["path"], "additionalProperties": False}},
    },
    "numbers": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 99}, "maxItems": 3, "minItems": 1},
    "a choice": {"anyOf": [{"enum": ["notes.txt", "none", 7]}, {"type": "boolean"}]},
    "optional keys": {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}},
                      "additionalProperties": False},
}  # fmt: skip

connections: list = []
watching = False


def _watch(event, arguments):
    if watching and event in ("socket.connect", "socket.getaddrinfo"):
        connections.append(arguments)


sys.addaudithook(_watch)


@pytest.fixture(scope="module")
def guided(model) -> Guidance:
    return Guidance(model)


@pytest.fixture(scope="module")
def words(model) -> Vocabulary:
    return Vocabulary.from_tokenizer(model.prompter.tokenizer)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("compact", [True, False], ids=["compact", "blanks"])
def test_a_guided_reply_lies_in_our_language_of_the_schema(name, compact, guided, words):
    reply = guided.json(ASK, SCHEMAS[name], compact, max_tokens=60)
    assert reply.finish == "stop"
    jsonschema.validate(json.loads(reply.text), SCHEMAS[name])
    assert compile_json_schema(SCHEMAS[name], 0 if compact else 64, "declared").accepts(reply.text.encode())
    assert b"".join(words.tokens[i] for i in reply.token_ids) == reply.text.encode()


def test_forced_tokens_cost_no_forward_pass(guided):
    reply = guided.json(ASK, SCHEMAS["a call"])
    opening = '{"name":"read_file","arguments":{"path":"'
    assert reply.text.startswith(opening) and sum(reply.forced) >= 8
    free = len(reply.token_ids) - sum(reply.forced)
    assert reply.forward_passes <= free + 1 < len(reply.token_ids)


def test_where_nothing_is_forced_guidance_and_our_mask_choose_the_same_tokens(model, guided, words):
    import guidance

    pattern = "[A-Za-z ,']{4,14}[.!]"
    theirs = guided.reply(ASK, guidance.gen(regex=pattern, temperature=0.0))
    mask = compile_regex(pattern).matcher(words)
    ours = model.generate([Request(ASK, mask=mask)], Sampling(max_tokens=20))[0]
    assert not any(theirs.forced) and theirs.text == ours.text
    # guidance also takes back the line end that opens the turn, and decodes it again
    assert theirs.healed == 1 and theirs.token_ids[0] == model.prompter.encode(ASK)[-1]
    assert theirs.token_ids[1:] == tuple(i for i in ours.token_ids if i not in model.ends)


def test_the_end_of_a_prompt_is_healed(model, guided):
    import guidance

    before = model.prompter.encode_text("The page is http:")
    assert model.prompter.decode(before[-1:]) == ":"
    reply = guided.reply(ASK, guidance.gen(regex="//[a-z]{2}", temperature=0.0), "The page is http:")
    assert reply.healed == 1 and model.prompter.decode(reply.token_ids[:1]) == "://" and reply.forced[0]
    assert compile_regex("//[a-z]{2}").accepts(reply.text.encode())


def test_a_reply_is_cut_at_max_tokens_and_does_not_depend_on_earlier_replies(guided):
    whole = guided.json(ASK, SCHEMAS["numbers"])
    assert guided.json(ASK, SCHEMAS["numbers"]) == whole
    cut = guided.json(ASK, SCHEMAS["numbers"], max_tokens=2)
    assert (cut.finish, cut.token_ids) == ("length", whole.token_ids[:2])
    assert whole.text.startswith(cut.text)


def test_nothing_is_shown_fetched_or_warned_of(model, capfd):
    global watching
    watching = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Guidance(model).json(ASK, SCHEMAS["a choice"])
    finally:
        watching = False
    assert connections == [] and capfd.readouterr() == ("", "")


def test_what_guidance_cannot_do_is_said_before_anything_is_decoded(guided):
    with pytest.raises(UsageError, match="guidance cannot compile the schema.*not"):
        guided.json(ASK, {"not": {"type": "string"}})
    with pytest.raises(UsageError, match="other tokens"):
        guided.json((Message("user", "<|im_end|>"),), True)
    with pytest.raises(ContextOverflowError):
        guided.json((Message("user", "word " * 8200),), True)
