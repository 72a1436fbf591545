# %% [markdown] id="title"
# # Exercise 00 · Kill a call at every stage
#
# You write replies, as a model would, and the pipeline says where each one dies. Work through notebook 00 first.
# Time: about 15 minutes. Replace each `...`, then run the check below it; a wrong answer is explained.

# %% id="given-ladder"
from modtools.pipeline import FAILURES
from modtools.teaching.ladder import Ladder, ladder_text

ladder = Ladder()
CALL = '{"name": "read_file", "arguments": {"path": "shop/prices.py"}}'


def verdict(reply: str, stage: str) -> str:
    """Say whether a reply dies at a stage, and if not, what happens instead."""
    result = ladder.climb(reply)
    if result.outcome == "success":
        return f"not yet: this reply gets through\n{ladder_text(result)}"
    died = FAILURES[result.failure.code].stage
    return f"right: {result.failure.code}" if died == stage else f"not yet: it dies at {died}\n{ladder_text(result)}"


# %% [markdown] id="q1-text"
# ## 1. One reply for each stage
#
# Write five replies. The first must die at extraction, the second at parsing, and so on.
#
# Hints, if you are stuck: (a) where may a call stand in a reply? (b) what may JSON not contain? (c) what does the
# schema of `read_file` require? (d) which files does the workspace hold? (e) which tool needs a sandbox, which this
# ladder does not have?

# %% id="q1"
### BEGIN SOLUTION
### STUB: dies_at_extract = ...
### STUB: dies_at_parse = ...
### STUB: dies_at_validate = ...
### STUB: dies_at_semantic = ...
### STUB: dies_at_dispatch = ...
dies_at_extract = f"First I call {CALL} and then I see."
dies_at_parse = CALL.replace("shop/prices.py", "shop/prices.py\n")
dies_at_validate = CALL.replace("{\"path\": \"shop/prices.py\"}", "\"shop/prices.py\"")
dies_at_semantic = CALL.replace("shop/prices.py", "shop/../../prices.py")
dies_at_dispatch = '{"name": "run_tests", "arguments": {"command": "python -m unittest"}}'
### END SOLUTION

# %% id="q1-check"
replies = [dies_at_extract, dies_at_parse, dies_at_validate, dies_at_semantic, dies_at_dispatch]
for stage, reply in zip(("extract", "parse", "validate", "semantic", "dispatch"), replies):
    print(f"{stage:9}", verdict(reply, stage) if isinstance(reply, str) else "write a string")

# %% [markdown] id="q1-why"
# **Why.** The solution's third reply hands the arguments over as a string. Many clients do that, and it is tempting to
# decode it silently. The kit refuses, on every surface alike: what is accepted in one place and refused in another
# teaches a model nothing.

# %% [markdown] id="q2-text"
# ## 2. What can the decoder take over?
#
# Write a function that takes the code of a failure and answers `True` if constrained decoding could have removed it
# without knowing anything about the world. `FAILURES[code].decoder` is "yes", "world" or "no".

# %% id="q2"
def decoder_suffices(code: str) -> bool:
    ### BEGIN SOLUTION
    return FAILURES[code].decoder == "yes"
    ### END SOLUTION


# %% id="q2-check"
for code in ("trailing_comma", "missing_path", "truncated", "unknown_tool", "timeout"):
    print(f"{code:15} {decoder_suffices(code)}")
print(sum(bool(decoder_suffices(code)) for code in FAILURES), "of", len(FAILURES), "failure modes")

# %% [markdown] id="q2-why"
# **Why.** `truncated` is the one people get wrong. A mask decides which token may come next. It does not decide how many
# tokens are left, so a masked reply can still be cut in the middle.
