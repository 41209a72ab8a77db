"""Keys, tokens, passwords and private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_reading import Reading

# Prefixes as their issuers document them: OpenAI and Anthropic sk-, Hugging Face hf_, GitHub gh?_ and github_pat_,
# GitLab glpat-, AWS AKIA/ASIA, Google AIza and ya29., Slack xox?- and hook addresses, Stripe sk_live_, npm_, pypi-,
# SendGrid SG., Groq gsk_, Razorpay rzp_, Standard Webhooks whsec_, LangSmith lsv2_, Prefect pnu_/pnb_, Twilio SK.
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
"""One of these is in every token: a quick look that spares most texts the search."""

_BEARER = re.compile(r"\b(?:bearer|basic)[ \t]++([A-Za-z0-9._~+/\-]{12,}+=*+)", re.IGNORECASE)
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[A-Za-z0-9+/=\s:,\-]*+")
_LABELLED = re.compile(
    r"(?:\b|_)(?:api[_ -]?key|secret[_ -]?(?:access[_ -]?)?key|secret|password|passwd|pwd|passphrase"
    r"|access[_ -]?token"
    r"|auth[_ -]?token|token|client[_ -]?secret|private[_ -]?key|otp|pin|cvv|cvc)\b[\"']?\s{0,3}(?:=|:|is\b"
    r"|-)\s{0,3}[\"']?([^\s\"',;<>\[\]" + "\ufffc" + r"]{3,200}+)",
)
_CREDENTIALS = re.compile(r"://([^\s/:@\[\]]{1,64}+:[^\s/@\[\]]{1,128}+)@")
_SHORTEST = 6
"""Characters of the shortest password worth the name."""
_CODE_LENGTHS = range(3, 9)
"""Digits of a card's check number, a PIN, a one-time code."""
_LABELS = ("key", "secret", "passw", "passp", "pwd", "token", "otp", "pin ", "pin:", "pin=", "cvv", "cvc")
_NUMERIC_LABELS = re.compile(r"(?:otp|pin|cvv|cvc)", re.IGNORECASE)


def find_secrets(reading: Reading) -> Iterator[Candidate]:
    """Tokens by their issuers' prefixes, bearer headers, private keys, ``password is …``, credentials in URLs."""
    text = reading.text
    for match in _TOKEN.finditer(text) if any(map(text.__contains__, _PREFIXES)) else ():
        yield Candidate(DisclosureKind.SECRET, *match.span(), Strength.CERTAIN)
    for match in _BEARER.finditer(text) if reading.has("bearer", "basic") else ():
        if _is_mixed(match[1]) and any(map(str.isdigit, match[1])):
            yield Candidate(DisclosureKind.SECRET, *match.span(1), Strength.CERTAIN)
    for match in _PEM.finditer(text) if "PRIVATE KEY-----" in text else ():
        yield Candidate(DisclosureKind.SECRET, *match.span(), Strength.CERTAIN)
    for match in _CREDENTIALS.finditer(text):
        yield Candidate(DisclosureKind.SECRET, *match.span(1), Strength.CERTAIN)
    for match in _LABELLED.finditer(reading.lowered) if reading.has(*_LABELS) else ():
        if found := _labelled(match):
            yield found


def _labelled(match: re.Match[str]) -> Candidate | None:
    value = match[1].rstrip(".)")
    start = match.start(1)
    if _NUMERIC_LABELS.match(match[0].lstrip("_")):
        return (
            Candidate(DisclosureKind.SECRET, start, start + len(value), Strength.LIKELY)
            if _is_code(value)
            else None
        )
    if len(value) < _SHORTEST or not _is_mixed(value):
        return None
    return Candidate(DisclosureKind.SECRET, start, start + len(value), Strength.LIKELY)


def _is_code(value: str) -> bool:
    return value.isdigit() and len(value) in _CODE_LENGTHS


def _is_mixed(value: str) -> bool:
    """Whether it looks made up and not like a word: letters with digits or punctuation, and no address."""
    has_other = any(not character.isalpha() for character in value.rstrip("=:"))
    return has_other and any(character.isalpha() for character in value) and "://" not in value
