"""JSON numbers as automata over characters: integers, numbers, bounds, multiples.

A bound is kept by comparing digit by digit: for each bound the state holds whether the digits so far lie below, on
or above the bound's own digits. The length decides the rest, so no range is ever unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

from modtools.masking.dfa import CharacterDFA, explore, intersect
from modtools.masking.regex import pattern_dfa

FRACTION_DIGITS = 20  # of a bounded number
EXACT_DIGITS = 15  # decimals of so many digits are told apart by a double
MAX_MULTIPLE, MAX_PLACES = 5_000, 9  # of multipleOf: digits without the point, and digits of fraction

INTEGER = r"-?(?:0|[1-9][0-9]*)"
NUMBER = INTEGER + r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
NOT_NEGATIVE = NUMBER.removeprefix("-?") + r"|-0(?:\.0+)?(?:[eE][+-]?[0-9]+)?"

Bound = tuple[Decimal, bool] | None  # the value, and whether the value itself is outside


def number_dfa(integer: bool, least: Bound, most: Bound, multiples: Sequence[Decimal]) -> CharacterDFA:
    """The spellings of the numbers between two bounds.

    Args:
        integer: whether only integers are wanted, spelled without fraction or exponent.
        multiples: the number must be a multiple of each, by its decimal digits; see is_multiple_supported.
    """
    if integer:
        least, most = _rounded(least, ROUND_CEILING), _rounded(most, ROUND_FLOOR)
    if multiples or integer:
        digits = 0 if integer else min(places(multiple) for multiple in multiples)
        return intersect([_between(least, most, digits), *map(_multiples, multiples)], "a bounded number")
    least, most = _beyond_doubles(least, 1), _beyond_doubles(most, -1)
    if most is None and least in (None, (Decimal(0), False)):
        return pattern_dfa(NUMBER if least is None else NOT_NEGATIVE, whole=True)
    return _between(least, most, _fraction_digits(least, most))


def has_room(least: Bound, most: Bound) -> bool:
    """Whether any number lies between two bounds, however it is spelled."""
    if least is None or most is None:
        return True
    return least[0] < most[0] or (least[0] == most[0] and not least[1] and not most[1])


def _rounded(bound: Bound, rounding: str) -> Bound:
    """The bound as the next integer inside."""
    if bound is None:
        return None
    value = bound[0].to_integral_value(rounding)
    if bound[1] and value == bound[0]:
        value += 1 if rounding == ROUND_CEILING else -1
    return value, False


def _fraction_digits(*bounds: Bound) -> int:
    """So many that no decimal on the right side of an excluded bound is rounded onto it by a double."""
    strict = [len(str(abs(int(bound[0])))) for bound in bounds if bound and bound[1] and bound[0]]
    return EXACT_DIGITS - max(strict) if strict else FRACTION_DIGITS


def _beyond_doubles(bound: Bound, direction: int) -> Bound:
    """An excluded bound too long for EXACT_DIGITS becomes the next double inside, which nothing inside is rounded past."""
    if bound is None or not bound[1] or abs(bound[0]) < 10**EXACT_DIGITS:
        return bound
    try:
        value = float(bound[0])
    except OverflowError:
        return bound
    while Decimal(value) * direction <= bound[0] * direction and math.isfinite(value):
        value = math.nextafter(value, direction * math.inf)
    return (Decimal(value), False) if math.isfinite(value) else bound


@lru_cache(maxsize=512)
def _between(least: Bound, most: Bound, fraction_digits: int) -> CharacterDFA:
    """Decimals without exponent between two bounds."""
    positive = _Comparison(least, most)
    negative = _Comparison(_negated(most), _negated(least))

    def expand(key):
        if key == "start":
            row, _ = expand((positive, "int", 0, (0,) * len(positive.bounds)))
            return [(ord("-"), ord("-"), (negative, "int", 0, (0,) * len(negative.bounds))), *row], None
        side, part, read, signs = key
        if part == "int":
            return side.after_integer(key, fraction_digits)
        digits = [(0x30 + d, 0x30 + d, (side, part, read + 1, side.fraction(read, signs, d))) for d in range(10)]
        return digits if read < fraction_digits else [], True if read and side.holds(signs, read) else None

    return explore("start", expand, "a bounded number")


def _negated(bound: Bound) -> Bound:
    return None if bound is None else (-bound[0], bound[1])


class _Comparison:
    """A magnitude of digits against a lower and an upper bound; bounds that every magnitude keeps are left out.

    Attributes:
        bounds: [(integer digits, fraction digits, +1 for a lower and -1 for an upper bound, strict)].
        possible: whether any magnitude can keep them.
    """

    def __init__(self, least: Bound, most: Bound):
        self.possible = most is None or most[0] >= 0
        self.bounds = []
        for bound, direction in ((least, 1), (most, -1)):
            if bound is not None and (direction < 0 or bound[0] > 0 or bound == (0, True)):
                integer, _, fraction = format(abs(bound[0]), "f").partition(".")
                self.bounds.append((integer, fraction.rstrip("0"), direction, bound[1]))
        self.longest = max([len(bound[0]) for bound in self.bounds], default=0) + 1

    def after_integer(self, key, fraction_digits: int):
        """Transitions and label after some digits of the integer part."""
        side, _, read, signs = key
        if not self.possible:
            return [], None
        row, label = [], None
        if read:
            compared = tuple(self._by_length(bound, read, sign) for bound, sign in zip(self.bounds, signs))
            label = True if self.holds(compared, 0) else None
            if fraction_digits:
                row.append((0x2E, 0x2E, (side, "fraction", 0, compared)))
        if read != "zero":
            for digit in range(10):
                ahead = "zero" if read == 0 and digit == 0 else min(read + 1, self.longest)
                row.append((0x30 + digit, 0x30 + digit, (side, "int", ahead, self._integer(read, signs, digit))))
        return row, label

    def _integer(self, read: int, signs, digit: int):
        return tuple(
            sign or (_sign(digit, int(integer[read])) if read < len(integer) else 0)
            for (integer, *_), sign in zip(self.bounds, signs)
        )

    def _by_length(self, bound, read, sign: int) -> int:
        """Below, on or above the integer part of the bound, now that the length is known."""
        return _sign(1 if read == "zero" else read, len(bound[0])) or sign

    def fraction(self, read: int, signs, digit: int):
        """The signs after one more digit of the fraction."""
        return tuple(
            sign or _sign(digit, int(fraction[read]) if read < len(fraction) else 0)
            for (_, fraction, *_), sign in zip(self.bounds, signs)
        )

    def holds(self, signs, read: int) -> bool:
        """Whether the number is inside when it ends here, after `read` digits of the fraction."""
        ended = ((sign or (-1 if len(fraction) > read else 0)) for (_, fraction, *_), sign in zip(self.bounds, signs))
        return all(
            sign == direction or (sign == 0 and not strict)
            for sign, (_, _, direction, strict) in zip(ended, self.bounds)
        )


def _sign(left: int, right: int) -> int:
    return (left > right) - (left < right)


def places(multiple: Decimal) -> int:
    """How many digits of fraction its multiples need."""
    return max(0, -int(multiple.normalize().as_tuple().exponent))


def is_multiple_supported(multiple: Decimal) -> bool:
    """Whether there is an automaton for the multiples of this number."""
    return multiple > 0 and places(multiple) <= MAX_PLACES and multiple.scaleb(places(multiple)) <= MAX_MULTIPLE


@lru_cache(maxsize=64)
def _multiples(of: Decimal) -> CharacterDFA:
    """Decimals, with their sign, that `of` divides: the remainder of all digits read, as if they were an integer."""
    after_point = places(of)
    divisor = int(of.scaleb(after_point))

    def expand(key):
        if key in ("start", "minus"):
            row = [(ord("-"), ord("-"), "minus")] if key == "start" else []
            return [*row, *((0x30 + digit, 0x30 + digit, (digit % divisor, None)) for digit in range(10))], None
        remainder, read = key
        row = [(ord("."), ord("."), (remainder, 0))] if read is None and after_point else []
        if read is None or read < after_point:
            ahead = None if read is None else read + 1
            row += [(0x30 + d, 0x30 + d, ((10 * remainder + d) % divisor, ahead)) for d in range(10)]
        missing = after_point - (read or 0)
        return row, True if remainder * 10**missing % divisor == 0 else None

    return explore("start", expand, f"multiples of {of}")
