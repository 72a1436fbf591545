"""Where a model computes and in which number format, each with the reason for it."""

from __future__ import annotations

import json
import platform
import time
from typing import TYPE_CHECKING

from modtools.errors import RecordError, UsageError
from modtools.models.cache import cache_dir
from modtools.records import write_json

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")


def choose_device(device: str | None = None) -> tuple[str, str]:
    """The device and why: the one asked for, else cuda, else mps, else cpu.

    Raises:
        UsageError: a device that this machine lacks.
    """
    import torch

    found = [name for name, module in (("cuda", torch.cuda), ("mps", torch.backends.mps)) if module.is_available()] + [
        "cpu"
    ]
    if device is None:
        return found[0], f"device {found[0]}: the fastest of those found ({', '.join(found)})"
    if device.split(":")[0] not in found:
        raise UsageError(f"device {device!r}: this machine's torch {torch.__version__} finds {', '.join(found)}")
    return device, f"device {device}: as asked"


def choose_dtype(device: str, dtype: str | None = None) -> tuple[torch.dtype, str]:
    """The number format and why: the one asked for, else the fastest that the device computes natively.

    On a CPU float32 and bfloat16 are raced once and the winner is remembered in the cache, so that later runs on
    this machine repeat; on CUDA bfloat16 where the chip has it, else float16; on Apple's GPUs float16.

    Raises:
        UsageError: an unknown format.
    """
    import torch

    if dtype is not None:
        if dtype not in DTYPES:
            raise UsageError(f"dtype {dtype!r}: expected one of {', '.join(DTYPES)}")
        return getattr(torch, dtype), f"dtype {dtype}: as asked"
    if device.startswith("cuda"):
        name = "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
        return getattr(torch, name), f"dtype {name}: the 16-bit format that this GPU computes natively"
    if device == "mps":
        return torch.float16, "dtype float16: the 16-bit format of Apple's GPUs"
    times_ms, remembered = _cpu_times_ms()
    name = min(times_ms, key=times_ms.__getitem__)
    measured = ", ".join(f"{key} {value:.2f} ms" for key, value in times_ms.items())
    return getattr(torch, name), f"dtype {name}: faster in a probe on this processor ({measured}; {remembered})"


def _cpu_times_ms() -> tuple[dict[str, float], str]:
    """Milliseconds a format for a probe, measured now or remembered, and which of the two."""
    import torch

    machine = (
        f"{platform.node()} {platform.machine()} {torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"
    )
    path = cache_dir() / "cpu_dtype.json"
    try:
        known = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # not measured yet, or a torn file
        known = {}
    if machine in known:
        return known[machine], f"remembered in {path}"
    times_ms = {name: _probe_ms(getattr(torch, name)) for name in ("float32", "bfloat16")}
    try:
        write_json(path, known | {machine: times_ms})
    except RecordError as error:
        return times_ms, f"measured now, not remembered: {error}"
    return times_ms, f"measured now, remembered in {path}"


def _probe_ms(dtype: torch.dtype) -> float:
    """Milliseconds of one layer's work: 256 tokens at once (reading a prompt), then 8 singly (writing).

    The least of several, which other programs on the machine disturb least.
    """
    import torch

    up, down = torch.randn(1536, 576, dtype=dtype), torch.randn(576, 1536, dtype=dtype)
    shapes = [torch.randn(256, 576, dtype=dtype)] + [torch.randn(1, 576, dtype=dtype)] * 8
    times_ms = []
    with torch.inference_mode():
        for _ in range(12):
            start = time.perf_counter()
            for tokens in shapes:
                torch.nn.functional.linear(torch.nn.functional.linear(tokens, up), down)
            times_ms.append((time.perf_counter() - start) * 1000)
    return min(times_ms)
