"""A model folder: what identifies the model in it, and whether it is still whole."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

from modtools.contract import digest
from modtools.models.cache import file_sha256

MANIFEST = "model.json"


def model_digest(folder: Path) -> str:
    """SHA-256 over the digests of weights, tokenizer and chat template; reads every byte of them.

    config.json is left out: transformers writes its own version into it.
    """
    return _identity({path.name: file_sha256(path) for path in folder.iterdir() if _identifies(path.name)})


def recorded_digest(folder: Path) -> str:
    """The same from the folder's manifest, without reading the files again."""
    return _identity(
        {name: file["sha256"] for name, file in read_manifest(folder)["files"].items() if _identifies(name)}
    )


def _identity(sha256_by_name: dict[str, str]) -> str:
    return digest(sha256_by_name)


def _identifies(name: str) -> bool:
    tokenizer = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "chat_template.jinja")
    return name in tokenizer or name.endswith((".safetensors", ".bin"))


def read_manifest(folder: Path) -> dict:
    """The manifest of a folder of ours: name, source, files with sizes and digests, versions it was made with."""
    return json.loads((folder / MANIFEST).read_text("utf-8"))


def write_manifest(folder: Path, name: str, source: dict[str, str]) -> None:
    """Records every file of a folder with its size and SHA-256."""
    files = {
        path.name: {"size_bytes": path.stat().st_size, "sha256": file_sha256(path)} for path in sorted(folder.iterdir())
    }
    made_with = {
        package: importlib.metadata.version(package) for package in ("gguf", "tokenizers", "torch", "transformers")
    }
    manifest = {"name": name, "licence": "Apache-2.0", "source": source, "made_with": made_with, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def damage(folder: Path) -> str | None:
    """What is wrong with a folder of ours, or None where every file has its recorded SHA-256."""
    try:
        for name, file in read_manifest(folder)["files"].items():
            if (folder / name).stat().st_size != file["size_bytes"] or file_sha256(folder / name) != file["sha256"]:
                return f"{name} is damaged"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    return None
