"""The catalogue: every change makes a version, harms no older snapshot, and never lets a call reach another tool."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modtools.catalogue import Catalogue, Change, ChangeKind, Dependent, Snapshot
from modtools.contract import Operation, Tool, ToolContract, ToolResult
from modtools.errors import UsageError


def canonicalise(arguments, context):
    return Operation("act", arguments, (), ToolContract.effect)


def handler(operation, context):
    return ToolResult("done")


def tool(name: str = "send", source: str = "mail", version: str = "1.0.0", **fields) -> Tool:
    contract = ToolContract(name, fields.pop("description", "Acts."), {"type": "object"}, version, **fields)
    return Tool(contract, canonicalise, handler, source)


def catalogue(*tools: Tool) -> Catalogue:
    return Catalogue(Snapshot.of(tools or (tool(), tool("list"), tool("read", ""))))


def test_each_change_is_a_version_and_is_told():
    made = catalogue()
    snapshots = [
        made.snapshot,
        made.register(tool("pay", "bank"), ("acme/*",)),
        made.upgrade(tool(version="1.1.0")),
        made.deprecate("read", "mail.list"),
        made.revoke("mail.list", "it leaked"),
        made.lose("bank", "no answer"),
        made.policy_changed("payments need two people"),
    ]
    assert [snapshot.version for snapshot in snapshots] == [1, 2, 3, 4, 5, 6, 7] and made.snapshot is snapshots[-1]
    assert [(change.version, change.kind, change.names) for change in made.changes] == [
        (2, ChangeKind.REGISTERED, ("bank.pay",)),
        (3, ChangeKind.UPGRADED, ("mail.send",)),
        (4, ChangeKind.DEPRECATED, ("read",)),
        (5, ChangeKind.REVOKED, ("mail.list",)),
        (6, ChangeKind.SERVER_LOST, ("bank.pay",)),
        (7, ChangeKind.POLICY_CHANGED, ()),
    ]
    assert made.changes[1] == Change(
        3, ChangeKind.UPGRADED, ("mail.send",), "upgraded from 1.0.0 to 1.1.0 in catalogue version 3"
    )
    assert made.snapshot.retired == {
        "mail.list": "revoked: it leaked (catalogue version 5)",
        "list": "mail.list was revoked: it leaked (catalogue version 5)",
        "bank.pay": "lost with its server bank: no answer (catalogue version 6)",
        "pay": "bank.pay was lost with its server bank: no answer (catalogue version 6)",
    }
    assert snapshots[1].audiences == {"bank.pay": ("acme/*",)} and made.snapshot.audiences == {}
    assert "use instead: mail.list" in snapshots[3].schema_text and "instead" not in snapshots[2].schema_text


def test_an_upgrade_keeps_place_and_audience():
    made = Catalogue()
    made.register(tool(), ("acme/*",))
    made.register(tool("list"))
    now = made.upgrade(tool(version="1.0.10"))
    assert list(now.tools) == ["mail.send", "mail.list"] and now.audiences["mail.send"] == ("acme/*",)
    assert made.upgrade(tool(version="1.1.0")).tools["mail.send"].contract.version == "1.1.0"


def test_losing_a_server_takes_its_tools_and_no_others():
    made = catalogue(tool("a", "x"), tool("b", "x.y"), tool("x.c", ""), tool("d", "x"))
    assert list(made.lose("x", "gone").tools) == ["x.y.b", "x.c"]


# Each row: what happens to mail.send, or beside it, after a turn saw it; and what a call of that turn is told.
LOST = "lost with its server mail: no answer (catalogue version 2)"
REVOKED = "revoked: it leaked (catalogue version 2)"
HISTORIES = {
    "an unrelated tool": (lambda c: c.register(tool("pay", "bank")), "", ""),
    "a policy": (lambda c: c.policy_changed("stricter"), "", ""),
    "deprecated": (lambda c: c.deprecate("mail.send", "mail.post"), "", ""),
    "another revoked": (lambda c: c.revoke("mail.list", "x"), "", ""),
    "upgraded": (
        lambda c: c.upgrade(tool(version="2.0.0")),
        *["upgraded from 1.0.0 to 2.0.0 in catalogue version 2"] * 2,
    ),
    "deprecated, then upgraded": (
        lambda c: (c.deprecate("mail.send", "x"), c.upgrade(tool(version="2.0.0"))),
        *["upgraded from 1.0.0 to 2.0.0 in catalogue version 3"] * 2,
    ),
    "revoked": (lambda c: c.revoke("mail.send", "it leaked"), REVOKED, REVOKED),
    "lost": (lambda c: c.lose("mail", "no answer"), LOST, LOST),
    "lost, back as it was": (lambda c: (c.lose("mail", "no answer"), c.register(tool())), "", ""),
    "lost, back over a new connection": (
        lambda c: (c.lose("mail", "no answer"), c.register(replace(tool(), handler=lambda o, c: ToolResult("hi")))),
        *[f"{LOST}; registered at 1.0.0 in catalogue version 3"] * 2,
    ),
    "lost, back with another canonicaliser": (
        lambda c: (c.lose("mail", "no answer"), c.register(replace(tool(), canonicalise=lambda a, c: None))),
        *[f"{LOST}; registered at 1.0.0 in catalogue version 3"] * 2,
    ),
    "lost, back with a handler that is called otherwise": (
        lambda c: (c.lose("mail", "no answer"), c.register(replace(tool(), takes_call=True))),
        *[f"{LOST}; registered at 1.0.0 in catalogue version 3"] * 2,
    ),
    "revoked, back as a higher version": (
        lambda c: (c.revoke("mail.send", "it leaked"), c.register(tool(version="1.0.1"))),
        *[f"{REVOKED}; registered at 1.0.1 in catalogue version 3"] * 2,
    ),
    "a namesake": (
        lambda c: c.register(tool(source="post")),
        "",
        "ambiguous in catalogue version 2: it may mean mail.send, post.send",
    ),
    "a namesake of the host": (
        lambda c: c.register(tool(source="")),
        "",
        "in catalogue version 2 it would reach send, no longer mail.send",
    ),
    "a namesake that left": (lambda c: (c.register(tool(source="post")), c.lose("post", "x")), "", ""),
    "revoked, a namesake in its place": (
        lambda c: (c.revoke("mail.send", "it leaked"), c.register(tool(source="post"))),
        REVOKED,
        REVOKED,
    ),
}


@pytest.mark.parametrize("happening", HISTORIES)
def test_a_call_runs_only_where_its_name_still_means_the_tool_that_was_seen(happening):
    change, qualified, plain = HISTORIES[happening]
    made = catalogue()
    seen = made.snapshot
    change(made)
    assert made.difference(seen, "mail.send") == qualified
    assert made.difference(seen, "send") == plain


def test_only_what_happened_after_the_turn_is_told():
    made = catalogue()
    seen = made.upgrade(tool(version="1.1.0"))
    made.upgrade(tool(version="1.2.0"))
    assert made.difference(seen, "mail.send") == "upgraded from 1.1.0 to 1.2.0 in catalogue version 3"


def test_what_was_never_one_tool_of_the_turn_differs():
    made = catalogue(tool(), tool(source="post"))
    seen = made.snapshot
    made.register(tool("pay", "bank"))
    assert made.difference(seen, "bank.pay") == "it named 0 tools of catalogue version 1"
    assert made.difference(seen, "send") == "it named 2 tools of catalogue version 1"
    assert made.difference(catalogue(tool(description="Other.")).snapshot, "mail.send") == (
        "catalogue version 2 does not hold the tool that was seen"
    )


def test_in_a_part_a_plain_name_stays_plain_whatever_the_whole_gets():
    made = catalogue(tool(), tool(source="post"))
    part = made.sub_agent(("mail.send",))
    made.register(tool(source="bank"))
    assert made.difference(part, "send") == "" and made.difference(part, "post.send").startswith("it named 0 tools")
    made.revoke("mail.send", "it leaked")
    assert made.difference(part, "send") == "revoked: it leaked (catalogue version 3)"


def test_a_plain_name_that_meant_a_retired_tool_does_not_fall_to_its_namesake():
    made = catalogue(tool(), tool(source="post"))
    now = made.lose("mail", "no answer")
    assert now.find("send") == () and len(now.find("post.send")) == 1
    assert now.retired["send"] == f"mail.send was {LOST}; call post.send by its qualified name"
    host = made.register(tool(source=""))
    assert host.find("send") == (host.tools["send"],) and list(host.retired) == ["mail.send"]
    made.revoke("send", "it leaked")
    assert list(made.register(tool()).retired) == ["send"]


MISUSES = {
    "registering a name that exists": (lambda c: c.register(tool()), "upgrade it, or register under another name"),
    "one qualified name from two sources": (
        lambda c: c.register(tool("mail.send", "")),
        "'send' of source 'mail', 1.0.0; now 'mail.send' of the host",
    ),
    "upgrading the unknown": (lambda c: c.upgrade(tool("pay")), "valid: mail.send, mail.list, read"),
    "upgrading across sources": (lambda c: c.upgrade(tool("mail.send", "", "2.0.0")), "register it under another"),
    "other content, same version": (lambda c: c.upgrade(tool(description="x")), "valid: a version above 1.0.0"),
    "nothing new": (lambda c: c.upgrade(tool()), "valid: a version above 1.0.0"),
    "a lower version": (lambda c: c.upgrade(tool(version="0.9.9")), "cannot become 0.9.9"),
    "a plain name": (lambda c: c.revoke("send", "x"), "valid: mail.send, mail.list, read"),
    "deprecating the unknown": (lambda c: c.deprecate("pay", "x"), "valid: mail.send, mail.list, read"),
    "an unknown server": (lambda c: c.lose("post", "x"), "valid: mail"),
    "the host as a server": (lambda c: c.lose("", "x"), "valid: mail"),
    "no reason": (lambda c: c.revoke("read", " "), "why ' '"),
    "an audience without tenants": (lambda c: c.register(tool("pay"), ("acme",)), "audience"),
    "no JSON Schema": (
        lambda c: c.register(
            replace(
                tool("pay"), contract=replace(tool("pay").contract, input_schema={"type": "object", "minItems": -1})
            )
        ),
        "is no JSON Schema",
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_wrong_use_says_what_would_be_valid_and_changes_nothing(misuse):
    made = catalogue()
    before = made.snapshot
    use, message = MISUSES[misuse]
    with pytest.raises(UsageError) as error:
        use(made)
    assert message in str(error.value)
    assert made.snapshot is before and made.changes == ()


def test_a_revoked_name_comes_back_only_with_a_higher_version():
    made = catalogue()
    made.revoke("mail.send", "it leaked")
    with pytest.raises(UsageError, match="was revoked: it leaked"):
        made.revoke("mail.send", "again")
    for version in ("1.0.0", "0.9.0"):
        with pytest.raises(UsageError, match="valid: a version above 1.0.0$"):
            made.register(tool(version=version))
    assert made.register(tool(version="1.0.1")).retired == {}


def test_a_lost_servers_tool_comes_back_as_it_was_or_higher():
    made = catalogue()
    made.lose("mail", "no answer")
    with pytest.raises(UsageError, match="valid: a version above 1.0.0, or 1.0.0 with the contract it had"):
        made.register(tool(description="Acts otherwise."))
    made.register(tool("list", version="1.1.0"))
    made.revoke("mail.send", "it is why the server was stopped")
    with pytest.raises(UsageError, match="valid: a version above 1.0.0$"):
        made.register(tool())


def test_a_name_retired_before_the_catalogue_began_stays_so():
    made = Catalogue(Snapshot.of((tool(),), version=5, retired={"mail.old": "revoked: long ago"}))
    with pytest.raises(UsageError, match="revoked: long ago"):
        made.register(tool("old"))
    assert made.policy_changed("x").retired == {"mail.old": "revoked: long ago"} and made.snapshot.version == 6


STEPS = st.tuples(
    st.sampled_from(["register", "upgrade", "deprecate", "revoke", "lose", "policy_changed"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "x", "y"]),
)


@given(st.lists(STEPS, max_size=14))
def test_after_any_history_old_snapshots_stand_and_a_call_reaches_the_tool_it_saw(steps):
    """The model of it: a number for each tool that ever was, the same through deprecation."""
    made, version, identity, names = Catalogue(), 0, {}, []
    kept = [(made.snapshot, {}, {})]
    for kind, name, source in steps:
        version += 1
        new = tool(name, source, f"1.0.{version}")
        qualified = new.qualified_name
        try:
            if kind == "deprecate":
                made.deprecate(qualified, "another")
            elif kind == "policy_changed":
                made.policy_changed("x")
            elif kind == "lose":
                made.lose(source, "gone")
                identity = {known: number for known, number in identity.items() if not known.startswith(f"{source}.")}
            elif kind == "revoke":
                made.revoke(qualified, "bad")
                identity = {known: number for known, number in identity.items() if known != qualified}
            else:
                getattr(made, kind)(new)
                identity = {**identity, qualified: version}
        except UsageError:
            continue
        kept.append((made.snapshot, dict(made.snapshot.tools), identity))
        names.append(qualified)
    assert [snapshot.version for snapshot, _, _ in kept] == list(range(1, len(kept) + 1))
    for snapshot, tools, then in kept:
        assert dict(snapshot.tools) == tools and set(tools) == set(then)
        for qualified in then:
            runs = identity.get(qualified) == then[qualified]
            assert (made.difference(snapshot, qualified) == "") == runs
        for plain in ("a", "b"):
            found = snapshot.find(plain)
            if found and not made.difference(snapshot, plain):
                (seen,) = found
                assert identity[seen.qualified_name] == then[seen.qualified_name]
                assert plain not in made.snapshot.tools or seen.qualified_name == plain


@pytest.fixture
def restless():
    """Threads take turns every microsecond, so that what no lock guards is soon torn."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_make_one_line_of_versions_and_never_read_what_is_stale(restless):
    made, wrong = Catalogue(), []
    threads, each = 8, 25

    def work(source: str) -> None:
        for number in range(each):
            now = made.register(tool(f"t{number}", source))
            section = made.prompt_section()
            if len(section.splitlines()) < now.version - 1 or f"{source}.t{number}" not in section:
                wrong.append((now.version, section))
            made.replay_manifest()

    workers = [threading.Thread(target=work, args=(f"s{number}",)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert [change.version for change in made.changes] == list(range(2, threads * each + 2))
    assert made.prompt_section() == made.snapshot.schema_text
    assert made.replay_manifest()["catalogue"] == made.snapshot.version


def test_what_a_change_overtook_is_returned_and_not_kept():
    made = catalogue()

    def make() -> str:
        version = made.snapshot.tools["mail.send"].contract.version
        if version == "1.0.0":  # a change, out of the making itself: it deadlocks where the lock is held
            made.upgrade(tool(version="2.0.0"))
        return version

    assert made.derived(Dependent.SCHEMA_CACHE, "mail.send", make) == "1.0.0"
    assert made.derived(Dependent.SCHEMA_CACHE, "mail.send", make) == "2.0.0"


def test_what_could_not_be_made_is_not_kept():
    made = catalogue()
    with pytest.raises(ZeroDivisionError):
        made.derived(Dependent.SCHEMA_CACHE, "read", lambda: 1 // 0)
    assert made.derived(Dependent.SCHEMA_CACHE, "read", lambda: 7) == 7
