"""The linter: every planted defect is found by its rule and by no other's mistake, and a good list is left alone."""

from __future__ import annotations

import copy

import pytest

from modtools.schemas.lint import ERROR, NOTE, RULES, SEVERITIES, lint
from modtools.schemas.lint.argument_rules import choices_in
from modtools.schemas.lint.finding import words
from modtools.schemas.lint.list_rules import style_of
from modtools.schemas.tool_list import tools_of

GOOD = [
    {
        "name": "search_orders",
        "description": "Find orders by a text in their number or customer. Returns at most `limit` orders, newest first, "
        "and an error where the text is empty.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "part of a number or a name"},
                "status": {"type": "string", "enum": ["open", "paid", "sent"]},
                "since": {"type": "string", "format": "date", "description": "earliest day, in UTC"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
    },
    {
        "name": "cancel_order",
        "description": "Cancel an open order for good; it cannot be undone. Returns an error where the order was sent.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string", "description": "as search_orders returns it"},
                "reason": {"type": "string"},
                "notify_customer": {"type": "boolean"},
                "wait_seconds": {"type": "number", "minimum": 0, "maximum": 60},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["order_id", "reason"],
            "additionalProperties": False,
        },
    },
]


def rules_of(data) -> set[str]:
    return {finding.rule for finding in lint(tools_of(data))}


def test_a_good_list_has_no_finding():
    assert lint(tools_of(GOOD)) == []


def argument(schema: dict, name: str = "detail", tool: int = 0):
    def plant(data):
        data[tool]["inputSchema"]["properties"][name] = schema

    return plant


def change(tool: int = 0, **fields):
    def plant(data):
        data[tool].update(fields)

    return plant


def with_tool(name: str, description: str, properties: dict, required=("text",)):
    def plant(data):
        schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
        data.append({"name": name, "description": description, "inputSchema": schema})

    return plant


TEXT = {"text": {"type": "string"}}
PLANTED = {
    "an object without keys": ("free_form_object", argument({"type": "object"})),
    "an object open to all": ("free_form_object", argument({"type": "object", "additionalProperties": True})),
    "no type": ("untyped", argument({"description": "anything"})),
    "an array of anything": ("untyped", argument({"type": "array"})),
    "three objects deep": ("nested", argument({"type": "object", "properties": {"a": {"type": "object", "properties": {
        "colour": {"type": "string"}}}}})),
    "choices in words": ("missing_enum", argument({"type": "string", "description": "Order of the result: 'asc' or 'desc'."})),
    "choices after one of": ("missing_enum", argument({"type": "string", "description": "One of: low, normal, high."})),
    "a yes or no as text": ("text_for_a_type", argument({"type": "string", "description": "Either 'true' or 'false'."})),
    "a date without a form": ("unclear_format", argument({"type": "string", "description": "when it starts"}, "start_date")),
    "a path from nowhere": ("unclear_format", argument({"type": "string", "description": "the file to send"}, "file_path")),
    "a duration without a unit": ("unit_unsaid", argument({"type": "number", "minimum": 0, "description": "how patient to be"}, "timeout")),
    "an amount without bounds": ("unbounded", argument({"type": "integer", "description": "items in a part"}, "page_size")),
    "a name that tells nothing": ("no_description", argument({"type": "string"}, "x")),
    "no description": ("no_description", change(description="")),
    "an echo": ("echo", change(description="Searches orders.")),
    "a thin description": ("thin", change(description="Look up orders.")),
    "a change that does not say when it fails": ("failure_unsaid", change(1, description="Cancel an open order, permanently, for "
        "the customer and the warehouse.")),
    "a deletion that does not say whether it can be undone": ("undo_unsaid", change(1, description="Cancel an open order. Returns "
        "an error where it was sent.")),
    "required and not described": ("required_unknown", lambda data: data[0]["inputSchema"]["required"].append("owner")),
    "nothing required": ("nothing_required", lambda data: data[0]["inputSchema"].pop("required")),
    "manage()": ("catch_all", with_tool("manage_invoice", "Manage invoices of customers in the ledger; an error if it fails.",
        {"action": {"type": "string"}, "payload": {"type": "object"}}, ("action",))),
    "another style": ("mixed_styles", lambda data: (with_tool("getCustomer", "Return one customer by number, with the address; "
        "an error if unknown.", TEXT)(data), with_tool("list_parts", "Return the parts of an order, at most a hundred of them.",
        TEXT | {"limit": {"type": "integer", "minimum": 1}})(data))),
    "one verb by another word": ("neighbours", with_tool("find_orders", "Look for orders of a customer by their number, at most "
        "twenty of them.", TEXT | {"limit": {"type": "integer", "minimum": 1}})),
    "a twin": ("neighbours", with_tool("order_archive", GOOD[0]["description"], TEXT)),
    "one thing by two names": ("argument_names", lambda data: (argument({"type": "string", "description": "relative to the root"},
        "file_path")(data), argument({"type": "string", "description": "relative to the root"}, "filename", 1)(data))),
    "a name twice": ("name_twice", lambda data: data.append(copy.deepcopy(data[0]))),
    "a list without end": ("no_paging", with_tool("list_invoices", "Return the invoices of a customer, an error if unknown.", TEXT)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_is_found_with_place_reason_and_fix(name):
    rule, plant = PLANTED[name]
    data = copy.deepcopy(GOOD)
    plant(data)
    found = lint(tools_of(data))
    assert rule in {finding.rule for finding in found}, [(f.rule, f.where) for f in found]
    for finding in found:
        assert (
            finding.where and finding.why and finding.fix and finding.severity in SEVERITIES and finding.rule in RULES
        )
    others = {finding.rule for finding in found} - {rule}
    assert len(others) <= 1, others  # one defect may show twice, such as an untyped argument without a description


def test_every_rule_has_a_planted_defect():
    assert {rule for rule, _ in PLANTED.values()} == set(RULES)


def test_the_gravest_come_first():
    data = copy.deepcopy(GOOD)
    argument({"type": "object"})(data)
    argument({"type": "integer", "description": "items in a part"}, "page_size")(data)
    found = [finding.severity for finding in lint(tools_of(data))]
    assert found == [ERROR, NOTE]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "A colour, e.g. 'red' or 'blue'."},  # examples are no choices
        {"type": "string", "description": "Text such as 'hello' or 'bye'."},
        {"type": "string", "description": "The name of the person or company."},
        {"type": "string", "enum": ["a", "b"], "description": "'a' or 'b'"},
        {"type": "string", "pattern": "^(a|b)$", "description": "'a' or 'b'"},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"$ref": "#/$defs/colour"},
        {"const": 3},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "string"}},
    ],
)
def test_what_is_well_is_left_alone(schema):
    data = copy.deepcopy(GOOD)
    data[0]["inputSchema"]["$defs"] = {"colour": {"type": "string", "enum": ["red"]}}
    argument(schema)(data)
    assert lint(tools_of(data)) == []


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("Sort order: 'asc' or 'desc'", ["asc", "desc"]),
        ('Must be "open", "closed" or "all".', ["open", "closed", "all"]),
        ("One of small, medium or large", ["small", "medium", "large"]),
        ("Allowed values: a|b|c", ["a", "b", "c"]),
        ("Possible values are red/green", ["red", "green"]),
        ("For example 'a' or 'b'", []),
        ("The text 'a'", []),
        ("", []),
    ],
)
def test_choices_are_read_out_of_a_description(text, choices):
    assert choices_in(text) == choices


def test_schemas_that_refer_to_themselves_or_to_nothing_come_to_an_end():
    node = {
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/node"}, "size": {"type": "integer", "minimum": 0}},
    }
    for reference in ("#/$defs/node", "#/$defs/none", "https://example.org/x", "#"):
        data = copy.deepcopy(GOOD)
        data[0]["inputSchema"] |= {"$defs": {"node": node}}
        argument({"$ref": reference})(data)
        lint(tools_of(data))


def test_names_are_taken_apart_and_their_style_told():
    assert words("readHTMLFile_v2-now") == ["read", "html", "file", "v", "2", "now"]
    styles = {"read_file": "snake_case", "readFile": "camelCase", "ReadFile": "PascalCase", "read-file": "kebab-case",
              "read": "one word", "files.readAll": "camelCase"}  # fmt: skip
    assert {name: style_of(name) for name in styles} == styles


def test_a_tool_that_names_its_neighbour_is_told_apart():
    data = copy.deepcopy(GOOD)
    PLANTED["one verb by another word"][1](data)
    data[-1]["description"] += " For a text in any field take search_orders."
    assert rules_of(data) == set()
