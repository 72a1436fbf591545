"""What is left of "rlimits_only" where the system has no resource limits (Windows): time and output are bounded.

NOT a sandbox, like the level whose name it carries: the code runs as the caller. Works on any system.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from modtools.sandbox.interpreter import base_executable
from modtools.sandbox.limits import BoxResult, Limits

_POLL_S = 0.02


def run_timed(python_args: Sequence[str], workspace: Path, limits: Limits, stdin: bytes) -> BoxResult:
    """Run `python -I -B <python_args>` in the workspace; kill it when its time or its output is used up."""
    start_s = time.monotonic()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        command = [str(base_executable()), "-I", "-B", "-X", "utf8", *python_args]
        process = subprocess.Popen(command, cwd=workspace, stdin=given, stdout=out, stderr=err)
        ended_by = "exit"
        while process.poll() is None:
            written = os.fstat(out.fileno()).st_size + os.fstat(err.fileno()).st_size
            if written > limits.output_bytes or time.monotonic() - start_s > limits.wall_s:
                ended_by = "output" if written > limits.output_bytes else "wall_time"
                process.kill()
                process.wait()
            time.sleep(_POLL_S)
        texts, room = [], limits.output_bytes
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(room))
            room -= len(texts[-1])
        stdout, stderr = (text.decode(errors="replace").replace("\r\n", "\n") for text in texts)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    duration_s = time.monotonic() - start_s
    return BoxResult(code, stdout, stderr, ended_by, ended_by == "output", duration_s, "rlimits_only")
