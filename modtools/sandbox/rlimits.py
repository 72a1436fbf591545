"""Level 3, NOT a sandbox: the code runs as the caller, with bounds on time, memory and files.

It can read and write what the caller can, use the network, and leave processes behind by setsid(). For root the
kernel does not bound the number of processes; outside Linux the run does not die with its parent. Only for code
that one trusts and wants to end in time.
"""

from __future__ import annotations

from modtools.errors import MissingPieceError
from modtools.sandbox.interpreter import base_executable
from modtools.sandbox.order import Order, bootstrap


def command(order: Order) -> list[str]:
    """The command line of one run. Raises MissingPieceError on Windows."""
    try:
        import resource  # noqa: F401
    except ImportError:
        raise MissingPieceError("resource limits need Linux or macOS") from None
    return bootstrap(
        order,
        base_executable(),
        workspace=str(order.workspace),
        temporary=str(order.temporary),
        private=False,
        supervised=True,
    )
