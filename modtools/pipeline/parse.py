"""Stage 2, parsing: the call's text becomes a JSON value, strictly, and an error says which rule was broken.

The standard library's parser does the reading. Around it stand the rules it does not have: no duplicate
keys, no NaN, no lone surrogates, bounded depth and size. Source: RFC 8259 and the spec's failure table.
"""

from __future__ import annotations

import json
import re
from typing import Any

from modtools.contract import Failure, ToolCall
from modtools.records import repeated_key

MAX_CALL_CHARS = 100_000
MAX_DEPTH = 32

_STRING = r'"(?:[^"\\]|\\.)*"?'
_BRACKETS = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class ParseFailure(Exception):
    """Carries the Failure of this stage."""

    def __init__(self, failure: Failure):
        self.failure = failure
        super().__init__(failure.what)


def parse_json(text: str) -> Any:
    """Read one strict JSON value.

    Raises:
        ParseFailure: with a code of the parse stage and the character it was found at.
    """
    if len(text) > MAX_CALL_CHARS:
        raise _failure("too_large", f"the call has {len(text)} characters", f"at most {MAX_CALL_CHARS}")
    depth_problem = _depth_problem(text)
    if depth_problem:
        raise depth_problem
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _diagnose(text, error) from None
    except ValueError:  # an integer of more digits than Python converts
        raise _failure("too_large", "a number has thousands of digits", "a number of ordinary size") from None
    _no_lone_surrogates(value)
    return value


def parse_call(text: str, value: Any = None) -> ToolCall:
    """Read a call. The envelope was checked by extraction, so only its types are left to see to.

    Args:
        text: of the call.
        value: as extraction has read it already, or None.

    Raises:
        ParseFailure: as `parse_json`.
    """
    value = parse_json(text) if value is None else value
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise _failure(
            "not_json", "the call is no object with a string as its name", '{"name": "<tool>", "arguments": {...}}'
        )
    return ToolCall(value["name"], value.get("arguments"))


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = repeated_key(pairs)
    if twice is not None:
        raise _failure("duplicate_key", "a key stands twice in one object", "each key once", f"key {json.dumps(twice)}")
    return dict(pairs)


def _no_constant(name: str) -> None:
    raise _failure("nan_infinity", f"{name} is no JSON number", "a finite number, or null")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _failure("nan_infinity", f"{digits[:20]} is too large for a number", "a finite number")
    return number


def _no_lone_surrogates(value: Any) -> None:
    """Walk the value; its depth is bounded by MAX_DEPTH already."""
    if isinstance(value, str) and _SURROGATE.search(value):
        raise _failure(
            "lone_surrogate", "a string holds half of a surrogate pair", "the character itself, or both halves"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            _no_lone_surrogates(key)
            _no_lone_surrogates(item)
    elif isinstance(value, list):
        for item in value:
            _no_lone_surrogates(item)


def _depth_problem(text: str) -> ParseFailure | None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match.group(1):
            depth += 1
            if depth > MAX_DEPTH:
                where = f"character {match.start()}"
                return _failure("too_deep", f"nested more than {MAX_DEPTH} deep", f"at most {MAX_DEPTH} levels", where)
        elif match.group(2):
            depth -= 1
    return None


def _diagnose(text: str, error: json.JSONDecodeError) -> ParseFailure:
    """Name the broken rule from the text at the error's place; messages differ between Python versions."""
    at = error.pos
    here = text[at : at + 1]
    before = text[:at].rstrip()[-1:]
    after_comma = text[at + 1 :].lstrip()[:1] if here == "," else ""
    where = f"character {at}"
    if (here in ("}", "]") and before == ",") or after_comma in ("}", "]"):
        return _failure(
            "trailing_comma", "a comma stands before a closing bracket", "no comma after the last item", where
        )
    if here == "'":
        return _failure("single_quotes", "a string stands in single quotes", "double quotes", where)
    if here and ord(here) < 32 and "control character" in error.msg:
        name = {"\n": "a raw newline", "\t": "a raw tab"}.get(here, "a control character")
        escape = json.dumps(here)[1:-1]
        return _failure("control_character", f"{name} stands inside a string", f"the escape {escape}", where)
    if at >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return _failure("unbalanced", "a bracket or a quote is not closed", "every bracket and quote closed", where)
    if error.msg.startswith("Extra data") and here in ("}", "]"):
        return _failure(
            "unbalanced", "a bracket closes what was never opened", "as many closing as opening brackets", where
        )
    literal = re.match(r"True|False|None", text[at:])
    if literal:
        right = {"True": "true", "False": "false", "None": "null"}[literal.group()]
        return _failure("not_json", f"{literal.group()} is Python, not JSON", right, where)
    return _failure("not_json", f"{error.msg} before {json.dumps(text[at : at + 12])}", "strict JSON", where)


def _failure(code: str, what: str, expected: str, where: str = "the call") -> ParseFailure:
    return ParseFailure(Failure(code, what, where, expected))
