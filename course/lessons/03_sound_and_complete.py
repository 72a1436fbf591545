# %% [markdown] id="title"
# # 03 · Sound and complete: what a token mask owes you
#
# A mask can be wrong in two ways. It can let through what it should stop, or stop what it should let through. The
# first you notice when a parser fails. The second you may never notice: the model just says something else.
#
# After this notebook you can
#
# - state soundness and completeness apart, run each as a check, and say which one a given mask breaks;
# - explain why a mask is made over bytes and tokens, never over characters;
# - judge whether an engine is "cheap at inference and expensive at compile", by measuring it;
# - say why a masked model does not sample from the model's own distribution over the legal strings.
#
# Contents: a small world · two properties and four more · break a mask · the tokenisation trap · half a character · a
# museum of real bugs · what no mask gives you · compile against step · a distribution bent step by step · what was
# corrected · concept check · summary. It runs in about a minute on two cores. It needs the embedded model in its
# cache.

# %% [markdown] id="world"
# ## A small world
#
# Proofs about masks are easy to believe and easy to get wrong. So we take a world that is small enough to try
# *everything*. One key, a string of at most three characters behind it, eighteen tokens. Look at the tokens: some hold
# half of é, some straddle the boundary between a key and its value, and two are special.

# %% id="small"
from modtools.teaching.broken_masks import GALLERY, SMALL, documents

print(SMALL.schema)
print([SMALL.show(i) for i in range(len(SMALL.vocabulary))])
print(len(documents(SMALL)), "documents can be spelled, for example", [d.decode() for d in documents(SMALL)[::40]])

# %% [markdown] id="truth-note"
# What is the right mask here? Do not ask the engine. Ask the definition: a token is allowed when, after its bytes, a
# document can still be reached *through tokens of this vocabulary*. That is slow and short.

# %% id="truth"
import inspect

from modtools.teaching.mask_properties import Setting

print(inspect.getsource(Setting.can_finish))
print(inspect.getsource(Setting.truth))
for text in (b"", b'{"to', b'{"to":"xxx'):
    print(text.decode(), "->", [SMALL.show(i) for i in sorted(SMALL.truth(text))])

# %% [markdown] id="truth-read"
# Read the last line. Three characters are written, so nothing but the end of the string can follow. The token `x"`
# closes the string too, but it would bring a fourth character. And `\u` is offered nowhere: it begins an escape like
# `\u00e9`, and this vocabulary has no token for a hexadecimal digit.

# %% [markdown] id="properties"
# ## Two properties, and four more
#
# *Sound*: every finished output is a document. *Complete* (or maximal): every way to spell every document in tokens is
# allowed. They are different questions, so they are different checks. Each returns a witness against the property, or
# nothing.

# %% id="checks"
from modtools.teaching.mask_properties import PROPERTIES, complete, sound, verdicts

print(inspect.getsource(sound))
print(inspect.getsource(complete))

# %% [markdown] id="others"
# Soundness speaks of *finished* outputs only. A decoder that never finishes is sound. So four more properties are worth
# a check each.

# %% id="all-properties"
for name, check in PROPERTIES.items():
    print(f"{name:15} {inspect.getdoc(check)}")
ours = verdicts(SMALL, GALLERY["right"])
print("\nthe kit's own mask:", {name: witness or "holds" for name, witness in ours.items()})
assert not any(ours.values())

# %% [markdown] id="break"
# ## Break a mask
#
# Here are eleven wrong masks. Each is a few lines, and each is a mistake that somebody could make on a Tuesday. Choose
# one, read its code, and guess which properties fail *before* you read the table.

# %% id="gallery"
from modtools.teaching.broken_masks import break_a_mask

break_a_mask()

# %% [markdown] id="gallery-plain-note"
# The same without a widget. `x` marks a property that fails; below stands the first witness for each mask.

# %% id="gallery-plain"
found = {name: verdicts(SMALL, mask) for name, mask in GALLERY.items()}
print(" " * 21 + "  ".join(PROPERTIES))
for name, verdict in found.items():
    marks = [("x" if witness else ".").ljust(len(prop)) for prop, witness in verdict.items()]
    print(f"{name:21}{'  '.join(marks)}".rstrip())
print()
for name, verdict in found.items():
    if witnesses := [f"{prop}: {witness}" for prop, witness in verdict.items() if witness]:
        print(f"{name:21}{witnesses[0]}")

# %% [markdown] id="gallery-read"
# Four things to take away.
#
# - `end_never` is sound. It never finishes, so it never finishes wrongly. Soundness alone is a cheap promise.
# - `first_byte` and `dead_ends` are sound *and* complete, and useless: they lead the model to a place from which there
#   is no way on. Then an engine divides by zero, stops masking, or waits. That is why trimmed is a property of its own.
# - `canonical_only`, `whole_characters` and `no_straddling` let nothing through that a parser could complain about. They
#   keep valid spellings out, and only a completeness check sees that.
# - `no_counter` could run for ever. Its walk was cut after 2,000 texts. A witness found in that many is a proof that a
#   property fails. No witness would be no proof that it holds.

# %% [markdown] id="faithful-note"
# One more question is open. Soundness and completeness compare the mask with the *grammar*. Is the grammar what the
# schema says? That is a property of its own, *faithful*, with a judge of its own: a JSON parser and the library
# `jsonschema`. The masks above led to many texts, right ones and wrong ones. Let both judge them all.

# %% id="faithful"
import json

import jsonschema


def is_valid(text):
    """Whether a parser and jsonschema accept a text."""
    try:
        return jsonschema.Draft202012Validator(SMALL.schema).is_valid(json.loads(text))
    except ValueError:  # no JSON, or no UTF-8
        return False


texts = {text for mask in GALLERY.values() for text in SMALL.walk(mask)}
valid = {text for text in texts if is_valid(text)}
print(f"{len(texts)} texts, {len(valid)} valid; the grammar judges otherwise in", end=" ")
print(sum(SMALL.grammar.accepts(text) != (text in valid) for text in texts))

# %% [markdown] id="empty"
# What should a mask do when nothing is allowed? The kit raises an error that names the state. Here the vocabulary has
# no token for `y`. The first mask can still say so, because it looks ahead.

# %% id="empty-mask"
from modtools.errors import ModtoolsError
from modtools.masking import Vocabulary, compile_regex

try:
    compile_regex("xy").matcher(Vocabulary.from_bytes([None, b"x"], eos_id=0)).allowed()
except ModtoolsError as error:
    print(type(error).__name__ + ":", error)

# %% [markdown] id="trap"
# ## The tokenisation trap
#
# Now the real vocabulary, 49,152 tokens. A grammar thinks in symbols: brace, quotation mark, key. A token does not
# care. How many tokens hold a quotation mark *and* something else?

# %% id="straddle"
from modtools.models.embedded import vocabulary

words = vocabulary()
straddling = [token for token in words.sorted_tokens if b'"' in token and len(token) > 1]
print(len(straddling), "tokens, for example", [token.decode("utf-8", "replace") for token in straddling[::20]])

# %% [markdown] id="many-spellings-note"
# A second surprise. One text has many spellings in tokens. The tokenizer writes one of them, the *canonical* one. A
# model that samples token by token can write any.

# %% id="many-spellings"
from modtools.teaching.tokenisations import count_tokenisations

for text in (b"path", b'{"path":"a.py"}', b'{"path": "shop/prices.py"}'):
    print(f"{text.decode():28} {count_tokenisations(text, words):6} tokenisations")

# %% [markdown] id="forcing-note"
# The mask must allow all of them to be complete. Does it matter? An engine may decide that it does not. llguidance, the
# engine behind `guidance`, looks for places where the grammar leaves one text only. There it allows the canonical token
# alone, and writes it without asking the model. That is fast, and it is a choice. The option `no_forcing` turns it off.

# %% id="forcing" tags=["live", "nbval-ignore-output"]
import importlib.util

import numpy as np

from modtools.masking import compile_json_schema
from modtools.masking.explain import allowed_tokens
from modtools.models import load_model

READ_FILE = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
model = load_model("embedded", dtype="float32")


class ForLlguidance:
    """Our vocabulary in the words of llguidance."""

    eos_token_id, bos_token_id = words.eos_id, None
    tokens = [token or b"" for token in words.tokens]
    special_token_ids = [i for i, token in enumerate(words.tokens) if token is None]

    def __call__(self, text):
        return model.prompter.encode_text(text if isinstance(text, str) else text.decode())


def llguidance_mask(ids, no_forcing):
    """The mask of llguidance for READ_FILE, compact, after some tokens; shape (V,)."""
    import llguidance

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(ForLlguidance()), slices=None)
    schema = json.dumps({"x-guidance": {"whitespace_flexible": False}, **READ_FILE})
    options = json.dumps({"no_forcing": no_forcing})
    matcher = llguidance.LLMatcher(tokenizer, f"%llguidance {options}\nstart: %json {schema}", log_level=0)
    assert not matcher.get_error(), matcher.get_error()
    matcher.consume_tokens(ids)
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
    return bits[: len(words)].astype(bool)


if importlib.util.find_spec("llguidance") is None:
    print("llguidance is not installed here, so this cell compares nothing; `pip install guidance` brings it.")
else:
    ids = []
    for token in (b'{"', b"path", b'":"'):
        matcher = compile_json_schema(READ_FILE, whitespace=0).matcher(words)
        for token_id in ids:
            matcher.advance(token_id)
        masks = {"ours": matcher.allowed()}
        masks |= {"no_forcing": llguidance_mask(ids, True), "forcing": llguidance_mask(ids, False)}
        print("after", b"".join(words.tokens[i] for i in ids).decode() or "nothing")
        for name, mask in masks.items():
            print(f"    {name:11}{allowed_tokens(mask, words)}")
        assert (masks["ours"] == masks["no_forcing"]).all() and not (masks["forcing"] & ~masks["ours"]).any()
        ids.append(words.tokens.index(token))

# %% [markdown] id="forcing-read"
# Without forcing, llguidance allows what we allow. With forcing its mask is smaller: sound, and by our definition not
# complete. Is that bad? Every *string* can still be written. Module 2's definition asks for one token sequence per
# string, and that it keeps. Ours asks for all of them. Two things depend on the difference: the text that a caller has
# put in front may end in the middle of a canonical token, and the probabilities below change, since the
# non-canonical spellings get none.

# %% [markdown] id="halves"
# ## Half a character
#
# Byte-level tokenizers cut UTF-8 where they please. How many tokens of the real vocabulary do not hold whole
# characters?

# %% id="utf8-halves"
facts = [words.facts(i) for i in range(len(words))]
half = [i for i, fact in enumerate(facts) if fact.bytes_owed or fact.bytes_open]
print(f"{len(half)} of {len(words)} tokens begin or end inside a character")
print("three of them:", [words.tokens[i] for i in half[150:300:50]])

# %% [markdown] id="sloth"
# A few hundred of 49,152 look negligible. But a character without a token of its own can be written *only* so. Take an
# emoji. A mask over characters has no place for its parts, so it forbids the whole character.

# %% id="half-characters"
without_halves = [None if fact.bytes_owed or fact.bytes_open else token for token, fact in zip(words.tokens, facts)]
whole = Vocabulary.from_bytes(without_halves, eos_id=words.eos_id)
for character in ("é", "字", "🦥"):
    raw = character.encode()
    ways, whole_ways = count_tokenisations(raw, words), count_tokenisations(raw, whole)
    print(f"{character}  {len(raw)} bytes, {ways} tokenisations, {whole_ways} in whole characters")

# %% [markdown] id="museum"
# ## A museum of real bugs
#
# All of this has happened. Each exhibit is a public report about an engine that people use, rebuilt in a line or two.
# The tokens of the document stand in « ». The rebuilding shows what the report describes. It is not the engine's code,
# and the engine may have mended it since: follow the link.

# %% id="museum-widget"
from modtools.teaching.museum import MUSEUM, museum, our_verdict

museum()

# %% [markdown] id="museum-plain"
# The same without a widget.

# %% id="museum-table"
for exhibit in MUSEUM:
    valid, broken = exhibit.is_document, exhibit.broken(exhibit.tokens)
    assert our_verdict(exhibit) == valid != broken
    print(f"{exhibit.title.upper()} {exhibit.report}")
    print(f"  {json.dumps(exhibit.schema)}")
    verdict = f"{'valid, but refused' if valid else 'invalid, but written'}: not {exhibit.breaks}"
    print(f"  {exhibit.shown()} {verdict}")

# %% [markdown] id="museum-read"
# The exhibits fall into two heaps. Where a mask is unsound, a parser failed somewhere, and that is how it was found. An
# incomplete mask makes no such noise. Somebody has to notice that a model keeps avoiding a perfectly good answer.

# %% [markdown] id="no-mask"
# ## What no mask gives you
#
# Module 2 says that constrained decoding eliminates parse failures by construction. Here is a right mask, all six
# properties included, and an output that does not parse. The walk draws allowed tokens at random and is cut at 40.

# %% id="truncated"
rng = np.random.default_rng(3)
matcher, text = compile_json_schema(READ_FILE).matcher(words), b""
for _ in range(40):
    token_id = int(rng.choice(np.flatnonzero(matcher.allowed())))
    matcher.advance(token_id)
    text += words.tokens[token_id]
print("may the text end here?", matcher.is_accepting())
try:
    json.loads(text)
except ValueError as error:
    print("json.loads:", type(error).__name__)

# %% [markdown] id="endless-note"
# And nothing forces a walk to end. Blanks between tokens are legal JSON, so a model that likes blanks can write them
# until its budget is gone. This is reported too ([xgrammar 412](https://github.com/mlc-ai/xgrammar/issues/412)). The
# kit's grammars allow at most 64 blanks in one place. That is a restriction, on purpose, and it stands in the published
# table. It closes one door only: a string without maxLength has no end either.

# %% id="endless"
for count in (64, 65):
    document = b'{"path":' + b" " * count + b'"a.py"}'
    print(count, "blanks:", "accepted" if compile_json_schema(READ_FILE).accepts(document) else "refused")
state = compile_json_schema(READ_FILE).start.read(b'{"path":"' + b"x" * 100_000)
print("after 100,000 x:", state.describe())

# %% [markdown] id="cost"
# ## Compile against step
#
# Module 2 says that constrained decoding is cheap at inference and expensive at compile. That describes one design:
# look at every state of the automaton in advance, and store its mask. How many states are there? Count them for a
# string with a bound.

# %% id="states"
BOUNDS = (4, 16, 64)


def every_state(grammar):
    """All states of a finite automaton, found byte by byte."""
    found = {grammar.start: None}  # a dict keeps the order
    queue = [grammar.start]
    for state in queue:
        for byte in range(256):
            after = state.step(byte)
            if after is not None and after not in found:
                found[after] = None
                queue.append(after)
    return queue


def bounded(most, key="path"):
    """READ_FILE with another key and at most so many characters behind it."""
    return READ_FILE | {"properties": {key: {"type": "string", "maxLength": most}}, "required": [key]}


both = {key: {"type": "string", "maxLength": 16} for key in ("path", "mode")}
schemas = {"no bound": READ_FILE} | {f"maxLength {most}": bounded(most) for most in BOUNDS}
schemas["two keys of 16"] = READ_FILE | {"properties": both, "required": ["path", "mode"]}
for name, schema in schemas.items():
    count = len(every_state(compile_json_schema(schema, whitespace=0)))
    print(f"{name:15} {count:5} states, {count * len(words) / 8e6:.4g} MB of masks at a bit a token")

# %% [markdown] id="lazy"
# A bound multiplies the states, since each count is a state of its own. So does a second key: each may come first or
# last. A *lazy* engine, like ours or llguidance, does not look at states that no output visits. It pays at the first
# visit.
#
# Measure both on your machine. The document has seven tokens, so eight masks are made. "New" means that every request
# brings another schema.

# %% id="measure" tags=["live", "nbval-ignore-output"]
import time
from statistics import median

DOCUMENT = [b'{"', b"path", b'":"', b"a", b".", b"py", b'"}']


def walk_ms(grammar, ids):
    """Milliseconds to make the masks of one document, the last one before its end included."""
    start = time.perf_counter()
    matcher = grammar.matcher(words)
    for token_id in ids:
        matcher.allowed()
        matcher.advance(token_id)
    matcher.allowed()
    return 1000 * (time.perf_counter() - start)


def timed_ms(make):
    """(what make() gives, milliseconds it took)."""
    start = time.perf_counter()
    return make(), 1000 * (time.perf_counter() - start)


def index(grammar):
    """The mask of every state, made in advance."""
    for state in every_state(grammar):
        matcher = grammar.matcher(words)
        matcher.state = state
        matcher.allowed()


ids = [words.tokens.index(token) for token in DOCUMENT]
walk_ms(compile_json_schema(READ_FILE, whitespace=0), ids)  # builds the vocabulary's own tables, once per tokenizer
compiles, colds, warms = [], [], []
for most in range(60, 70):  # another bound is another schema
    grammar, compile_ms = timed_ms(lambda: compile_json_schema(bounded(most), whitespace=0))
    compiles.append(compile_ms)
    colds.append(walk_ms(grammar, ids))
    warms.append(min(walk_ms(grammar, ids) for _ in range(5)))
compile_ms, cold_ms, warm_ms = median(compiles), median(colds), median(warms)
_, index_ms = timed_ms(lambda: index(compile_json_schema(bounded(64), whitespace=0)))
print(f"compile {compile_ms:.4g} ms; 8 masks for the first time {cold_ms:.4g} ms, again {warm_ms:.4g} ms")
print(f"an index of every state {index_ms:.4g} ms")
assert warm_ms < cold_ms and compile_ms < index_ms

# %% [markdown] id="amortise"
# Spread the cost over n calls. With a stable schema the first call pays, and the others look masks up. With a schema
# that changes per request every call is a first call. Where do the designs part?

# %% id="cost-figure" tags=["live", "nbval-ignore-output"]
from modtools.figures import Figure, canvas

calls = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
per_call = {
    "index, new schema": np.full(len(calls), index_ms + warm_ms),
    "index, stable schema": index_ms / calls + warm_ms,
    "lazy, new schema": np.full(len(calls), compile_ms + cold_ms),
    "lazy, stable schema": (compile_ms + cold_ms - warm_ms) / calls + warm_ms,
}
with canvas() as (drawing, axes):
    for (name, values), marker in zip(per_call.items(), "^vso"):
        axes.plot(calls, values, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", xlabel="calls", ylabel="ms per call (8 masks)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)
even = int(np.ceil(index_ms / (compile_ms + cold_ms - warm_ms)))
Figure(
    drawing,
    "Mask cost per call against the number of calls, both axes logarithmic. A new schema per call costs "
    f"{compile_ms + cold_ms:.4g} ms lazily and {index_ms + warm_ms:.4g} ms with an index. For one schema the costs "
    f"fall to {per_call['lazy, stable schema'][-1]:.4g} and {per_call['index, stable schema'][-1]:.4g} ms at 1,000 "
    f"calls. The index must serve {even} calls before it costs no more than a new lazy schema for each of them.",
)

# %% [markdown] id="cost-read"
# So the sentence needs a subject. *An index* is expensive at compile and cheap at each step, and a schema that changes
# per request ruins it. *A lazy engine* is cheap at compile. Its expensive moment is the first visit of a state, and for
# a short call that is the greater part of its cost. It pays for no state that no output visits. What it gives up: the
# payment falls into the middle of a reply. Both profit from a stable schema. Only one of them depends on it.
#
# Mind what was measured: our index is a plain loop over the kit's own states. An engine built around an index makes it
# faster, so the number of calls after which it pays is a property of this loop. The shape of the curves is not.
#
# In the decision rule of a later notebook this is the term K/n + c_mask N: K the compile cost, n the calls of one
# grammar, N the tokens of a call.

# %% [markdown] id="bend"
# ## A distribution bent step by step
#
# A right mask leaves only legal strings. Surely the model then samples from its own distribution, limited to the legal
# strings? No. Take two first tokens. The model likes `a`: 0.9. But of all that it would write after `a`, only a ninth
# is legal. After `b` everything is.

# %% id="nine-tenths"
from fractions import Fraction

first = {"a": Fraction(9, 10), "b": Fraction(1, 10)}
legal_after = {"a": Fraction(1, 9), "b": Fraction(1)}
legal = {token: first[token] * legal_after[token] for token in first}
conditional = {token: str(legal[token] / sum(legal.values())) for token in first}
masked = {token: str(first[token] / sum(first.values())) for token in first}
print("P(first token | the string is legal):", conditional)
print("the masked decoder's first token:    ", masked)

# %% [markdown] id="nine-tenths-read"
# The mask looks at one step. Both tokens can be continued, so both are allowed, and 0.9 against 0.1 stays as it was.
# That the model would mostly have gone wrong after `a` is learned too late. The mask then scales up what little is
# left.
#
# How much does this matter for a real model? Take a language small enough to weigh whole: twelve strings of an enum.
# Every way to spell them in tokens is scored, so nothing is estimated. The conditional distribution sums over *all*
# tokenisations of a string. It is exact up to the rounding of 32-bit arithmetic.

# %% id="real-model" tags=["live", "nbval-ignore-output"]
from modtools.models import Message
from modtools.teaching.renormalisation import by_text, every_walk, normalised, total_variation

COLOURS = ["red", "blue", "green", "pink", "grey", "teal", "gold", "navy", "lime", "plum", "rust", "ochre"]
prompt = f"Pick one of these and reply in double quotes: {', '.join(COLOURS)}"
walks = every_walk(model, (Message("user", prompt),), compile_json_schema({"enum": COLOURS}, whitespace=0), words)
weights = by_text(walks, lambda walk: walk.log2_p)
conditional, masked = normalised(weights), by_text(walks, lambda walk: walk.log2_q)
distance = total_variation(conditional, masked)
print(f"{len(walks)} token sequences spell {len(masked)} strings")
print(f"the model gives all of them together {sum(weights.values()):.4g}")
print(f"total variation distance between the conditional and the masked distribution: {distance:.4g}")
for text in sorted(masked, key=lambda text: masked[text] - conditional[text])[:: len(masked) - 1]:
    walk = max((walk for walk in walks if walk.text == text), key=lambda walk: sum(walk.log2_q))
    print(f"\n{text}: conditional {conditional[text]:.4g}, masked {masked[text]:.4g}; step by step")
    for token_id, p, z in zip(walk.token_ids, walk.log2_p, walk.log2_z):
        print(
            f"    {(words.tokens[token_id] or b'<end>').decode():6} p {2**p:.4g}  Z {2**z:.4g}  p/Z {2 ** (p - z):.4g}"
        )
canonical = {tuple(model.prompter.encode_text(text)) for text in masked}
spelled = by_text((w for w in walks if w.token_ids[:-1] in canonical), lambda walk: walk.log2_p)
drawn = by_text((w for w in walks if w.token_ids[:-1] in canonical), lambda walk: walk.log2_q)
print(f"\nspelled canonically: {sum(spelled.values()) / sum(weights.values()):.4g} of the conditional distribution,")
print(f"{sum(drawn.values()):.4g} of the masked one")
assert len(conditional) == len(COLOURS) and abs(sum(conditional.values()) - 1) < 1e-9
assert abs(sum(masked.values()) - 1) < 1e-5
for walk in walks:  # -log2 q = sum of -log2 p + sum of log2 Z, for every token sequence
    assert abs(-sum(walk.log2_q) - (-sum(walk.log2_p) + sum(walk.log2_z))) < 1e-6
assert 0 <= distance <= 1

# %% id="bars" tags=["live", "nbval-ignore-output"]
order = sorted(conditional, key=conditional.get, reverse=True)
with canvas() as (drawing, axes):
    place = np.arange(len(order))
    axes.bar(place - 0.2, [conditional[text] for text in order], 0.4, label="conditional")
    axes.bar(place + 0.2, [masked[text] for text in order], 0.4, label="masked", hatch="//")
    axes.set_xticks(place, [text.strip('"') for text in order], rotation=45)
    axes.set_ylabel("probability")
    axes.legend()
numbers = "; ".join(f"{text.strip(chr(34))} {conditional[text]:.4f} and {masked[text]:.4f}" for text in order)
Figure(
    drawing,
    f"Conditional and masked probability of twelve colours: {numbers}. Total variation distance {distance:.4g}.",
)

# %% [markdown] id="bars-read"
# Look at the two strings printed above the figure: the one that lost most, and the one that gained most. On our machine
# (CPU, float32) the winner is `red`. The model likes the token `red` best of all colours. But then it does not want a
# quotation mark; it would go on with something else. The conditional distribution makes `red` pay for that small Z. The
# masked decoder lets it pass for free: q = p / (Z_1 Z_2 ...). It is the example of `a` and `b` again, in the wild.
#
# The last lines show the same for spellings. A non-canonical token is unlikely, and what must follow it more unlikely
# still. Only the conditional distribution counts both.
#
# Two limits of this experiment. It is one prompt and one small model; change the prompt, and the distance changes a
# lot. And it says that the two distributions differ, not that the masked one is worse for a task. That is the grammar
# tax, and it has to be measured on tasks.

# %% [markdown] id="corrected"
# ## What was corrected
#
# - Proposition 2.1.4 of the module (a constrained decoder is complete) holds for *maximal* masks only. "Constructed
#   correctly" has to mean: every token after which a document can be reached, through this vocabulary. `canonical_only`
#   and `no_straddling` are sound and refuse spellings that the model may want.
# - "Parse failures are eliminated by construction" leaves out truncation and outputs that never end. Both
#   were shown above, under "What no mask gives you".
# - "Cheap at inference, expensive at compile" describes a precomputed index, not a lazy engine.
# - That a mask keeps the model's distribution is often taken for granted. It renormalises step by step: 0.9 and 0.1
#   where the conditional says 1/2 and 1/2.

# %% [markdown] id="check-intro"
# ## Concept check

# %% id="concept"
from modtools.teaching.concept import ConceptCheck

question = ConceptCheck(
    "An engine only ever allows the tokens that its tokenizer would write. All finished outputs parse. What is it?",
    {
        "sound and complete": "Complete asks for every tokenisation of every document. The others are refused.",
        "sound, not complete": "Whatever it finishes is a document. But other spellings of the same documents are "
        "refused, and their probability is lost.",
        "complete, not sound": "All finished outputs parse, so it is sound. What it refuses makes it incomplete.",
        "neither": "All finished outputs parse. That is soundness.",
    },
    right="sound, not complete",
)
question.widget()

# %% id="concept-plain"
for option in question.options:
    print(f"{option}: {question.answer(option)}")

# %% [markdown] id="summary"
# ## Summary
#
# - Sound: every finished output is a document. Complete: every tokenisation of every document is allowed. Check them
#   apart, against a truth that is slow and short. Whether the grammar is faithful to the schema is a third question.
# - Sound is not enough, and sound with complete is not either: a mask must be trimmed, end exactly where a document
#   ends, keep special tokens out, and never be empty in silence.
# - Tokens straddle grammar boundaries and cut characters in half. So a mask reads bytes.
# - An index pays at compile, a lazy engine at the first visit. Measure before you choose.
# - Masking renormalises locally. The masked distribution is not the conditional one.
