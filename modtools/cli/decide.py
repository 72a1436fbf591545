"""Commands that decide: whether to constrain the decoder."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Annotated, Any

import typer

from modtools.cli.common import JsonOption, write_json
from modtools.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="Decisions with their reasons.", epilog="Example: modtools decide constrain --example m2")  # fmt: skip


@app.command(
    "constrain", epilog="Example: modtools decide constrain --p-f 0.2 --set retry_seconds=0.5 --value token=0.001"
)
def constrain(
    example: Annotated[str, typer.Option(help="A worked example of the source: m2 or e21.")] = "",
    p_f: Annotated[float | None, typer.Option(help="Chance that an unconstrained attempt fails, 0 to 1.")] = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="Another input; --inputs lists them.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--value", metavar="NAME=NUMBER", help="Worth of a second, token or success.")
    ] = None,
    inputs: Annotated[bool, typer.Option("--inputs", help="List the inputs and stop.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Is a grammar worth its cost? Both sides in one unit, the break-even of each input, and what moves the answer most."""
    from modtools.schemas.decision import Bargain, Rates, decide
    from modtools.schemas.decision_examples import PRINTED
    from modtools.schemas.decision_examples import example as worked

    if inputs:
        print(Bargain.__doc__)
        return
    if not example and p_f is None:
        raise UsageError("give --p-f, the chance that an attempt fails, or an --example (m2 or e21)")
    bargain, rates = worked(example) if example else (Bargain(p_f), Rates())
    changes = _numbers(given or [], [each.name for each in fields(Bargain)])
    if "retries" in changes:
        changes["retries"] = _whole(changes["retries"])
    if p_f is not None:
        changes["p_free"] = p_f
    bargain = replace(bargain, **changes)
    rates = replace(rates, **_numbers(values or [], ["second", "token", "success"]))
    found = decide(bargain, rates)
    data: dict[str, Any] = asdict(found)
    if example:
        printed = PRINTED[example] if p_f is None else replace(PRINTED[example], p_f=p_f)
        data["printed"] = {
            "left": printed.left,
            "right": printed.right(),
            "break_even": printed.break_even(),
            "verdict": printed.verdict(),
        }
        print(f"as printed:  spares {printed.left:.4f}, costs {printed.right():.4f}: {printed.verdict()}; "
              f"the rates are equal at p_f = {printed.break_even():.3f}")  # fmt: skip
        print("done again:  the base call on neither side, one price a token, in one unit")
    print(f"spares {found.left:.4f} {found.unit}, costs {found.right:.4f}: {found.verdict}")
    for name, value in sorted(found.break_even.items(), key=lambda item: item[0]):
        print(f"  the verdict turns at {name} = {value:.4g} (now {getattr(bargain, name):g})")
    if not found.break_even:
        print("  no single input turns the verdict")
    write_json(json_file, data)


def _numbers(pairs: list[str], names: list[str]) -> dict[str, float]:
    """NAME=NUMBER, several times."""
    found = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise UsageError(f"{pair!r}: expected NAME=NUMBER") from None
        if name not in names:
            raise UsageError(f"{name!r} is no input; choose one of {', '.join(names)}")
    return found


def _whole(number: float) -> int:
    if number != int(number):
        raise UsageError(f"retries={number}: expected a whole number")
    return int(number)
