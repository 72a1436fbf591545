"""What a change makes stale: the table, cell by cell, as the catalogue carries it out."""

from __future__ import annotations

import pytest

from modtools.catalogue import DEPENDENTS, Catalogue, ChangeKind, Dependent, Snapshot
from modtools.contract import Operation, Tool, ToolContract, ToolResult


def tool(name: str, source: str, version: str = "1.0.0") -> Tool:
    contract = ToolContract(name, "Acts.", {"type": "object"}, version)
    return Tool(
        contract, lambda a, c: Operation("act", a, (), contract.effect), lambda o, c: ToolResult("done"), source
    )


CHANGES = {
    ChangeKind.REGISTERED: lambda c: c.register(tool("new", "mail")),
    ChangeKind.UPGRADED: lambda c: c.upgrade(tool("send", "mail", "2.0.0")),
    ChangeKind.DEPRECATED: lambda c: c.deprecate("mail.send", "mail.list"),
    ChangeKind.REVOKED: lambda c: c.revoke("mail.send", "it leaked"),
    ChangeKind.SERVER_LOST: lambda c: c.lose("mail", "no answer"),
    ChangeKind.POLICY_CHANGED: lambda c: c.policy_changed("stricter"),
}
KEYS = ("", '["acme", "bob"]', "mail.send", "mail.list", "bank.pay", "mail.new")
WHOLES = {"", '["acme", "bob"]'}
CHANGED = {  # the entries that "tools" means; "mail.new" is an entry of a tool that is not there yet
    ChangeKind.REGISTERED: WHOLES | {"mail.new"},
    ChangeKind.UPGRADED: WHOLES | {"mail.send", "mail.new"},
    ChangeKind.DEPRECATED: WHOLES | {"mail.send", "mail.new"},
    ChangeKind.REVOKED: WHOLES | {"mail.send", "mail.new"},
    ChangeKind.SERVER_LOST: WHOLES | {"mail.send", "mail.list", "mail.new"},
    ChangeKind.POLICY_CHANGED: set(),
}
#                            schema   prompt   discovery authorisation sub-agent manifest
TABLE = {
    ChangeKind.REGISTERED: ["tools", "tools", "tools", "all", "all", "all"],
    ChangeKind.UPGRADED: ["tools", "tools", "tools", "all", "all", "all"],
    ChangeKind.DEPRECATED: ["-", "tools", "tools", "all", "all", "all"],
    ChangeKind.REVOKED: ["tools", "tools", "tools", "all", "all", "all"],
    ChangeKind.SERVER_LOST: ["tools", "tools", "tools", "all", "all", "all"],
    ChangeKind.POLICY_CHANGED: ["-", "-", "-", "all", "all", "all"],
}
CELLS = [
    (kind, dependent, drops) for kind, row in TABLE.items() for dependent, drops in zip(Dependent, row, strict=True)
]


def catalogue() -> Catalogue:
    return Catalogue(Snapshot.of((tool("send", "mail"), tool("list", "mail"), tool("pay", "bank"))))


def entries(made: Catalogue) -> dict[tuple[Dependent, str], object]:
    return {(dependent, key): made.derived(dependent, key, object) for dependent in Dependent for key in KEYS}


def test_the_table_has_every_cell_with_a_reason():
    assert set(DEPENDENTS) == set(ChangeKind) == set(CHANGES)
    for row in DEPENDENTS.values():
        assert list(row) == list(Dependent) and all(cell.reason for cell in row.values())


@pytest.mark.parametrize("kind, dependent, drops", CELLS, ids=[f"{k}-{d}" for k, d, _ in CELLS])
def test_a_change_drops_what_its_cell_lists_and_leaves_the_rest(kind, dependent, drops):
    assert DEPENDENTS[kind][dependent].drops == drops
    made = catalogue()
    before = entries(made)
    assert entries(made) == before, "nothing is made anew without a change"
    CHANGES[kind](made)
    after = entries(made)
    anew = {key for key in KEYS if after[dependent, key] is not before[dependent, key]}
    assert anew == {"-": set(), "tools": CHANGED[kind], "all": set(KEYS)}[drops]


# What the catalogue itself derives, and after which changes each must be another object.
USERS = {
    "prompt section": (lambda c: c.prompt_section(), set(ChangeKind) - {ChangeKind.POLICY_CHANGED}),
    "discovery": (lambda c: c.discoverable("bob", "acme"), set(ChangeKind) - {ChangeKind.POLICY_CHANGED}),
    "sub-agent": (lambda c: c.sub_agent(("bank.pay",)), set(ChangeKind)),
    "manifest": (lambda c: c.replay_manifest(), set(ChangeKind)),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("user", USERS)
def test_what_the_catalogue_derives_is_kept_or_made_anew_and_always_true(user, kind):
    made, (ask, stale_after) = catalogue(), USERS[user]
    before = ask(made)
    assert ask(made) is before
    now = CHANGES[kind](made)
    assert (ask(made) is not before) == (kind in stale_after)
    assert made.prompt_section() == now.schema_text
    assert made.discoverable("bob", "acme") == now.discoverable("bob", "acme")
    assert made.sub_agent(("bank.pay",)) == now.only(("bank.pay",))
    assert made.replay_manifest() == {
        "catalogue": now.version,
        "tools": {
            name: {"version": offered.contract.version, "contract": offered.contract.digest}
            for name, offered in now.tools.items()
        },
    }


def test_no_slash_in_a_name_reaches_another_actors_list():
    made = Catalogue(Snapshot.of((tool("pay", "bank"),), audiences={"bank.pay": ("a/*",)}))
    assert made.discoverable("b/c", "a") == ("bank.pay",)
    assert made.discoverable("c", "a/b") == ()


def test_sub_agents_of_the_same_tools_share_one_part_in_any_order():
    made = catalogue()
    assert made.sub_agent(("bank.pay", "mail.send")) is made.sub_agent(["mail.send", "bank.pay"])
    assert made.sub_agent(("bank.pay",)) is not made.sub_agent(("mail.send",))
