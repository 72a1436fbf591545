"""The formats of JSON Schema that are honoured, each as a pattern for the whole string.

A pattern may be narrower than its standard, never wider, but that the lengths of mail addresses are not counted. A format that JSON Schema defines and that is not here is
refused; a format that it does not define is an annotation, as the standard says.
"""

from __future__ import annotations

_TWO_DIGITS_60 = "[0-5][0-9]"
_MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
# The year 0000 is none for most calendars.
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
DATE = f"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_OFFSET = f"(?:Z|[+-](?:[01][0-9]|2[0-3]):{_TWO_DIGITS_60})"
TIME = f"(?:[01][0-9]|2[0-3]):{_TWO_DIGITS_60}:{_TWO_DIGITS_60}(?:\\.[0-9]{{1,9}})?{_OFFSET}"

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = f"{_BYTE}(?:\\.{_BYTE}){{3}}"
_H = "[0-9a-fA-F]{1,4}"
IPV6 = "|".join(
    [f"(?:{_H}:){{7}}{_H}", f"::(?:{_H}(?::{_H}){{0,6}})?"]
    + [f"{_H}(?::{_H}){{{before - 1}}}::(?:{_H}(?::{_H}){{0,{6 - before}}})?" for before in range(1, 7)]
    + [f"(?:{_H}:){{7}}:"]
)

# A label with "--" in the third and fourth place is an A-label: whether it is valid, no automaton can say.
# At most four labels, the last a bit shorter, so that 253 characters are never exceeded.
_L, _A = "[a-zA-Z0-9]", "[a-zA-Z0-9-]"
_LABEL = f"{_L}(?:{_L}|{_A}(?:-{_L}(?:{_A}{{0,58}}{_L})?|{_L}(?:{_A}{{0,59}}{_L})?))?"
HOSTNAME = f"(?:{_LABEL}\\.){{0,3}}[a-zA-Z](?:{_L}|{_A}-?{_L}(?:{_A}{{0,55}}{_L})?)?"
_ATOM = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"
EMAIL = f"{_ATOM}(?:\\.{_ATOM})*@(?:{_LABEL})(?:\\.{_LABEL})*"

_PCHAR = "(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})"
_SEGMENT_NZ_NC = "(?:[a-zA-Z0-9._~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})+"
_TAIL = f"(?:\\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_USER = "(?:(?:[a-zA-Z0-9._~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})*@)?"
_HOST = f"(?:(?:[a-zA-Z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{{2}})*|\\[(?:{IPV6})\\])"
_AUTHORITY = f"//{_USER}{_HOST}(?::[0-9]{{0,5}})?(?:/{_PCHAR}*)*"
_ABSOLUTE = f"/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?"
URI = f"[a-zA-Z][a-zA-Z0-9+.-]*:(?:{_AUTHORITY}|{_ABSOLUTE}|{_PCHAR}+(?:/{_PCHAR}*)*|){_TAIL}"
_RELATIVE = f"(?:{_AUTHORITY}|{_ABSOLUTE}|{_SEGMENT_NZ_NC}(?:/{_PCHAR}*)*|){_TAIL}"

FORMATS = {
    "date": DATE,
    "time": TIME,
    "date-time": f"{DATE}T{TIME}",
    "ipv4": IPV4,
    "ipv6": IPV6,
    "hostname": HOSTNAME,
    "email": EMAIL,
    "uri": URI,
    "uri-reference": f"{URI}|{_RELATIVE}",
    "uuid": "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "json-pointer": "(?:/(?:[^/~]|~[01])*)*",
    "duration": "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
    "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
    "|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))",
}
DEFINED = {
    *FORMATS,
    "idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "relative-json-pointer", "regex",
}  # fmt: skip
