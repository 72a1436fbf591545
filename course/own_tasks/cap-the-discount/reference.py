"""A search finds the line's file, an edit mends it; on the code surface one program does both."""

from modtools.lab.families import family

OLD, NEW = "return price * (1 - share)", "return price * (1 - min(share, 0.5))"


def operations():
    """Find the file, then change the line. Without the search there is no path to edit."""
    shown = yield family.search(OLD)
    for path, _ in family.hits(shown, r"return price"):
        yield family.replace(path, OLD, NEW)


def programs():
    """Change the line wherever it stands."""
    yield family.run_python(family.sweep(f"new = text.replace({OLD!r}, {NEW!r})"))
