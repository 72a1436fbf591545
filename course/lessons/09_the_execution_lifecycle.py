# %% [markdown] id="title"
# # 09 · The execution lifecycle: exactly one result for every call
#
# A call is valid and allowed. Now it has to be carried out, once, and both the model and the people behind it must
# learn how it ended. Handlers raise, hang, return megabytes and die. Two calls race. Somebody's plug-in wants a say.
# This notebook runs one call through all of that, for real.
#
# After this notebook you can
#
# - name the eleven steps between a model's text and a recorded effect, and say how a call can end at each;
# - tell the ten outcomes apart, and explain why a timeout is not "nothing happened";
# - read an audit, verify its chain, and say what the chain cannot show;
# - tell listener, hook, interceptor, middleware and policy gate apart by what they can do, and predict what several of
#   them do together.
#
# Contents: a naive loop · the road of a call · ten outcomes · exactly one result · the stepper · timeout and the unknown ·
# one piece of work, once · retries · background work · audit and observation · the chain · a kill from outside · hooks ·
# what was corrected · concept checks · limits · summary. It runs in about half a minute on two cores, without a GPU,
# a network or a model. You should know notebooks 00 and 08.

# %% [markdown] id="naive"
# ## A naive loop
#
# The first loop that everybody writes looks a name up and calls what it finds. Ours even has a time limit and catches
# exceptions. The tool sends mail; `OUTBOX` stands for the mail server.

# %% id="naive-loop"
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OUTBOX, HANDLERS, POOL = [], {}, ThreadPoolExecutor(4)
CALL = '{"name": "send_mail", "arguments": {"to": "a@example.org"}}'


def naive(text, timeout_s=1.0):
    """What the model is told."""
    call = json.loads(text)
    try:
        return str(POOL.submit(HANDLERS[call["name"]], **call["arguments"]).result(timeout_s))
    except TimeoutError:
        return "error: timed out"
    except Exception as error:
        return f"error: {error}"


HANDLERS["send_mail"] = lambda to: OUTBOX.append(to) or f"sent to {to}"
print(naive(CALL), "| mails:", len(OUTBOX))

# %% [markdown] id="naive-good"
# It works, as long as nothing goes wrong. Here are five things that go wrong. First, an exception. Its text was written
# for a log file. The loop hands it to the model, and from there it can travel into any later tool call.


# %% id="naive-leak"
def log_in_fails(to):
    raise RuntimeError("cannot log in as robot with password hunter2")


HANDLERS["send_mail"] = log_in_fails
print(naive(CALL))

# %% [markdown] id="naive-timeout-note"
# Second, a slow server. The mail goes out, but the answer comes late. The loop says "timed out", the caller takes that
# for "not done", and tries again.


# %% id="naive-timeout"
late = threading.Event()


def slow(to):
    OUTBOX.append(to)
    late.wait(60)  # the effect has happened; the answer takes its time
    return f"sent to {to}"


HANDLERS["send_mail"] = slow
OUTBOX.clear()
for attempt in (1, 2):
    print(f"try {attempt}: {naive(CALL, timeout_s=0.1)}")
late.set()
time.sleep(0.2)
print("mails:", len(OUTBOX))

# %% [markdown] id="naive-kill-note"
# Third, a death between the effect and its record. The program below sends, then notes that it has sent. We kill it in
# between, from outside, and start it again as an operator would.

# %% id="naive-kill"
PROGRAM = """
import os, sys, time
if not os.path.exists("noted"):
    with open("outbox", "a") as outbox:
        outbox.write("x")
    os.write(1, b".")
    time.sleep(float(sys.argv[1]))
    open("noted", "w").close()
"""
with tempfile.TemporaryDirectory() as folder:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, "60"], cwd=folder, stdout=subprocess.PIPE) as program:
        program.stdout.read(1)  # it has sent
        program.kill()
    subprocess.run([sys.executable, "-c", PROGRAM, "0"], cwd=folder, stdout=subprocess.PIPE, check=True)
    print("mails:", len(Path(folder, "outbox").read_text()))

# %% [markdown] id="naive-rest-note"
# Fourth, a big result. Fifth, two calls at once that are one piece of work. The handler even looks whether the work was
# done, but looking and doing are two moments.


# %% id="naive-rest"
HANDLERS["send_mail"] = lambda to: "log line\n" * 600_000
print(f"{len(naive(CALL)):,} characters go into the model's context")

SENT, both_have_looked = set(), threading.Barrier(2)


def send_once(to):
    if to not in SENT:
        both_have_looked.wait(5)
        OUTBOX.append(to)
        SENT.add(to)
    return f"sent to {to}"


HANDLERS["send_mail"] = send_once
OUTBOX.clear()
racers = [threading.Thread(target=naive, args=(CALL, 5)) for _ in range(2)]
for racer in racers:
    racer.start()
for racer in racers:
    racer.join()
print("mails:", len(OUTBOX))

# %% [markdown] id="naive-sum"
# None of these is mended by a better prompt, and none by a decoder. They are the harness's business.

# %% [markdown] id="road"
# ## The road of a call
#
# What the model wrote is a *proposed* operation. The kit takes it along one road. Module 2 draws five stages; Part 05
# lists nine steps, which begin after the reply has been cut out and end with a commit. With the extraction in front, and
# one of the nine split in two, the kit has eleven. (Part 05 puts the catalogue first. The kit fixes its snapshot before the
# first step, and looks the name up once it has been read.) Both are on the board below. Before normalising, a call can also
# end as `cancelled` at every step: while the tool runs, as `unknown_outcome` where it has effects. And wherever a step
# itself breaks, it ends as `unavailable_tool`, or again as `unknown_outcome` once a tool with effects has begun.

# %% id="figure"
from modtools.teaching.lifecycle_figure import lifecycle_figure

lifecycle_figure()

# %% [markdown] id="mail-tool-note"
# Now the same tool with a contract. A canonicaliser says what the call would touch; the handler does it. The helpers
# below are all that the rest of the notebook needs.

# %% id="mail-tool"
from modtools.catalogue import Catalogue, Snapshot
from modtools.contract import Effect, Operation, Outcome, Tool, ToolContract, ToolFailure, ToolResult
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Rule

SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
    "required": ["to"],
    "additionalProperties": False,
}
OPEN = Policy((Rule("allow", "*", id="open"),))


def send(operation, context):
    OUTBOX.append(operation.arguments["to"])
    return ToolResult(f"sent to {operation.arguments['to']}")


def mail_tool(handler=send, takes_call=False, effect=Effect.EXTERNAL_SEND, **semantics):
    """The tool with a handler of our choice and some semantics of its contract."""
    fields = {"approval": "none", "timeout_s": 0.2, **semantics}
    contract = ToolContract("send_mail", "Send a mail.", SCHEMA, effect=effect, **fields)

    def canonicalise(arguments, context):
        return Operation("send", arguments, (f"mailbox:{arguments['to']}",), effect)

    return Tool(contract, canonicalise, handler, takes_call=takes_call)


def post_office(tool, policy=OPEN, audit=None, **named):
    """A pipeline over the one tool."""
    return Pipeline(Snapshot.of((tool,)), policy, audit or AuditLog(), **named)


def written(to="a@example.org", **more):
    """A call as a model writes it."""
    return json.dumps({"name": "send_mail", "arguments": {"to": to, **more}})


OUTBOX.clear()
office = post_office(mail_tool())
first = office.run(Request("r1", written()))
for record in first.trace:
    print(f"{record.step:13} {record.detail}")
print(f"\n{first.outcome} | the model is told: {first.observation.text!r} | mails: {len(OUTBOX)}")

# %% [markdown] id="road-note"
# Read it downwards. The name is looked up in a snapshot of the catalogue. Classify says what *this* call does:
# `external_send`. Authorise decides about the canonical operation. Bind is the last step before the effect, and there
# the audit gets the line `executing`: the record is written *before* the deed. Whoever finds that line without an end
# knows that something may have been done.

# %% [markdown] id="outcomes"
# ## Ten outcomes
#
# "It failed" is not enough for a model that must decide what to do next, nor for a person who must clean up. There are
# ten ways to end. Each is produced below by one small call. Before you run it, say which of the ten leave open whether a
# mail has gone out.


# %% id="ten"
def breaks_after_sending(operation, context):
    send(operation, context)
    raise RuntimeError("cannot log in as robot with password hunter2")


def sends_half(operation, context):
    return ToolResult("1 of 2 sent", outcome=Outcome.PARTIAL, code="partial")


def hangs(operation, context):
    time.sleep(3600)


catalogue = Catalogue(Snapshot.of((mail_tool(),)))
seen = catalogue.snapshot
catalogue.revoke("send_mail", "a security hole")

READS = {"effect": Effect.READ}
ASKS = Policy((Rule("ask", "*", id="mail"),))


def run(pipeline, text=written(), **fields):
    """One request to a pipeline."""
    return pipeline.run(Request("r", text, **fields))


ends = {
    "all goes well": run(post_office(mail_tool())),
    "an argument is missing": run(post_office(mail_tool()), '{"name": "send_mail", "arguments": {}}'),
    "the policy denies": run(post_office(mail_tool(), Policy(()))),
    "the policy asks": run(post_office(mail_tool(), ASKS)),
    "it only reads, and hangs": run(post_office(mail_tool(hangs, **READS))),
    "the caller cancels": post_office(mail_tool()).run(Request("r", written()), cancelled=lambda: True),
    "half is done": run(post_office(mail_tool(sends_half))),
    "it goes on behind": run(post_office(mail_tool(background=True))),
    "it sends, then breaks": run(post_office(mail_tool(breaks_after_sending))),
    "the tool was revoked": run(Pipeline(catalogue, OPEN, AuditLog()), seen=seen),
}
for what, end in ends.items():
    print(f"{what:25} {end.outcome}\n    {re.sub('[0-9a-f]{12}', '<id>', end.observation.text)}")
assert {end.outcome for end in ends.values()} == set(Outcome)

# %% [markdown] id="outcomes-note"
# A missing argument is for the model to mend. A denial and an ask are for people. Two outcomes leave the state of the world
# open: `background_accepted` until the end of the work is heard, and `unknown_outcome`, whose observation says so and
# asks the model to look before it tries again. And nowhere does the text of an exception appear:

# %% id="no-leak"
print(any("hunter2" in end.observation.text for end in ends.values()))

# %% [markdown] id="one-result"
# ## Exactly one result
#
# Whatever happens on the way: each request has one terminal result, and the audit has one terminal line for it. A claim
# like this is worth what has been tried against it. `inject` strikes one call with one fault, for real, and writes down
# what came out. The tool leaves a mark each time its work is done, so we count effects and do not trust reports of them.
#
# Here are all faults that are quick to inject. Hangs, huge results, dying processes and kills follow below, or in
# `modtools faults`, which does them all.

# %% id="faults"
from modtools.teaching.faults import inject, problems
from modtools.teaching.injections import FAULTS

SLOW = {"hangs", "hangs in a process", "dies in a process", "returns 100 MB", "killed"}
rows = {
    (fault, step, effect): inject(fault, step, effect)
    for fault, steps in FAULTS.items()
    if fault not in SLOW
    for step in steps
    for effect in ("write", "read")
}
print(f"{'fault':24}{'at step':14}{'a tool that writes':22}{'done':6}{'a tool that reads':22}done")
for fault, step, effect in rows:
    if effect == "write":
        writes, reads = rows[fault, step, "write"], rows[fault, step, "read"]
        print(f"{fault:24}{step:14}{writes.outcome:22}{writes.done:<6}{reads.outcome:22}{reads.done}")

# %% [markdown] id="faults-note"
# Compare the two halves of a line. Where the handler itself goes wrong, the same fault ends a reading call as
# `unavailable_tool` or `cancelled` and a writing call as `unknown_outcome`. Before the handler has begun, both end alike,
# and nothing was done. In the two lines "used before" the one mark is the work of an earlier request.
#
# "disk full" at extract is the one request without any line in the log: there was no disk to write it to. It is refused
# before anything is done. At commit the work is done and its end cannot be written: then nobody says "success", since the
# next process would read it as unknown, for a reading tool too.
#
# Now the invariants, as code: one end (or none where nothing could be written), no work twice, no effect that the outcome
# denies, a whole chain, no exception's text. A check that cannot fail proves nothing, so we also feed it a lie.

# %% id="invariants"
from dataclasses import replace

found = {place: problems(row) for place, row in rows.items() if problems(row)}
print(len(rows), "faults injected, problems:", found or "none")
assert not found

honest = rows["raises", "execute", "write"]
for lie in ({"outcome": "timeout"}, {"done": 2}, {"ends": 2}, {"ends": 0}, {"whole": False}):
    print(lie, "->", problems(replace(honest, **lie)))

# %% [markdown] id="stepper-note"
# ## The stepper
#
# Choose a fault and the step it strikes, and whether the tool writes or reads. You see how far the call came, what the
# audit holds, what the model is told and how often the work was done. Each choice is injected when you make it; a hang
# takes two or three seconds. Some to look for:
#
# 1. "raises" at each of its steps. At which does it begin to matter whether the tool writes?
# 2. "disk full, at commit". The work was done, and nobody can write it down. What is the model told?
# 3. "hook raises, at normalise". The result is withheld. Was the call refused?
# 4. "killed, at bind" against "killed, at execute". Can the next process tell them apart?

# %% id="stepper"
from modtools.teaching.lifecycle_stepper import lifecycle_stepper, stepper_text, strike

lifecycle_stepper()

# %% [markdown] id="stepper-plain-note"
# The same without a widget, for the second question. Put in what you like.

# %% id="stepper-plain"
print(stepper_text(strike("disk full, at commit", "writes")))

# %% [markdown] id="timeout"
# ## A timeout is not "nothing happened"
#
# The naive loop took a late answer for no effect. The contract of a tool says what it can change, and that decides what
# a late answer means. One handler, which leaves its mark and then hangs; three ways to run it.

# %% id="hangs"
hung = {
    "reads, in a thread": inject("hangs", "execute", "read"),
    "writes, in a thread": inject("hangs", "execute", "write"),
    "writes, in a process": inject("hangs in a process", "execute", "write"),
}
for how, row in hung.items():
    print(f"{how:22} {row.outcome:16} work done: {row.done}   {row.observation.partition('. ')[2]}")
assert not any(problems(row) for row in hung.values())

# %% [markdown] id="hangs-note"
# (A thread gets two seconds more than its contract says, so that a handler whose own request has the same limit can still
# report it.) The mark is there in all three. For a tool that only reads, a second try costs nothing. For a tool with effects nobody
# knows, so the outcome says that nobody knows. Ending the process does not help with that: it stops what would have come
# later. It does not undo what was done.
#
# What ending it does help with is everything after. A process can be ended, with all that it started. A thread cannot: it
# can only be left behind. Look what that means for the next call.

# %% id="left-behind"
may_go_on, has_ended = threading.Event(), threading.Event()


def waits(operation, context):
    may_go_on.wait(60)
    has_ended.set()
    return send(operation, context)


OUTBOX.clear()
office = post_office(mail_tool(waits))
print("first: ", office.run(Request("r1", written())).outcome, "| its thread has ended:", has_ended.is_set())
print("second:", office.run(Request("r2", written())).observation.text)
may_go_on.set()
has_ended.wait(60)
print("third: ", office.run(Request("r3", written())).outcome, "| mails:", len(OUTBOX))

# %% [markdown] id="left-behind-note"
# The first call was given up, and its thread still holds its lock: a second writer beside a first that nobody can stop
# would be a race. So the second call is told `busy`, and nothing of it was done. When the left-behind thread at last ends,
# the lock is free. Its mail did go out, long after its request had ended as `unknown_outcome`. That is why the outcome
# has this name.
#
# A handler that is to be stoppable must say so in its contract, `runs="process"`, and stand in a module that a fresh
# interpreter can import. A function of this notebook cannot, and the pipeline says so before any call.

# %% id="process-refused"
from modtools.errors import UsageError

try:
    post_office(mail_tool(runs="process"))
except UsageError as error:
    print(error)

# %% [markdown] id="once"
# ## One piece of work, once
#
# When are two calls the same work? The harness cannot guess: two equal mails may both be wanted. The contract says it, by
# naming arguments. Calls of one actor that agree in them have one *idempotency key*. The same race as at the start, with
# a key; then other work under the used key.

# %% id="keyed"
OUTBOX.clear()
office = post_office(mail_tool(lambda operation, context: time.sleep(0.05) or send(operation, context),
                               idempotency_key=("to",), timeout_s=5))  # fmt: skip
codes = []
racers = [
    threading.Thread(target=lambda i=i: codes.append(office.run(Request(f"r{i}", written())).observation.code))
    for i in range(2)
]
for racer in racers:
    racer.start()
for racer in racers:
    racer.join()
print("codes:", sorted(codes), "| mails:", len(OUTBOX))
print("other work under the key:", office.run(Request("r2", written(text="something else"))).observation.code)

# %% [markdown] id="keyed-note"
# One call did the work; the other waited for it and was told `already_done`, which is a success. A key under which
# something may have been done stays taken. It is free again only where nothing was done. The key is in the audit, so it
# outlives the process, too.

# %% [markdown] id="retries"
# ## Retries
#
# A retry is a second effect unless something says that it is not. The pipeline tries again only where all of this holds:
# the contract has retries left; the failure is one that may pass; and either the handler declined *before* any effect, or
# the tool reads, or its contract calls it idempotent. We count the tries.


# %% id="tries"
def tries(failure, **semantics):
    """How often a handler is called that always fails."""
    count = []

    def fails(operation, context):
        count.append(1)
        raise failure

    post_office(mail_tool(fails, timeout_s=5, **semantics)).run(Request("r", written()))
    return len(count)


busy, absent = ToolFailure("rate_limited", "too many mails"), ToolFailure("precondition_failed", "no such list")
for what, failure, semantics in (
    ("declines, may pass", busy, {}),
    ("declines, may pass", busy, {"retries": 2}),
    ("declines, will not pass", absent, {"retries": 2}),
    ("breaks", RuntimeError(), {"retries": 2}),
    ("breaks", RuntimeError(), {"retries": 2, "idempotent": True}),
    ("breaks", RuntimeError(), {"retries": 2, **READS}),
):
    said = ", ".join(f"{name}={value}" for name, value in semantics.items()) or "the cautious contract"
    print(f"{what:24} {said:32} tries: {tries(failure, **semantics)}")

# %% [markdown] id="background"
# ## Background work
#
# Some work takes longer than a model should wait. Its request is *accepted*, and that is its one terminal result. What
# comes later are events that name the request. The end of the work is never a second result.

# %% id="background-run"
heard, over = [], threading.Event()


def listen(event):
    heard.append(event)
    if event.kind == "completed":
        over.set()


def newsletter(operation, context, call):
    call.progress("1 of 2 sent")
    return ToolResult("2 of 2 sent")


office = post_office(mail_tool(newsletter, takes_call=True, background=True), on_event=listen)
accepted = office.run(Request("r1", written()))
over.wait(30)
print("result:  ", accepted.outcome, "|", re.sub("[0-9a-f]{12}", "<id>", accepted.observation.text))
for event in heard:
    print(f"event:    {event.kind} of {event.request}: {event.text}")
print("on record:", [line["event"] for line in office.audit.lines()])

# %% [markdown] id="two-products"
# ## Audit and observation
#
# Two products leave a call. The observation answers one question: what does the model need for its next decision? The
# audit answers another: what was asked, decided and done? Neither is made from the other. Here is one call with an
# argument that the contract redacts and a credential that only the handler gets. The handler is careless and writes both
# into its result.

# %% id="both"
from modtools.pipeline import verify_audit


def careless(operation, context, call):
    return ToolResult("sent", f"logged in with {call.credentials['post']}, wrote: {operation.arguments['text']}")


folder = Path(tempfile.mkdtemp())
audit = AuditLog(folder)
tool = mail_tool(careless, takes_call=True, redact=("text",), credentials=("post",))
office = post_office(tool, audit=audit, vault=lambda actor, tenant, name: "key-4711")
result = office.run(Request("r1", written(text="my pin is 0815")))

print("THE MODEL IS TOLD\n" + result.observation.text)
print("\nTHE AUDIT HOLDS")
for line in audit.lines():
    print(f"{line['event']}: {', '.join(name for name in line if name not in ('event', 'request'))}")
terminal = audit.lines()[-1]
print("\nTHE REPLY IS KEPT AS\n" + audit.artefact(terminal["raw_artefact"]).decode())

# %% [markdown] id="both-note"
# The audit has digests of the raw reply, the arguments, the operation and the observation; the versions of contract,
# catalogue and policy; the decision. The model needs none of that. The reply is kept beside the log, without the redacted
# value; the digest in the line is that of the original. Neither secret is anywhere in the folder:

# %% id="grep"
files = [path for path in folder.rglob("*") if path.is_file()]
for secret in ("0815", "key-4711"):
    print(secret, "found in", [path.name for path in files if secret in path.read_text()])

# %% [markdown] id="big-note"
# The same two products for the big result that the naive loop passed on. The observation shows the beginning and the end
# and names the artefact, which holds the whole.

# %% id="big"
audit = AuditLog()
office_log = post_office(
    mail_tool(lambda operation, context: ToolResult("the log", "log line\n" * 600_000)), audit=audit
)
observation = office_log.run(Request("r1", written())).observation
print(f"{len(observation.text):,} characters for the model, {len(audit.artefacts[observation.artefact]):,} bytes kept")
print([line for line in observation.text.splitlines() if "left out" in line][0].partition("; ")[0])

# %% [markdown] id="chain"
# ## The chain
#
# Each line of the audit holds the digest of the line before it. Two more calls, so that there are nine lines; then we
# change one byte in each line in turn, and verify.

# %% id="one-byte"
for i in (2, 3):
    office.run(Request(f"r{i}", written(text="my pin is 0815")))
log = folder / "audit.jsonl"
whole, kept = log.read_bytes(), verify_audit(folder).head
lines = whole.splitlines(keepends=True)

for number, line in enumerate(lines, 1):
    other = line.replace(b'"time":1', b'"time":9')
    assert other != line
    log.write_bytes(b"".join(lines[: number - 1] + [other] + lines[number:]))
    without, given = verify_audit(folder).broken_at, verify_audit(folder, kept).broken_at
    print(f"line {number} changed: broken at {without}, with the head at {given}")

# %% [markdown] id="one-byte-note"
# A change is found at the next line, which remembers the old digest. So the last line has nobody to remember it. The same
# goes for lines that are cut off at the end: what is left is a whole, shorter log. Only the *head* helps, the digest of
# the last line, kept somewhere else.

# %% id="cut-off"
log.write_bytes(b"".join(lines[:6]))
for name, head in (("without the head", ""), ("with the head", kept)):
    found = verify_audit(folder, head)
    print(f"{name}: {found.records} records, {found.why or 'whole'}")
log.write_bytes(whole)
print("as it was:", verify_audit(folder, kept).why or "whole")

# %% [markdown] id="chain-note"
# On the command line that is `modtools audit verify FOLDER --head ...`. Whoever can write the file can also make all
# lines anew, with fitting digests. That too is found by a head kept elsewhere, and by nothing else.

# %% [markdown] id="kill"
# ## A kill from outside
#
# Now the death that made the naive loop send twice. A child process makes the call, says when it has come to a place, and
# is killed there by the operating system. Then we open its log, as the next process would. That process has only the
# disk.

# %% id="killed"
for step, place in (
    ("extract", "after received is written"),
    ("bind", "after executing is written"),
    ("execute", "in the handler, the work done"),
    ("commit", "before terminal is written"),
):
    row = inject("killed", step)
    assert not problems(row)
    print(f"{place:31} {row.outcome:16} work done: {row.done}   {row.audit}")

# %% [markdown] id="killed-note"
# Four places, one end each. Without the line `executing`, nothing can have begun: `cancelled`. With it, the next process
# cannot know. At the second place nothing was done, and the outcome is `unknown_outcome` all the same: on disk the second
# and the third look alike. Saying less than one might know is the price of never saying more than one does.

# %% [markdown] id="hooks"
# ## Hooks: foreign code on the road
#
# Hosts let others attach behaviour to a call: a logger, a spending limit, a filter for addresses. Part 05 tells five
# shapes apart. In the kit the difference is code: each shape is one method, and what the pipeline reads of its answer.
# The table of shapes says which powers a contract *can* give at which point.

# %% id="shapes"
from modtools.pipeline.hooks import SHAPES

for shape, (protocol, points) in SHAPES.items():
    (method,) = [name for name in vars(protocol) if name in ("notify", "run", "intercept", "wrap", "judge")]
    for point, powers in points.items():
        print(f"{shape:12} {method:10} {point:14} {', '.join(powers) or 'nothing'}")

# %% [markdown] id="five-note"
# Five objects, one of each shape. All try the same thing: to stop the call. Each is tried twice, with a contract that
# gives it nothing and with one that lets it block.

# %% id="five"
from modtools.pipeline import Level
from modtools.pipeline.hooks import HookAnswer, HookContract, HookPoint, Hooks, Refusal

PRE, POST, FAILED, ENDED = HookPoint
TRIES = {
    "listener": ("notify", lambda event: Refusal("no mail today"), ENDED),
    "hook": ("run", lambda event: HookAnswer(deny="no mail today"), PRE),
    "interceptor": ("intercept", lambda event: Refusal("no mail today"), PRE),
    "middleware": ("wrap", lambda event, proceed: Refusal("no mail today"), PRE),
    "policy gate": ("judge", lambda query: ("deny", "no mail today"), PRE),
}


class Attached:
    """An object with a contract and one method; the method makes it the shape that it is."""

    def __init__(self, method, does, contract):
        setattr(self, method, does)
        self.contract = contract


def attached(shape, name, does=None, **parts):
    """A hook of this shape."""
    method, stops, point = TRIES[shape]
    failure = "open" if shape == "listener" else "closed"
    parts = {"point": point, "tools": "send_mail", "failure": failure, "side_effects": "none", **parts}
    return Attached(method, does or stops, HookContract(name, **parts))


BLOCKS = {"may": ("block",), "ceiling": Level.RESOURCE_DENY}
for shape in TRIES:
    for allowed, parts in (("nothing", {}), ("block", BLOCKS)):
        OUTBOX.clear()
        try:
            hooks = Hooks((attached(shape, "stop", **parts),))
        except UsageError as error:
            print(f"{shape:12} may: {allowed:8} refused when it was attached: {error}")
            continue
        result = post_office(mail_tool(), hooks=hooks).run(Request("r", written()))
        print(f"{shape:12} may: {allowed:8} mails: {len(OUTBOX)}  {result.outcome:18} {result.hooks[0].did}")

# %% [markdown] id="five-read"
# The listener's answer is not read: the mail goes out. It cannot even be given the power. The other four stop the call
# either way, but not in the same way. With the power they *deny*, and their reason is on record. Without it they have
# broken their contract, and a hook that breaks before the effect fails closed: the call ends as `permission_denied`, for
# another reason.
#
# Part 05 warns: do not infer authority from the name. Here is that sentence in code.


# %% id="names"
from modtools.pipeline.hooks.shapes import shape_of


class EnterpriseSecurityGate:
    contract = HookContract("enterprise_security", ENDED, failure="open")

    def notify(self, event):
        return Refusal("forbidden by enterprise security")


grants = attached("policy gate", "admin", lambda query: ("allow", "I am the admin"), ceiling=Level.SESSION_GRANT)
denied = Policy((Rule("deny", "*", level=Level.TENANT_DENY, id="no mail"),))
print("EnterpriseSecurityGate is a", shape_of(EnterpriseSecurityGate()))
result = post_office(mail_tool(), denied, hooks=Hooks((grants,))).run(Request("r", written()))
print("the gate says", result.hooks[0].did, "| the call ends as", result.outcome, "|", result.decision.why)

# %% [markdown] id="twelve"
# ### A contract in twelve parts
#
# The name of an event promises nothing. Part 05 lists twelve things that a production hook has to define. They are the
# fields of `HookContract`; what is left out gives no power and takes the cautious value.

# %% id="parts"
from dataclasses import fields

PARTS = {
    "timing": ("point", "tools"),
    "input and output schemas": ("input_schema", "output_schema"),
    "what it may change": ("changes",),
    "what else it may do": ("may",),
    "ceiling of its authority": ("ceiling",),
    "order": ("order",),
    "conflicts": ("conflicts",),
    "timeout": ("timeout_s",),
    "failure policy": ("failure",),
    "side effects of its own": ("side_effects",),
    "trace fields": ("trace_fields",),
    "re-entrancy guard": ("reentry",),
}
cautious = HookContract("h", PRE)
for number, (part, names) in enumerate(PARTS.items(), 1):
    print(f"{number:2} {part:25} {', '.join(f'{name}={str(getattr(cautious, name))}' for name in names)}")
assert {name for names in PARTS.values() for name in names} == {field.name for field in fields(HookContract)} - {"name"}

# %% [markdown] id="contradictions"
# Some combinations contradict themselves, and a contract that does is refused when it is written.

# %% id="refused"
for parts in (
    {"may": ("block",), "failure": "open"},
    {"may": ("block",), "reentry": "skip"},
    {"changes": ("everything",)},
):
    try:
        HookContract("limit", PRE, **parts)
    except UsageError as error:
        print(error)

# %% [markdown] id="composition"
# ### Several at once
#
# "The first that answers wins" would make the order of registration a security setting. The rules are others. A denial
# or a cancellation wins wherever it stands. Texts add up within a budget. Changes that differ need a resolver that the
# host has named.


# %% id="composed"
def adds(text):
    return lambda event: HookAnswer(context=text)


def rewrites(text):
    return lambda event: HookAnswer(arguments={**event.arguments, "text": text})


def shortest(event, proposals):
    return min(proposals.values(), key=lambda arguments: len(arguments["text"]))


def sent_text(operation, context):
    return ToolResult(f"sent: {operation.arguments.get('text', '')}")


CHANGES = {"changes": ("input",), "side_effects": "none"}
pairs = [("polite", "Dear reader, hello"), ("brief", "Hello")]
cases = {
    "a denial, last in order": Hooks(
        (attached("hook", "eager", rewrites("hi"), order=1, **CHANGES), attached("hook", "limit", order=9, **BLOCKS))
    ),
    "three notes of 60, 130 allowed": Hooks(
        [attached("hook", f"note {i}", adds(f"{i}" * 60)) for i in "123"], context_chars=130
    ),
    "two changes, no resolver": Hooks([attached("hook", name, rewrites(text), **CHANGES) for name, text in pairs]),
    "two changes, a resolver": Hooks(
        [attached("hook", name, rewrites(text), conflicts="shortest", **CHANGES) for name, text in pairs],
        {"shortest": shortest},
    ),
}
for what, hooks in cases.items():
    result = post_office(mail_tool(sent_text), hooks=hooks).run(Request("r", written(text="?")))
    print(f"{what}\n  {result.observation.text.replace(chr(10), chr(10) + '  ')}")
    print(f"  [{'; '.join(f'{hook.name}: {hook.did}' for hook in result.hooks)}]")

# %% [markdown] id="composed-note"
# All hooks were asked each time, and all are on record: one answer does not hide another. What a hook makes of the
# arguments is believed as little as what the model wrote. It is validated, canonicalised and decided like any call.
#
# A hook's retry is a wish, too. It is granted within the contract's budget, which the hook shares with the pipeline, and
# only for a call that may be repeated. Below, `unavailable` is a failure that the pipeline itself never tries again, and
# `rate_limited` one that it does. With both the handler declines before any effect. Where it breaks, it may have sent.

# %% id="hook-retries"
again = attached("hook", "again", lambda event: HookAnswer(retry="once more"), point=FAILED, may=("retry",))
down = ToolFailure("unavailable", "the server is down")
for what, failure, retries in (
    ("unavailable", down, 0),
    ("unavailable", down, 1),
    ("rate_limited", busy, 1),
    ("breaks", RuntimeError(), 1),
):
    count = []

    def fails(operation, context):
        count.append(1)
        raise failure

    tool = mail_tool(fails, retries=retries, timeout_s=5)
    result = post_office(tool, hooks=Hooks((again,))).run(Request("r", written()))
    print(f"{what:12} retries={retries}  tries: {len(count)}")
    for hook in result.hooks:
        print("    ", hook.did)

# %% [markdown] id="fails"
# ### When a hook breaks
#
# A hook that could have said no must not be lost in silence. What may change or stop a call fails closed. What only
# listens fails open. One case in between deserves a look: a hook behind the effect, whose work was to take something out
# of the result.


# %% id="broken-hooks"
def breaks(event):
    raise ValueError("cannot reach the limits service")


for what, hook in {
    "a spending limit": attached("hook", "limit", breaks, **BLOCKS),
    "a filter of results": attached("hook", "filter", breaks, point=POST, changes=("output",)),
    "telemetry": attached("listener", "telemetry", breaks),
}.items():
    OUTBOX.clear()
    result = post_office(mail_tool(), hooks=Hooks((hook,))).run(Request("r", written()))
    print(f"{what:20} {result.outcome:18} mails: {len(OUTBOX)}  {result.observation.text}")

# %% [markdown] id="broken-note"
# The filter cannot take the mail back. So the call is a success, the truth is on record, and the result is withheld: what
# the filter would have removed must not be told.
#
# Last, a hook that calls the very tool it guards. It would be asked about its own call, and so for ever.

# %% id="reentry"
print(stepper_text(strike("hook calls its tool, at authorise", "writes")))

# %% [markdown] id="reentry-note"
# The guard follows the *context* of the hook, so it also holds in threads that inherit it. A raw thread does not. The next
# cell shows the gap: the hook starts one, and the call from there is taken as a call of its own, hooks and policy
# included.

# %% id="raw-thread"
nested = []


def starts_a_thread(event):
    if event.request == "outer":
        inner = threading.Thread(target=lambda: nested.append(office.run(Request("inner", written())).outcome))
        inner.start()
        inner.join()


OUTBOX.clear()
office = post_office(mail_tool(), hooks=Hooks((attached("hook", "curious", starts_a_thread),)))
print("outer:", office.run(Request("outer", written())).outcome, "| inner:", *nested, "| mails:", len(OUTBOX))

# %% [markdown] id="corrected"
# ## What was corrected
#
# - Part 05 says itself that failure does not establish the absence of a side effect. Its list of outcomes leaves open
#   which failure ends how. In the kit the *effect* of the call decides: the same hang is `timeout` for a reader and
#   `unknown_outcome` for a writer.
# - It lists `approval_required` among the outcomes without saying whether the request goes on afterwards. In the kit it is
#   terminal. An approval opens a new request, which names the old one; otherwise one request would have two ends.
# - It asks that a background completion does not masquerade as a second result. In the kit it cannot: a completion is an
#   event of another kind, and the log refuses a second terminal line (next cell).
# - "Do not infer authority from the name" is advice there. Here the shape is found by method, and powers by contract.
# - It says that retry requests stay subject to budgets. Whose budget? Here it is the contract's, one for pipeline and
#   hooks together. While this notebook was written the kit had two, and a contract with one retry got four tries; it
#   was mended, and a test holds it.

# %% id="second-end"
audit = AuditLog()
post_office(mail_tool(), audit=audit).run(Request("r1", written()))
try:
    audit.append("r1", "terminal", {"outcome": "success"})
except UsageError as error:
    print(error)

# %% [markdown] id="checks"
# ## Concept checks

# %% id="check-timeout"
from modtools.teaching.concept import ConceptCheck

late = ConceptCheck(
    "A tool that books a flight gives no answer in time. It ran in a process, which was ended. What may be said?",
    {
        "It was not booked: the process is dead.": "The booking may have left the machine before the process was ended.",
        "It was booked: the request had been sent.": "Nobody knows whether it had been sent.",
        "It may or may not be booked.": "That is unknown_outcome. One looks at the airline's side before trying again.",
        "It can simply be tried again.": "Only where the contract says that doing it twice is doing it once.",
    },
    right="It may or may not be booked.",
)
late.widget()

# %% id="check-timeout-plain"
for option in late.options:
    print(f"{option} {late.answer(option)}")

# %% id="check-chain"
tampered = ConceptCheck(
    "The verification says that an audit is whole. You kept no head. What may still have happened?",
    {
        "A word in the middle was changed": "The next line holds the digest of the old line, so that is found.",
        "A line in the middle was taken out": "The line after it names a digest that is not there. That is found.",
        "The last hour was cut off": "Nothing after it remembers it. Only a head kept elsewhere shows it.",
        "An artefact was replaced": "It is named by its digest, which verify computes again.",
    },
    right="The last hour was cut off",
)
tampered.widget()

# %% id="check-chain-plain"
for option in tampered.options:
    print(f"{option}: {tampered.answer(option)}")

# %% id="check-hook"
guard = ConceptCheck(
    "A plug-in brings a listener PaymentGuard that logs payments above a limit. Is the limit enforced?",
    {
        "Yes, it is a guard": "The name gives no authority.",
        "Yes, if it fails closed": "A listener changes nothing, so it cannot fail closed; such a contract is refused.",
        "No": "A listener hears of a call after its end. A limit belongs in a policy, a gate, or a hook that may block.",
        "Only if it is first in order": "Order decides who is asked first. No order makes a listener's answer count.",
    },
    right="No",
)
guard.widget()

# %% id="check-hook-plain"
for option in guard.options:
    print(f"{option}: {guard.answer(option)}")

# %% [markdown] id="limits"
# ## Limits
#
# - A thread cannot be killed. A handler or a hook that hangs in one is left behind; its late answer is thrown away, and
#   its effect may still happen.
# - A line of the audit survives the death of the process. It is not forced to the disk, so a power cut can lose the last
#   lines. Nothing that is left is wrong then, but it is shorter.
# - The chain shows changes. It does not show who made them, and without a head kept elsewhere it does not show a
#   shortened log.
# - A raw thread started by a hook escapes the guard against re-entrancy. It does not escape the policy.
# - Redaction works on values that the contract names. A secret that a handler invents or transforms is not known to it.
# - After `unknown_outcome` somebody has to look. Compensation, that is undoing what turned out to be done, is not part of
#   this pipeline.

# %% [markdown] id="summary"
# ## Summary
#
# - Between a model's text and an effect lie eleven steps. The record `executing` is written before the deed, the terminal
#   line after it, and there is exactly one.
# - Ten outcomes. Effect decides what a failure means; `unknown_outcome` says that nobody knows.
# - A key makes two calls one piece of work. A retry needs a contract that allows it.
# - The audit is for people, the observation for the model. The chain finds a changed line; the head finds a missing end.
# - A hook has the powers of its contract and shape. Denial comes first, conflicts need a resolver, and what could have
#   said no fails closed.
#
# Try `modtools faults` for the whole fault table, and `modtools audit verify` on a run of your own.
