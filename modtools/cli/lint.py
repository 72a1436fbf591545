"""`modtools lint`: a list of tools under the rules, with its price and what of that could be had back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from modtools.cli.common import EXIT_FOUND, JsonOption, write_json
from modtools.errors import UsageError


def lint(
    tools: Annotated[
        Path | None, typer.Argument(metavar="[TOOLS.json]", help="MCP, OpenAI or Anthropic list of tools.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option(metavar="MODULE", help="A Python file; its functions are the tools.")
    ] = None,
    surface: Annotated[str, typer.Option(help="One of the lab's own surfaces: coarse, fine or code.")] = "",
    fail_on: Annotated[
        str, typer.Option(help="Exit 1 from this severity on: error, warning, note, or never.")
    ] = "error",
    slim: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the smaller list there.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Lint a list of tools. Exit 1 where there is an error (or what --fail-on says)."""
    from modtools.schemas.lint import SEVERITIES
    from modtools.schemas.lint import lint as findings_of
    from modtools.schemas.price import KINDS, prices, recoverable

    if fail_on not in (*SEVERITIES, "never"):
        raise UsageError(f"--fail-on {fail_on!r}: expected {', '.join(SEVERITIES)} or never")
    listed = _tools(tools, python, surface)
    found, counted_by, count = findings_of(listed), *_counter()
    for each in found:
        print(f"{each.severity:7} {each.rule:17} {each.where}: {each.why}\n{'':26}{each.fix}")
    price, savings = prices(listed, count), recoverable(listed, count)
    dearest = sorted(((n, t) for n, t in price.items() if n), key=lambda item: -item[1])
    print(f"{len(listed)} tools, {price['']} tokens ({counted_by}); the dearest: "
          f"{', '.join(f'{name} {tokens}' for name, tokens in dearest[:5])}")  # fmt: skip
    for saving in savings[:20]:
        print(f"  {saving.tokens:5} tokens could go: {saving.tool}, {saving.kind} ({saving.where})")
    for kind in dict.fromkeys(saving.kind for saving in savings):
        print(f"  {kind}: {KINDS[kind]}")
    data: dict[str, Any] = {
        "findings": [asdict(each) for each in found],
        "tokens": {"total": price.pop(""), "tools": price, "tokenizer": counted_by},
        "recoverable": [asdict(each) for each in savings],
    }
    if slim:
        data["slim"] = _write_slim(listed, slim, count)
    write_json(json_file, data)
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
    if any(each.severity in failing for each in found):
        raise typer.Exit(EXIT_FOUND)


def _tools(path: Path | None, python: Path | None, surface: str) -> list[Any]:
    from modtools.schemas.tool_list import read_tool_list, tools_of, tools_of_module

    if sum(map(bool, (path, python, surface))) != 1:
        raise UsageError("give one of: a file of tools, --python MODULE, --surface NAME")
    if python:
        return tools_of_module(python)
    if path:
        return read_tool_list(path)
    from modtools.surfaces import build_surface

    contracts = [tool.contract for tool in build_surface(surface).tools]
    return tools_of([{"name": c.name, "description": c.description, "parameters": c.input_schema} for c in contracts])


def _counter() -> tuple[str, Any]:
    """The embedded model's tokenizer; without the network, so nothing heavy is loaded."""
    from modtools.models.embedded import load_tokenizer

    tokenizer = load_tokenizer()
    return "tokens of SmolLM2", lambda text: len(tokenizer.encode(text))


def _write_slim(tools: list[Any], out: Path, count: Any) -> dict[str, int]:
    from modtools.records import write_json as write
    from modtools.schemas.price import prices, slim

    smaller = slim(tools)
    write(
        out, {"tools": [{"name": t.name, "description": t.description, "inputSchema": dict(t.schema)} for t in smaller]}
    )
    before, after = prices(tools, count)[""], prices(smaller, count)[""]
    print(f"wrote {out}: {after} tokens, {before - after} fewer; the same calls are valid")
    return {"before": before, "after": after}
