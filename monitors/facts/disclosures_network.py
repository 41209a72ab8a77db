"""E-mail addresses, UPI ids and IP addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_context import Context
from monitors.facts.disclosures_reading import Reading

# A run of mailbox characters is read once, from its left end, and never again (possessive quantifiers).
# Devanagari vowel signs are no word characters of their own; its full stop (U+0964) is no part of a name.
_W = r"\w\u0900-\u0963\u0966-\u097f"
_AT = re.compile(
    rf"(?<![{_W}.%+\-'])([{_W}.%+\-']++)(?:@| @ | ?\[at\] ?| ?\(at\) ?)"
    rf"([{_W}\-]++(?:(?:\.|\s?[\[(]dot[\])]\s?)[{_W}\-]++)*+)",
    re.IGNORECASE,
)
_DOT = re.compile(r"\.|[\[(]dot[\])]", re.IGNORECASE)
_TOP_LEVEL = re.compile(r"(?:xn--[\w\-]+|[^\W\d_]{2,24}|[\u0900-\u0963]{2,24})", re.IGNORECASE)
_SPOKEN = re.compile(
    r"(?<![\w.])([\w]{1,40}(?: dot [\w]{1,40}| underscore [\w]{1,40}"
    r"| dash [\w]{1,40}){0,4} at [\w\-]{2,40}(?: dot [a-z]{2,12}){1,3})\b",
    re.IGNORECASE,
)
_ROLES = re.compile(
    r"(?:care|support|help|helpdesk|info|contact|contactus|customer\.?care|customer\.?service|service|services"
    r"|grievance"
    r"s?|complaints?|feedback|sales|hello|admin|office|no-?reply|privacy|dpo|legal|press|media|claims?"
    r"|ombudsman|enquiry"
    r"|inquiry|queries|webmaster|postmaster|abuse|security|nodal(?:officer)?|gro"
    r"|bimalokpal[\w.]*)(?:[.\-_][\w.\-]*)?",
    re.IGNORECASE,
)
# Handles of UPI payment providers in NPCI's list of third-party apps and banks.
_HANDLE_NAMES = (
    "okaxis okhdfcbank okicici oksbi ybl ibl axl paytm ptyes ptsbi pthdfc ptaxis upi apl yapl rapl abfspay "
    "axisb axisbank"
    " hdfcbank hdfcbankjd icici sbi kotak kotak811 yesbank yesbankltd pnb barodampay boi cnrb federal idfcbank"
    " idfcfirst indus airtel freecharge jupiteraxis fam ikwik wahdfcbank waicici waaxis wasbi slice sliceaxis goaxb"
    " timecosmos tapicici naviaxis superyes aubank dbs hsbc rbl rmhdfcbank mahb uboi unionbank postbank jio "
    "fbl"
)
_HANDLES = frozenset(_HANDLE_NAMES.split())

_THREE_DOTS = re.compile(r"\.\d{1,3}\.\d{1,3}\.\d")
_TWO_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV4 = re.compile(
    r"(?<![\w.])((?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d))(?:/\d{1,2})?(?![\d\w])"
)
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:?)([0-9A-Fa-f:.]{2,45})(/\d{1,3})?(?![\w:])")

_FEWEST_COLONS = 2
_TELLING_OCTET = 100
"""Numbers of clauses and versions ("2.2.27.6") stay below; 98 % of random addresses have an octet above."""


def find_network(reading: Reading) -> Iterator[Candidate]:
    """E-mail (spoken and bracketed forms too), UPI ids by known handle or behind the word, IPv4 and IPv6."""
    if reading.has("@", "[at]", "(at)"):
        yield from _mailboxes(reading)
    if reading.has(" dot "):
        for match in _SPOKEN.finditer(reading.text):
            yield Candidate(DisclosureKind.EMAIL, *match.span(), Strength.LIKELY)
    if _THREE_DOTS.search(reading.text):
        yield from _ipv4(reading)
    if _TWO_COLONS.search(reading.text):
        yield from _ipv6(reading)


def _mailboxes(reading: Reading) -> Iterator[Candidate]:
    for match in _AT.finditer(reading.text):
        labels = _DOT.split(match[2])
        if len(labels) > 1 and _TOP_LEVEL.fullmatch(labels[-1].strip()):
            role = _ROLES.fullmatch(match[1])
            yield Candidate(DisclosureKind.EMAIL, *match.span(), Strength.WEAK if role else Strength.CERTAIN)
        elif len(labels) > 1 and (end := _shorter(match)):
            yield Candidate(DisclosureKind.EMAIL, match.start(), end, Strength.CERTAIN)
        elif _is_upi(match, reading):
            yield Candidate(DisclosureKind.UPI, *match.span(), Strength.CERTAIN)


def _shorter(match: re.Match[str]) -> int | None:
    """The end of an address whose last label is none, as in ``a@b.com.2024``: where its last good label ends."""
    ends = [dot.start() for dot in _DOT.finditer(match[2])][1:]
    for end in reversed(ends):
        if _TOP_LEVEL.fullmatch(_DOT.split(match[2][:end])[-1]):
            return match.start(2) + end
    return None


def _is_upi(match: re.Match[str], reading: Reading) -> bool:
    handle = match[2].lower()
    return handle in _HANDLES or (handle.isalpha() and reading.words.before(match.start()) is Context.UPI)


def _ipv4(reading: Reading) -> Iterator[Candidate]:
    for match in _IPV4.finditer(reading.text):
        if _has_leading_zero(match[1]) or reading.words.linked(match.start()) is Context.VERSION:
            continue
        named = reading.words.before(match.start()) is Context.IP
        telling = named or max(map(int, match[1].split("."))) >= _TELLING_OCTET
        public = ipaddress.IPv4Address(match[1]).is_global
        strength = Strength.LIKELY if public and telling else Strength.WEAK
        yield Candidate(DisclosureKind.IP, *match.span(), strength)


def _has_leading_zero(address: str) -> bool:
    """Whether an octet is written ``01``: a telephone number in pairs, no address."""
    return any(len(octet) > 1 and octet[0] == "0" for octet in address.split("."))


def _ipv6(reading: Reading) -> Iterator[Candidate]:
    for match in _IPV6.finditer(reading.text):
        written = match[1].rstrip(".")
        if written.count(":") < _FEWEST_COLONS:
            continue
        end = match.end() if written == match[1] else match.start() + len(written)
        try:
            address = ipaddress.IPv6Address(written)
        except ValueError:
            continue
        if address.is_unspecified and not match[2] and reading.words.before(match.start()) is not Context.IP:
            continue
        strength = Strength.LIKELY if address.is_global else Strength.WEAK
        yield Candidate(DisclosureKind.IP, match.start(), end, strength)
