# %% [markdown] id="title"
# # 02 · Token masks: what a decoder may say next
#
# A model writes tokens. A tool call is a document in a strict language. A mask stands between the two: at every step it
# crosses out the tokens after which no valid document can be finished. This notebook builds masks, from a pattern over
# two letters to the schema of `read_file` on a vocabulary of 49,152 tokens, and measures what they cost.
#
# After this notebook you can
#
# - compute the allowed set A(q) of an automaton state by hand, and say why a token is refused;
# - walk a JSON Schema state by state, and correct a common description of its masks;
# - make a mask fast in four steps, each with its cost measured on your machine;
# - run a real model with a mask, read Z_t, and say what the mask does not guarantee.
#
# Contents: the problem · two letters · a vocabulary · masked sampling · read_file, open and closed · inside a string ·
# the ladder of designs · a real model · prose, then a call · the production path · the explorer · compile cost and step
# cost · what was corrected · concept check · summary. It runs in about a minute on two cores, without a GPU and without a network once the model
# is in its cache.

# %% [markdown] id="problem"
# ## The problem
#
# `read_file` wants one argument. We tell a small model so, and ask it for the arguments as JSON. The model is
# SmolLM2-135M-Instruct, Q4_1. Its answer is live: it can differ a little from machine to machine.

# %% id="unmasked" tags=["live", "nbval-ignore-output"]
from modtools.models import Message, Request, Sampling, load_model

model = load_model("embedded")
ASK = (
    Message("system", 'You call tools. read_file takes {"path": "<file>"}.'),
    Message("user", "Read the file shop/prices.py. Answer with the arguments of read_file as JSON."),
)
free = model.generate([Request(ASK)], Sampling(max_tokens=40))[0]
print(free.text)

# %% [markdown] id="problem-note"
# On our machine (CPU, bfloat16) it began a Python program. Asking again, or asking more sternly, changes the odds. It
# gives no guarantee. A mask does: it works on the probabilities before a token is drawn.

# %% [markdown] id="letters"
# ## Two letters
#
# Take the smallest language that shows everything: the pattern `(ab)*`, that is `ab` any number of times. The kit
# compiles a pattern to an automaton over bytes. Circles are states. A double ring says that the text may end there.

# %% id="letters-figure"
from modtools.masking import compile_regex
from modtools.teaching.automaton_figure import automaton_figure

letters = compile_regex("(ab)*")
automaton_figure(letters, "ab")

# %% [markdown] id="letters-note"
# There is no state for a text like `abb`: it has left the language, and nothing can be appended to mend it. Every state
# that is drawn can still reach a double ring. That property makes masks possible. (States 0 and 2 allow the same
# texts. A smaller automaton would join them; the masks would be the same.)
#
# Three questions to a state are all we need: where does a byte lead, may the text end, and what is the state in words?

# %% id="letters-steps"
for text in (b"", b"a", b"ab", b"aba", b"abb"):
    state = letters.start.read(text)
    said = "left the language" if state is None else f"may end: {state.is_accepting}"
    print(f"{text.decode():4} {said}")

# %% [markdown] id="vocabulary"
# ## A vocabulary
#
# A model does not write bytes, it writes tokens. Here are five, and a sixth that ends the sequence. Before you run the
# next cell, work out by hand which tokens may follow `a`. Mind that a token may pass through several states.

# %% id="toy-vocabulary"
import numpy as np

from modtools.masking import Vocabulary

toy = Vocabulary.from_bytes([b"a", b"b", b"ab", b"ba", b"bb", b"<end>"], eos_id=5)


def words(mask, vocabulary):
    """The allowed tokens as text."""
    return [(vocabulary.tokens[i] or b"<end>").decode() for i in np.flatnonzero(mask)]


def allowed_by_hand(state, vocabulary):
    """A(q) by its definition: every token that can be read, and the end where the text may end."""
    mask = [bool(token) and state.read(token) is not None for token in vocabulary.tokens]
    mask[vocabulary.eos_id] = state.is_accepting
    return np.array(mask)


for text in (b"", b"a", b"ab"):
    print(f"after {text.decode()!r:5}", words(allowed_by_hand(letters.start.read(text), toy), toy))

# %% [markdown] id="toy-note"
# `ba` after `a` is the interesting one. It finishes one `ab` and begins the next: a token crosses a boundary of the
# grammar, and that is fine. `bb` is never allowed.
#
# The kit's `Matcher` holds the state and makes the same mask.

# %% id="toy-matcher"
matcher = letters.matcher(toy)
for name in ("a", "ba", "b", "<end>"):
    mask = matcher.allowed()
    assert (mask == allowed_by_hand(matcher.state, toy)).all()
    print(f"allowed {words(mask, toy)}, take {name}")
    matcher.advance(toy.eos_id if name == "<end>" else toy.tokens.index(name.encode()))
print("finished:", matcher.is_finished)

# %% [markdown] id="trap"
# ### A trap: readable is not enough
#
# Take the token `b` away. After `a`, the token `ba` can be read. After that again only `ba`, and so for ever: no
# sequence of tokens ends the text. So `a` must not be allowed in the first place. The definition therefore says: a token
# is allowed when, after its bytes, a text of the language can still be finished *through tokens of this vocabulary*.

# %% id="trap-shown"
poor = Vocabulary.from_bytes([b"a", b"ab", b"ba", b"bb", b"<end>"], eos_id=4)
print("readable:", [t.decode() for t in poor.tokens if t and letters.start.read(t)])
print("allowed: ", words(letters.matcher(poor).allowed(), poor))

# %% [markdown] id="trap-note"
# The model that we use below has a token for every byte that JSON needs, so the trap does not open. The kit looks first,
# and pays for the check only where a byte is missing.

# %% [markdown] id="sampling"
# ## Masked sampling
#
# A step has three parts. Mask: the logits of all other tokens become minus infinity. Sample: draw from what is left.
# Advance: move the automaton over the bytes of the token. Here are made-up logits that love `bb`.

# %% id="toy-sampling"
from modtools.models.sampling import choose

logits = np.array([1.0, 0.5, 0.0, 0.5, 4.0, 0.5])  # a, b, ab, ba, bb, <end>
rng = np.random.default_rng(2)
matcher, written = letters.matcher(toy), b""
while not matcher.is_finished:
    mask = matcher.allowed()
    weights = np.exp(logits)
    mass = weights[mask].sum() / weights.sum()
    token = choose(logits, 1.0, rng, mask)
    print(f"after {written.decode()!r:10} allowed {words(mask, toy)}, Z = {mass:.4g}")
    matcher.advance(token)
    written += toy.tokens[token] or b""
print("written:", written.decode(), "| in the language:", letters.accepts(written))
assert letters.accepts(written)

# %% [markdown] id="sampling-note"
# Z is the share of probability that the mask leaves. It is small here, since this "model" wants something else: the
# mask had to push. Remember the number; a real model follows below.

# %% [markdown] id="read-file"
# ## read_file, open and closed
#
# Now a real schema, printed as in Module 2, and the same with `additionalProperties` false.

# %% id="schemas"
from modtools.masking import compile_json_schema

OPEN = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CLOSED = OPEN | {"additionalProperties": False}
grammars = {"open": compile_json_schema(OPEN), "closed": compile_json_schema(CLOSED)}
for document in ('{"path": "a.py"}', '{"other_key": 1, "path": "a.py"}', '{"other_key": 1}'):
    print({name: grammar.accepts(document.encode()) for name, grammar in grammars.items()}, document)

# %% [markdown] id="other-key"
# The module says that the mask after the opening brace disallows `other_key`. For the schema as printed that is wrong:
# JSON Schema lets an object have further keys unless it says otherwise. Only the closed schema keeps them out.
#
# The module also says what the mask is: the tokens that begin with `"path"`, or with blanks and then `"path"`. Let us
# build that mask on the model's real vocabulary.

# %% id="as-printed"
from modtools.models.embedded import vocabulary

vocab = vocabulary()
BLANKS = b" \t\r\n"
for beginning in (b'"path"', b'"p'):
    found = [t for t in vocab.tokens if t and t.lstrip(BLANKS).startswith(beginning)]
    print(f"{len(found)} of {len(vocab)} tokens begin with {beginning.decode()}")

# %% [markdown] id="as-printed-note"
# The mask is empty. A decoder with that mask is stuck after one brace, on a schema with one key. No token of this
# vocabulary spells the key with its quote; it must be written in parts. So a mask must be made of bytes, not of words
# of the grammar. Here is the true one.


# %% id="after-brace"
def mask_after(grammar, text):
    """The mask after a text that the grammar can read."""
    matcher = grammar.matcher(vocab)
    matcher.read(text)
    return matcher.allowed()


for name, grammar in grammars.items():
    tokens = [vocab.tokens[i] for i in np.flatnonzero(mask_after(grammar, b"{"))]
    others = sorted((t.decode() for t in tokens if t.strip(BLANKS)), key=len)
    print(f"{name}: {len(tokens)} allowed, {len(tokens) - len(others)} of them blanks only,")
    print(f"    {len(others)} others: {others[:8]}")

# %% [markdown] id="after-brace-note"
# Closed: blanks, a quote, a quote after a blank. Nothing more. Open: also a quote with other characters behind it, since
# any key may come first; `""` is the empty key.

# %% [markdown] id="walk"
# ### State by state
#
# Now walk through a whole document. For each prefix: the closed schema's state in words, and how many of the 49,152
# tokens each schema allows.

# %% id="walk-table"
from modtools.masking.explain import allowed_tokens, read_text

DOCUMENT = b'{"path": "shop/prices.py"}'
CUTS = [0, 1, 2, 4, 6, 7, 8, 10, 14, 25, 26]
for cut in CUTS:
    prefix = DOCUMENT[:cut]
    counts = {name: int(mask_after(grammar, prefix).sum()) for name, grammar in grammars.items()}
    innermost = grammars["closed"].start.read(prefix).describe().split(" < ")[0].split(";")[0]
    print(f"{prefix.decode():27} open {counts['open']:5}  closed {counts['closed']:5}  {innermost}")

# %% [markdown] id="walk-note"
# Three things to see. Inside the key the closed schema leaves a handful of tokens. Inside the string nearly everything
# is allowed. Between the parts some 160 to 230 tokens are allowed, and most of them are runs of blanks.
#
# Inside the key, look at the tokens themselves.

# %% id="in-key"
for prefix in (b'{"', b'{"pa', b'{"path'):
    print(f"{prefix.decode():8}", allowed_tokens(mask_after(grammars["closed"], prefix), vocab))

# %% [markdown] id="in-key-note"
# Partial keys (`p`, `pat`) are allowed, and so are tokens that run past the key: `":"` closes the key, writes the colon
# and opens the value. A mask that only knows whole keys would refuse it, and the model would be pushed off its usual way
# to write JSON. A mask should refuse no token that it need not refuse. Such a mask is called *maximal*.

# %% [markdown] id="in-string"
# ## Inside a string
#
# The module says: inside the string every token without an unescaped quote is allowed. Let us list what is refused, by
# the first byte that cannot follow.


# %% id="refused"
def reason(state, token):
    """Why a token is refused in a string."""
    if token is None:
        return "special token, never text"
    at = next(i for i in range(len(token)) if state.read(token[: i + 1]) is None)
    if b'"' in token[:at].replace(b'\\"', b""):
        return "closes the string, then goes wrong"
    if token[max(0, at - 1) : at] == b"\\":
        return "no such escape"
    return "raw control character" if token[at] < 0x20 else "no valid UTF-8"


inside = b'{"path": "shop'
state, mask = grammars["closed"].start.read(inside), mask_after(grammars["closed"], inside)
examples = {}
for i in np.flatnonzero(~mask):
    examples.setdefault(reason(state, vocab.tokens[i]), []).append(vocab.tokens[i])
for why, tokens in sorted(examples.items()):
    shortest = sorted(filter(None, tokens), key=lambda token: (len(token), token))[:3]
    print(f"{len(tokens):4} {why:35} {shortest or ''}")

# %% [markdown] id="refused-note"
# Tokens without any quote are refused too: a raw line end must be written `\n` in JSON, and a token that begins in the
# middle of a UTF-8 character has no place after a whole one. And tokens *with* a quote are allowed, where they close the
# string and go on as the schema wants.

# %% id="straddlers"
for name, grammar in grammars.items():
    mask = mask_after(grammar, inside)
    tokens = [vocab.tokens[i] for i in np.flatnonzero(mask)]
    closing = sorted(token.decode() for token in tokens if b'"' in token[:-1])
    print(f"{name}: {len(closing)} tokens close the string and go on, such as {closing[:6]}")

# %% [markdown] id="bytes"
# Two states inside the string look odd, until one thinks in bytes. After a backslash, `relationship` is allowed: it
# spells the escape `\r` and then `elationship`. After half of an `é`, only the 64 bytes that can finish a character are.

# %% id="odd-states"
for prefix in (b'{"path": "shop\\', '{"path": "é'.encode()[:-1]):
    mask = mask_after(grammars["closed"], prefix)
    print(f"{mask.sum():5} allowed after {prefix}, the longest: {allowed_tokens(mask, vocab, most=3)}")

# %% [markdown] id="ladder"
# ## The ladder of designs
#
# All masks above came from one library call. What does that call have to do? We build it five times, for the widest
# state there is: inside a free string. All five must give the same mask.
#
# Rung 0 is the definition: read every token from its first byte.

# %% id="rung-trial"
STRING = grammars["closed"].start.read(inside)


def by_trial(state):
    return np.array([bool(token) and state.read(token) is not None for token in vocab.tokens])


wanted = by_trial(STRING)
print(wanted.sum(), "tokens; bytes read at most:", sum(len(token) for token in vocab.tokens if token))

# %% [markdown] id="rung-trie-intro"
# Rung 1. Many tokens begin alike. A *trie* holds each common beginning once: a node is a prefix, its children are one
# byte longer. A walk reads each prefix once, and drops all tokens below a byte that cannot follow.


# %% id="rung-trie"
def by_trie(state):
    pending, found = [(state, vocab.root)], []
    while pending:
        before, node = pending.pop()
        for byte, child in node.children.items():
            after = before.step(byte)
            if after is not None:
                found += child.ids  # the tokens that end here, if any
                pending.append((after, child))
    readable = np.zeros(len(vocab), dtype=bool)
    readable[found] = True
    return readable


assert (by_trie(STRING) == wanted).all()
print("prefixes in the trie:", sum(len(level.byte) for level in vocab.levels))

# %% [markdown] id="rung-level-intro"
# Rung 2. Python pays for every node. numpy pays for every *call*. So take all prefixes of one length together: one
# lookup in a table (state, byte) -> state moves them all. The longest living token decides how many lookups there are.
#
# The table numbers the states as they are met, and fills a row when it is first asked for.


# %% id="table"
class Table:
    """The automaton as one array: rows[number, byte] is the number of the next state, or -1."""

    def __init__(self):
        self.numbers, self.states, self.filled = {}, [], 0
        self.rows = np.full((64, 256), -1, dtype=np.int32)

    def number(self, state):
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]

    def fill(self):
        """Rows for all states met so far."""
        for number in range(self.filled, len(self.states)):
            after = [self.states[number].step(byte) for byte in range(256)]
            row = [-1 if state is None else self.number(state) for state in after]
            if number == len(self.rows):
                self.rows = np.concatenate([self.rows, np.full_like(self.rows, -1)])
            self.rows[number] = row
            self.filled += 1

    def advance(self, numbers, byte):
        if numbers.max(initial=-1) >= self.filled:
            self.fill()
        return self.rows[numbers, byte]


# %% id="rung-level"
table = Table()


def by_level(state, vocabulary=vocab):
    readable = np.zeros(len(vocabulary), dtype=bool)
    prefixes = np.arange(len(vocabulary.levels[0].byte))
    states = np.full(len(prefixes), table.number(state))
    for level in vocabulary.levels:
        states = table.advance(states, level.byte[prefixes])
        alive = states >= 0
        prefixes, states = prefixes[alive], states[alive]
        if not len(prefixes):
            break
        token = level.token[prefixes]
        ids, _ = vocabulary.with_twins(token[token >= 0])
        readable[ids] = True
        first = level.child[prefixes]  # children lie side by side in the level below
        size = level.child[prefixes + 1] - first
        before = np.cumsum(size) - size
        prefixes = np.arange(size.sum()) + np.repeat(first - before, size)
        states = np.repeat(states, size)
    return readable


assert (by_level(STRING) == wanted).all()
print("lookups at most:", len(vocab.levels), "| rows of the table that were filled:", table.filled)

# %% [markdown] id="rung-split-intro"
# Rung 3. Most tokens are plain letters. Inside a string they are allowed whatever the schema says, and they leave the
# state as it is. That is a property of the token alone, so find it once per vocabulary. Then only the others are left to
# walk: quotes, backslashes, control characters, broken UTF-8. (This rung holds between two characters of a free string
# only. A string with a length or a pattern needs more; the kit's own code handles those.)

# %% id="rung-split"
safe = np.array([vocab.facts(i).is_string_safe for i in range(len(vocab))])
others = Vocabulary.from_bytes(
    [None if safe[i] else token for i, token in enumerate(vocab.tokens)], eos_id=vocab.eos_id
)


def by_split(state):
    return safe | by_level(state, others)


assert (by_split(STRING) == wanted).all()
print(f"{safe.sum()} tokens are safe in every string, {len(others.sorted_tokens)} are left to walk")

# %% [markdown] id="rung-cache-intro"
# Rung 4. After one more letter the state is the *same object*: inside the string, all schemas and all letters look
# alike. So keep the mask with the state. (The kit keeps it as bits. That costs a few microseconds to unpack, and an
# eighth of the memory.)

# %% id="rung-cache"
kept = {}


def by_cache(state):
    if state not in kept:
        kept[state] = by_split(state)
    return kept[state]


assert (by_cache(STRING) == wanted).all()
print("the same state after 'shop' and after 'shop/prices':", STRING is STRING.read(b"/prices"))

# %% [markdown] id="measure-intro"
# Now the measurement, on your machine, in two states: inside the string, where 48,770 tokens are allowed, and after
# `{"`, where 4 are. Each time is the least of several runs, after the automaton's rows and the trie have been filled, so
# that only the mask itself is timed.

# %% id="measure" tags=["live", "nbval-ignore-output"]
import time

from modtools.teaching.cost_figure import cost_figure

KEY = grammars["closed"].start.read(b'{"')
kept[KEY] = by_trie(KEY)  # rung 4 needs some mask to keep


def least_us(function, runs):
    """The least time of a call, in microseconds."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        function()
        times.append((time.perf_counter() - begin) * 1e6)
    return min(times)


RUNGS = {
    "0 trial of every token": (by_trial, 4),
    "1 trie walk in Python": (by_trie, 4),
    "2 numpy, level by level": (by_level, 20),
    "3 string-safe tokens once": (by_split, 50),
    "4 kept with the state": (by_cache, 1000),
}
costs_us = {"inside a string": {}, 'after {"': {}}
for name, (rung, runs) in RUNGS.items():
    costs_us["inside a string"][name] = least_us(lambda: rung(STRING), runs)
    if rung is not by_split:  # it is for strings only
        costs_us['after {"'][name] = least_us(lambda: rung(KEY), runs)
cost_figure(costs_us, "microseconds per mask")

# %% [markdown] id="measure-note"
# Every rung is a different idea: share prefixes, let numpy do the loop, do once what does not depend on the state,
# remember.
#
# Compare the two states. Inside the string next to nothing is dropped, so the trie saves little or nothing: it visits
# most of its 100,297 prefixes, each with Python's overhead. After `{"` nearly everything is dropped at the first byte.
# There both walks are short. A good design looks at its state: the kit walks narrow states in Python, and splits wide
# ones.
#
# Note the last rung's limit. The cache is empty when a request begins, and keys and punctuation bring new states all
# the time, so the cold cost still counts.

# %% id="all-states"
# The rungs agree in every state of the walk, not only in this one; the split is for the string only.
for cut in CUTS:
    state = grammars["closed"].start.read(DOCUMENT[:cut])
    ours = mask_after(grammars["closed"], DOCUMENT[:cut]).copy()
    ours[vocab.eos_id] = False
    for rung in (by_trie, by_level):
        assert (rung(state) == ours).all(), (cut, rung.__name__)
print("rungs 1 and 2 and the kit agree after", len(CUTS), "prefixes")

# %% [markdown] id="real"
# ## A real model with a mask
#
# Here is the decoding loop in full, on the real model: mask, take the likeliest, advance. Each line shows Z_t, the
# probability that the model itself gave to the allowed tokens, and what it would have written instead.

# %% id="loop" tags=["live", "nbval-ignore-output"]
from modtools.models.decode import Context

matcher, context = grammars["closed"].matcher(vocab), Context(model.network, rows=1)
logits, written, masses = context.extend([model.prompter.encode(ASK)])[0, -1], b"", []
for step in range(20):
    mask = matcher.allowed()
    p = np.exp(logits - logits.max())
    p /= p.sum()
    masses.append(p[: len(vocab)][mask].sum())
    wish, token = int(p.argmax()), choose(logits, 0, None, mask)
    instead = "" if wish == token else f"not {vocab.tokens[wish]}"
    print(f"{step:2}  Z_t {masses[-1]:<9.4g}  {vocab.tokens[token]!r:13} {instead}".rstrip())
    matcher.advance(token)
    if matcher.is_finished:
        break
    written += vocab.tokens[token]
    logits = context.extend([[token]])[0, -1]
assert all(0 < mass <= 1.000001 for mass in masses) and grammars["closed"].start.read(written) is not None
print(written.decode())

# %% [markdown] id="loop-note"
# On our machine (CPU, bfloat16) the mask pushed hard three times. At the first step about one hundredth of the model's
# probability lay on texts that begin a JSON object. At the key it wanted `name`, and the schema has only `path`. In
# between Z_t is near one: there the mask costs nothing.
#
# The third time is the end. The document was complete, and the model wanted to write a program after it. The mask left
# it blanks and end-of-sequence, and of those it took line ends, while Z_t fell to millionths. That is allowed: JSON may
# be followed by blanks, and the grammar permits 64 of them. A mask guarantees the language and nothing else; it does not
# make a model stop. A grammar can help, by permitting less.

# %% [markdown] id="beside-intro"
# In the kit, a mask is a part of the request. The same loop runs inside `generate`. Four requests, same question:

# %% id="beside" tags=["live", "nbval-ignore-output"]
import json

import jsonschema

brief = compile_json_schema(CLOSED, whitespace=3)
for name, grammar in {"no mask": None, **grammars, "closed, 3 blanks": brief}.items():
    request = Request(ASK, mask=grammar.matcher(vocab) if grammar else None)
    reply = model.generate([request], Sampling(max_tokens=32))[0]
    print(f"{name:17} ended by {reply.finish}: {reply.text!r}")
    if grammar and reply.finish == "stop":
        assert grammar.accepts(reply.text.encode())
        jsonschema.validate(json.loads(reply.text), OPEN)

# %% [markdown] id="beside-note"
# On our machine: without a mask a program. With the open schema a valid beginning with the keys `name` and
# `description`, and no `path` yet: the claim about `other_key`, met in the wild. With the closed schema the right key.
# With room for three blanks the reply ended, because nothing else was left.
#
# Then look at the value: `shop/prices.json`. We asked for `shop/prices.py`. The grammar knows the schema, not the
# question and not the disk. Syntax moved into the decoder; looking whether the file is there stays with the harness.
#
# And a mask does not prevent truncation. The next cell cuts our document in the middle, as a token limit would cut a reply.
# What is left is a valid beginning and no document.

# %% id="cut"
cut = DOCUMENT[:14]
reading = read_text(grammars["closed"], cut)
print(f"a document: {reading.accepted} | {reading.state}")
assert not reading.accepted and reading.read == len(cut)

# %% [markdown] id="prose-intro"
# ## Prose, and then a call
#
# A model that may only write JSON cannot think aloud first. JSON Schema cannot say "any text, then a call"; a
# context-free grammar can. The kit reads a small EBNF. `until("...")` is any text in which the mark does not occur, and
# `json(...)` a document of a schema.

# %% id="prose"
from modtools.masking import compile_grammar

reply = compile_grammar(
    """
    reply = until("<tool_call>") "<tool_call>" json(call) "</tool_call>"
    """,
    schemas={"call": CLOSED},
)
TEXT = 'I look first. <tool_call>{"path": "shop/prices.py"}</tool_call>'
print("accepted:", reply.accepts(TEXT.encode()))
for prefix in ("I look first.", "I look first. <tool", "I look first. <tool_call>", TEXT[:-1]):
    mask = mask_after(reply, prefix.encode())
    print(f"{prefix[-16:]:16} {mask.sum():5} allowed, the end of sequence: {'yes' if mask[vocab.eos_id] else 'no'}")

# %% [markdown] id="prose-note"
# In the prose nearly every token is allowed, until the tag is complete. From there on the mask is narrow. The end of the
# sequence is refused until the call is complete: with this grammar the model has to call something. Whether that is
# wanted is a decision about the interface; `call | prose` would leave the choice to the model.
#
# ## The production path
#
# Nobody has to ship the loop above. `guidance` is a library that drives the same kind of mask (its engine is
# llguidance, written in Rust). Here are the same network and the same schema through it.

# %% id="guidance" tags=["live", "nbval-ignore-output"]
from modtools.models.guided import Guidance

plain = (Message("system", "You call tools. read_file takes a path."), ASK[1])  # its tokenizer reads <file> otherwise
guided = Guidance(model).json(plain, CLOSED)
print(repr(guided.text), "| ended by", guided.finish)
print(f"{len(guided.token_ids)} tokens, {sum(guided.forced)} of them forced; {guided.forward_passes} forward passes")
print("forced:", [vocab.tokens[i].decode() for i, forced in zip(guided.token_ids, guided.forced) if forced])
if guided.finish == "stop":
    assert grammars["closed"].accepts(guided.text.encode())

# %% [markdown] id="guidance-note"
# The text lies in our language too: the cell asserts it. guidance adds two things.
#
# - *Forced tokens.* Where the grammar leaves one text only, it appends that text in its usual tokens and does not ask the
#   network. The key cost no forward pass of its own. The price: in these places only one spelling is possible, so the
#   mask is not maximal. Notebook 03 looks at what that means.
# - *Token healing.* A prompt may end in the middle of what would be one token, `http:` before `//` for instance. guidance
#   takes the last token back and lets the model choose again among all tokens that begin like it.

# %% [markdown] id="explorer-intro"
# ## The explorer
#
# Type the beginning of a document, or step back through it with the slider. You see the state, how many tokens are
# allowed, those that straddle a boundary, the model's likeliest tokens before and after the mask, and Z_t. Ask about a
# token and read why it may not follow.
#
# Try: cut back to `{"path": "shop` and ask about `"}`. Then choose *open* and type `{"other`. Then find a prefix with a
# Z_t below one half.
#
# One caution: the model reads your prefix in its tokenizer's own, canonical tokens. Had it written the same text in
# other tokens, its probabilities might differ.

# %% id="explorer"
from modtools.teaching.mask_explorer import explore, mask_explorer, mask_text, next_probabilities

mask_explorer(grammars, vocab, DOCUMENT.decode(), model, ASK)

# %% [markdown] id="explorer-plain-intro"
# The same without a widget. First the mask alone, which is the same on every machine.

# %% id="explorer-plain"
ASKED = [('{"path": "shop', '"}'), ('{"path": "shop', "\n"), ('{"pa', 'th":'), ('{"other', "")]
for prefix, token in ASKED:
    print(f"after {prefix}, asked about {token!r}")
    print(mask_text(explore(grammars["closed"], vocab, prefix, token=token)) + "\n")

# %% [markdown] id="explorer-live-intro"
# And with the model's probabilities.

# %% id="explorer-live" tags=["live", "nbval-ignore-output"]
for prefix in ("", DOCUMENT.decode()[:-1]):
    view = explore(grammars["closed"], vocab, prefix, next_probabilities(model, ASK, prefix))
    assert 0 < view.mass <= 1.000001
    print(f"after {prefix!r}\n{mask_text(view)}\n")

# %% [markdown] id="compile-intro"
# ## Compile cost and step cost
#
# "Cheap at each step, expensive to compile" is how the module describes masks. That is true of designs that work out
# all masks beforehand. The kit works out a state when it is met. Then compiling is cheap, the first visit of a state
# costs, and the second is a lookup. Each time is to be compared with a step of the network itself.

# %% id="compile" tags=["live", "nbval-ignore-output"]
fresh = Vocabulary(vocab.tokens, vocab.eos_id)  # no mask was made for it yet
assert fresh.levels and fresh.root.children  # the trie is the vocabulary's, not the schema's
cost_ms = {"compile the closed schema": least_us(lambda: compile_json_schema(CLOSED), 5) / 1e3}
matchers = []
for cut in CUTS:
    matchers.append(grammars["closed"].matcher(fresh))
    matchers[-1].read(DOCUMENT[:cut])
for visit in ("first", "second"):
    times_us = [least_us(matcher.allowed, 1) for matcher in matchers]
    cost_ms[f"{visit} visit of a state, mean of {len(CUTS)}"] = np.mean(times_us) / 1e3
    cost_ms[f"{visit} visit of a state, largest"] = np.max(times_us) / 1e3
cost_ms["one step of the network"] = least_us(lambda: context.extend([[0]]), 5) / 1e3
for name, cost in cost_ms.items():
    print(f"{cost:8.3g} ms  {name}")

# %% [markdown] id="compile-note"
# The first visits are dear here because the vocabulary is fresh too: its tables are made on the way, once for all
# schemas. Notebook 03 looks at schemas that change with every request. `modtools bench mask` measures hundreds of schemas,
# larger vocabularies and other engines.

# %% [markdown] id="corrected"
# ## What was corrected
#
# - Module 2 says that the mask keeps `other_key` out of the schema as printed. The schema is open, so `other_key` is
#   legal; `additionalProperties` false makes the claim true.
# - It describes the mask after the brace as the tokens that begin with `"path"`. On this vocabulary that mask is empty.
#   Partial keys, tokens that run past the key, and blanks count too.
# - It says that inside a string every token without an unescaped quote is allowed. Raw control characters and invalid
#   UTF-8 are refused, and a token may close the string and go on.
# - "Parse failures are eliminated by construction" leaves out truncation, and models that do not stop.
# - "Cheap at inference, expensive at compile time" describes engines that compute all masks beforehand, not lazy ones.

# %% [markdown] id="check-intro"
# ## Concept check

# %% id="concept"
from modtools.teaching.concept import ConceptCheck

question = ConceptCheck(
    'The closed read_file schema, after {"path": "a. Which of these tokens must a maximal mask allow?',
    {
        'the token py"}': "It finishes the string and closes the object. What follows is a complete document.",
        "a raw line end": "JSON strings hold no raw control characters; a line end is written as a backslash and n.",
        'the token ", "mode': "It closes the string, but the closed schema has no further key to begin.",
        "end-of-sequence": "The document is not complete: the state does not accept.",
    },
    right='the token py"}',
)
question.widget()

# %% id="concept-plain"
for option in question.options:
    print(f"{option}: {question.answer(option)}")
assert grammars["closed"].start.read(b'{"path": "a.').read(b'py"}').is_accepting

# %% [markdown] id="summary"
# ## Summary
#
# - A(q) is the set of tokens after whose bytes a document can still be finished through tokens of this vocabulary. The
#   end is allowed exactly where a document is complete.
# - Masks are made of bytes. A token may begin, cross or end a part of the grammar, or of a character.
# - A mask is made fast by sharing prefixes, by numpy, by splitting off what every string allows, and by a cache.
# - Z_t says how hard the mask pushes. Low values are where the model wanted something else.
# - The mask guarantees a beginning of the language at every step. It does not make the reply end, nor its content true.
#
# Next: notebook 03 asks how one would notice that a mask is wrong.
