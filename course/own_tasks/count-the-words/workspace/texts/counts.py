"""How much there is in a text."""


def lines(text):
    """Return the number of lines."""
    return len(text.splitlines())


def words(text):
    """Return the number of words."""
    return len(text)
