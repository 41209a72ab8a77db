"""Find e-mail addresses, UPI ids, IP addresses, keys, tokens and passwords."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from monitors.facts.disclosures.candidates import (
    Context,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
)
from monitors.facts.disclosures.phrases import PLACES

# Possessive quantifiers: a sequence of mailbox characters is read only once, from its left end.
# Devanagari vowel signs are not word characters for `re`. The Devanagari full stop (U+0964) is not part of a name.
_W = r"\w\u0900-\u0963\u0966-\u097f"
_AT = re.compile(
    rf"(?<![{_W}.%+\-'])([{_W}.%+\-']++)(?:@| @ | ?\[at\] ?| ?\(at\) ?)"
    rf"([{_W}\-]++(?:(?:\.|\s?[\[(]dot[\])]\s?)[{_W}\-]++)*+)",
    re.IGNORECASE,
)
_DOT = re.compile(r"\.|[\[(]dot[\])]", re.IGNORECASE)
_TOP_LEVEL = re.compile(r"(?:xn--[\w\-]+|[^\W\d_]{2,24}|[\u0900-\u0963]{2,24})", re.IGNORECASE)
_ROLES = frozenset(PLACES["role_mailboxes"])
_AFTER_ROLE = re.compile(r"(?<=[a-z])[.\-_](?!care|service|reply|us).*")
_SEPARATORS = str.maketrans("", "", ".-_")
# Handles of UPI payment providers in NPCI's list of third-party apps and banks.
_HANDLE_NAMES = (
    "okaxis okhdfcbank okicici oksbi ybl ibl axl paytm ptyes ptsbi pthdfc ptaxis upi apl yapl rapl abfspay "
    "axisb axisbank"
    " hdfcbank hdfcbankjd icici sbi kotak kotak811 yesbank yesbankltd pnb barodampay boi cnrb federal idfcbank"
    " idfcfirst indus airtel freecharge jupiteraxis fam ikwik wahdfcbank waicici waaxis wasbi slice sliceaxis goaxb"
    " timecosmos tapicici naviaxis superyes aubank dbs hsbc rbl rmhdfcbank mahb uboi unionbank postbank jio "
    "fbl abdm sbx"
)
_HANDLES = frozenset(_HANDLE_NAMES.split())

_THREE_DOTS = re.compile(r"\.\d{1,3}\.\d{1,3}\.\d")
_TWO_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV4 = re.compile(
    r"(?<![\w.])((?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d))(?:/\d{1,2})?(?![\d\w])"
)
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:?)([0-9A-Fa-f:.]{2,45})(/\d{1,3})?(?![\w:]|-[A-Za-z])"
)
# IANA's registries of IPv6: unicast of the regional registries, documentation, unique local, link-local,
# multicast, IPv4 within IPv6 and NAT64's prefix.
_IPV6_ASSIGNED = tuple(
    ipaddress.IPv6Network(block)
    for block in (
        "2001::/16", "2002::/16", "2003::/16", "2400::/6", "2800::/5", "3ffe::/16", "3fff::/20",
        "fc00::/7", "fe80::/10", "ff00::/8", "::ffff:0:0/96", "64:ff9b::/96",
    )
)  # fmt: skip

_MIN_COLONS = 2
_ANY_HOST, _THIS_HOST = "::", "::1"
_BESIDE = " \t\n\"'`([<>)],;."
_GROUPS = 8
_MIN_LONG_GROUP_DIGITS = 3
"""A group of an IPv6 address counts as long if it has at least this many hexadecimal digits.

The groups of a fingerprint or a MAC address have two digits, so they are not long.
"""
_TELLING_OCTET = 100
"""An unlabelled IP address is weak evidence if its largest number is below this value.

Four smaller numbers may be a version ("2.2.27.6"). 98 % of random IP addresses reach this value.
"""


def find_emails_upi_ids_and_ips(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find e-mail addresses, UPI ids, and IPv4 and IPv6 addresses."""
    if reading.contains_any("@", "[at]", "(at)"):
        yield from _find_emails_and_upi_ids(reading)
    if _THREE_DOTS.search(reading.text):
        yield from _find_ipv4(reading)
    if _TWO_COLONS.search(reading.text):
        yield from _find_ipv6(reading)


def _find_emails_and_upi_ids(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    for match in _AT.finditer(reading.text):
        labels = _DOT.split(match[2])
        if len(labels) > 1 and _TOP_LEVEL.fullmatch(labels[-1].strip()):
            role = _AFTER_ROLE.sub("", match[1].lower()).translate(_SEPARATORS) in _ROLES
            is_sentence = match.end() - match.start() < len(reading.text.strip())
            strength = Strength.CERTAIN if not role else Strength.CONTACT if is_sentence else Strength.WEAK
            yield DisclosureCandidate(DisclosureKind.EMAIL, *match.span(), strength)
        elif len(labels) > 1 and (end := _find_end_of_valid_domain(match)):
            yield DisclosureCandidate(DisclosureKind.EMAIL, match.start(), end, Strength.CERTAIN)
        elif _is_upi_id(match, reading):
            yield DisclosureCandidate(DisclosureKind.UPI, *match.span(), Strength.CERTAIN)


def _find_end_of_valid_domain(match: re.Match[str]) -> int | None:
    """Return the end of the longest valid domain in a match: after "com" in ``a@b.com.2024``."""
    ends = [dot.start() for dot in _DOT.finditer(match[2])][1:]
    for end in reversed(ends):
        if _TOP_LEVEL.fullmatch(_DOT.split(match[2][:end])[-1]):
            return match.start(2) + end
    return None


def _is_upi_id(match: re.Match[str], reading: DisclosureText) -> bool:
    handle = match[2].lower()
    return handle in _HANDLES or (
        handle.isalpha() and reading.words.find_context_before(match.start()) is Context.UPI
    )


def _find_ipv4(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    for match in _IPV4.finditer(reading.text):
        if _has_leading_zero(match[1]) or reading.words.find_context_linked_to(match.start()) is Context.VERSION:
            continue
        named = reading.words.find_context_before(match.start()) is Context.IP
        telling = named or max(map(int, match[1].split("."))) >= _TELLING_OCTET
        public = ipaddress.IPv4Address(match[1]).is_global
        strength = Strength.LIKELY if public and telling else Strength.WEAK
        yield DisclosureCandidate(DisclosureKind.IP, *match.span(), strength)


def _has_leading_zero(address: str) -> bool:
    """Return whether an octet has a leading zero (``01``).

    A text with such an octet is a telephone number, not an address.
    """
    return any(len(octet) > 1 and octet[0] == "0" for octet in address.split("."))


def _find_ipv6(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    for match in _IPV6.finditer(reading.text):
        written = match[1].rstrip(".")
        if written.count(":") < _MIN_COLONS:
            continue
        end = match.end() if written == match[1] else match.start() + len(written)
        try:
            address = ipaddress.IPv6Address(written)
        except ValueError:
            continue
        telling = written == _ANY_HOST or any(map(str.isdigit, written))
        named = telling and reading.words.find_context_before(match.start()) is Context.IP
        if not (
            named
            or match[2]
            or _is_in_assigned_ipv6_range(address)
            or _is_complete_ipv6_address(reading.text, match, written)
        ):
            continue
        strength = Strength.LIKELY if address.is_global else Strength.WEAK
        yield DisclosureCandidate(DisclosureKind.IP, match.start(), end, strength)


def _is_complete_ipv6_address(text: str, match: re.Match[str], written: str) -> bool:
    """Return whether a match can only be an address: eight groups, half of them long, or ``::1`` on its own."""
    if written == _THIS_HOST:
        neighbours = text[max(0, match.start() - 1) : match.start()] + text[match.end() : match.end() + 1]
        return not neighbours.strip(_BESIDE)
    groups = written.split(":")
    return len(groups) == _GROUPS and sum(len(group) >= _MIN_LONG_GROUP_DIGITS for group in groups) >= _GROUPS / 2


def _is_in_assigned_ipv6_range(address: ipaddress.IPv6Address) -> bool:
    """Return whether the address is in a range that hosts use.

    Program code (`a::b`), `10::30` and fingerprints also have the form of an address, but are not in such a range.
    """
    return any(address in network for network in _IPV6_ASSIGNED)


# Prefixes from the documentation of their issuers: OpenAI and Anthropic sk-, Hugging Face hf_, GitHub gh?_ and
# github_pat_, GitLab glpat-, AWS AKIA/ASIA, Google AIza and ya29., Slack xox?- and hook addresses, Stripe
# sk_live_, npm_, pypi-, SendGrid SG., Groq gsk_, Razorpay rzp_, Standard Webhooks whsec_, LangSmith lsv2_,
# Prefect pnu_/pnb_, Twilio SK.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_\-]{16,}+|hf_[A-Za-z0-9]{16,}+|gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{20,}+"
    r"|glpat-[A-Za-z0-9_\-]{16,}+|A(?:KIA|SIA|ROA)[A-Z0-9]{12,}+|AIza[A-Za-z0-9_\-]{30,}+"
    r"|ya29\.[A-Za-z0-9_\-]{20,}+"
    r"|xox[abeoprs]-[A-Za-z0-9\-]{8,}+|xapp-[A-Za-z0-9\-]{8,}+|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}+"
    r"|npm_[A-Za-z0-9]{20,}+|pypi-[A-Za-z0-9_\-]{20,}+|SG\.[A-Za-z0-9_\-]{10,}+\.[A-Za-z0-9_\-]{10,}+"
    r"|gsk_[A-Za-z0-9]{16,}+"
    r"|rzp_(?:live|test)_[A-Za-z0-9]{8,}+|whsec_[A-Za-z0-9+/=]{12,}+|lsv2_[A-Za-z0-9_]{16,}+"
    r"|pn[ub]_[A-Za-z0-9]{20,}+"
    r"|SK[0-9a-f]{32}|eyJ[A-Za-z0-9_\-]{6,}+\.[A-Za-z0-9_\-]{6,}+(?:\.[A-Za-z0-9_\-]*+)?"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_\-]{8,}+"
    r")"
)
_PREFIX_LIST = (
    "sk- hf_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- AKIA ASIA AROA AIza ya29. xox xapp- _live_ _test_ "
    "npm_ pypi- SG. gsk_"
    " whsec_ lsv2_ pnu_ pnb_ SK eyJ hooks.slack.com"
)
_PREFIXES = tuple(_PREFIX_LIST.split())
"""The prefixes of tokens. A text without any of them is not searched further."""

_BEARER = re.compile(r"\b(?:bearer|basic)[ \t]++([A-Za-z0-9._~+/\-]{12,}+=*+)", re.IGNORECASE)
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[A-Za-z0-9+/=\s:,\-]*+")
_LABELLED = re.compile(
    r"(?:\b|_)(?:api[_ -]?key|secret[_ -]?(?:access[_ -]?)?key|secret|password|passwd|pwd|passphrase"
    r"|access[_ -]?token"
    r"|auth[_ -]?token|token|client[_ -]?secret|private[_ -]?key)\b[\"']?\s{0,3}(?:=|:|is\b|-)\s{0,3}[\"']?"
    r"([^\s\"',;<>\[\]" + "\ufffc" + r"]{3,200}+)",
)
# One-time codes and card check numbers. A PIN has exactly four digits, because an Indian postal PIN has six digits.
_CODE = re.compile(
    r"\b(?:(?:otp|cvv|cvc|verification code|security code)\b(?: ?(?:code|number|no\.?))?\s{0,3}(?:is\b|:|="
    r"|-)?\s{0,3}(?P<code>\d{3,8})"
    r"|pin\b(?: ?(?:number|no\.?))?\s{0,3}(?:is\b|:|=|-)\s{0,3}(?P<pin>\d{4}))(?![\d,])"
)
_CREDENTIALS = re.compile(r"://([^\s/:@\[\]]{1,64}+:[^\s/@\[\]]{1,128}+)@")
_MIN_PASSWORD_LENGTH = 6
"""Minimum length of a password. Shorter values are not passwords."""
_LABELS = ("key", "secret", "passw", "passp", "pwd", "token")
_CODE_LABELS = ("otp", "pin", "cvv", "cvc", " code")
_MADE_UP = re.compile(r"[\d!@#$%^&*+=~?]")
_AMOUNT = re.compile(r"\d+-[a-z]+")
"""A pattern for values such as "24-hour" or "30-day". They are not passwords."""
_NOTATION = re.compile(r"base(?:16|32|58|62|64)(?:url)?|utf-?(?:8|16)|sha-?\d{1,3}|md5|hmac-sha\d{1,3}|oauth-?\d")
"""Words for the format of a secret. After "a secret is", such a word is not the secret: "a secret is base64"."""


def find_secrets(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find tokens by prefix, bearer headers, private keys, ``password is …`` and credentials in URLs."""
    text = reading.text
    for match in _TOKEN.finditer(text) if any(map(text.__contains__, _PREFIXES)) else ():
        yield DisclosureCandidate(DisclosureKind.SECRET, *match.span(), Strength.CERTAIN)
    for match in _BEARER.finditer(text) if reading.contains_any("bearer", "basic") else ():
        if is_secret_like(match[1]):
            yield DisclosureCandidate(DisclosureKind.SECRET, *match.span(1), Strength.CERTAIN)
    for match in _PEM.finditer(text) if "PRIVATE KEY-----" in text else ():
        yield DisclosureCandidate(DisclosureKind.SECRET, *match.span(), Strength.CERTAIN)
    for match in _CREDENTIALS.finditer(text):
        yield DisclosureCandidate(DisclosureKind.SECRET, *match.span(1), Strength.CERTAIN)
    for match in _LABELLED.finditer(reading.lowered) if reading.contains_any(*_LABELS) else ():
        value = match[1].rstrip(".)?!")
        if len(value) >= _MIN_PASSWORD_LENGTH and is_secret_like(value):
            start = match.start(1)
            yield DisclosureCandidate(DisclosureKind.SECRET, start, start + len(value), Strength.LIKELY)
    for match in _CODE.finditer(reading.lowered) if reading.contains_any(*_CODE_LABELS) else ():
        yield DisclosureCandidate(
            DisclosureKind.SECRET, *match.span("code" if match["code"] else "pin"), Strength.LIKELY
        )


def is_secret_like(value: str) -> bool:
    """Return whether a value looks like a secret: letters with digits or signs.

    A URL or "24-hour" does not look like a secret.
    """
    mixed = _MADE_UP.search(value) is not None and any(map(str.isalpha, value))
    return mixed and "://" not in value and not (_AMOUNT.fullmatch(value) or _NOTATION.fullmatch(value))
