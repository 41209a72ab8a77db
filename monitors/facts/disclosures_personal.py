"""What only the words around it make personal: account and policy numbers, addresses, dates of birth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from monitors.facts.disclosure import DisclosureKind, Strength
from monitors.facts.disclosures_candidate import Candidate
from monitors.facts.disclosures_reading import Reading
from monitors.facts.disclosures_view import HIDDEN

_LINK = r"[ \t]{0,3}(?:no\.?|num(?:ber)?|nos?\.?|id|code|#|नंबर|नम्बर|संख्या)?(?:[ \t]{1,3}(?:is|was|hai|h|ka|of)\b|[ \t]{0,3}(?:है|:|=|-|–|#))?[\s:\"']{0,4}"
_ID = r"([A-Za-z]{0,8}[ /-]?[A-Za-z0-9]{0,6}\d(?:[A-Za-z0-9]|[/.\- ](?=[A-Za-z0-9]{0,6}\d)){3,28})(?![A-Za-z0-9])"
_ACCOUNT = re.compile(
    r"(?:\b(?:bank |savings |current |loan |folio |customer |member |client |subscriber |patient |claim |policy ?holder )?"
    r"(?:a/c|acct?|account|accounts|khaa?ta)\b\.?|खाता|खाते|\b(?:customer|member|client|subscriber|patient|claim|folio|cif|uhid|crn)"
    r"(?= ?(?:id|no|num|number|#|code)\b)|\b(?:uhid|cif)\b)" + _LINK + _ID,
    re.IGNORECASE,
)
_POLICY_MARKED = re.compile(
    r"(?:\bpolicy|पॉलिसी|पालिसी)[ \t]{0,3}(?:no\.?|number|num|nos?\.?|id|#|certificate|नंबर|नम्बर|संख्या)"
    r"(?:[ \t]{1,3}(?:is|was|hai|h)\b|[ \t]{0,3}(?:है|:|=|-|–|#))?[\s:\"']{0,4}" + _ID,
    re.IGNORECASE,
)
_POLICY_CODED = re.compile(
    r"\b[Pp]olicy[ \t:#-]{1,3}((?:[A-Z]{2,8}[ /-])?[A-Z]{0,4}\d{7,16}|[A-Z]{1,6}[/-]?\d[\dA-Z/\-]{5,24})(?![A-Za-z0-9])"
)
_BIRTH = re.compile(
    r"(?:\bd\.?o\.?b\b\.?|\bdate of birth\b|\bbirth ?da(?:te|y)\b|\bborn\b|\bjan(?:a)?m\s?(?:tithi|din|date|taa?rikh)\b|जन्म\s?(?:तिथि|दिन|तारीख|दिनांक)?)"
    r"[^\d\n.!?" + HIDDEN + r"]{0,14}"
    r"(\d{1,2}(?:st|nd|rd|th)?[ ./\-]{1,2}(?:\d{1,2}|[A-Za-z]{3,9}\.?|[\u0900-\u097f]{2,10}),?[ ./\-]{1,2}\d{2,4}|\d{4}[./\-]\d{1,2}[./\-]\d{1,2}"
    r"|[A-Za-z]{3,9}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})",
    re.IGNORECASE,
)
_BIRTH_MONTH_FIRST = re.compile(
    r"(?:\bdate of birth\b|\bdob\b|\bborn on\b|\bbirth ?da(?:te|y)\b)(?:[ \t]{0,2}(?:is|:|-|on))?[ \t]{0,2}((?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:(?P<public>(?:\b(?:registered|regd|corporate|head|branch|office|postal|company|our|e-?mail|mail|ip|mac|web|site|website|wallet|url|grievance)\b\.?,?\s{1,2}(?:and |& )?){1,3})?\baddress(?:es)?\b(?P<more>[^\n.:;!?,]{0,48}?)\s{0,2}(?::|=|\bis\b|\bas\b|\bhai\b|-|–)"
    r"|\b(?:lives?|living|resid(?:es?|ing)|stays?|staying|rehta hai|rehti hai) (?:at|in)\b|पता\s?(?:है|:|-)|\bghar ka pata\b[ :-]{0,3}(?:hai\b)?)"
    r"[\s:\"']{0,4}(?P<where>[^\n;|\"" + HIDDEN + r"]{6,160})",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:road|rd|street|st|nagar|marg|lane|avenue|ave|block|sector|flat|apartments?|apt|colony|floor|house|plot|society|tower|cross|main"
    r"|layout|enclave|vihar|puram|po box|residency|heights|gali|chowk|bagh|ganj|wadi|pur|drive|boulevard|blvd|way|court|suite)\b|रोड|मार्ग|नगर|गली|सेक्टर|मकान|फ्लैट",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"(?<=[a-z\d)\u0900-\u097f])[.!?।](?=\s+[A-Z\u0900-\u097f*\[(]|\s*$)|\s[-–—]\s|(?:,| and| or)\s+(?=(?:phone|mobile|e-?mail|account|policy|pan|aadhaar|dob|date of birth|contact|tel)\b)"
)
_DIGITS = re.compile(r"\d")

_BIRTH_WORDS = ("birth", "dob", "d.o.b", "born", "janm", "janam", "जन्म")
_ADDRESS_WORDS = ("address", "lives", " live ", "living", "resid", "stay", "rehta", "rehti", "pata", "पता")


def find_personal(reading: Reading, account_patterns: Sequence[re.Pattern[str]]) -> Iterator[Candidate]:
    """Account, policy and customer numbers, street addresses, dates of birth, each behind the words for it.

    ``account_patterns`` are the target's own; a whole match of one is an account number whatever stands before.
    """
    text = reading.text
    yield from _numbers(reading)
    for pattern in (_BIRTH, _BIRTH_MONTH_FIRST) if reading.has(*_BIRTH_WORDS) else ():
        for match in pattern.finditer(text):
            yield Candidate(DisclosureKind.BIRTH_DATE, *match.span(1), Strength.LIKELY)
    if reading.has(*_ADDRESS_WORDS):
        yield from _addresses(text)
    for pattern in account_patterns:
        for match in pattern.finditer(text):
            if match.end() > match.start():
                yield Candidate(DisclosureKind.ACCOUNT_NUMBER, *match.span(), Strength.CERTAIN)


def _numbers(reading: Reading) -> Iterator[Candidate]:
    forms = (
        (DisclosureKind.POLICY_NUMBER, _POLICY_MARKED),
        (DisclosureKind.POLICY_NUMBER, _POLICY_CODED),
        (DisclosureKind.ACCOUNT_NUMBER, _ACCOUNT),
    )
    for kind, pattern in forms:
        for match in reading.near_digits(pattern):
            if len(_DIGITS.findall(match[1])) >= 5:
                yield Candidate(kind, *match.span(1), Strength.LIKELY)


def _addresses(text: str) -> Iterator[Candidate]:
    for match in _ADDRESS.finditer(text):
        end = _SENTENCE_END.search(match["where"])
        where = match["where"][: end.start()] if end else match["where"]
        if (
            len(where) < 6
            or not _DIGITS.search(where)
            or not (_PLACE.search(where) or re.search(r"\d{6}|,", where))
        ):
            continue
        strength = Strength.WEAK if match["public"] else Strength.LIKELY
        yield Candidate(
            DisclosureKind.STREET_ADDRESS,
            match.start("where"),
            match.start("where") + len(where.rstrip()),
            strength,
        )
