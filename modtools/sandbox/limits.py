"""What a run of code may use, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 2**10, 2**20

# Strongest first. "rlimits_only" is NOT a sandbox: it bounds time and memory, and hides nothing.
LEVELS = ("bubblewrap", "landlock", "rlimits_only")


@dataclass(frozen=True)
class Limits:
    """Bounds of one run; the kernel or the reader of the pipes enforces each.

    The kernel bounds memory, processor time and file size of each process or file, not their sums: a run may
    take `processes * memory_bytes` of memory, and what the processors and the disk give in `wall_s`.
    Outside Linux `memory_bytes` and `processes` are not enforced, on Windows only `wall_s` and `output_bytes` are.

    Attributes:
        wall_s: seconds until every process of the run is ended.
        cpu_s: processor seconds of each process.
        memory_bytes: address space of each process.
        processes: processes and threads alive at once, the first included.
        file_bytes: size of each file written.
        output_bytes: standard output and standard error together.
        open_files: file descriptors of each process.
    """

    wall_s: float = 10.0
    cpu_s: int = 10
    memory_bytes: int = 512 * MIB
    processes: int = 16
    file_bytes: int = 16 * MIB
    output_bytes: int = 256 * KIB
    open_files: int = 64


@dataclass(frozen=True)
class BoxResult:
    """How a run ended.

    Attributes:
        exit_code: of the first process; 128 + n where signal n ended it.
        stdout: standard output, cut at `Limits.output_bytes`; bytes that are not UTF-8 are replaced.
        stderr: standard error, likewise.
        ended_by: "exit" (by itself), "wall_time", "cpu_time", "memory" (Python ran out of memory), "output"
            (too much of it) or "signal". A label for the reader; code in the box can imitate the last four.
        truncated: whether output was cut.
        duration_s: wall time from start to the end of the last process, in seconds.
        level: one of LEVELS, the level that was in force.
    """

    exit_code: int
    stdout: str
    stderr: str
    ended_by: str
    truncated: bool
    duration_s: float
    level: str
