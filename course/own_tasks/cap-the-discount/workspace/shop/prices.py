"""Prices."""

RATE = 0.2


def discounted(price, share):
    """Return the price without the share that is taken off."""
    return price * (1 - share)


def with_tax(price):
    """Return the price and the tax on it."""
    return price * (1 + RATE)
