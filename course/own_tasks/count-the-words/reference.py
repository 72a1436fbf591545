"""File and line stand in the text, so one call is enough on every surface."""

from modtools.lab.families import family

EDIT = ("texts/counts.py", "    return len(text)\n", "    return len(text.split())\n")


def operations():
    """Change the line."""
    yield family.replace(*EDIT)


def programs():
    """The same by a program."""
    yield family.run_python(family.substitute(EDIT))
