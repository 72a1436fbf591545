"""What the pipeline's tests share: small tools, and a pipeline around them."""

from __future__ import annotations

import json

from modtools.catalogue import Snapshot
from modtools.contract import Effect, Operation, Tool, ToolContract, ToolResult
from modtools.pipeline import AuditLog, Pipeline, Policy, Request, Rule

OPEN = Policy((Rule("allow", "*"),))
SCHEMA = {"type": "object", "properties": {"x": {}, "key": {"type": "string"}}}


def make_tool(
    handler=lambda operation, context: ToolResult("done"), name="t", effect=Effect.WRITE, source="", **fields
):
    """A tool that needs no approval and whose operation is `act` on workspace:x, with its arguments as they are."""
    canonicalise = fields.pop("canonicalise", None) or (
        lambda arguments, context: Operation("act", arguments, ("workspace:x",), effect)
    )
    takes_call = fields.pop("takes_call", False)
    contract = ToolContract(name, "A tool.", fields.pop("input_schema", SCHEMA), effect=effect,
                            **{"approval": "none", **fields})  # fmt: skip
    return Tool(contract, canonicalise, handler, source, takes_call)


def make_pipeline(*tools: Tool, policy=OPEN, audit=None, **named) -> Pipeline:
    """A pipeline over a snapshot of the tools."""
    return Pipeline(Snapshot.of(tools), policy, audit or AuditLog(), **named)


def call(name="t", **arguments) -> str:
    """A call as a model writes it."""
    return json.dumps({"name": name, "arguments": arguments})


def run(pipeline: Pipeline, id: str = "r1", text: str = call(), **fields):
    """Run one request."""
    return pipeline.run(Request(id, text, **fields))


def ends(pipeline: Pipeline, id: str) -> list[str]:
    """The outcomes of a request's terminal lines."""
    return [line["outcome"] for line in pipeline.audit.lines() if (line["request"], line["event"]) == (id, "terminal")]
