"""Street addresses, dates of birth, customers' names: words that only the words around them make personal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_reading import Reading
from monitors.facts.disclosures_view import HIDDEN

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_BIRTH = re.compile(
    r"(?P<label>\bd\.?o\.?b\b\.?|\bdate of birth\b|\bbirth ?da(?:te|y)\b|\bborn\b"
    r"|\bjan(?:a)?m\s?(?:tithi|din|date|taa?rikh)\b|जन्म\s?(?:तिथि|दिन|तारीख|दिनांक)?)"
    rf"[^\d\n.!?{HIDDEN}]{{0,14}}?"
    rf"(?P<date>{_DAY}[ ./\-]{{1,2}}(?:\d{{1,2}}|[A-Za-z]{{3,9}}\.?"
    rf"|[\u0900-\u097f]{{2,10}}),?[ ./\-]{{1,2}}\d{{2,4}}"
    rf"|\d{{4}}[./\-]\d{{1,2}}[./\-]\d{{1,2}}|{_MONTH} {_DAY},? \d{{4}})",
    re.IGNORECASE,
)
_BIRTH_WORDS = ("birth", "dob", "d.o.b", "born", "janm", "janam", "जन्म")

_ADDRESS = re.compile(
    r"(?:\baddress(?:es)?\b[^\n.:;!?,]{0,48}?\s{0,2}(?::|=|\bis\b|\bas\b|\bhai\b|-)"
    r"|\b(?:lives?|living|resid(?:es?|ing)|stays?|staying|rehta hai|rehti hai) at\b"
    r"|पता\s?(?:है|:|-)|\bghar ka pata\b[ :-]{0,3}(?:hai\b)?)"
    rf"[\s:\"']{{0,4}}(?P<where>[^\n;|\"{HIDDEN}]{{6,160}})",
    re.IGNORECASE,
)
_ADDRESS_LABELS = (
    "address|live at|lives at|living at|reside at|resides at|residing at|stay at|stays at|staying at|hai at"
    "|ghar ka|पता"
)
_ADDRESS_WORDS = tuple(_ADDRESS_LABELS.split("|"))
# "Flat 12, Green Apartments, 99 Lake Road, Pune 411001": a dwelling first and an Indian postal code last.
_DWELLING = re.compile(
    r"(?P<where>\b(?:flat|house|h\. ?no|plot|door|apartment|apt|villa|bungalow|quarter)\b\.?"
    r"(?: ?(?:no|number|num)\b\.?)?[ :#-]{0,3}[A-Za-z]?-?\d[^\n;|" + HIDDEN + r"]{8,120}?\b[1-9]\d{2} ?\d{3}\b)",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:road|rd|street|st|nagar|marg|lane|avenue|ave|block|sector|flat|apartments?|apt|colony|floor|house|plot"
    r"|society|tower|cross|main|layout|enclave|vihar|puram|po box|residency|heights|gali|chowk|bagh|ganj|wadi|pur"
    r"|drive|boulevard|blvd|way|court|suite)\b|रोड|मार्ग|नगर|गली|सेक्टर|मकान|फ्लैट|,|\d{6}",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"(?<=[a-z\d)\u0900-\u097f])[.!?।](?=\s+[A-Z\u0900-\u097f*\[(]|\s*$)|\s[-–—]\s"
    r"|(?:,| and| or)\s+(?=(?:phone|mobile|e-?mail|account|policy|pan|aadhaar|dob|date of birth|contact|tel)\b)"
)
_DIGIT = re.compile(r"\d")
# An organisation's address is public. A person's is told by what is said before it.
_PUBLIC = re.compile(
    r"\b(?:office|branch|head ?quarters?|hospital|clinic|centre|center|company|corporate|ombudsman|garage|store"
    r"|shop"
    r"|grievance|department|institute|bank|court|e-?mail|mail|ip|mac|web|site|website|wallet|url|white house)\b",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"\b(?:customer|policy ?holder|insured|member|holder|nominee|patient|client|subscriber|mr|mrs|ms|shri|smt"
    r"|his|her"
    r"|their|your|home|residen\w*|liv(?:es?|ing)|stay\w*|ghar|name|account|phone|mobile|aadhaar|pan|dob)\b|घर"
    r"|ग्राहक",
    re.IGNORECASE,
)
_BEFORE = 160
"""Characters before an address in which the last word for a person or an organisation decides whose it is."""

_CUSTOMER = re.compile(
    r"\b(?:[Cc]ustomer|[Pp]olicy ?holder|[Ii]nsured|[Mm]ember|[Nn]ominee|[Aa]ccount holder|[Pp]atient"
    r"|[Cc]ard ?holder"
    r"|[Bb]eneficiary|[Nn]ame)(?: on file| [Nn]ame| of (?:the )?[a-z]{4,12})?(?: ?[:=] ?| is )"
    r"(?:(?:Mr|Mrs|Ms|Dr|Shri|Smt)\.? )?([A-Z][a-z]{1,20}(?: [A-Z](?:[a-z]{1,20}|\.)){1,3})"
)

_CUSTOMER_LABELS = (
    "customer:|customer on file|customer name|customer is |holder:|holder is |holder name|insured:|insured name"
    "|member:|member name|nominee:|nominee is |nominee name|patient:|patient name|beneficiary:|name:|name is "
    "|name of "
)
_CUSTOMER_WORDS = tuple(_CUSTOMER_LABELS.split("|"))


def find_personal(reading: Reading) -> Iterator[Candidate]:
    """Addresses behind "address", "lives at" or a dwelling's number; dates behind "born", "DOB"; customers' names.

    An organisation's address, a date behind "born" alone (often a public figure's) and a name are weak.
    """
    if reading.has(*_BIRTH_WORDS):
        yield from _births(reading)
    if reading.has(*_ADDRESS_WORDS):
        yield from _addresses(reading, _ADDRESS.finditer(reading.text))
    yield from _addresses(reading, reading.near_digits(_DWELLING))
    for match in _CUSTOMER.finditer(reading.text) if reading.has(*_CUSTOMER_WORDS) else ():
        yield Candidate(DisclosureKind.PERSON, *match.span(1), Strength.WEAK)


def _births(reading: Reading) -> Iterator[Candidate]:
    for match in _BIRTH.finditer(reading.text):
        strength = Strength.WEAK if match["label"].lower() == "born" else Strength.LIKELY
        yield Candidate(DisclosureKind.BIRTH_DATE, *match.span("date"), strength)


def _addresses(reading: Reading, matches: Iterator[re.Match[str]]) -> Iterator[Candidate]:
    for match in matches:
        end = _SENTENCE_END.search(match["where"])
        where = (match["where"][: end.start()] if end else match["where"]).rstrip()
        if _DIGIT.search(where) and _PLACE.search(where):
            start = match.start("where")
            strength = Strength.LIKELY if _is_personal(reading.text, start) else Strength.WEAK
            yield Candidate(DisclosureKind.STREET_ADDRESS, start, start + len(where), strength)


def _is_personal(text: str, start: int) -> bool:
    before = max(0, start - _BEFORE)
    person = max((match.start() for match in _PERSONAL.finditer(text, before, start)), default=-1)
    public = max((match.start() for match in _PUBLIC.finditer(text, before, start)), default=-1)
    return person > public
