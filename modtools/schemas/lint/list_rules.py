"""Rules about a list of tools: names that agree, and neighbours that can be told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from modtools.schemas.lint.finding import ERROR, NOTE, WARNING, Finding, arguments, words
from modtools.schemas.lint.tool_rules import _FILLER
from modtools.schemas.tool_list import ToolSchema

_SYNONYMS = (
    {"get", "fetch", "retrieve", "read", "load", "show", "view"},
    {"find", "search", "query", "lookup"},
    {"create", "add", "new", "make", "insert"},
    {"delete", "remove", "drop", "destroy"},
    {"update", "edit", "modify", "change", "set", "patch"},
    {"run", "execute", "invoke"},
)
_SAME_THING = (
    {"path", "file_path", "filepath", "filename", "file_name", "file"},
    {"query", "q", "search_term", "search_query", "search"},
    {"limit", "max_results", "count", "num_results", "page_size", "per_page", "top_k"},
    {"directory", "dir", "folder", "directory_path", "dir_path", "folder_path"},
    {"url", "uri", "link", "address"},
)
_ALIKE = 0.8  # share of telling words in common from which two descriptions say the same


def list_findings(tools: Sequence[ToolSchema]) -> Iterator[Finding]:
    """What the rules say of the tools together."""
    for rule in (twice, styles, argument_names, neighbours):
        yield from rule(tools)


def twice(tools: Sequence[ToolSchema]) -> Iterator[Finding]:
    """One name, two tools."""
    for name, many in Counter(tool.name for tool in tools).items():
        if many > 1:
            yield Finding("name_twice", ERROR, name, f"{many} tools have this name", "give each its own")


def styles(tools: Sequence[ToolSchema]) -> Iterator[Finding]:
    """Rule 4: one way to write names."""
    found: dict[str, list[str]] = {}
    for tool in tools:
        found.setdefault(style_of(tool.name), []).append(tool.name)
    found.pop("one word", None)
    if len(found) > 1:
        common, *others = sorted(found, key=lambda style: -len(found[style]))
        for style in others:
            yield Finding("mixed_styles", WARNING, ", ".join(found[style][:5]), f"{style}, where {len(found[common])} other "
                          f"names are {common}", f"write all names in {common}")  # fmt: skip


def style_of(name: str) -> str:
    """How a name joins its words."""
    plain = name.rsplit(".", 1)[-1].rsplit("/", 1)[-1]
    if "-" in plain:
        return "kebab-case"
    if "_" in plain:
        return "snake_case"
    if re.fullmatch(r"[a-z0-9]+", plain):
        return "one word"
    return "PascalCase" if plain[:1].isupper() else "camelCase"


def argument_names(tools: Sequence[ToolSchema]) -> Iterator[Finding]:
    """Rule 4, for arguments: one thing, one name."""
    top = {
        tool.name: {argument.name.lower() for argument in arguments(tool) if len(argument.path) == 1} for tool in tools
    }
    for group in _SAME_THING:
        used = Counter(name for names in top.values() for name in names & group if len(names & group) == 1)
        if len(used) > 1:
            (common, _), *others = used.most_common()
            for name, _ in others:
                whose = [tool for tool, names in top.items() if name in names]
                yield Finding("argument_names", NOTE, f"{', '.join(whose[:5])}, argument {name}", f"other tools call it {common}",
                              f"one name for one thing: {common}")  # fmt: skip


def neighbours(tools: Sequence[ToolSchema]) -> Iterator[Finding]:
    """Pairs that a model may confuse: the same verb by another word, a plural, or descriptions that say the same."""
    for first, second in combinations(tools, 2):
        if first.name == second.name:
            continue
        reason = _confusable(first, second)
        if reason:
            yield Finding("neighbours", WARNING, f"{first.name}, {second.name}", reason,
                          "say in each description when to take the other, or merge them")  # fmt: skip


def _confusable(first: ToolSchema, second: ToolSchema) -> str:
    one, other = words(first.name), words(second.name)
    if _told_apart(first, second):
        return ""
    if one[1:] and one[1:] == other[1:] and any({one[0], other[0]} <= group for group in _SYNONYMS):
        return f"{one[0]} and {other[0]} mean the same, and the rest of the names is equal"
    if [word.rstrip("s") for word in one] == [word.rstrip("s") for word in other]:
        return "the names differ by a plural, or by how they are written"
    mine, theirs = ({word for word in words(tool.description) if word not in _FILLER} for tool in (first, second))
    if min(len(mine), len(theirs)) >= 4 and len(mine & theirs) / len(mine | theirs) >= _ALIKE:
        return "their descriptions say nearly the same"
    return ""


def _told_apart(first: ToolSchema, second: ToolSchema) -> bool:
    """Whether one description names the other tool, and so says when to take which."""
    return second.name in first.description or first.name in second.description
