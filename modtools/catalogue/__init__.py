"""The catalogue: which tools exist, in which version, at one moment."""

from modtools.catalogue.snapshot import Snapshot

__all__ = ["Snapshot"]
