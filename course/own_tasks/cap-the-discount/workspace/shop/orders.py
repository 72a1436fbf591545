"""Orders and what they cost."""

from . import prices

FREE_FROM = 50


def total(amounts, share):
    """Return what the amounts cost after the discount."""
    return sum(prices.discounted(each, share) for each in amounts)


def is_free(amounts, share):
    """Return whether the order is sent without a charge."""
    return total(amounts, share) >= FREE_FROM
