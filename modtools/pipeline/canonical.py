"""Commands, entities and e-mail addresses in one spelling, before any policy sees them (URLs: `address`).

Policy has to decide about the operation that will run. Each function takes untrusted text to its one canonical
text, or refuses with a ToolFailure that says what is wrong, where, and what was expected; canonical text goes
through unchanged. Paths are canonicalised by the workspace they lead into. Source: Part 05, "Canonicalise before
you authorise".
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Mapping

from modtools.contract import ToolFailure
from modtools.errors import UsageError
from modtools.pipeline.address import address_kind, canonical_host, canonical_url

__all__ = [
    "address_kind",
    "canonical_command",
    "canonical_email",
    "canonical_entity",
    "canonical_host",
    "canonical_url",
]

# Quoted text, an escaped character, or (in a group) a sign with which a shell does more than pass it on. Between double
# quotes "$" and "`" are such signs, escaped too: there shlex and shells do not agree.
_SHELL = re.compile(
    r"""'[^']*'|"(?:[^"\\$`]|\\[^$`\n])*(?:"|([$`\\]))|\\[^\n]|([;&|<>()$`*?\[\]{}~!#\n\\])""", re.DOTALL
)
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")


def canonical_command(
    text: str, allowed: Mapping[str, Collection[str]], where: str = "arguments.command", expected: str = ""
) -> tuple[str, ...]:
    """The words of a command, split without a shell; the first is the name of an allowed program.

    Args:
        text: as written by the model, quoted as for a POSIX shell on every system.
        allowed: program -> its other names, e.g. {"python": ("python3",)}. A path to a program is none of them.
        where: the argument to name in a failure.
        expected: what to say would have been right, or "" for a general hint.

    Raises:
        ToolFailure: malformed_identifier for quotes that are not closed or invisible characters;
            command_not_allowed for another program, and for anything that a shell would act upon (outside
            quotes), since there is no shell.
        UsageError: where a name stands for two programs.
    """
    programs = _alias_table([(alias, name) for name, aliases in allowed.items() for alias in aliases], allowed)
    text = text.strip(" \t\r\n")
    if any(unicodedata.category(c)[0] == "C" and c not in "\t\n" for c in text):
        raise ToolFailure("malformed_identifier", "the command has an invisible character", where, "plain text")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ToolFailure("malformed_identifier", f"the command cannot be split ({error})", where, expected) from None
    signs = [match[1] or match[2] for match in _SHELL.finditer(text) if match[1] or match[2]]
    program = programs.get(words[0], words[0]) if words else ""
    if signs or program not in allowed:
        hint = f"a command of {' or '.join(sorted(allowed))}" + (f", without {signs[0]!r}" if signs else "")
        what = f'"{text[:80]}" is not allowed'
        raise ToolFailure("command_not_allowed", what, where, expected or hint)
    return (program, *words[1:])


def canonical_entity(
    text: str,
    pattern: str,
    aliases: Mapping[str, str] | None = None,
    fold_case: bool = False,
    where: str = "arguments.id",
    expected: str = "",
) -> str:
    """The one spelling of an identifier, such as an invoice number or the name of an account.

    Compatibility forms (full width digits, ligatures) become the usual ones (Unicode NFKC). Blanks at the ends are
    refused, not trimmed.

    Args:
        text: as written by the model.
        pattern: regular expression of the whole identifier, in its canonical spelling; `\\d` and `\\w` are ASCII.
        aliases: other names -> the identifier meant; they need not match the pattern.
        fold_case: whether case makes no difference.
        where: the argument to name in a failure.
        expected: what to say would have been right, e.g. "an invoice number such as INV-0042".

    Raises:
        ToolFailure: malformed_identifier.
        UsageError: where an alias leads to another alias, to itself, to two identifiers, or to what is none.
    """
    whole = re.compile(pattern, re.ASCII)
    targets = set((aliases or {}).values())
    wrong = sorted(target for target in targets if _spelled(target, fold_case) != target or not whole.fullmatch(target))
    if wrong:
        raise UsageError(f"aliases lead to {', '.join(map(repr, wrong))}: expected identifiers that fit {pattern}")
    table = _alias_table([(_spelled(alias, fold_case), target) for alias, target in (aliases or {}).items()], targets)
    name = _spelled(text, fold_case)
    name = table.get(name, name)
    trimmed = text.strip() != text or name.strip() != name  # NFKC turns some signs into a blank and a mark
    if trimmed or any(unicodedata.category(c)[0] == "C" for c in text) or not whole.fullmatch(name):
        shown = text[:60].encode("ascii", "backslashreplace").decode()
        raise ToolFailure(
            "malformed_identifier", f'"{shown}" is no such identifier', where, expected or f"text that fits {pattern}"
        )
    return name


def canonical_email(text: str, fold_case: bool = False, where: str = "arguments.to") -> str:
    """The one spelling of one e-mail address: its domain as `canonical_host` writes it.

    Args:
        text: as written by the model.
        fold_case: whether case makes no difference before the "@" either; by the standard (RFC 5321) it may.
        where: the argument to name in a failure.

    Raises:
        ToolFailure: malformed_identifier for a display name, several recipients, a quoted or international local
            part, a line end, or a domain that is none or an address in numbers.
    """
    local, _, domain = text.rpartition("@")
    refused = ToolFailure(
        "malformed_identifier",
        f'"{text[:60].encode("ascii", "backslashreplace").decode()}" is not one plain e-mail address',
        where,
        'one address such as "name@example.org", without a display name',
    )
    if not _ATOM.fullmatch(local) or len(local) > 64 or "." not in domain or domain.endswith((".", "]")):
        raise refused
    try:
        host = canonical_host(domain, where)
    except ToolFailure:
        raise refused from None
    if host[-1].isdigit() and address_kind(f"https://{host}/") != "name":
        raise refused
    return f"{local.lower() if fold_case else local}@{host}"


def _alias_table(pairs: Iterable[tuple[str, str]], targets: Collection[str]) -> dict[str, str]:
    """alias -> target. One step must be enough, so a target is never an alias."""
    table: dict[str, str] = {}
    for alias, target in pairs:
        if alias in targets or table.get(alias, target) != target:
            raise UsageError(f"alias {alias!r} of {target!r}: expected a name that stands for nothing else")
        table[alias] = target
    return table


def _spelled(text: str, fold_case: bool) -> str:
    """NFKC, and case folded where asked; folding may undo NFKC and the other way round, so until it stays."""
    spelled = unicodedata.normalize("NFKC", text)
    while fold_case and (folded := unicodedata.normalize("NFKC", spelled.casefold())) != spelled:
        spelled = folded
    return spelled
