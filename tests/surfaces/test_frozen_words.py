"""What a model learns and a recording keeps is frozen: prompts, tool descriptions, policy, and every kind of observation.

A recorded run and a trained adapter are about these very words. MODTOOLS_RECORD=1 writes them anew, which is right
only together with new recordings and a new adapter.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from modtools.contract import Effect, Operation, Outcome, Tool, ToolContract, ToolFailure, ToolResult
from modtools.catalogue import Snapshot
from modtools.lab.prompt import first_messages
from modtools.lab.tasks import task_by_id
from modtools.pipeline import FAILURES, WORKSPACE_POLICY, AuditLog, Pipeline, Policy, Request, Rule
from modtools.pipeline.hooks import HookAnswer, HookContract, HookPoint, Hooks
from modtools.sandbox import strongest_level
from modtools.surfaces import FineSwitches, build_surface

OPEN = Policy((Rule("allow", "*"),))
FROZEN = Path(__file__).with_name("frozen_words.json")
FILES = {
    "src/a.py": "X = 1\nY = X\n",
    "src/b.py": "Z = 3\n",
    "b.bin": b"\xff\xfe\0",
    "big.txt": "line\n" * 2000,
    "tests/__init__.py": "",
    "tests/test_a.py": "import unittest\nfrom src.b import Z\n\n\nclass T(unittest.TestCase):\n"
    "    def test_z(self):\n        self.assertEqual(Z, 3)\n",
}
READ = '{"name": "read_file", "arguments": {"path": "src/a.py"}}'


def call(name: str, **arguments) -> str:
    return json.dumps({"name": name, "arguments": arguments})


# (surface, reply, finish reason): at least one of every kind of mistake and of result.
REPLIES = [
    ("fine", '{"finish": true}', "stop"),
    ("fine", "I will read the file now.", "stop"),
    ("fine", f"First read it.\n```json\n{READ}\n```\nThen I will edit it.", "stop"),
    ("fine", f"{READ}\n{READ}", "stop"),
    ("fine", READ[:-10], "length"),
    ("fine", READ[:-10], "lost"),
    ("fine", '{"tool": "read_file", "path": "a"}', "stop"),
    ("fine", '{"name": "read_file", "path": "src/a.py"}', "stop"),
    ("fine", 'read_file("src/a.py")', "stop"),
    ("fine", f"[{READ}]", "stop"),
    ("fine", '{"finish": "yes"}', "stop"),
    ("fine", READ.replace('"}', '",}'), "stop"),
    ("fine", READ.replace('"', "'"), "stop"),
    ("fine", '{"name": "write_file", "arguments": {"path": "a", "content": "x\ny"}}', "stop"),
    ("fine", READ[:-1], "stop"),
    ("fine", '{"name": "read_file", "arguments": {"path": NaN}}', "stop"),
    ("fine", '{"name": "read_file", "arguments": {"path": "a", "path": "b"}}', "stop"),
    ("fine", '{"name": "read_file", "arguments": {"path": "\\ud800"}}', "stop"),
    ("fine", '{"name": "read_file", "arguments": {"path": ' + "[" * 100 + "]" * 100 + "}}", "stop"),
    ("fine", '{"name": "read_file", "arguments": {"path": src}}', "stop"),
    ("fine", call("open_file", path="src/a.py"), "stop"),
    ("fine", call("read_file"), "stop"),
    ("fine", call("read_file", file="src/a.py"), "stop"),
    ("fine", call("read_file", path="src/a.py", line=3), "stop"),
    ("fine", call("read_file", path=3), "stop"),
    ("fine", '{"name": "read_file", "arguments": "{\\"path\\": \\"src/a.py\\"}"}', "stop"),
    *[
        ("fine", call("read_file", path=path), "stop")
        for path in (
            "src/a.py",
            "a.py",
            "src/c.py",
            "/x/src/a.py",
            "../x",
            "src",
            "",
            "src\\a.py",
            ".",
            "b.bin",
            "big.txt",
        )
    ],
    *[("fine", call("search_files", pattern=pattern), "stop") for pattern in ("X", "", "a\nb", "Q", "line")],
    *[
        ("fine", call("replace_in_file", path="src/a.py", old=old, new=new), "stop")
        for old, new in (("X = 1", "X = 2"), ("X", "Q"), ("Q", "R"), ("", "R"), ("X", "X"))
    ],
    *[("fine", call("write_file", path=path, content="x\n"), "stop") for path in ("new.py", "src", "src/a.py/x")],
    *[
        ("fine", call("run_tests", command=command), "stop")
        for command in ("python -m unittest", "pytest", "python -m unittest tests/test_a.py", "'")
    ],
    ("coarse", call("do", op="read", args={"path": "src/a.py"}), "stop"),
    ("coarse", call("do", op="fly", args={}), "stop"),
    ("coarse", call("do", op="read", args={}), "stop"),
    ("coarse", call("do", op="read", args={"path": "src/a.py", "encoding": "u"}), "stop"),
    ("coarse", call("do", op="read", args={"path": "src/a.py", "file": "x"}), "stop"),
    ("coarse", call("do", op="read", args={"path": ["x"]}), "stop"),
    ("coarse", call("do", op="read", path="src/a.py"), "stop"),
    ("coarse", call("read", path="src/a.py"), "stop"),
    ("code", call("run_python", code="print(open('src/b.py').read())"), "stop"),
    ("code", call("run_python", code="print('before'); raise SystemExit(3)"), "stop"),
    ("code", call("run_python", code="print(1)\0"), "stop"),
    ("code", call("run_python", source="print(1)"), "stop"),
]


def fail(code: str, *parts: str):
    raise ToolFailure(code, *parts)


# Results and failures that the three surfaces do not show: handler -> what is observed.
HANDLERS = {
    "breaks": lambda operation, context: 1 / 0,
    "is limited": lambda operation, context: fail("rate_limited", "too many calls"),
    "has its own error": lambda operation, context: fail(
        "mailbox_full", "the mailbox is full", "arguments.to", "another"
    ),
    "is partial": lambda operation, context: ToolResult("3 of 5", "a\nb", outcome=Outcome.PARTIAL, code="partial"),
    "goes on": lambda operation, context: ToolResult("job 17", outcome=Outcome.BACKGROUND_ACCEPTED),
    "cannot tell": lambda operation, context: ToolResult("?", outcome=Outcome.UNKNOWN_OUTCOME, code="unknown_outcome"),
    "has more": lambda operation, context: ToolResult("page 1", "a", next_page='the same call with "page": 2'),
    "is done": lambda operation, context: ToolResult("sent"),
}


class _Hook:
    contract = HookContract("reviewer", HookPoint.PRE_TOOL_USE)

    def run(self, event):
        return HookAnswer(context="mind the tone")


def tool_words() -> dict[str, str]:
    """What is observed of a tool with effects, under policies and hooks that the surfaces do not have."""
    contract = ToolContract("send", "", {"type": "object"}, approval="none")

    def observe(handler, policy=OPEN, effect=Effect.WRITE, reply='{"name": "send"}', **named) -> str:
        tool = Tool(contract, lambda arguments, context: Operation("send", {}, ("mail:ann",), effect), handler)
        pipeline = Pipeline(Snapshot.of((tool,), retired={"post": "replaced by send"}), policy, AuditLog(), **named)
        return pipeline.run(Request("r", reply)).observation.text

    words = {name: observe(handler) for name, handler in HANDLERS.items()}
    words["reading, it breaks"] = observe(HANDLERS["breaks"], effect=Effect.READ)
    words["not allowed"] = observe(HANDLERS["is done"], Policy(()))
    words["must be approved"] = observe(HANDLERS["is done"], Policy((Rule("ask", "*"),)))
    words["beyond its contract"] = observe(HANDLERS["is done"], effect=Effect.EXECUTE)
    words["with a note"] = observe(HANDLERS["is done"], hooks=Hooks((_Hook(),)))
    words["retired"] = observe(HANDLERS["is done"], reply='{"name": "post"}')
    return words


def words_now(folder: Path) -> dict:
    """Everything that is frozen, as it is now."""
    task = task_by_id("set_value-2-0001")
    observations = []
    for number, (surface, reply, finish_reason) in enumerate(REPLIES):
        root = folder / str(number)
        for path, text in FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        pipeline = build_surface(surface).pipeline(root, strongest_level(), AuditLog())
        said = pipeline.run(Request("r", reply, finish_reason)).observation
        observations.append([surface, reply[:200], finish_reason, said.text])
    switches = {
        "default": FineSwitches(),
        "no edit command": FineSwitches(edit_command=False),
        "search dumps": FineSwitches(search_lists=False),
        "bare errors": FineSwitches(informative_errors=False),
        "no header": FineSwitches(result_header=False),
    }
    surfaces = {name: build_surface(name) for name in ("coarse", "code")}
    surfaces |= {f"fine, {name}": build_surface("fine", chosen) for name, chosen in switches.items()}
    return {
        "prompts": {name: first_messages(task, surface)[0].content for name, surface in surfaces.items()},
        "surface digests": {name: surface.digest for name, surface in surfaces.items()},
        "policy": WORKSPACE_POLICY.digest,
        "failures": {code: [mode.stage, mode.outcome, mode.retryable] for code, mode in FAILURES.items()},
        "observations": observations,
        "other observations": tool_words(),
    }


def changes(now: dict, frozen: dict) -> list[str]:
    """What is no longer as it was frozen, and what that means."""
    parts = sorted(part for part in now.keys() | frozen.keys() if now.get(part) != frozen.get(part))
    return [f"{part} changed: recordings and adapter must be made anew" for part in parts]


def test_words_and_policy_are_those_of_the_recordings_and_the_adapter(tmp_path, need):
    need(strongest_level() is not None, "a sandbox")
    now = json.loads(json.dumps(words_now(tmp_path)))
    if os.environ.get("MODTOOLS_RECORD"):
        FROZEN.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    assert changes(now, frozen) == []
    assert now == frozen


def test_a_change_of_any_part_says_what_must_be_made_anew():
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    for part in frozen:
        assert changes({**frozen, part: "other"}, frozen) == [
            f"{part} changed: recordings and adapter must be made anew"
        ]
    assert len(frozen["observations"]) == len(REPLIES) and len(frozen["prompts"]) == 7


def test_every_kind_of_failure_a_model_can_cause_on_the_surfaces_is_among_the_frozen_words():
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    seen = str(frozen["observations"]) + str(frozen["other observations"])
    # Not to be reached by a reply here: too long for a file of words, or of pipelines that the tests beside have.
    elsewhere = {"too_large", "ambiguous_tool", "not_in_enum", "out_of_range", "invalid_argument", "stale_version",
                 "idempotency_conflict", "approval_invalid", "hook_denied", "hook_failed", "reentrant_call", "timeout",
                 "unavailable", "busy", "cancelled", "already_done", "result_too_large", "result_wrong_shape",
                 "audit_unavailable"}  # fmt: skip
    assert {code for code in FAILURES if f"/{code}" not in seen} == elsewhere
