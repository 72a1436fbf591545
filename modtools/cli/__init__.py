"""The command line. `modtools --help` is the table of contents; every command's help ends with an example.

Exit codes: 0 done; 1 found something wrong, the thing the command checks; 2 wrong use or a missing piece, told in
one line; 130 stopped by Ctrl-C. Commands import what they need inside, so that help stays quick.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

import modtools
from modtools.cli import audit, bench, decide, lab, lab_recorded, lab_tasks, setup  # noqa: F401  the two add to lab's commands
from modtools.cli.common import EXIT_MISSING
from modtools.cli.lint import lint
from modtools.cli.mask import mask
from modtools.errors import ModtoolsError

app = typer.Typer(
    name="modtools", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    rich_markup_mode="rich", help="Build and measure the tool interface of a language-model agent.",
    epilog="Start here: modtools doctor",
)  # fmt: skip
setup.register(app)
app.add_typer(lab.app, name="lab", rich_help_panel="Lab")
app.add_typer(decide.app, name="decide", rich_help_panel="Interfaces")
app.add_typer(audit.app, name="audit", rich_help_panel="Interfaces")
app.command(rich_help_panel="Interfaces", epilog="Example: modtools faults --fault 'disk full'")(audit.faults)
app.add_typer(bench.app, name="bench", rich_help_panel="Course")
app.command(rich_help_panel="Interfaces", epilog="Example: modtools mask schema.json --check document.json")(mask)
app.command(rich_help_panel="Interfaces", epilog="Example: modtools lint --surface fine")(lint)


def main() -> None:
    """Runs the command line; an error of the kit becomes one line on stderr and exit code 2."""
    try:
        app()
    except ModtoolsError as error:
        print(f"modtools: {error}", file=sys.stderr)
        sys.exit(EXIT_MISSING)
    except Exception:  # a defect of the kit: told in full, and never taken for the 1 of a verdict
        traceback.print_exc()
        sys.exit(EXIT_MISSING)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(f"modtools {modtools.__version__}")
        raise typer.Exit
