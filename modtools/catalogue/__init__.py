"""The catalogue: which tools exist, in which version, at one moment, and what a change of them makes stale."""

from modtools.catalogue.catalogue import Catalogue
from modtools.catalogue.changes import DEPENDENTS, Cell, Change, ChangeKind, Dependent
from modtools.catalogue.snapshot import Snapshot

__all__ = ["DEPENDENTS", "Catalogue", "Cell", "Change", "ChangeKind", "Dependent", "Snapshot"]
