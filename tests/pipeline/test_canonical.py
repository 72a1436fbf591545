"""Canonicalisation: one spelling for one thing, two for two things, and no spelling that can be read in two ways."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
import socket
import subprocess
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from modtools.contract import ToolFailure
from modtools.errors import UsageError
from modtools.pipeline.canonical import (
    address_kind, canonical_command, canonical_email, canonical_entity, canonical_host, canonical_url,
)  # fmt: skip

PYTHON = {"python": ("python3", "py")}
INVOICE = r"INV-\d{4}"


def accepted(canonicalise, *arguments, **named) -> str | None:
    """The canonical text, or None where it is refused as the failure table says."""
    try:
        return canonicalise(*arguments, **named)
    except ToolFailure as refused:
        assert refused.failure.code in ("malformed_identifier", "command_not_allowed")
        assert refused.failure.what and refused.failure.where.startswith("arguments.")
        return None


# URLs

messy_hosts = st.one_of(
    st.text("aZ09-.:", max_size=8),
    st.text("abÜßéжа\u212a\uff0e\u3002.", max_size=6),
    st.text("0x1f.7", max_size=10),
    st.sampled_from(
        ["xn--bcher-kva.de", "XN--BCHER-KVA.DE.", "[::1]", "[::FFFF:1.2.3.4]", "b\u0075\u0308cher.de", "例え.jp"]
    ),
)
messy_urls = st.builds(
    "{}://{}{}/{}{}".format,
    st.sampled_from(["https", "HTTPS"]),
    messy_hosts,
    st.sampled_from(["", ":443", ":0443", ":8443", ":"]),
    st.lists(
        st.sampled_from(["a", "A", ".", "..", "/", "%2e", "%2E", "%61", "%7e", "~", "%c3%a9", "é", ";", "%3b", "%20", '"', "+", "%"])
    ).map("".join),
    st.sampled_from(["", "?", "?a=%2f", "?a=/", "#x", "?a#b"]),
)  # fmt: skip


@settings(max_examples=400)
@given(messy_urls)
def test_the_canonical_form_of_a_url_is_its_own(url):
    canonical = accepted(canonical_url, url)
    if canonical is not None:
        assert canonical_url(canonical) == canonical and canonical.isascii()


def meaning(url: str) -> tuple:
    """What a URL leads to, as the standard library reads it."""
    parts = urlsplit(url)
    host = parts.hostname.removesuffix(".")
    if ":" in host:
        address = ipaddress.IPv6Address(host)
        host = str(address.ipv4_mapped or address)
    elif re.fullmatch(r"([0-9]+|0x[0-9a-f]*)", host.rsplit(".", 1)[-1]):
        host = str(ipaddress.IPv4Address(socket.inet_aton(host)))
    else:
        host = host.encode("idna").decode()
    unreserved = re.sub(r"%(2d|2e|5f|7e)", lambda m: bytes.fromhex(m[1]).decode(), parts.path, flags=re.IGNORECASE)
    path = urlsplit(urljoin("https://h/", unreserved)).path
    return host, parts.port or 443, unquote_to_bytes(path or "/"), unquote_to_bytes(parts.query)


@pytest.mark.skipif(os.name != "posix", reason="inet_aton of Windows reads fewer spellings")
@settings(max_examples=400)
@given(messy_urls)
def test_a_url_and_its_canonical_form_mean_the_same_to_the_standard_library(url):
    # So two URLs that mean different things never have one canonical form.
    canonical = accepted(canonical_url, url)
    if canonical is not None and "//" not in urlsplit(url).path:  # urljoin drops empty segments
        assert meaning(url) == meaning(canonical)


segments = st.text("abcXYZ019-._~", min_size=1, max_size=5).filter(lambda s: s not in (".", ".."))


@given(st.data(), st.lists(segments, max_size=4), st.booleans())
def test_every_spelling_of_a_url_has_one_canonical_form(data, path, slash):
    def respelled(segment: str) -> str:
        return "".join(
            data.draw(st.sampled_from([c, f"%{ord(c):02x}", f"%{ord(c):02X}"]), label="character") for c in segment
        )

    padding = st.sampled_from(["", "./", "x/../", "%2e/", "x/%2E%2e/", "x/.%2e/"])
    written = "".join(data.draw(padding) + respelled(segment) + "/" for segment in path)
    plain = "/".join(path) + ("/" if slash and path else "")
    written = written if slash else written.removesuffix("/")
    head = data.draw(st.sampled_from(["https://example.org", "HTTPS://Example.ORG", "https://example.org.:443"]))
    tail = data.draw(st.sampled_from(["", "#part"]))
    assert canonical_url(f"{head}/{written}{tail}") == f"https://example.org/{plain}"


DIFFERENT = [
    "https://example.org/", "https://example.org:8443/", "https://www.example.org/", "https://example.org/a",
    "https://example.org/A", "https://example.org/a/", "https://example.org//a", "https://example.org/a;b",
    "https://example.org/a%3Bb", "https://example.org/a+b", "https://example.org/a%20b", "https://example.org/a%2Bb",
    "https://example.org/?", "https://example.org/?a=1&b=2", "https://example.org/?b=2&a=1", "https://example.org/?a=%26",
    "https://example.org/?a=&", "https://example.org/%C3%A9", "https://example.org/e%CC%81", "https://xn--bcher-kva.de/",
    "https://bucher.de/", "https://10.0.0.1/", "https://10.0.1.0/", "https://[::1]/", "https://[::2]/",
]  # fmt: skip


def test_different_urls_stay_different_and_as_they_are():
    assert [canonical_url(url) for url in DIFFERENT] == DIFFERENT


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("https://127.1/", "https://127.0.0.1/"),
        ("https://2130706433", "https://127.0.0.1/"),
        ("https://0x7f.1", "https://127.0.0.1/"),
        ("https://0x7F000001/", "https://127.0.0.1/"),
        ("https://0177.0.0.01/", "https://127.0.0.1/"),
        ("https://127.0.0.1./", "https://127.0.0.1/"),
        ("https://[::ffff:127.0.0.1]/", "https://127.0.0.1/"),
        ("https://[::FFFF:7F00:1]/", "https://127.0.0.1/"),
        ("https://[0:0:0:0:0:0:0:1]:443/", "https://[::1]/"),
        ("https://169.254.43518/", "https://169.254.169.254/"),
        ("https://B\u00dcCHER.de", "https://xn--bcher-kva.de/"),
        ("https://bu\u0308cher.de", "https://xn--bcher-kva.de/"),
        ("https://\u212aelvin.org", "https://kelvin.org/"),  # the same letter by Unicode's own equivalence
        ("https://1.2.3", "https://1.2.0.3/"),
        ("https://example.org/a/../../../b", "https://example.org/b"),
        ("https://example.org/%7Euser/caf\u00e9", "https://example.org/~user/caf%C3%A9"),
        ('https://example.org/"a"?b="c"', "https://example.org/%22a%22?b=%22c%22"),
    ],
)
def test_known_spellings(written, canonical):
    assert canonical_url(written) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "//example.org", "http://example.org", "file:///etc/passwd", "javascript:alert(1)",
        "https:example.org", "https:/example.org", "https:///example.org", "https://", "https://?a",
        "https://user@example.org", "https://user:pass@example.org", "https://example.org@evil.example",
        "https://example.org:80@evil.example", "https://@example.org", "https://example.org\\@evil.example",
        "https:\\\\example.org", "https://example.org\\..\\x", "https://example.org /", " https://example.org",
        "https://example.org\n", "https://exa\tmple.org", "https://example.org/\0", "https://example.org/\u202etxt",
        "https://example.org/\u00a0", "https://example.org/\ud800", "https://example.org/%00", "https://example.org/%0d%0aX:",
        "https://example.org/?a=%0A", "https://example.org/%C2%85", "https://example.org/a%2fb", "https://example.org/..%2f..%2fx",
        "https://example.org/a%5Cb", "https://example.org/%252e%252e/x", "https://example.org/..;/admin",
        "https://example.org/..%3b/admin", "https://example.org/%c0%ae%c0%ae/x", "https://example.org/%e0%80%af",
        "https://example.org/%zz", "https://example.org/%u002e", "https://example.org/%", "https://%65xample.org",
        "https://exam%00ple.org", "https://example..org", "https://.example.org", "https://-a.org", "https://a_b.org",
        "https://example.org:99999", "https://example.org:0", "https://example.org:-1", "https://example.org:\u0664\u0664\u0663",
        "https://example.org:443:443", "https://1.2.3.4.5", "https://256.1.1.1", "https://09.1.1.1",
        "https://0x", "https://127.0.0.0x100000000", "https://4294967296", "https://foo.127", "https://1.-2.3.4",
        "https://[::1", "https://::1/", "https://[::1]x", "https://[fe80::1%25eth0]", "https://[127.0.0.1]", "https://[]",
        "https://\uff45xample.org", "https://example\u3002org", "https://example\uff0eorg", "https://\u2460.org",
        "https://example.org\u2044evil.example", "https://example.org\u2215x.example", "https://\uff11\uff12\uff17.0.0.1",
        "https://\u0430pple.com", "https://xn--pple-43d.com", "https://p\u0430ypal.com", "https://\u03bfpenai.com",
        "https://fa\u00df.de", "https://a\u200db.org", "https://a\u200bb.org", "https://a\u00adb.org",
        "https://xn--", "https://xn--a", "https://xn--example-.org", "https://xn--abc-.org", "https://\U0001f4a9.org",
        "https://" + "a" * 64 + ".org", "https://" + "a." * 130 + "org", "https://example.org/" + "a" * 2000,
    ],
)  # fmt: skip
def test_attacks_and_what_can_be_read_in_two_ways_are_refused(url):
    assert accepted(canonical_url, url) is None


def test_a_failure_names_the_argument_and_what_was_expected():
    with pytest.raises(ToolFailure) as raised:
        canonical_url("ftp://example.org", ("http", "https"), where="arguments.source")
    failure = raised.value.failure
    assert failure.where == "arguments.source" and failure.what == "the URL does not begin with http:// or https://"
    assert "http://example.org/page" in failure.expected


def _spellings(number: int) -> list[str]:
    a, b, c, d = number.to_bytes(4, "big")
    texts = [f"{a}.{b}.{c}.{d}", f"{a}.{b}.{c << 8 | d}", f"{a}.{number & 0xFFFFFF}", str(number), f"{number:#x}"]
    return [*texts, f"0{number:o}", f"{a:#x}.0{b:o}.{c}.{d:#X}".lower(), f"0x{a:03X}.{b}.{c}.{d}"]


@given(st.integers(0, 2**32 - 1))
@example(0)
@example(0x7F000001)
@example(0xA9FEA9FE)
def test_every_spelling_of_an_ipv4_address_is_the_one_address(number):
    mapped = [f"[::ffff:{ipaddress.IPv4Address(number)}]", f"[::FFFF:{number >> 16:x}:{number & 0xFFFF:04X}]"]
    assert {canonical_host(text) for text in _spellings(number) + mapped} == {str(ipaddress.IPv4Address(number))}


@given(st.integers(0, 2**128 - 1))
@example(1)
def test_every_spelling_of_an_ipv6_address_is_the_one_address(number):
    address = ipaddress.IPv6Address(number)
    assume(not address.ipv4_mapped)
    spellings = [address.exploded, address.compressed, address.exploded.upper()]
    assert {canonical_host(f"[{text}]") for text in spellings} == {f"[{address}]"}


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("example.org", "name"), ("metadata.google.internal", "name"), ("localhost", "loopback"),
        ("LOCALHOST.", "loopback"), ("a.localhost", "loopback"), ("127.0.0.1", "loopback"), ("127.255.0.9", "loopback"),
        ("0.0.0.0", "loopback"), ("0", "loopback"), ("[::1]", "loopback"), ("[::]", "loopback"),
        ("[::ffff:7f00:1]", "loopback"), ("[::7f00:1]", "loopback"), ("[64:ff9b::7f00:1]", "loopback"),
        ("[2002:7f00:1::]", "loopback"), ("169.254.169.254", "link_local"), ("0xa9fea9fe", "link_local"),
        ("[fe80::1]", "link_local"), ("[64:ff9b::a9fe:a9fe]", "link_local"), ("10.1", "private"), ("172.16.0.1", "private"),
        ("192.168.1.1", "private"), ("100.100.100.200", "private"), ("[fd00:ec2::254]", "private"), ("[fc00::1]", "private"),
        ("224.0.0.1", "private"), ("255.255.255.255", "private"), ("[ff02::1]", "private"), ("[2002:a00:1::]", "private"),
        ("8.8.8.8", "public"), ("172.32.0.1", "public"), ("[2606:4700::1111]", "public"), ("[64:ff9b::808:808]", "public"),
    ],
)  # fmt: skip
def test_an_address_of_this_machine_or_its_networks_is_recognised(host, kind):
    assert address_kind(canonical_url(f"https://{host}:8443/")) == kind


# Commands


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python -m unittest", ("python", "-m", "unittest")),
        ("  python3  -m\tunittest\n", ("python", "-m", "unittest")),
        ("py -c 'a; b' \"c d\"", ("python", "-c", "a; b", "c d")),
        ("python a\\ b", ("python", "a b")),
        ("'python' x", ("python", "x")),
    ],
)
def test_a_command_becomes_the_words_a_shell_would_make_of_it(text, words):
    assert canonical_command(text, PYTHON) == words


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "ls", "Python x", "/usr/bin/python x", "./python x", "..\\python x", "env python x", "A=1 python x",
        "pyth\u043en x", "python\u00a0x", "python x; ls", "python x && ls", "python x | sh", "python x > f", "python x < f",
        "python $(ls)", "python `ls`", "python $HOME", 'python "$HOME"', 'python "`ls`"', 'python "\\$HOME"', "python *.py",
        "python ?.py", "python [ab]", "python {a,b}", "python ~/x", "python !1", "python x # y", "python x\nls",
        "python x\\\nls", "python x &", "(python x)", "python 'x", 'python "x', "python x\\", "python x\0", "python x\r\nls",
        "python \u202ex", "python x\x1b[0m",
    ],
)  # fmt: skip
def test_other_programs_and_what_only_a_shell_understands_are_refused(text):
    assert accepted(canonical_command, text, PYTHON) is None


def test_a_refused_command_says_which_sign_was_in_the_way():
    with pytest.raises(ToolFailure) as raised:
        canonical_command("python x && ls", PYTHON, where="arguments.cmd")
    assert raised.value.failure.where == "arguments.cmd" and "'&'" in raised.value.failure.expected


words = st.lists(st.text(st.characters(exclude_categories=["C"]), max_size=8), max_size=4)


@given(words)
def test_words_survive_quoting_so_different_words_stay_different(rest):
    expected = ("python", *rest)
    assert canonical_command(shlex.join(expected), PYTHON) == expected
    assert canonical_command(shlex.join(["python3", *rest]), PYTHON) == expected


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell to compare with")
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*"ab =%-", "\\ ", "\\'", "\\;", "\\\\", "'a\\'", "'$;\n'", '"a\\b"', '"\\\\"', '"a \\""', '"\n"', '"$"']
        )
    ).map("".join)
)
def test_an_accepted_command_has_the_very_words_that_a_real_shell_sees(tmp_path_factory, rest):
    found = accepted(canonical_command, f"python {rest}", PYTHON)
    if not found or len(found) == 1:
        return
    seen = subprocess.run(
        ["sh", "-c", f"printf '%s\\0' {rest.strip()}"], capture_output=True, cwd=tmp_path_factory.getbasetemp()
    )
    assert tuple(seen.stdout.decode().split("\0")[:-1]) == found[1:]


@pytest.mark.parametrize("allowed", [{"a": ("x",), "b": ("x",)}, {"a": ("b",), "b": ()}, {"a": ("a",)}])
def test_a_name_of_two_programs_is_the_callers_error(allowed):
    with pytest.raises(UsageError, match="stands for nothing else"):
        canonical_command("a", allowed)


# Entities and e-mail addresses


@pytest.mark.parametrize("text", ["INV-0042", "\uff29\uff2e\uff36-\uff10\uff10\uff14\uff12", "latest"])
def test_one_invoice_has_one_number(text):
    assert canonical_entity(text, INVOICE, {"latest": "INV-0042"}) == "INV-0042"


@pytest.mark.parametrize("text", ["", "INV-42", "inv-0042", " INV-0042", "INV-0042 ", "INV-0042\n", "INV-0042\u00a0",
                                  "INV-0042\u200b", "INV\u00ad-0042", "INV-004\u0662", "\u0406NV-0042", "INV\u20110042",
                                  "INV-0042;INV-0043", "Latest"])  # fmt: skip
def test_what_is_no_invoice_number_is_refused_and_nothing_is_trimmed(text):
    assert accepted(canonical_entity, text, INVOICE, {"latest": "INV-0042"}) is None


def test_case_makes_no_difference_where_the_caller_says_so():
    for text in ("Stra\u00dfe", "STRASSE", "strasse", "\uff33trasse"):
        assert canonical_entity(text, r"\w+", fold_case=True) == "strasse"
    assert canonical_entity("A", r"\w+") != canonical_entity("a", r"\w+")
    assert canonical_entity("Main", r"acc-\d", {"MAIN": "acc-1"}, fold_case=True) == "acc-1"


@settings(max_examples=300)
@given(st.text(st.characters(exclude_categories=["C"]), max_size=12), st.booleans())
def test_the_canonical_form_of_an_entity_is_its_own(text, fold_case):
    canonical = accepted(canonical_entity, text, r"(?s).*", fold_case=fold_case)
    if canonical is not None:
        assert canonical_entity(canonical, r"(?s).*", fold_case=fold_case) == canonical


@pytest.mark.parametrize(
    "aliases",
    [{"a": "b", "b": "INV-0001"}, {"a": "a"}, {"INV-0001": "INV-0002", "x": "INV-0001"}, {"INV-0001": "INV-0001"},
     {"a": "nothing"}, {"a": "INV-0001", "\uff41": "INV-0002"}],
)  # fmt: skip
def test_chains_loops_and_double_meanings_of_aliases_are_the_callers_error(aliases):
    with pytest.raises(UsageError):
        canonical_entity("INV-0001", INVOICE, aliases)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("ann@example.org", "ann@example.org"),
        ("Ann@EXAMPLE.org", "Ann@example.org"),
        ("ann+tag@b\u00fccher.de", "ann+tag@xn--bcher-kva.de"),
        ("a.b@xn--bcher-kva.de", "a.b@xn--bcher-kva.de"),
    ],
)
def test_the_domain_of_an_email_address_has_one_spelling(text, canonical):
    assert canonical_email(text) == canonical == canonical_email(canonical)


def test_case_before_the_at_sign_counts_unless_the_caller_says_otherwise():
    assert canonical_email("Ann@a.org") != canonical_email("ann@a.org")
    assert canonical_email("Ann@a.org", fold_case=True) == "ann@a.org"


@pytest.mark.parametrize(
    "text",
    [
        "", "@", "ann", "ann@", "@a.org", "Ann <ann@a.org>", "<ann@a.org>", "ann@a.org, bob@b.org", "ann@a.org;bob@b.org",
        "ann@a.org bob@b.org", "ann@a.org\nBcc: bob@b.org", "ann@a.org\r\n", "ann\r\n@a.org", '"ann smith"@a.org',
        '"ann@evil.example"@a.org', "ann(comment)@a.org", "ann@a.org(comment)", "ann@a.org?cc=bob@b.org", "mailto:ann@a.org",
        "ann@b.org@a.org", "ann@b.org:a.org", " ann@a.org", "ann@a.org ", ".ann@a.org", "ann.@a.org", "a..b@a.org",
        "\u0430nn@a.org", "\xe4nn@a.org", "ann@\u0430pple.com", "ann@\uff41.org", "ann@a.org.", "ann@a..org", "ann@localhost",
        "ann@127.0.0.1", "ann@127.1", "ann@[127.0.0.1]", "ann@[IPv6:::1]", "a" * 65 + "@a.org", "ann@a.org\0", "ann@a,org",
    ],
)  # fmt: skip
def test_what_is_not_one_plain_email_address_is_refused(text):
    assert accepted(canonical_email, text) is None
