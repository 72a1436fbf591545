"""Hosts and URLs: one spelling for each, before any policy sees them.

What two readers may take differently (a backslash, an encoded slash, a letter that looks like another) is refused,
never guessed. Sources: RFC 3986 (URLs), RFC 3490 (IDNA, as Python's standard library has it), the WHATWG URL
standard for the old spellings of IPv4 addresses.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Collection
from urllib.parse import quote, unquote_to_bytes

from modtools.contract import ToolFailure

MAX_URL_CHARS = 2000
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.DOTALL)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_UNRESERVED = "-._~"
_PATH_SAFE, _QUERY_SAFE = "!$&'()*+,;=:@/", "!$&'()*+,;=:@/?"
_JAPANESE = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def canonical_url(text: str, schemes: Collection[str] = ("https",), where: str = "arguments.url") -> str:
    """The one spelling of a URL: what is fetched is this text and no other.

    Scheme and host are in lower case, an international host in its "xn--" form, an address in its usual form; the
    default port and the fragment are gone; dot segments are resolved, after unreserved characters were decoded.

    Args:
        text: as written by the model.
        schemes: those permitted, in lower case.
        where: the argument to name in a failure.

    Raises:
        ToolFailure: malformed_identifier, for what is no such URL or can be read in two ways. An address of this
            machine or a private network is not refused here: see `address_kind`.
    """

    def refuse(what: str, expected: str = f'a URL such as "{min(schemes)}://example.org/page"') -> ToolFailure:
        return ToolFailure("malformed_identifier", f"the URL {what}", where, expected)

    if len(text) > MAX_URL_CHARS:
        raise refuse(f"has {len(text)} characters", f"at most {MAX_URL_CHARS}")
    if any(unicodedata.category(c)[0] in "CZ" for c in text):
        raise refuse("holds a blank or an invisible character", 'blanks written as "%20"')
    if "\\" in text:
        raise refuse("has a backslash")
    match = _URL.fullmatch(text)
    scheme = match[1].lower() if match else ""
    if scheme not in schemes:
        raise refuse(f"does not begin with {' or '.join(f'{name}://' for name in sorted(schemes))}")
    if "@" in match[2]:
        raise refuse("names a user", 'no "@" before the host')
    host, port = _split_port(match[2], refuse)
    host = canonical_host(host, where)
    path = _resolved(_normalised(match[3], _PATH_SAFE, refuse), refuse)
    query = match[4] and "?" + _normalised(match[4][1:], _QUERY_SAFE, refuse)
    return f"{scheme}://{host}{'' if port in (None, _DEFAULT_PORTS.get(scheme)) else f':{port}'}{path}{query or ''}"


def canonical_host(host: str, where: str = "arguments.host") -> str:
    """The one spelling of a host: a name in ASCII and lower case, an IPv4 address, or "[an IPv6 address]".

    An IPv6 address that stands for an IPv4 address ("::ffff:127.0.0.1") becomes that one.

    Raises:
        ToolFailure: malformed_identifier, as `canonical_url`.
    """

    def refuse(why: str) -> ToolFailure:
        shown = host[:60].encode("ascii", "backslashreplace").decode()
        return ToolFailure("malformed_identifier", f'the host "{shown}" {why}', where, 'a host such as "example.org"')

    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host[1:-1] if host.endswith("]") and "%" not in host else "")
        except ValueError:
            raise refuse("is no IPv6 address") from None
        return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address.compressed}]"
    labels = [_label(label, refuse) for label in host.removesuffix(".").split(".")]
    if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        return _ipv4(labels, refuse)
    name = ".".join(labels)
    if len(name) > 253:
        raise refuse("is too long")
    return name


def address_kind(url: str) -> str:
    """Where a canonical URL leads, for a rule that guards against requests into one's own network.

    Returns:
        "name" for a host that must still be looked up: whoever opens it has to ask again about the address found.
        "loopback": this machine, also as "localhost" and 0.0.0.0. "link_local": the neighbourhood, with the
        metadata service of clouds at 169.254.169.254. "private": any other address that is not of the public
        internet. "public". An address that tunnels to an IPv4 address is of that one's kind.
    """
    host = _URL.fullmatch(url)[2]
    host = host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "loopback" if host == "localhost" or host.endswith(".localhost") else "name"
    if address.version == 6 and not address.is_loopback:
        inner = address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64 or 1 < int(address) < 2**32:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        address = inner or address
    if address.is_loopback or address.is_unspecified or (address.version == 4 and int(address) < 2**24):
        return "loopback"
    if address.is_link_local:
        return "link_local"
    return "public" if address.is_global and not address.is_multicast else "private"


def _split_port(authority: str, refuse) -> tuple[str, int | None]:
    end = authority.rfind("]") + 1  # the colons of an IPv6 address are none of a port
    host, colon, digits = authority[end:].partition(":")
    host = authority[:end] + host
    if not digits:
        return host, None
    if not re.fullmatch(r"[0-9]{1,6}", digits) or not 0 < int(digits) < 65536:
        raise refuse("has a port that is none", "a port from 1 to 65535")
    return host, int(digits)


def _label(label: str, refuse) -> str:
    """One part of a host's name, in ASCII."""
    composed = unicodedata.normalize("NFC", label)
    if unicodedata.normalize("NFKC", label) != composed:  # full width letters, other dots
        raise refuse("holds a character that can be read in two ways")
    lowered = unicodedata.normalize("NFC", composed.lower())
    if lowered.startswith("xn--"):
        try:
            shown = lowered.encode("ascii").decode("idna")
        except UnicodeError:
            raise refuse("is no international name") from None
    else:
        shown = lowered
    if shown.isascii():
        if shown != lowered or not _LABEL.fullmatch(shown):
            raise refuse("is no host name")
        return shown
    # Signs that look like "/" and letters of several scripts show a reader one name and lead to another.
    if not all(c == "-" or unicodedata.category(c)[0] in "LMN" for c in shown):
        raise refuse("holds a sign that no host name has")
    scripts = {unicodedata.name(c, "?").split()[0] for c in shown if unicodedata.category(c)[0] == "L"}
    if len(scripts) > 1 and not scripts <= _JAPANESE:
        raise refuse("mixes letters of several alphabets")
    try:  # what does not come back as it was (sharp s, final sigma) leads elsewhere by the newer IDNA
        encoded = shown.encode("idna")
        if encoded.decode("idna") != shown or (lowered != shown and encoded.decode() != lowered):
            raise UnicodeError
    except UnicodeError:
        raise refuse("is no international name") from None
    return encoded.decode()


def _ipv4(labels: list[str], refuse) -> str:
    """An IPv4 address from any of its spellings: 127.1, 2130706433, 0x7f.1, 0177.0.0.1."""
    try:
        numbers = [_number(label) for label in labels]
        last = numbers.pop()
        if len(numbers) > 3 or any(number > 255 for number in numbers) or last >= 256 ** (4 - len(numbers)):
            raise ValueError
    except ValueError:
        raise refuse("is no IPv4 address") from None
    value = last + sum(number << (24 - 8 * place) for place, number in enumerate(numbers))
    return str(ipaddress.IPv4Address(value))


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:], 16)
    return int(label, 8 if label.startswith("0") else 10)


def _normalised(text: str, safe: str, refuse) -> str:
    """Percent-encoding in one form: upper case, and only where it is needed."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise refuse('has a "%" that encodes nothing', 'a percent sign written as "%25"')
    parts = re.split(r"((?:%[0-9A-Fa-f]{2})+)", text)
    return "".join(_encoded(part, refuse) if part[:1] == "%" else quote(part, safe=safe) for part in parts)


def _encoded(run: str, refuse) -> str:
    """A run of encoded bytes: unreserved characters become plain, all else stays encoded."""
    try:
        text = unquote_to_bytes(run).decode("utf-8")
    except UnicodeDecodeError:
        raise refuse("encodes bytes that are no text", "UTF-8, percent-encoded") from None
    if any(unicodedata.category(c) == "Cc" for c in text):
        raise refuse("encodes a control character")
    plain = {c: c if c.isascii() and (c.isalnum() or c in _UNRESERVED) else quote(c, safe="") for c in set(text)}
    return "".join(plain[c] for c in text)


def _resolved(path: str, refuse) -> str:
    """The path without dot segments; "" is "/"."""
    if re.search(r"%2F|%5C|%25[0-9A-Fa-f]{2}", path):
        raise refuse('encodes a slash, a backslash or another "%" in its path', "a path that is encoded once")
    kept: list[str] = []
    for segment in path[1:].split("/"):
        if re.match(r"\.\.?(;|%3B)", segment):  # some servers strip what follows, and then see dots
            raise refuse('has a ";" behind dots')
        leads_up = segment in (".", "..")
        if segment == ".." and kept:
            kept.pop()
        if not leads_up:
            kept.append(segment)
    return "/" + "/".join([*kept, ""] if leads_up and kept else kept)
