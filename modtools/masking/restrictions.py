"""Where the compiled language is smaller than the schema's: every house decision and restriction, in one table.

The compiled grammar accepts what the schema accepts, minus what a row below refuses. Nothing else is lost, and
nothing is added: docs and tests read this table. What cannot be compiled at all is refused when it is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Restriction:
    """One row of the table.

    Attributes:
        name: by which reports count it.
        refused: what is refused although the schema may allow it.
        why: the reason.
    """

    name: str
    refused: str
    why: str


RESTRICTIONS = (
    Restriction(
        "duplicate keys",
        "an object that says a key twice, declared or not, in whatever spelling",
        "parsers disagree about which of the two counts",
    ),
    Restriction(
        "lone surrogates",
        "a string with half of a surrogate pair, such as \\ud83d alone",
        "it stands for no character and cannot be written in UTF-8",
    ),
    Restriction(
        "one spelling",
        "declared keys, enum and const strings in any spelling but the shortest: \\n for a line feed, otherwise raw "
        "UTF-8; enum and const numbers in any spelling but the shortest decimal",
        "a hundred spellings of one name serve nobody and cost states",
    ),
    Restriction(
        "one spelling of bounded names",
        "the same for free keys where patterns or lengths leave only finitely many ways to go on",
        "a key must be refused as soon as all its endings are used up",
    ),
    Restriction(
        "whitespace",
        "more than k whitespace characters in one place (k = 64 unless given; 0 is compact)",
        "a model must not be able to write blanks for ever",
    ),
    Restriction(
        "property order",
        'with property_order="declared" only: declared keys out of the order of the schema, and free keys before them',
        "asked for by the caller",
    ),
    Restriction(
        "integers",
        "integers with a fraction or an exponent, such as 1.0 or 1e2",
        "many readers turn them into floats",
    ),
    Restriction(
        "bounded numbers",
        "numbers with bounds: an exponent (allowed where the only bound is minimum 0), more than 20 digits of "
        "fraction, or more than 15 digits in all beside an excluded bound other than 0",
        "the bound is compared digit by digit, and a double must not round onto an excluded bound",
    ),
    Restriction(
        "multiples",
        "numbers with multipleOf: an exponent, or more digits of fraction than the multiple has",
        "divisibility is decided on decimal digits, exactly; doubles would call 0.07 no multiple of 0.01",
    ),
    Restriction(
        "formats",
        "date-time and time with a leap second or lower-case letters; addresses and URIs beyond the plain ASCII form "
        "in modtools.masking.formats",
        "the format is a pattern here; it is never wider than the standard",
    ),
)
