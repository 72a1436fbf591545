"""Grammars in EBNF: judged as a plain recogniser judges them, with exact masks, and refused where they have no sense."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.masking import GrammarError, Vocabulary, allowed, compile_grammar, compile_json_schema
from modtools.masking.budget import BudgetError
from modtools.masking.reach import Reach

READ = {
    "type": "object",
    "properties": {"name": {"const": "read"}, "arguments": {"type": "object", "properties": {"a": {"type": "integer"}},
                   "required": ["a"], "additionalProperties": False}},
    "required": ["name", "arguments"],
    "additionalProperties": False,
}  # fmt: skip
TAGGED = '"<tool_call>" blank json(read) blank "</tool_call>"\nblank = /[ \\n]{0,3}/'
GRAMMARS = {
    "a call": "call = json(read)",
    "a tagged call": f"call = {TAGGED}",
    "prose and then a call": f'reply = until("<tool_call>") call\ncall = {TAGGED}',
    "numbers with ends": 'list = json({"type": "integer"}) ("," json({"type": "number"}))* "."?',
    "brackets": 'b = "[" b* "]" | "{" (b ("," b)*)? "}" | "1"',
    "palindromes": 'p = "a" p "a" | "b" p "b" | /[ab1]?/',
    "prose or JSON": 'x = json(true) | until(",") | /"[a-c]*/',
    "half characters": 'x = ("é" | /[à-ê]/ "\\"")+ json({"const": "é"})?',
    "what may be empty": 'x = (y? y)* "a"\ny = ("b"? z)*\nz = /[1]?/',
}


def compiled(name: str):
    return compile_grammar(GRAMMARS[name], schemas={"read": READ}, whitespace=2)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("a call", ['{"arguments": {"a":1}, "name":"read"}'], ['{"name":"write","arguments":{"a":1}}', " 1", ""]),
        (
            "a tagged call",
            ['<tool_call>\n{"name":"read","arguments":{"a":1}}\n</tool_call>'],
            [
                '{"name":"read","arguments":{"a":1}}',
                '<tool_call>{"name":"read"}</tool_call>',
                "<tool_call></tool_call>",
            ],
        ),
        (
            "prose and then a call",
            [
                'I <tool_ read, né?\n<tool_call>{"name":"read","arguments":{"a":-7}}</tool_call>',
                '<tool_call>{"name":"read","arguments":{"a":1}}</tool_call>',
            ],
            [
                "Only prose.",
                '<tool_call> is a tag <tool_call>{"name":"read","arguments":{"a":1}}</tool_call>',
                '<tool_call>{"name":"read","arguments":{"a":1}}</tool_call> and more',
            ],
        ),
        ("numbers with ends", ["1", "-1,2.5e3,0.", "10."], ["1,", "01", "1.5", "1,.", ""]),
        ("brackets", ["[[][1]{1,[],{}}]", "1", "[" * 3000 + "]" * 3000], ["[", "[1", "{1,}", "11", ""]),
        ("what may be empty", ["a", "b1bb1a"], ["", "b", "ab"]),
    ],
)
def test_calls_lists_and_recursion_are_judged_as_they_read(name, good, bad):
    grammar = compiled(name)
    assert [text for text in good if not grammar.accepts(text.encode())] == []
    assert [text for text in bad if grammar.accepts(text.encode())] == []


LETTERS, RULES = "ab", ("r", "s", "t")


def some_tree(rng: random.Random, depth: int):
    """A random expression as nested tuples: what the recogniser below reads, and `written` writes in EBNF."""
    kind = rng.choice(["text", "text", "rule"] if depth == 0 else ["text", "rule", "cat", "cat", "alt", "alt", "rep"])
    if kind == "text":
        return kind, "".join(rng.choices(LETTERS, k=rng.choice([0, 1, 1, 1, 2])))
    if kind == "rule":
        return kind, rng.choice(RULES)
    if kind == "rep":
        return kind, some_tree(rng, depth - 1), *rng.choice([(0, 1), (0, None), (1, None), (2, 2), (1, 3)])
    return kind, [some_tree(rng, depth - 1) for _ in range(rng.choice([2, 2, 3]))]


def written(tree) -> str:
    kind = tree[0]
    if kind == "rep":
        sign = {(0, 1): "?", (0, None): "*", (1, None): "+", (2, 2): "{2}", (1, 3): "{1,3}"}[tree[2:]]
        return f"({written(tree[1])}){sign}"
    if kind in ("cat", "alt"):
        return "(" + (" | " if kind == "alt" else " ").join(map(written, tree[1])) + ")"
    return f'"{tree[1]}"' if kind == "text" else tree[1]


def accepted(rules: dict, text: str) -> bool:
    """The plain recogniser: which stretches of the text fit each rule, grown from none until nothing is added."""
    spans = {name: set() for name in rules}

    def ends(tree, start: int) -> set[int]:
        kind, what = tree[:2]
        if kind == "text":
            return {start + len(what)} if text.startswith(what, start) else set()
        if kind == "rule":
            return {end for begin, end in spans[what] if begin == start}
        if kind == "alt":
            return set().union(*(ends(option, start) for option in what))
        if kind == "cat":
            at = {start}
            for part in what:
                at = {end for begin in at for end in ends(part, begin)}
            return at
        least, most = tree[2:]
        at, found = {start}, {start} if least == 0 else set()
        for count in range(1, (most or least + len(text) + 1) + 1):
            at = {end for begin in at for end in ends(what, begin)}
            found |= at if count >= least else set()
        return found

    grown = True
    while grown:
        fresh = {name: {(i, end) for i in range(len(text) + 1) for end in ends(rules[name], i)} for name in rules}
        spans, grown = fresh, fresh != spans
    return (0, len(text)) in spans[RULES[0]]


TEXTS = ["".join(letters) for n in range(6) for letters in itertools.product(LETTERS, repeat=n)]


def test_random_grammars_are_judged_as_a_plain_recogniser_judges_them_and_no_prefix_is_a_dead_end():
    rng = random.Random(4)
    single = Vocabulary.from_bytes([None, *(letter.encode() for letter in LETTERS)], eos_id=0)
    judged = refused = recursive = ambiguous = 0
    while judged < 60:
        rules = {name: some_tree(rng, 3) for name in RULES}
        text = "\n".join(f"{name} = {written(tree)}" for name, tree in rules.items())
        try:
            grammar = compile_grammar(text)
        except GrammarError as error:
            assert "begins with itself" in str(error) or "no finite text" in str(error), text
            refused += 1
            continue
        judged += 1
        recursive += any(name in written(tree) for name, tree in rules.items())
        reach = Reach(single)
        try:
            for word in TEXTS:
                assert grammar.accepts(word.encode()) == accepted(rules, word), (text, word)
                state = grammar.start.read(word.encode())
                assert state is None or reach.can_finish(state), (text, word)
        except BudgetError:  # more than 1,000 ways to read a word of a few letters
            ambiguous += 1
    assert refused > 10 and recursive > 10 and ambiguous <= 2


@pytest.fixture(params=[0, 10_000], ids=["splits", "walks"])
def threshold(request, monkeypatch):
    """Both ways to a mask: tokens split per automaton state wherever possible, and never."""
    monkeypatch.setattr(allowed, "WIDE_TOKENS", request.param)


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_mask_allows_exactly_the_tokens_that_can_be_read_and_an_end_is_never_out_of_reach(
    name, threshold, vocabulary, by_trial
):
    rng, grammar = random.Random(name), compiled(name)
    tags = [b"<tool_call>", b"call>{", b"</tool", b"}</", b" <tool_call>\n", b"]]}", b",1.", b".<", b"1]"]
    words = Vocabulary([*vocabulary.tokens, *tags], eos_id=vocabulary.eos_id)
    reach = Reach(words)
    for walk in range(4):
        matcher = grammar.matcher(words)
        for _ in range(12):
            mask = matcher.allowed()
            assert np.array_equal(mask, by_trial(matcher.state, words)), matcher.state.describe()
            assert walk or reach.can_finish(matcher.state)
            likely = [i for i in np.flatnonzero(mask) if words.tokens[i] in tags] if rng.random() < 0.5 else []
            token_id = int(rng.choice(likely or np.flatnonzero(mask)))
            matcher.advance(token_id)
            if token_id == words.eos_id:
                break


@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_may_be_spelled_in_any_tokens(name, vocabulary, tokenise):
    rng, grammar, call = random.Random(name), compiled(name), '{"name":"read","arguments":{"a":1}}'
    text = {
        "a call": call,
        "a tagged call": f"<tool_call>{call}\n</tool_call>",
        "prose and then a call": f'say \\"é\n\n<tool_<tool_call>{call}</tool_call>',
        "numbers with ends": "1,12.5e1,0.",
        "brackets": "[[]{1,[[]]}]",
        "palindromes": "abaa1aaba",
        "prose or JSON": '["a","b", {"aa":1}]',
        "half characters": 'éé"ê""é"',
        "what may be empty": "b1a",
    }[name].encode()
    for _ in range(5):
        matcher = grammar.matcher(vocabulary)
        for token_id in tokenise(text, vocabulary, rng):
            assert matcher.allowed()[token_id], (text, matcher.state.describe())
            matcher.advance(token_id)
        assert matcher.allowed()[vocabulary.eos_id]


def test_options_reach_into_json_and_a_grammar_of_one_schema_is_that_schemas_without_blanks_around():
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    text = f"x = json({json.dumps(schema)})"
    compact, loose = (compile_grammar(text, None, *options) for options in ((0, "declared"), (1, "any")))
    for document in (b'{"a":1,"b":2}', b'{"b":2,"a":1}', b'{ "a":1}', b'{  "a":1}', b"[]"):
        assert compact.accepts(document) == compile_json_schema(schema, 0, "declared").accepts(document)
        assert loose.accepts(document) == compile_json_schema(schema, 1).accepts(document)
    assert not loose.accepts(b' {"a":1}') and compile_json_schema(schema, 1).accepts(b' {"a":1}')
    with pytest.raises(UsageError, match="property_order is 'sorted'"):
        compile_grammar(text, property_order="sorted")


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", (1, 1), "expected a rule"),
        ('a = "x"\nb = c | a', (2, 5), "there is no rule c; the rules are: a, b"),
        ("a = json(call)", (1, 10), "there is no schema call; the schemas given are: read, write"),
        ('a = "x"\n# twice\na = "y"', (3, 1), "the rule a is defined twice"),
        ('a = "x\ny"', (1, 5), "expected a text"),
        ('a = "\\ud800"', (1, 5), "whole characters"),
        ("a = /[/", (1, 5), "a character class without end"),
        ("a = /[^\\s\\S]/", (1, 5), "matches no text"),
        ('a = json({"type": })', (1, 19), "the schema is no JSON"),
        ('a = json({"not": {"type": "null"}})', (1, 10), "not at (root)"),
        ("a = json(false)", (1, 10), "no document fits"),
        ('a = until("")', (1, 5), "every text holds the empty one"),
        ("a = ( )", (1, 7), 'the empty text is written ""'),
        ('a = ("x"', (1, 9), "expected ')', got the end of the grammar"),
        ('a = "x"{3,2}', (1, 8), "the repetition {3,2}"),
        ('a = "x" ]', (1, 9), "expected \"text\", /pattern/, a name or ( ), got ']'"),
        (f"a = {51 * '('}", (1, 55), "nested deeper than 50"),
        ('e = e "+" "1" | "1"', (1, 1), "the rule e begins with itself: e -> e"),
        ('a = "x"\nb = c\nc = a? a? b | "y"', (2, 1), "the rule b begins with itself: b -> c -> b"),
        ('a = b? a "x" | "y"\nb = (c*)\nc = "z"?', (1, 1), "the rule a begins with itself: a -> a"),
        ('a = "x" b | "y"\nb = "(" c\nc = b ")"', (2, 1), "no finite text fits the rules b, c"),
    ],
)
def test_what_is_no_grammar_is_refused_with_its_place(text, place, why):
    with pytest.raises(GrammarError) as caught:
        compile_grammar(text, {"read": READ, "write": True})
    assert (caught.value.line, caught.value.column) == place
    assert str(caught.value).startswith(f"grammar, line {place[0]}, column {place[1]}: ") and why in str(caught.value)


def test_a_grammar_beyond_the_budget_is_refused():
    with pytest.raises(BudgetError, match="more than"):
        compile_grammar('a = ((("x"{1000})?){1000})')


def test_a_state_is_told_in_words_from_the_innermost_part_outwards():
    state = compiled("prose and then a call").start.read(b'<tool_call>{"name"')
    assert state.describe() == (
        "in an object, after a key; keys so far: name; still required: arguments < in the rule call < after the value"
    )
    assert compiled("prose and then a call").start.describe() == "in the rule reply < after the value"
