"""A snapshot: names lead to one tool or to none, audiences come before any search, and nothing in it changes."""

from __future__ import annotations

import json

import pytest

from modtools.catalogue import Snapshot
from modtools.contract import Operation, Tool, ToolContract, ToolResult, digest
from modtools.errors import UsageError


def tool(name: str, source: str = "", **fields) -> Tool:
    contract = ToolContract(name, f"Does {name}.", {"type": "object", "properties": {"x": {}}}, **fields)
    return Tool(contract, lambda a, c: Operation(name, a, (), contract.effect), lambda o, c: ToolResult("done"), source)


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [found.qualified_name for found in tools]


def test_a_plain_name_finds_every_tool_that_bears_it():
    snapshot = Snapshot.of((tool("send", "mail"), tool("send", "post"), tool("list", "mail")))
    assert names(snapshot.find("send")) == ["mail.send", "post.send"]
    assert names(snapshot.find("list")) == names(snapshot.find("mail.list")) == ["mail.list"]
    assert snapshot.find("Send") == snapshot.find("mail") == snapshot.find("mail.") == snapshot.find("") == ()


def test_a_qualified_name_means_its_own_tool_only():
    snapshot = Snapshot.of((tool("send", "mail"), tool("send"), tool("mail.send", "other")))
    assert names(snapshot.find("send")) == ["send"]
    assert names(snapshot.find("mail.send")) == ["mail.send"]


def test_a_retired_name_never_falls_to_a_namesake():
    snapshot = Snapshot.of((tool("send", "mail"),), retired={"send": "revoked: it leaked"})
    assert snapshot.find("send") == () and names(snapshot.find("mail.send")) == ["mail.send"]


def test_two_tools_of_one_qualified_name_are_refused_with_both_origins():
    with pytest.raises(UsageError, match="'b.c' of source 'a'; 'c' of source 'a.b'"):
        Snapshot.of((tool("b.c", "a"), tool("c", "a.b")))
    with pytest.raises(UsageError, match="two tools are named 'mail.send'.*of the host; 'send' of source 'mail'"):
        Snapshot.of((tool("mail.send"), tool("send", "mail")))


@pytest.mark.parametrize("source", ["mаil", "mail ", "mail\n", 'a"b', ".mail", "m" * 65])
def test_a_source_that_is_no_plain_name_is_refused(source):
    with pytest.raises(UsageError, match="source"):
        Snapshot.of((tool("send", source),))


def test_of_the_hosts_own_tools_text_and_digest_are_those_of_the_contracts():
    tools = (tool("read"), tool("write", version="2.0.1"))
    snapshot = Snapshot.of(tools)
    assert snapshot.schema_text == "\n".join(t.contract.schema_text for t in tools)
    assert snapshot.digest == digest([[t.contract.schema_text, t.contract.version] for t in tools])


def test_the_text_shows_qualified_names_and_what_to_use_instead():
    snapshot = Snapshot.of((tool("send", "mail"), tool("list", "mail", deprecated="mail.search")))
    send, listing = map(json.loads, snapshot.schema_text.splitlines())
    assert send == {**json.loads(tool("send").contract.schema_text), "name": "mail.send"}
    assert listing["name"] == "mail.list"
    assert listing["description"] == "Does list. Deprecated; use instead: mail.search"
    assert snapshot.digest != Snapshot.of((tool("send", "mail"), tool("list", "mail"))).digest


def test_an_audience_is_matched_for_tenant_and_actor_apart():
    tools = (tool("all"), tool("acme"), tool("bob"), tool("nobody"), tool("two"))
    audiences = {"acme": ("acme/*",), "bob": ("*/bob",), "nobody": (), "two": ("acme/ann", "umbra/*")}
    snapshot = Snapshot.of(tools, audiences=audiences)
    assert snapshot.discoverable("ann", "acme") == ("all", "acme", "two")
    assert snapshot.discoverable("bob", "umbra") == ("all", "bob", "two")
    assert snapshot.discoverable("eve/bob", "acme/x") == ("all",)
    assert snapshot.discoverable("ann", "ACME") == snapshot.discoverable("", "") == ("all",)
    assert snapshot.discoverable("acme/*", "*") == ("all",), "a pattern in an actor's name is no pattern"


@pytest.mark.parametrize("audiences", [{"reed": ("a/b",)}, {"read": "acme/*"}, {"read": ("acme",)}, {"read": (1,)}])
def test_an_audience_that_would_not_be_heeded_is_refused(audiences):
    with pytest.raises(UsageError, match="audience"):
        Snapshot.of((tool("read"),), audiences=audiences)


def test_a_part_holds_what_it_was_given_under_the_same_version():
    tools = (tool("send", "mail"), tool("send", "post"), tool("read"))
    audiences = {"mail.send": ("acme/*",), "post.send": ()}
    part = Snapshot.of(tools, 7, {"old": "revoked: x", "older": "y"}, audiences).only(("read", "mail.send", "old"))
    assert list(part.tools) == ["mail.send", "read"] and part.version == 7 and part.part
    assert part.tools["read"] is tools[2] and part.audiences == {"mail.send": ("acme/*",)}
    assert part.retired == {"old": "revoked: x"}, "it is told of no other names"
    assert names(part.find("send")) == ["mail.send"]
    assert part.discoverable("eve", "umbra") == ("read",)


def test_a_part_of_what_is_not_there_is_refused_with_what_is():
    with pytest.raises(UsageError, match="has no reed, send; there are mail.send, read"):
        Snapshot.of((tool("send", "mail"), tool("read"))).only(("send", "reed", "read"))
    with pytest.raises(UsageError, match="mail.send"):
        Snapshot.of((tool("send", "mail"), tool("read"))).only(("read",)).only(("mail.send",))


def test_nobody_can_write_to_a_snapshot():
    mine = {"read": tool("read")}
    snapshot = Snapshot(1, mine)
    mine["write"] = tool("write")
    assert list(snapshot.tools) == ["read"]
    for mapping in (snapshot.tools, snapshot.retired, snapshot.audiences):
        with pytest.raises(TypeError):
            mapping["read"] = tool("write")
