"""Live progress of a run: a rich bar in a terminal, tqdm in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from modtools.lab.run import Progress

_LINE_EVERY_S = 20.0


def rates(progress: Progress) -> str:
    """Successes so far, by surface: "coarse 1/3, fine 2/3, code 0/2"."""
    return ", ".join(f"{name} {won}/{ended}" for name, (won, ended) in progress.successes.items())


@contextmanager
def shown_progress() -> Iterator[Callable[[Progress], None]]:
    """Yields the callback for `lab.run.run`; what shows it depends on where we are."""
    if _in_a_kernel():
        with _notebook() as show:
            yield show
    elif sys.stderr.isatty():
        with _terminal() as show:
            yield show
    else:
        yield _lines()


def _in_a_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _terminal() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("episodes"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        shown = bar.add_task("", total=None)
        started = time.monotonic()

        def show(progress: Progress) -> None:
            per_s = progress.tokens / max(time.monotonic() - started, 1e-9)
            said = f"solved: {rates(progress)}; {per_s:.0f} tokens/s"
            bar.update(shown, total=progress.total, completed=progress.done, description=said)

        yield show


@contextmanager
def _notebook() -> Iterator[Callable[[Progress], None]]:
    from tqdm.auto import tqdm

    with tqdm(total=0, unit="episode") as bar:

        def show(progress: Progress) -> None:
            bar.total, bar.n = progress.total, progress.done
            bar.set_postfix_str(rates(progress))

        yield show


def _lines() -> Callable[[Progress], None]:
    last_s = [0.0]

    def show(progress: Progress) -> None:
        now = time.monotonic()
        if progress.done == progress.total or now - last_s[0] >= _LINE_EVERY_S:
            last_s[0] = now
            so_far = f"{progress.done} of {progress.total} episodes; solved: {rates(progress)}"
            print(f"{so_far}; {progress.tokens} tokens written", file=sys.stderr, flush=True)

    return show
