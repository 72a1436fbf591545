"""Rules about a tool as a whole: its name, its description, and whether it is one tool."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modtools.schemas.lint.finding import ERROR, NOTE, WARNING, Finding, arguments, words
from modtools.schemas.tool_list import ToolSchema

_CATCH_ALL_VERBS = {"manage", "handle", "execute", "perform", "process", "do", "invoke", "control", "administer"}
_SELECTORS = {"action", "operation", "op", "method", "command", "verb", "subcommand", "function"}
_CARRIERS = {"args", "arguments", "params", "parameters", "payload", "data", "options", "input", "body", "kwargs"}
_FILLER = set(
    "a an the this that of to for in on from with and or by is are it its your you use used using tool function allows "
    "lets let can will provides given specified specific which based method api call calls makes performs executes".split()
)
_CHANGES = set(
    "add append approve archive assign cancel charge close commit create delete deploy drop edit insert merge move "
    "overwrite pay post publish put refund remove rename replace reset restart send set stop submit transfer update upload "
    "write".split()
)
_DESTROYS = {"delete", "drop", "remove", "reset", "overwrite", "cancel", "refund", "pay", "transfer", "charge"}
_FAILURE_SAID = re.compile(r"\b(error|fail|invalid|raise|return[s]? (?:an? )?(?:error|null|none|false)|not found|must|only if|"
                           r"unless|if .{0,40}(?:exist|missing|empty))", re.IGNORECASE)  # fmt: skip
_UNDO_SAID = re.compile(r"\b(permanent|irreversib|cannot be undone|undo|recover|trash|reversib|restor|dry.?run|preview|"
                        r"confirm)", re.IGNORECASE)  # fmt: skip
_SHORT_WORDS = 4


def tool_findings(tool: ToolSchema) -> Iterator[Finding]:
    """What the rules say of a tool."""
    for rule in (catch_all, description, failure_unsaid, undo_unsaid, no_paging):
        yield from rule(tool)


def catch_all(tool: ToolSchema) -> Iterator[Finding]:
    """A whole domain behind one tool: what may be done stands in a text, and its arguments in a free object."""
    top = [argument for argument in arguments(tool) if len(argument.path) == 1]
    selector = next((a for a in top if a.name.lower() in _SELECTORS and a.is_a("string")), None)
    carrier = next((a for a in top if a.name.lower() in _CARRIERS and (a.is_a("object", "string") or not a.schema.get("type"))),
                   None)  # fmt: skip
    verb = words(tool.name)[:1]
    if selector and carrier and not carrier.schema.get("properties"):
        listed = "enum" in selector.schema
        yield Finding("catch_all", WARNING if listed else ERROR, tool.name,
                      f"{selector.name} says what is done, and {carrier.name} takes whatever that needs: the schema checks "
                      f"neither{', the choice of ' + selector.name + ' apart' if listed else ''}",
                      f"make one tool of each {selector.name}, with its own typed arguments")  # fmt: skip
    elif selector and verb and verb[0] in _CATCH_ALL_VERBS:
        yield Finding("catch_all", WARNING, tool.name, f"{verb[0]} and {selector.name} put several tools into one, with one "
                      "permission for all", f"make one tool of each {selector.name}; reads apart from changes")  # fmt: skip


def description(tool: ToolSchema) -> Iterator[Finding]:
    """Rule 3: the description conditions the choice of the tool."""
    said = [word for word in words(tool.description) if word not in _FILLER]
    if not tool.description.strip():
        yield Finding("no_description", ERROR, tool.name, "a model chooses by the description, and there is none",
                      "say what it does, what it needs, what it returns and when it fails")  # fmt: skip
    elif set(said) <= _stems(words(tool.name)) | set(words(tool.name)):
        yield Finding("echo", WARNING, tool.name, "the description says what the name says",
                      "add what it needs, what it returns and when it fails")  # fmt: skip
    elif len(said) < _SHORT_WORDS:
        yield Finding("thin", NOTE, tool.name, f"the description has {len(said)} telling words",
                      "add what it needs, what it returns and when it fails")  # fmt: skip


def failure_unsaid(tool: ToolSchema) -> Iterator[Finding]:
    """Rule 5 and property 4: a tool that changes something says on which condition."""
    verb = words(tool.name)[:1]
    if verb and verb[0] in _CHANGES and tool.description and not _FAILURE_SAID.search(tool.description):
        yield Finding("failure_unsaid", NOTE, tool.name, "it changes something, and does not say when it fails",
                      "name its preconditions, and what an error tells")  # fmt: skip


def undo_unsaid(tool: ToolSchema) -> Iterator[Finding]:
    """Poka-yoke: what destroys says whether it can be taken back."""
    verb = words(tool.name)[:1]
    text = f"{tool.description} {' '.join(argument.name for argument in arguments(tool))}"
    if verb and verb[0] in _DESTROYS and tool.description and not _UNDO_SAID.search(text):
        yield Finding("undo_unsaid", NOTE, tool.name, "it destroys or pays, and does not say whether that can be undone",
                      "say so; better, split it into a preview and a commit")  # fmt: skip


def no_paging(tool: ToolSchema) -> Iterator[Finding]:
    """A trait of a strong interface: large results come in parts."""
    verb = words(tool.name)[:1]
    bounded = {"limit", "page", "cursor", "offset", "count", "max", "top", "size", "per", "first", "n", "num", "fields"}
    named = {word for argument in arguments(tool) for word in words(argument.name)}
    if verb and verb[0] in {"list", "search", "query"} and not named & bounded and len(named) > 0:
        yield Finding("no_paging", NOTE, tool.name, "its result may be of any length, and nothing bounds it",
                      "add a limit with a maximum, and a way to the next part")  # fmt: skip


def _stems(names: list[str]) -> set[str]:
    """Plain forms of a name's words: file, files, filed, reads, reading."""
    return {stem + end for word in names for stem in {word, word.removesuffix("s"), word.removesuffix("e")}
            for end in ("", "s", "es", "d", "ed", "ing", "e")}  # fmt: skip
