"""The three tool surfaces over one workspace: coarse, fine, code."""

from modtools.errors import UsageError
from modtools.surfaces.coarse import coarse_surface
from modtools.surfaces.code import code_surface
from modtools.surfaces.fine import FineSwitches, fine_surface
from modtools.surfaces.operations import Context
from modtools.surfaces.surface import Surface
from modtools.surfaces.workspace import Workspace

SURFACES = ("coarse", "fine", "code")


def build_surface(name: str, switches: FineSwitches = FineSwitches()) -> Surface:
    """Build a surface by name; the switches are those of the fine surface.

    Raises:
        UsageError: for an unknown name, listing the valid ones.
    """
    if name == "fine":
        return fine_surface(switches)
    if name in SURFACES:
        return coarse_surface() if name == "coarse" else code_surface()
    raise UsageError(f"there is no surface {name!r}; expected one of {', '.join(SURFACES)}")


__all__ = ["SURFACES", "Context", "FineSwitches", "Surface", "Workspace", "build_surface"]
