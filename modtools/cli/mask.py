"""Command mask: whether a document is in the language of a schema's or a grammar's mask, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from modtools.cli.common import EXIT_FOUND, JsonOption, write_json
from modtools.errors import UsageError
from modtools.records import read_json


def mask(
    schema: Annotated[
        Path, typer.Argument(metavar="SCHEMA", help="A file with a JSON Schema, or a grammar: FILE.ebnf.")
    ],
    check: Annotated[
        str, typer.Option(metavar="FILE", help="A document to judge; - reads it from standard input.")
    ] = "",
    explain: Annotated[
        str | None, typer.Option(metavar="PREFIX", help="The beginning of a document to explain.")
    ] = None,
    token: Annotated[str, typer.Option(help="With --explain: say why this token may follow or not.")] = "",
    vocabulary: Annotated[str, typer.Option(help="With --explain: embedded (needs the model), or none.")] = "embedded",
    whitespace: Annotated[int, typer.Option(help="How many blanks may stand wherever JSON allows them.")] = 64,
    property_order: Annotated[str, typer.Option(help="any, or declared.")] = "any",
    json_file: JsonOption = None,
) -> None:
    """Judge a document or explain a prefix against the mask of a schema or a grammar. Exit 1 where it is refused."""
    from modtools.masking import compile_grammar, compile_json_schema
    from modtools.masking.explain import allowed_tokens, read_text

    if bool(check) == (explain is not None):
        raise UsageError("mask takes --check FILE or --explain PREFIX, one of them")
    if token and check:
        raise UsageError("--token goes with --explain PREFIX")
    if vocabulary not in ("embedded", "none"):
        raise UsageError(f"--vocabulary {vocabulary!r}: expected embedded or none")
    if schema.suffix == ".ebnf":
        grammar = compile_grammar(_text("SCHEMA", schema), None, whitespace, property_order)
    else:
        grammar = compile_json_schema(read_json(schema), whitespace, property_order)
    text = _document(check) if check else _argument(explain)
    reading = read_text(grammar, text)
    data = {"accepted": reading.accepted, "state": reading.state, "refused_because": reading.refused_because}
    if check:
        print("accepted" if reading.accepted else f"refused: {reading.refused_because}")
        print(f"state: {reading.state}")
        write_json(json_file, data)
        if not reading.accepted:
            raise typer.Exit(EXIT_FOUND)
        return
    legal = reading.read == len(text)
    print(f"state: {reading.state}")
    print(f"may end here: {'yes' if reading.accepted else 'no'}; printable bytes that may follow: {reading.next_bytes}")
    if legal and vocabulary == "embedded":
        from modtools.models.embedded import vocabulary as embedded

        words = embedded()
        matcher = grammar.matcher(words)
        matcher.read(text)
        allowed = matcher.allowed()
        data |= {"allowed": int(allowed.sum()), "tokens": allowed_tokens(allowed, words)}
        print(f"{data['allowed']} of {len(words)} tokens are allowed, the longest: {data['tokens']}")
    if token and legal:
        longer = text + _argument(token)
        after = read_text(grammar, longer)
        fits = after.read == len(longer)
        data["token"] = "" if fits else after.refused_because
        print(f"token {token!r}: {'may follow' if fits else f'is refused: {after.refused_because}'}")
    write_json(json_file, data)
    if not legal:
        print(f"refused: {reading.refused_because}")
        raise typer.Exit(EXIT_FOUND)


def _argument(text: str) -> bytes:
    """The bytes of an argument, as they were typed: those that are no UTF-8 reach us as surrogates."""
    return text.encode("utf-8", "surrogateescape")


def _document(source: str) -> bytes:
    return sys.stdin.buffer.read() if source == "-" else _file("--check", Path(source))


def _file(argument: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{argument} {path}: {error.strerror}; expected a file (--check - is standard input)"
        ) from error


def _text(argument: str, path: Path) -> str:
    try:
        return _file(argument, path).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{argument} {path}: no UTF-8 at byte {error.start}; save it as UTF-8") from error
