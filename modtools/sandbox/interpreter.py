"""The Python that runs inside a box, and every file it needs to start: the box's allow-list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

THIRD_PARTY = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Interpreter:
    """The base interpreter of the running one (never a virtual environment's link to it).

    Attributes:
        executable: the binary, links resolved.
        stdlib: the folder of the standard library; its third-party sub-folders are not for the box.
        libraries: the dynamic loader and the shared libraries of the binary and of the standard
            library's extension modules, under the paths the loader looks for.
    """

    executable: Path
    stdlib: Path
    libraries: tuple[Path, ...]


def base_executable() -> Path:
    """The binary behind the running interpreter, links resolved."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


@cache
def find_interpreter() -> Interpreter:
    """Find the interpreter and its files (Linux, glibc; about 10 ms, once a process)."""
    executable, stdlib = base_executable(), Path(os.__file__).resolve().parent
    # In trace mode the loader lists what it would load and runs nothing; what is named as preloaded is listed
    # with its needs, relative to the working folder, because a space in a path would end the name.
    # _tkinter is left out (a box has no screen); libgcc_s is what glibc loads to end a thread.
    dynload = stdlib / "lib-dynload"
    modules = [f"./{file.name}" for file in dynload.glob("*.so") if not file.name.startswith("_tkinter.")]
    trace = subprocess.run(
        [executable],
        cwd=dynload if dynload.is_dir() else stdlib,
        env={"LD_TRACE_LOADED_OBJECTS": "1", "LD_PRELOAD": ":".join([*modules, "libgcc_s.so.1"])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    libraries = re.findall(r"^\t(?:[^/]\S* => )?(/.+) \(0x[0-9a-f]+\)$", trace.stdout, flags=re.MULTILINE)
    return Interpreter(executable, stdlib, tuple(Path(os.path.normpath(library)) for library in sorted(set(libraries))))
