"""Running code that nobody has read: three levels, strongest first, and one way to use them.

>>> from modtools.sandbox import run, strongest_level
>>> run(["-c", "print(6 * 7)"], workspace, level=strongest_level()).stdout
'42\\n'
"""

from modtools.sandbox.box import run
from modtools.sandbox.levels import available_levels, strongest_level
from modtools.sandbox.limits import LEVELS, BoxResult, Limits

__all__ = ["LEVELS", "BoxResult", "Limits", "available_levels", "run", "strongest_level"]
