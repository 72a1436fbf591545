"""What a run shows while it runs."""

from __future__ import annotations

from modtools.lab.progress import rates, shown_progress
from modtools.lab.run import Progress


def test_progress_says_how_far_and_how_well(capsys):
    progress = Progress(3, 6, {"coarse": (1, 2), "code": (0, 1)}, 120)
    assert rates(progress) == "coarse 1/2, code 0/1"
    with shown_progress() as show:  # not a terminal here, so it prints lines
        show(progress)
        show(Progress(4, 6, {"coarse": (2, 3)}, 130))  # too soon after the last to be printed
        show(Progress(6, 6, {"coarse": (3, 4)}, 150))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "3 of 6 episodes; solved: coarse 1/2, code 0/1; 120 tokens written",
        "6 of 6 episodes; solved: coarse 3/4; 150 tokens written",
    ]
