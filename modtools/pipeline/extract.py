"""Stage 1, extraction: find the one call in a reply that may hold prose, reasoning, fences and more.

The rule is about position, never about words, so that it can be explained in a line:

    A call is one JSON object {"name": ..., "arguments": {...}} that starts on a line of its own and is the
    last thing in the reply. It may stand in a code fence, or between <tool_call> tags; tagged, it may stand
    anywhere. {"finish": true} in the same place ends the episode.

A call elsewhere is an example and is refused as such, two calls are refused together, and nothing that
stands between <think> tags counts. Refusing costs one turn and teaches; guessing executes what nobody asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from modtools.contract import Failure
from modtools.pipeline.parse import ParseFailure, parse_json

ENVELOPE = '{"name": "<tool>", "arguments": {...}}'
FINISH = '{"finish": true}'
MAX_REPLY_CHARS = 400_000

# At the start of a line only: inside an argument's string the same letters are just text.
_REASONING = re.compile(r"^[ \t]*<think>.*?(?:</think>|\Z)", re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"<(/)?tool_call>")
# An object the text cuts off: a brace, then a quoted key and its colon, as far as the text goes.
_BEGINS_OBJECT = re.compile(r"""\{\s*(?:["'][^"'\n]*(?:["']\s*(?::|\Z)|\Z)|\Z)""")
_FILLER = re.compile(r"(?:[\s,\]}]|```\w*|</tool_call>)*")
_CALL_LIKE = re.compile(r"""["'](?:name|finish|arguments)["']\s*:""")
_FOREIGN = re.compile(
    r"<function[=_ ]|<invoke\b|<\|python_tag\|>|\[TOOL_CALLS\]|^[ \t]*Action( Input)?:|```tool_code|\bto=functions\.",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Extraction:
    """What was found. Exactly one of `failure`, `finish` and a call text holds.

    Attributes:
        text: the text of the call, or "".
        span: (start, end) of the call in the reply, in characters.
        finish: whether the reply is the control message that ends the episode.
        failure: why no call was taken, or None.
        value: the call as read, or None where it is no strict JSON.
    """

    text: str = ""
    span: tuple[int, int] = (0, 0)
    finish: bool = False
    failure: Failure | None = None
    value: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Found:
    """A JSON-like object in the reply.

    Attributes:
        closed: False where the text ends before the object does.
        tagged: stands between <tool_call> tags.
        standing: starts on a line of its own, or right behind an object that does.
    """

    start: int
    end: int
    closed: bool
    tagged: bool
    standing: bool


def extract(text: str, finish_reason: str = "stop", tool_names: Collection[str] = ()) -> Extraction:
    """Find the call in a reply.

    Args:
        text: the reply as the model gave it.
        finish_reason: "stop", "length" (cut at the token limit) or "lost" (the stream broke off).
        tool_names: the tools of the snapshot, used to recognise calls written in another syntax.

    Returns:
        An Extraction; never raises on any text.
    """
    if len(text) > MAX_REPLY_CHARS:
        return _fail("too_large", f"the reply has {len(text)} characters", f"at most {MAX_REPLY_CHARS}")
    if whole := _whole_reply(text):
        return whole
    visible = _REASONING.sub(lambda m: " " * len(m.group()), text)
    objects, open_tag_at = _find_objects(visible)
    last_run = _last_run(visible, objects)
    asking = [o for o in objects if o.tagged or (o.standing and (o in last_run or _looks_like_call(visible, o)))]
    if len(asking) > 1:
        return _fail("several_calls", f"the reply holds {len(asking)} calls", "exactly one call a reply")
    if asking and (asking[0].tagged or asking[0] in last_run or not asking[0].closed):
        return _take(text, asking[0], finish_reason)
    example = next((o for o in objects if _looks_like_call(visible, o)), None)
    if example:
        if not example.closed and finish_reason != "stop":
            return _cut(finish_reason, example.start)
        return _fail(
            "example_call",
            "a call stands inside other text, where it counts as an example",
            "the call on a line of its own as the last thing in the reply",
            f"character {example.start}",
        )
    if open_tag_at is not None:
        body = text[open_tag_at:]
        if finish_reason != "stop":
            return _cut(finish_reason, open_tag_at)
        return _fail("wrong_wrapper", f"the tag holds {_quote(body)}", ENVELOPE, f"character {open_tag_at}")
    foreign = _FOREIGN.search(visible) or _python_call(visible, tool_names)
    if foreign:
        shown_text = _quote(visible[foreign.start() :].lstrip())
        return _fail(
            "wrong_wrapper", f"the reply uses another format: {shown_text}", ENVELOPE, f"character {foreign.start()}"
        )
    cut = ", and was cut at the token limit" if finish_reason == "length" else ""
    return _fail("none_found", f"the reply holds no call{cut}", f"{ENVELOPE} or {FINISH} as the last line")


def _find_objects(text: str) -> tuple[list[_Found], int | None]:
    """All outermost {...} objects in one pass, and where an opening tag stands that holds no object."""
    tags = [(m.end(), m.group(1) is None) for m in _TAG.finditer(text)]
    found: list[_Found] = []
    position, retries, passed_tags = 0, 0, 0
    while (start := text.find("{", position)) >= 0:
        while passed_tags < len(tags) and tags[passed_tags][0] <= start:
            passed_tags += 1
        tagged = passed_tags > 0 and tags[passed_tags - 1][1]
        end = _closing(text, start)
        line = text[max(text.rfind("\n", 0, start) + 1, found[-1].end if found else 0) : start]
        follows = bool(found) and found[-1].standing and "\n" not in text[found[-1].end : start]
        fresh = not found or "\n" in text[found[-1].end : start]
        standing = (fresh and line.strip(" \t[") == "") or (follows and line.strip(" \t,") == "")
        candidate = _Found(start, len(text) if end is None else end, end is not None, tagged, standing)
        if end is None and not (tagged or _BEGINS_OBJECT.match(text, start)) and retries < 50:
            # A stray brace in prose: step over it. Bounded, since each retry reads to the end of the text.
            position, retries = start + 1, retries + 1
            continue
        found.append(candidate)
        position = candidate.end
    opened = next((end for end, opens in tags if opens), None)
    return found, None if any(o.tagged for o in found) else opened


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|"', re.DOTALL)


def _closing(text: str, start: int) -> int | None:
    """Index after the brace that closes the object opened at `start`, or None. Strings are skipped."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match.group()
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth == 0:
                return match.end()
        elif token == '"':  # a string that never ends
            return None
    return None


def _looks_like_call(text: str, found: _Found) -> bool:
    return bool(_CALL_LIKE.search(text, found.start, min(found.end, found.start + 2000)))


def _last_run(text: str, objects: list[_Found]) -> set[_Found]:
    """The objects that stand at the end of the reply with nothing but blanks, commas and fences between them."""
    run: set[_Found] = set()
    end = len(text)
    for found in reversed(objects):
        # A surplus closing bracket belongs to the call before it: the parser will say that it is one too many.
        if not _FILLER.fullmatch(text, found.end, end):
            break
        run.add(found)
        end = found.start
    return run


def _python_call(text: str, names: Collection[str]) -> re.Match | None:
    if not names:
        return None
    return re.search(rf"^[ \t`]*(?:{'|'.join(map(re.escape, sorted(names)))})\s*\(", text, re.MULTILINE)


def _whole_reply(text: str) -> Extraction | None:
    """The quick way for a reply that is one call or finish and nothing else; None for any other."""
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}")):
        return None
    try:
        value = parse_json(body)
    except ParseFailure:
        return None
    start = text.index("{")
    return _call_or_finish(body, (start, start + len(body)), value)


def _call_or_finish(body: str, span: tuple[int, int], value: dict[str, Any]) -> Extraction | None:
    if list(value) == ["finish"] and value["finish"] is True:
        return Extraction("", span, finish=True)
    return None if _envelope_problem(value) else Extraction(body, span, value=value)


def _take(text: str, found: _Found, finish_reason: str) -> Extraction:
    """Turn the one object that asks into a finish, a call text, or the failure of its wrapper."""
    if not found.closed and finish_reason != "stop":
        return _cut(finish_reason, found.start)
    listed = text[: found.start].rstrip().endswith("[") and text[found.end :].lstrip().startswith("]")
    if listed:
        return _fail(
            "wrong_wrapper", "the call stands in a list", f"the object itself: {ENVELOPE}", f"character {found.start}"
        )
    surplus = re.match(r"(?:\s*[}\],])*", text[found.end :]).end()
    span = (found.start, found.end + surplus)
    body = text[slice(*span)]
    try:
        value = parse_json(body)
    except ParseFailure:
        return Extraction(body, span)  # the next stage says what is wrong with it
    problem = _envelope_problem(value)
    return _call_or_finish(body, span, value) or _fail(
        "wrong_wrapper", problem, f"{ENVELOPE} or {FINISH}", f"character {found.start}"
    )


def _envelope_problem(value: dict) -> str:
    """What keeps an object from being a call, or ""."""
    if "finish" in value:
        return f"a finish with {_quote(str(value['finish']))} or with other keys beside it"
    if "name" not in value:
        return f'the object has no "name", but {", ".join(map(_quote, list(value)[:5])) or "nothing"}'
    extra = [key for key in value if key not in ("name", "arguments", "id")]
    if extra:
        return f'the object has {", ".join(map(_quote, extra[:5]))} beside "name"; arguments belong inside "arguments"'
    return ""


def _cut(finish_reason: str, start: int) -> Extraction:
    if finish_reason == "length":
        return _fail(
            "truncated", "the reply was cut at the token limit inside a call", "a shorter call", f"character {start}"
        )
    return _fail("chunk_lost", "the stream ended inside a call", "the same call once more", f"character {start}")


def _fail(code: str, what: str, expected: str, where: str = "the reply") -> Extraction:
    return Extraction(failure=Failure(code, what, where, expected))


def _quote(text: str, limit: int = 40) -> str:
    shown = text[:limit].replace("\n", " ")
    return f'"{shown}{"..." if len(text) > limit else ""}"'
