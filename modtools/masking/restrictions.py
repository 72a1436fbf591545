"""Where the compiled language is smaller than the schema's: every house decision and restriction, in one table.

The compiled grammar accepts what the schema accepts, minus what a row below refuses. Nothing else is lost, and
nothing is added: docs and tests read this table. What cannot be compiled at all is refused when it is compiled, by
the second table. One thing is wider than some suites have it: contentEncoding and contentMediaType are annotations.
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
        is_late: whether the row was written, or split off another, after the sample of real schemas had been run.
    """

    name: str
    refused: str
    why: str
    is_late: bool = False


@dataclass(frozen=True)
class NotHonoured:
    """A keyword, or a way to use it, with which a schema is refused when it is compiled.

    Attributes:
        keyword: as SchemaError names it.
        refused: when it is refused; "always" is wherever it could matter for a type that is left.
        why: the reason.
    """

    keyword: str
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
        is_late=True,
    ),
    Restriction(
        "formats",
        "date-time and time with a leap second, lower-case letters or more than nine digits of a second; the year "
        "0000; host names with -- in a label's third place, more than four labels or a last label that begins with a "
        "digit; quoted names and addresses in brackets in e-mail; IPv6 that ends in IPv4; URIs beyond the ASCII form "
        "in modtools.masking.formats",
        "the format is a pattern here; it is never wider than the standard, but that the lengths of mail addresses are "
        "not counted",
    ),
    Restriction(
        "asserted formats",
        "a string that does not keep its format, where a validator takes formats for annotations",
        "whoever writes a format into a tool's schema means it",
        is_late=True,
    ),
    Restriction(
        "own dialects",
        "what the keywords of 2020-12 refuse, although $schema names an older draft without them, or a dialect of "
        "one's own that switches them off",
        "a dialect is read at an address, and nothing is fetched while a schema is compiled",
        is_late=True,
    ),
)

_NEGATION = "a complement of a pushdown automaton need not be one"
_MEMORY = "it asks for a comparison with values met earlier, which a stack cannot make"
_ACROSS = "it ties parts of a document together that this compiler reads one by one"

NOT_HONOURED = (
    NotHonoured("not", "always", _NEGATION),
    *(
        NotHonoured(keyword, "always", "it holds a hidden `not`: the else-branch of if")
        for keyword in ("if", "then", "else")
    ),
    NotHonoured("oneOf", "unless its branches are shown to be disjoint", f"at most one may hold, and {_NEGATION}"),
    NotHonoured("uniqueItems", "always", _MEMORY),
    NotHonoured("contains", "always", f"with its counts {_ACROSS}"),
    *(NotHonoured(keyword, "always", _ACROSS) for keyword in ("dependentSchemas", "dependentRequired", "dependencies")),
    *(
        NotHonoured(keyword, "always", "which parts are evaluated depends on which other keywords hold")
        for keyword in ("unevaluatedProperties", "unevaluatedItems")
    ),
    *(
        NotHonoured(keyword, "always", "its target depends on the way by which it was reached")
        for keyword in ("$dynamicRef", "$recursiveRef")
    ),
    *(NotHonoured(keyword, "always", "of draft 3 only") for keyword in ("extends", "disallow", "divisibleBy")),
    NotHonoured("$ref", "when it leads out of the document, or back to itself", "nothing is fetched while compiling"),
    NotHonoured(
        "format",
        "idn-email, idn-hostname, iri, iri-reference, uri-template, relative-json-pointer, regex",
        "no pattern for them is written yet",
    ),
    *(
        NotHonoured(
            keyword,
            "look-around, back-references, word boundaries, and Unicode properties but general categories",
            "the first two are not regular; the others are not written yet",
        )
        for keyword in ("pattern", "patternProperties")
    ),
    NotHonoured(
        "multipleOf", "more than 9 digits of fraction, or more than 5,000 remainders", "a state for each remainder"
    ),
    NotHonoured("schema", "when no document fits it", "an answer and no gap: there is nothing to write"),
)
