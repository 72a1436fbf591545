"""The address of the repository, and what each notebook gets from it: its badge and its first code cell.

Change `REPOSITORY` here, run `modtools build`, and every notebook follows.
"""

from __future__ import annotations

# A placeholder until the owners publish the repository; nothing else in the project spells the address out.
REPOSITORY = "https://github.com/modtools-course/modtools"
BRANCH = "main"

SETUP_ID = "setup"

_SETUP_SOURCE = """\
# On Colab this installs the kit; on your own machine `make jupyter` (or the README's steps) already has.
import sys

if "google.colab" in sys.modules:
    %pip install -q "modtools @ git+{repository}@{branch}"

import modtools

assert modtools.__version__.startswith("{series}."), f"written for modtools {series}, found {{modtools.__version__}}"
print("modtools", modtools.__version__)"""


def setup_source(version: str) -> str:
    """The source of the first code cell, for notebooks built with `version` of modtools ("0.1.0")."""
    series = ".".join(version.split(".")[:2])
    return _SETUP_SOURCE.format(repository=REPOSITORY, branch=BRANCH, series=series)


def badge(notebook: str) -> str:
    """Markdown of the badge that opens `notebook` (its path in the repository, with `/`) on Colab."""
    path = REPOSITORY.removeprefix("https://github.com/")
    return (
        "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"(https://colab.research.google.com/github/{path}/blob/{BRANCH}/{notebook})"
    )
