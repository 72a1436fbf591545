# %% [markdown] id="title"
# # 00 · Start: from a model's text to a tool's effect
#
# This notebook shows the whole subject once, small. A language model writes text. A harness has to decide whether
# that text is a tool call, whether the call may be carried out, and what to tell the model afterwards.
#
# After this notebook you can
#
# - say what your machine has, and what that means for the course;
# - name the five stages between a model's text and a tool's effect, and say at which one a given reply dies;
# - read an observation and judge whether it tells the model what to mend.
#
# Two texts stand behind this course, and it names them where it uses or corrects them: *Module 2* of a course on
# harnesses, about the tool interface, and *Harness Theory Part 05*, "Capability Engineering".
#
# Contents: your machine · one raw answer · the same text through the pipeline · the stage ladder · what was corrected ·
# concept check · summary. It runs in about a minute on two cores, without a GPU and without a network once the model
# is in its cache.

# %% [markdown] id="machine"
# ## Your machine
#
# Every check says what was found, what it means, and what to do about it. Nothing here has to be perfect. Without a
# sandbox this notebook still works; the lab, which runs programs that a model wrote, then refuses unless you insist.

# %% id="doctor" tags=["live", "nbval-ignore-output"]
from modtools.teaching.doctor import checks

for check in checks():
    print(f"{'ok' if check.ok else '!!'}  {check.name:9} {check.value}\n    {check.advice}")

# %% [markdown] id="raw-answer"
# ## One raw answer
#
# The kit brings a real model: SmolLM2-135M-Instruct, Q4_1. It is small enough for a laptop, and it was never trained
# for our tools. We tell it which tools it has and ask for something that needs one. What comes back is live: it can
# differ a little from machine to machine.

# %% id="ask" tags=["live", "nbval-ignore-output"]
from modtools.models import Message, Request, Sampling, load_model
from modtools.surfaces import build_surface

model = load_model("embedded")
fine = build_surface("fine")
system = f'Your tools:\n{fine.snapshot.schema_text}\nReply with one call: {{"name": "<tool>", "arguments": {{...}}}}'
question = (Message("system", system), Message("user", "What is the value of RATE in shop/prices.py?"))
answer = model.generate([Request(question)], Sampling(max_tokens=80))[0]
print(answer.text)
print(f"\n{answer.usage.prompt_tokens} tokens read, {answer.usage.completion_tokens} written, ended by {answer.finish!r}")
assert answer.usage.completion_tokens <= 80

# %% [markdown] id="failing-thing"
# On our machine (CPU, bfloat16) the reply was prose about the question, not a call. That is the gap the course is
# about: the model has *described* an action, and nothing has happened.
#
# It would be easy to search such a text for a file name and read that file. A harness that guesses like this will one
# day carry out an example that stood in an explanation. So the kit's harness does not guess. It refuses, and says why.

# %% [markdown] id="pipeline"
# ## The same text through the pipeline
#
# A `Ladder` holds a tiny workspace (two modules of a shop) and the pipeline over it. First a reply of the kind you
# just saw.

# %% id="prose"
from modtools.teaching.ladder import Ladder, ladder_text

ladder = Ladder()
print(ladder_text(ladder.climb("To find the value of RATE, open the file shop/prices.py and look for it.")))

# %% [markdown] id="prose-note"
# The reply dies at the first stage. Note the last lines: the failure became an *observation*. The model gets another
# turn, and the text tells it which form a call has.
#
# Now the call that was wanted.

# %% id="call"
CALL = '{"name": "read_file", "arguments": {"path": "shop/prices.py"}}'
good = ladder.climb(CALL)
print(ladder_text(good))

# %% [markdown] id="steps"
# The five stages are what one draws on a board. Inside, they are eleven steps, and each has one job. The order matters:
# the path is resolved *before* anyone decides whether it may be read.

# %% id="trace"
for record in good.trace:
    print(f"{record.step:13} {record.detail}")

# %% [markdown] id="canonical"
# Here is why the order matters. The model writes a path with a detour. The policy never sees what the model wrote; it
# sees where the path really leads.

# %% id="detour"
for path in ("shop/../shop/./prices.py", "shop/../../etc/passwd", "shop/price.py"):
    result = ladder.climb('{"name": "read_file", "arguments": {"path": "%s"}}' % path)
    told = " ".join(result.operation.resources) if result.outcome == "success" else result.observation.text
    print(f"{path:26} -> {result.outcome}: {told}")

# %% [markdown] id="audit"
# Two things come out of every call: the observation for the model, and an audit for people. The audit has one line when
# the request comes, one before the tool is run, and one at the end. They hold digests, versions and the decision; the raw
# reply is kept beside them, under its digest. The model sees none of it.

# %% id="audit-line"
lines = [line for line in ladder.pipeline.audit.lines() if line["request"] == good.request]
for line in lines:
    shown = {field: line[field] for field in ("outcome", "tool", "contract") if line.get(field)}
    if line.get("decision"):
        shown["decision"] = line["decision"]["why"]
    print(f"{line['event']:10}", *(f"{field}: {value}" for field, value in shown.items()), sep="  ")

# %% [markdown] id="ladder-intro"
# ## The stage ladder
#
# Edit the reply and watch the stages. Try to make it die at each of the five stages, one after the other:
#
# 1. *extract*: put the call into a sentence;
# 2. *parse*: add a comma after the last argument;
# 3. *validate*: misspell `path`, or write the arguments as a string;
# 4. *semantic*: ask for a file that is not there;
# 5. *dispatch*: call `run_tests` with the command `python -m unittest` (this ladder has no sandbox to run it in).
#
# The line below the observation says whether a decoder could have prevented it.

# %% id="ladder"
ladder.widget(CALL)

# %% [markdown] id="ladder-plain"
# The same without a widget: one reply for each stage.

# %% id="five-deaths"
from modtools.pipeline import FAILURES

REPLIES = [
    f"I would write {CALL} here.",
    CALL.replace('py"', 'py",'),
    CALL.replace('"path"', '"file"'),
    CALL.replace("prices", "price"),
    '{"name": "run_tests", "arguments": {"command": "python -m unittest"}}',
]
for reply in REPLIES:
    code = ladder.climb(reply).observation.code
    print(f"{FAILURES[code].stage:9} {code:18} decoder: {FAILURES[code].decoder:6} {FAILURES[code].meaning}")

# %% [markdown] id="decoder"
# *decoder: yes* means that a grammar over tokens could have made this reply impossible; notebook 02 builds one.
# *world* means only a grammar that knows which files exist. *no* means that no decoder can: whether a tool answers in
# time is not a property of the text. That is why constrained decoding does not replace the harness.

# %% [markdown] id="corrected"
# ## What was corrected
#
# - The module this course builds on draws five stages; its companion text lists nine steps. They are one road. The
#   kit has one pipeline, and `modtools.pipeline.STAGE_OF` says which step belongs to which stage.
# - The module says that grammar-constrained decoding eliminates parse failures by construction. It does not eliminate
#   truncation: a reply cut at the token limit inside a call is still no call. The next cell shows it.

# %% id="truncated"
cut = ladder.climb(CALL[:40], finish_reason="length")
print(cut.observation.text)
assert FAILURES[cut.observation.code].decoder == "no"

# %% [markdown] id="check-intro"
# ## Concept check

# %% id="concept"
from modtools.teaching.concept import ConceptCheck

question = ConceptCheck(
    "A decoder only lets the model emit calls that match the schema. Which failure is still possible?",
    {
        "a missing argument": "The schema says which arguments are required, so the grammar does too.",
        "single quotes around a key": "The grammar of JSON has no single quotes, so the mask never allows one there.",
        "a path that does not exist": "The grammar knows the schema, not the disk. Only the harness can look.",
        "an unknown tool name": "The names are a finite list, which a grammar can hold.",
    },
    right="a path that does not exist",
)
question.widget()

# %% id="concept-plain"
for option in question.options:
    print(f"{option}: {question.answer(option)}")

# %% [markdown] id="summary"
# ## Summary
#
# - Text is not a call. A pipeline of extract, parse, validate, semantic and dispatch stands between them.
# - Every reply ends in exactly one of ten outcomes, and every failure becomes an observation that says what was wrong,
#   where, and what was expected.
# - Syntax and schema can move into the decoder. The state of the world cannot.
#
# Next: notebook 02 builds the decoder; notebook 13 races three tool surfaces on the same tasks.
