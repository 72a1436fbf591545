"""What this machine has, what it means for the course, and what to do about it.

A check never fails the others and never raises: what is missing is the finding.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

import modtools

_ROOMY_GIB = 4  # memory and disk that the embedded model, its conversion and a lab run ask for
_GIB = 2**30


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, whether it will do, what was found, and what that means or asks for."""

    name: str
    ok: bool
    value: str
    advice: str


def checks() -> list[Check]:
    """Looks at Python, torch, processor, sandbox, model cache and Jupyter, in this order."""
    looks = (_python, _machine, _torch, _gpu, _dtype, _sandbox, _cache, _model, _kernel)
    return [_guarded(look) for look in looks]


def _guarded(look: Callable[[], Check]) -> Check:
    """A look that cannot be taken is a finding too, in the same shape."""
    try:
        return look()
    except Exception as error:  # a broken driver or a half-installed package must not hide the other findings
        advice = "Install the kit as the README says, then try again."
        return Check(look.__name__.strip("_"), False, f"could not be looked at: {error}", advice)


def _python() -> Check:
    version, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    ok = sys.version_info >= (3, 11)
    advice = "New enough." if ok else "Install Python 3.11 or newer and set the kit up again."
    return Check("python", ok, f"{version} on {system}, modtools {modtools.__version__}", advice)


def _machine() -> Check:
    import psutil

    memory_gib, cores = psutil.virtual_memory().total / _GIB, os.cpu_count()
    ok = memory_gib >= _ROOMY_GIB
    return Check(
        "machine",
        ok,
        f"{cores} cores, {memory_gib:.0f} GiB of memory",
        "Enough for the embedded model."
        if ok
        else f"The embedded model wants {_ROOMY_GIB} GiB: close other programs, or replay recorded runs.",
    )


def _torch() -> Check:
    try:
        import torch
    except ImportError:
        return Check("torch", False, "not installed", "No model runs here; replay does. Install it: pip install torch")
    return Check("torch", True, torch.__version__, f"Models run, on {torch.get_num_threads()} threads.")


def _gpu() -> Check:
    import torch

    if torch.cuda.is_available():
        size_gib = torch.cuda.get_device_properties(0).total_memory / _GIB
        return Check("gpu", True, f"{torch.cuda.get_device_name(0)}, {size_gib:.0f} GiB", "Larger models will run.")
    if torch.backends.mps.is_available():
        return Check("gpu", True, "Apple GPU (mps)", "Larger models will run.")
    return Check("gpu", True, "none", "Not needed: the embedded model runs on the processor.")


def _dtype() -> Check:
    from modtools.models.device import choose_device, choose_dtype

    dtype, reason = choose_dtype(choose_device()[0])
    return Check("dtype", True, str(dtype).removeprefix("torch."), f"Models load in it: {reason}.")


def _sandbox() -> Check:
    from modtools.sandbox import available_levels

    levels = {level: reason for level, reason in available_levels().items() if level != "rlimits_only"}  # no box
    refused = "; ".join(f"{level}: {reason}" for level, reason in levels.items() if reason)
    if usable := [level for level, reason in levels.items() if not reason]:
        advice = "Code that the model writes runs boxed."
        return Check("sandbox", True, usable[0], f"{advice} Not here: {refused}" if refused else advice)
    return Check(
        "sandbox",
        False,
        f"none ({refused})",
        "The code surface refuses to run; coarse, fine and replay work. On Linux, install bubblewrap.",
    )


def _cache() -> Check:
    from modtools.models.cache import cache_dir

    folder = cache_dir()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free_gib = shutil.disk_usage(existing).free / _GIB
    ok = free_gib >= _ROOMY_GIB and os.access(existing, os.W_OK)
    return Check(
        "cache",
        ok,
        f"{folder}, {free_gib:.0f} GiB free",
        "Room for the model."
        if ok
        else f"Needs {_ROOMY_GIB} GiB in a folder one can write: set MODTOOLS_CACHE to such a folder.",
    )


def _model() -> Check:
    from modtools.models.fetch import model_path

    if path := model_path():
        return Check("model", True, str(path), "The embedded model is whole; no network is needed.")
    return Check("model", False, "not fetched, or damaged", "Fetch it once, with the network on: modtools model fetch")


def _kernel() -> Check:
    """The kernel called python3, which every notebook names, must be a Python that has the kit."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return Check("kernel", False, "no kernel python3", "Notebooks cannot run: pip install 'modtools[notebooks]'")
    own = os.path.basename(command) == command or os.path.samefile(command, sys.executable)
    if own:
        return Check("kernel", True, sys.executable, "Notebooks run with this Python, which has the kit.")
    advice = f"Notebooks would run with another Python. To use this one: {sys.executable} -m ipykernel install --user"
    return Check("kernel", False, command, advice)
