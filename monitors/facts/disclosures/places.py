"""Street addresses, e-mail addresses in words, and whose a contact is (`places.toml`).

An address is found from its postcode: back over words with capitals, numbers and words for streets, up to the word
that leads to it. A street without a postcode counts only behind words for a person. The nearest word decides whose
an address or a telephone is: a company's own stays readable, except in public places.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from monitors.facts.disclosures.candidates import (
    HIDDEN,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
)
from monitors.facts.disclosures.phrases import COMPANY, MAIL_AT, NAMES, PERSON, PLACES

_STREETS: Final = frozenset(PLACES["street"])
_STREET_ENDINGS: Final = tuple(PLACES["street_ending"])
_INNER: Final = frozenset(PLACES["inner"])
_NOT_INSIDE: Final = frozenset((*PLACES["not_inside"], *PLACES["address_label"]))
_STOP: Final = frozenset(NAMES["stop"]) - _INNER - {"new", "old", "north"}
_MAX_ADDRESS_WORDS: Final = 20
_MIN_LONG_NUMBER: Final = 5
_MAX_ADDRESS_LENGTH: Final = 130
_CUE_REACH: Final = 90
"""Characters before a contact in which a word says whose it is."""

_CITY: Final = r"[A-ZÄÖÜÀ-Þ][\w\-]*(?:(?: (?:am|an der|an|im|ob der|bei|sur|de la|de|del)){1} [A-ZÄÖÜÀ-Þ][\w\-]*| [A-ZÄÖÜÀ-Þ][\w\-]*(?=[,.\n)]|$))?"
_STATES: Final = "|".join((*PLACES["states"].split(), *PLACES["state_names"]))
_POSTCODE: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    rf"(?P<uk>(?:{'|'.join(PLACES['uk_areas'].split())})\d[A-Z\d]? ?\d[A-Z]{{2}})"
    rf"|(?P<us>(?:{_STATES})\.?,? \d{{5}}(?:-\d{{4}})?)"
    rf"|(?P<city>(?:[A-Z]{{1,2}}-)?\d{{4,5}} {_CITY})"
    r"|(?P<indian>[1-9]\d{2} ?\d{3})"
    r")(?![A-Za-z0-9])"
)
_BETWEEN: Final = re.compile(r"[\s,./#&'’()\-–|]{0,4}")
_SENTENCE_GAP: Final = re.compile(r"[.!?।]\s")


def is_company_contact(reading: DisclosureText, start: int, end: int) -> bool | None:
    """Whether the nearest word before a contact says that it is a company's; ``None`` where no word says whose."""
    nearest: bool | None = None
    last_end = 0
    ends = reading.words_of_text.ends
    for phrase in reading.cues_of_owners[bisect_left(reading.cue_places, max(0, start - _CUE_REACH)) :]:
        phrase_start, phrase_end = reading.words_of_text.starts[phrase.first], ends[phrase.end - 1]
        if phrase_end > start:
            break
        if phrase_start >= last_end:
            nearest, last_end = phrase.topic == COMPANY, phrase_end
    if nearest is None and _OWN_BEHIND.match(reading.text, end):
        return True
    return nearest


_OWN_BEHIND: Final = re.compile(
    r"[\"')]{0,2} (?:is|ist|est|are|hai|है) (?:our|unser|notre|hamar|the (?:hotline|helpline|office|switchboard)|हमार)"
)


_DESCRIBED: Final = re.compile(
    r"(?:\baddress(?:es)?\b[^\n.:;!?,]{0,48}?\s{0,2}(?::|=|\bis\b|\bas\b|\bhai\b|-)"
    r"|\b(?:lives?|living|resid(?:es?|ing)|stays?|staying|rehta hai|rehti hai) at\b"
    r"|पता\s?(?:है|:|-)|\bghar ka pata\b[ :-]{0,3}(?:hai\b)?)"
    rf"[\s:\"']{{0,4}}(?P<where>[^\n;|\"{HIDDEN}]{{6,160}})",
    re.IGNORECASE,
)
_DESCRIPTIONS: Final = ("address", "live", "living", "resid", "stay", "rehta", "rehti", "पता", "ghar ka pata")
_STREET_OR_CITY: Final = re.compile(
    rf"\b(?:{'|'.join(word for word in PLACES['street'] if word.isascii())})\b|{'|'.join(word for word in PLACES['street'] if not word[0].isalpha() or word[0] >= 'ऀ')}|,|\d{{6}}",
    re.IGNORECASE,
)
_ADDRESS_END: Final = re.compile(
    r"(?<=[a-z\d)\u0900-\u097f])[.!?।](?=\s+[A-Z\u0900-\u097f*\[(]|\s*$)|\s[-–—]\s"
    r"|(?:,| and| or)\s+(?=(?:phone|mobile|e-?mail|account|policy|pan|aadhaar|dob|date of birth|contact|tel)\b)"
    r"|,?\s(?:and|but|so|who|which|until|since|now|yet|please|mein)(?=\s+[a-z]|[.,]?$)"
)
_WEB: Final = re.compile(r"\S*://\S*")
"""An address on the web: its digits and commas make no street."""


def find_addresses(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find addresses that end in a postcode (US, UK, German, French, Indian), streets behind words for a person, and
    what stands behind "address is" and "lives at".
    """
    if not reading.has_digits:
        return
    addresses = list(_find_shaped_addresses(reading))
    yield from addresses
    for match in _DESCRIBED.finditer(reading.text) if reading.has(*_DESCRIPTIONS) else ():
        end = _ADDRESS_END.search(match["where"])
        where = (match["where"][: end.start()] if end else match["where"]).rstrip()
        start = match.start("where") + len(where) - len(where.lstrip(" .,;"))
        where = where.lstrip(" .,;")
        street = _WEB.sub("", where)
        is_new = not any(address.start < start + len(where) and start < address.end for address in addresses)
        if is_new and any(map(str.isdigit, street)) and _STREET_OR_CITY.search(street):
            yield _rate_address(reading, start, start + len(where))


def _rate_address(reading: DisclosureText, start: int, end: int) -> DisclosureCandidate:
    is_company = is_company_contact(reading, start, end)
    if is_company or _names_a_company(reading, start, end):
        strength = Strength.CONTACT
    else:
        strength = Strength.WEAK if is_company is None else Strength.LIKELY
    return DisclosureCandidate(DisclosureKind.STREET_ADDRESS, start, end, strength)


def _find_shaped_addresses(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    text = reading.text
    for match in _POSTCODE.finditer(text):
        start = _find_address_start(reading, match)
        if start is not None:
            yield _rate_address(reading, start, match.end())
    for pattern in (_NUMBER_AND_STREET, _STREET_AND_NUMBER):
        for match in pattern.finditer(text):
            if is_company_contact(reading, match.start(), match.end()) is False and not _names_a_company(
                reading, match.start(), match.end()
            ):
                yield DisclosureCandidate(DisclosureKind.STREET_ADDRESS, *match.span(), Strength.LIKELY)


_HOUSE_STREETS: Final = (
    "Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Ct|Close|Crescent|Terrace|Place|Square|Boulevard|Blvd|Way|Trail|Row|"
    "Gardens|Grove|Mews|Rise|View|Walk|Quay|Parkway|Circle|Marg|Nagar"
)
_NUMBER_AND_STREET: Final = re.compile(
    r"(?<![\w.,:/\-])(?:(?:Flat|Unit|Apartment|Apt\.?|House No\.?) \d{1,4}[A-Za-z]?,? )?\d{1,5}[A-Za-z]?(?:[-/]\d{1,4})?,? "
    rf"(?:(?:[A-Z]|[A-Z][\w'’]{{1,20}})\.? ){{1,3}}(?:{_HOUSE_STREETS})(?!\w)\.?"
    r"(?:,? (?:Flat|Unit|Apt\.?|Apartment|Suite|#) ?\w{1,5})?(?:(?:,| in) [A-Z][\w'’\-]{2,20}(?: [A-Z][\w'’\-]{2,20})?)?"
)
_STREET_AND_NUMBER: Final = re.compile(
    r"(?<!\w)(?:[A-ZÄÖÜ][\wäöüß\-]{1,30} ){0,2}(?:[A-ZÄÖÜ][a-zäöüß\-]{2,30}(?:straße|strasse|str\.|weg|platz|allee|gasse|ring|damm|ufer|chaussee|steig|pfad)|(?:Straße|Weg|Platz|Allee|Ring)) "
    r"?\d{1,4} ?[a-z]?(?![\w.])(?:,? (?:in )?\d{0,5} ?[A-ZÄÖÜ][\wäöüß\-]{2,30})?"
)


def _find_address_start(reading: DisclosureText, match: re.Match[str]) -> int | None:
    """Return where the address begins that ends in a postcode; ``None`` where no street or house stands before it."""
    text, (words, starts, ends) = reading.text, reading.words_of_text
    anchor = bisect_left(starts, match.start())
    begin: int | None = None
    has_street = has_number = False
    count = 0
    for index in range(anchor - 1, max(-1, anchor - 1 - _MAX_ADDRESS_WORDS), -1):
        following = starts[index + 1] if index + 1 < len(starts) else match.start()
        between = text[ends[index] : min(following, match.start())]
        word, written = words[index], text[starts[index]]
        if (
            not _BETWEEN.fullmatch(between)
            or match.start() - starts[index] > _MAX_ADDRESS_LENGTH
            or "\n\n" in between
        ):
            break
        is_street = word in _STREETS or word.endswith(_STREET_ENDINGS)
        if _SENTENCE_GAP.match(between) and not (
            is_street or len(word) <= 2 or word[0].isdigit() or word in _INNER
        ):
            break
        if word in _NOT_INSIDE and not (word in _INNER and begin is not None and written.islower()):
            break
        if word[0].isdigit():
            if len(word) >= _MIN_LONG_NUMBER and between != " ":
                break  # a telephone or an account number stands before the address
            has_number = True
        elif not (
            is_street
            or written.isupper()
            or (not written.isascii() and not written.islower() and word not in _STOP)
        ):
            if word in _INNER:
                continue
            break
        has_street |= is_street
        count += 1
        begin = index
    if begin is None or not (has_street or has_number):
        return None
    previous = words[anchor - 1]
    match match.lastgroup:
        case "city" if not has_street and not (previous[0].isdigit() and count > 1):
            return None
        case "indian" if not has_street or count < 2:  # noqa: PLR2004 - a street and a town
            return None
        case "us" if not has_number:
            return None
        case "city" | "uk" if not count > 1:
            return None
        case _:
            return starts[begin]


_COMPANY_NAMES: Final = frozenset(
    "pharmacy clinic gmbh ltd limited inc plc llc hotel gym library museum branch office filiale praxis apotheke headquarters "
    "depot warehouse showroom shop store boutique agence".split()
)


def _names_a_company(reading: DisclosureText, start: int, end: int) -> bool:
    """Whether the address itself names a company."""
    words, starts, _ = reading.words_of_text
    first, until = bisect_left(starts, start), bisect_left(starts, end)
    return not _COMPANY_NAMES.isdisjoint(words[first:until])


_DOTS: Final = frozenset(PLACES["mail"]["dot"])
_JOINTS: Final = frozenset(phrase for phrase in PLACES["mail"]["joint"])
_AT_WORDS: Final = frozenset(phrase.split()[0] for phrase in PLACES["mail"]["at"])
_DOMAINS: Final = frozenset(PLACES["mail"]["domains"].split())
_NOT_LOCAL: Final = frozenset(PLACES["mail"]["not_a_name"])
_MAX_DOMAIN_WORDS: Final = 8
_MAX_LOCAL_WORDS: Final = 14
_LETTER_BY_LETTER: Final = re.compile(r"(?<!\w)(?:[\w.\-] ){2,40}@(?: [\w.\-]){4,40}(?!\w)")
_MAIL_GAP: Final = re.compile(r"[ ()\[\]{}<>.,_\-\"'“”„@]{1,4}")


def find_spoken_mail(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find e-mail addresses in words: "jost punkt quandel ät nordpost punkt de"."""
    text, (words, starts, ends) = reading.text, reading.words_of_text
    for match in _LETTER_BY_LETTER.finditer(text) if " @ " in text else ():
        yield DisclosureCandidate(DisclosureKind.EMAIL, *match.span(), Strength.LIKELY)
    at_phrases: dict[int, tuple[int, bool]] = {}
    for phrase in reading.phrases:
        if phrase.topic == MAIL_AT:
            is_plain = phrase.end == phrase.first + 1 and words[phrase.first] == "at"
            at_phrases.setdefault(phrase.end, (phrase.first, is_plain))
    for end_of_at, (first_of_at, is_plain) in at_phrases.items():
        last = _find_domain_end(reading, end_of_at, allow_dots=not is_plain)
        if last is None or first_of_at == 0:
            continue
        first = first_of_at - 1
        if words[first] in _NOT_LOCAL or not _MAIL_GAP.fullmatch(text, ends[first], starts[first_of_at]):
            continue
        while first > 0 and first_of_at - first < _MAX_LOCAL_WORDS:
            gap = text[ends[first - 1] : starts[first]]
            if gap in {".", "_", "-", "+"} or (
                words[first - 1] in _JOINTS and gap.strip() in {"", "-"} and first > 1
            ):
                first -= 1
            elif words[first] in _JOINTS and (gap == " " or gap.strip(" ()[]") == ""):
                first -= 1
            else:
                break
        if words[first] in _JOINTS:
            first += 1
        yield DisclosureCandidate(DisclosureKind.EMAIL, starts[first], ends[last], Strength.LIKELY)


def _find_domain_end(reading: DisclosureText, first: int, *, allow_dots: bool) -> int | None:
    """Return the last word of a domain in words that begins at a word: "brisk mail dot co dot uk"."""
    text, (words, starts, ends) = reading.text, reading.words_of_text
    last = None
    for index in range(first, min(first + _MAX_DOMAIN_WORDS, len(words))):
        gap = text[ends[index - 1] : starts[index]]
        if not _MAIL_GAP.fullmatch(gap) or (". " in gap and index > first) or words[index] in _AT_WORDS:
            break
        is_dotted = words[index - 1] in _DOTS or (allow_dots and gap == ".")
        if index > first and is_dotted and words[index] in _DOMAINS:
            last = index
        elif last is not None and words[index] not in _DOTS:
            break
        elif last is not None and not (index + 1 < len(words) and words[index + 1] in _DOMAINS):
            break
    return last
