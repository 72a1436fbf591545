"""Redaction: the values of arguments that a contract names never leave the pipeline.

Where a call could be parsed, its secret values are known, and every text that goes out (observation, audit,
artefact) is scrubbed of them, before it is cut or put on one line. Where it could not, nobody knows what is secret, so
nothing of the reply is kept or quoted.

What this cannot hide: the digests in an audit are over the whole reply and the whole operation. Who has the audit can
find a value of few possibilities, such as a PIN, by trying them all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from modtools.contract import Failure
from modtools.pipeline.failures import FAILURES

MARK = "[redacted]"


def secret_values(arguments: Any, names: Collection[str], inside: bool = False) -> Iterator[str]:
    """The text of every value that stands under one of the names, at any depth; within it, names are values too."""
    if isinstance(arguments, dict):
        for key, value in arguments.items():
            if inside:
                yield key
            yield from secret_values(value, names, inside or key in names)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from secret_values(value, names, inside)
    elif inside and arguments is not None and not isinstance(arguments, bool):
        yield arguments if isinstance(arguments, str) else json.dumps(arguments)


def scrub(text: str, secrets: Collection[str]) -> str:
    """The text with every secret replaced: plainly written, as JSON writes it, or with other line ends; longest first.

    A failure may quote only the beginning of a long value. So the beginning of a secret is replaced too, from
    four characters on, where the quotation ends with it.
    """
    if not secrets:  # the rule; this is asked several times a call
        return text
    spellings = {form for secret in secrets if secret for form in _spellings(secret)}
    longest_first = sorted(spellings, key=len, reverse=True)
    for spelling in longest_first:  # all of them before any beginning: the end of a secret may look like one
        text = text.replace(spelling, MARK)
    for spelling in longest_first:
        text = _without_beginnings(text, spelling)
    return text


def _spellings(secret: str) -> Iterator[str]:
    for text in {secret, secret.replace("\r", ""), " ".join(secret.split())}:
        yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])


_QUOTATION_ENDS = ("...", '"', "'", "\n")
_SHORTEST = 4  # characters of a secret's beginning that give something away


def _without_beginnings(text: str, secret: str) -> str:
    at = text.find(secret[:_SHORTEST]) if len(secret) > _SHORTEST else -1
    while at >= 0:
        end = at + len(os.path.commonprefix([text[at : at + len(secret)], secret]))
        if end == len(text) or text.startswith(_QUOTATION_ENDS, end):
            text = text[:at] + MARK + text[end:]
            end = at + len(MARK)
        at = text.find(secret[:_SHORTEST], end)
    return text


def scrubbed(failure: Failure, secrets: Collection[str]) -> Failure:
    """The failure without secrets in any part."""
    if not secrets:
        return failure
    return Failure(failure.code, *(scrub(part, secrets) for part in (failure.what, failure.where, failure.expected)))


def unquoted(failure: Failure) -> Failure:
    """The failure told by its code alone, without a word of the reply."""
    where = failure.where if re.fullmatch(r"character \d+", failure.where) else ""
    return replace(failure, what=FAILURES[failure.code].meaning, where=where)
