"""One spelling of a JSON value and of its numbers, its digest, and its copy. `modtools.contract` gives digests out too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# json.dumps would make an encoder anew at each call.
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """One spelling of a JSON value: keys sorted, no spaces, raw UTF-8. Digests are taken over it."""
    return _CANONICAL.encode(value)


def copied(value: Any) -> Any:
    """A copy of a JSON value, several times quicker than copy.deepcopy; what is no JSON is handed on as it is."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    """SHA-256 (hex) of bytes, of text as UTF-8, or of the canonical JSON of anything else."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    elif not isinstance(value, bytes):
        value = canonical_json(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(value).hexdigest()


def one_number(value: Any) -> Any:
    """The value with 1.0 written as 1, which to a schema are one number."""
    if isinstance(value, Mapping):
        return {key: one_number(item) for key, item in value.items()}
    if isinstance(value, list):
        return [one_number(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
