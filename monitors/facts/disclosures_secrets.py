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
    r"|auth[_ -]?token|token|client[_ -]?secret|private[_ -]?key)\b[\"']?\s{0,3}(?:=|:|is\b|-)\s{0,3}[\"']?"
    r"([^\s\"',;<>\[\]" + "\ufffc" + r"]{3,200}+)",
)
# One-time codes and card check numbers; a PIN only with four digits, because six are a postal code.
_CODE = re.compile(
    r"\b(?:(?:otp|cvv|cvc|verification code|security code)\b(?: ?(?:code|number|no\.?))?\s{0,3}(?:is\b|:|="
    r"|-)?\s{0,3}(?P<code>\d{3,8})"
    r"|pin\b(?: ?(?:number|no\.?))?\s{0,3}(?:is\b|:|=|-)\s{0,3}(?P<pin>\d{4}))(?![\d,])"
)
_CREDENTIALS = re.compile(r"://([^\s/:@\[\]]{1,64}+:[^\s/@\[\]]{1,128}+)@")
_SHORTEST = 6
"""Characters of the shortest password worth the name."""
_LABELS = ("key", "secret", "passw", "passp", "pwd", "token")
_CODE_LABELS = ("otp", "pin", "cvv", "cvc", " code")
_MADE_UP = re.compile(r"[\d!@#$%^&*+=~?]")
_AMOUNT = re.compile(r"\d+-[a-z]+")
"""A "24-hour" or a "30-day" something is no password."""


def find_secrets(reading: Reading) -> Iterator[Candidate]:
    """Tokens by their issuers' prefixes, bearer headers, private keys, ``password is …``, credentials in URLs."""
    text = reading.text
    for match in _TOKEN.finditer(text) if any(map(text.__contains__, _PREFIXES)) else ():
        yield Candidate(DisclosureKind.SECRET, *match.span(), Strength.CERTAIN)
    for match in _BEARER.finditer(text) if reading.has("bearer", "basic") else ():
        if _is_made_up(match[1]):
            yield Candidate(DisclosureKind.SECRET, *match.span(1), Strength.CERTAIN)
    for match in _PEM.finditer(text) if "PRIVATE KEY-----" in text else ():
        yield Candidate(DisclosureKind.SECRET, *match.span(), Strength.CERTAIN)
    for match in _CREDENTIALS.finditer(text):
        yield Candidate(DisclosureKind.SECRET, *match.span(1), Strength.CERTAIN)
    for match in _LABELLED.finditer(reading.lowered) if reading.has(*_LABELS) else ():
        value = match[1].rstrip(".)?!")
        if len(value) >= _SHORTEST and _is_made_up(value):
            start = match.start(1)
            yield Candidate(DisclosureKind.SECRET, start, start + len(value), Strength.LIKELY)
    for match in _CODE.finditer(reading.lowered) if reading.has(*_CODE_LABELS) else ():
        yield Candidate(DisclosureKind.SECRET, *match.span("code" if match["code"] else "pin"), Strength.LIKELY)


def _is_made_up(value: str) -> bool:
    """Whether it is no word: letters with digits or punctuation among them, no address, no "24-hour"."""
    mixed = _MADE_UP.search(value) is not None and any(map(str.isalpha, value))
    return mixed and "://" not in value and _AMOUNT.fullmatch(value) is None
