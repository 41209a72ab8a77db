"""Find street addresses and spoken e-mail addresses, and decide who owns a contact (`places.toml`).

An address is read backwards from its postcode, over capitalised words, numbers and words for streets, to the word
that introduces the address. A street without a postcode is found only after words for a person. The nearest word
for a person or a company shows the owner of a contact. A company's own contact is masked only in public texts.
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
_NOT_STREETS: Final = frozenset(PLACES["not_a_street"])
_INNER: Final = frozenset(PLACES["inner"])
_NOT_INSIDE: Final = frozenset((*PLACES["not_inside"], *PLACES["address_label"]))
_STOP: Final = frozenset(NAMES["stop"]) - _INNER - {"new", "old", "north"}
_MAX_ADDRESS_WORDS: Final = 20
_MIN_LONG_NUMBER: Final = 5
_MAX_ABBREVIATION: Final = 2
_MAX_ADDRESS_LENGTH: Final = 130
_CUE_REACH: Final = 90
"""Maximum number of characters between a contact and an earlier word that shows the owner."""

_CAPITAL_WORD: Final = r"[A-ZÄÖÜÀ-Þ][\w\-]*"
_CITY: Final = (
    rf"{_CAPITAL_WORD}(?: (?:am|an der|an|im|ob der|bei|sur|de la|de|del) {_CAPITAL_WORD}"
    rf"|(?: {_CAPITAL_WORD})(?=[,.\n)]|$))?"
)
_POSTCODES: Final = (
    # Each pattern begins with a digit. A text without digits is read in almost no time.
    ("uk", re.compile(r"\d[A-Z\d]? ?\d[A-Z]{2}(?![A-Za-z0-9])")),
    (
        "number",
        re.compile(rf"\d(?<![\d.,]\d)(?:\d{{4}}(?:-\d{{4}})?(?!\w)|\d{{3}}(?= [A-ZÄÖÜ]))(?P<city> {_CITY})?"),
    ),
    ("indian", re.compile(r"[1-9](?<![\w.,].)\d{2} ?\d{3}(?!\w)")),
)
_UK_AREA: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(PLACES['uk_areas'].split())})$")
_STATE: Final = re.compile(rf"(?<!\w)(?:{'|'.join((*PLACES['states'].split(), *PLACES['state_names']))})\.?,? $")
_COUNTRY_CODE: Final = re.compile(r"(?<![\w-])[A-Z]{1,2}-$")
_LENGTH_BEFORE_POSTCODE: Final = 17
"""Number of characters that are read before a postcode: enough for the longest name of a state and a separator."""
_POSTAL_ITEM: Final = re.compile(r"[A-Z]{2} ?(?:\d{4} ?\d{4} ?\d?|\d{3} ?\d{3} ?\d{3}) ?[A-Z]{2}\b")
"""A pattern for the tracking number of a posted item (UPU S10): LX 4410 2276 9 GB. It is not a postcode."""
_BETWEEN: Final = re.compile(r"[\s,./#&'’()\-–|]{0,4}")
_SENTENCE_GAP: Final = re.compile(r"[.!?।]\s")


def is_company_contact_if_known(
    reading: DisclosureText, start: int, end: int, skipped: frozenset[str] = frozenset()
) -> bool | None:
    """Return True if a company owns a contact, False if a person owns it, and ``None`` if no word shows the owner.

    The nearest word for an owner before the contact decides. The words ``skipped`` are ignored.
    """
    nearest: bool | None = None
    last_end = 0
    ends = reading.words_of_text.ends
    for phrase in reading.cues_of_owners[bisect_left(reading.cue_places, max(0, start - _CUE_REACH)) :]:
        phrase_start, phrase_end = reading.words_of_text.starts[phrase.first], ends[phrase.end - 1]
        if phrase_end > start:
            break
        if phrase_start < last_end or reading.lowered[phrase_start:phrase_end] in skipped:
            continue
        is_company = phrase.topic == COMPANY
        is_far = is_company and _SENTENCE_END.search(reading.text, phrase_end, start) is not None
        if is_far and reading.lowered[phrase_start:phrase_end] not in _FAR:
            continue  # "surgery on the jaw. Call Anna at …": the surgery does not own the contact
        nearest, last_end = is_company, phrase_end
    if nearest is None and _OWN_BEHIND.match(reading.text, end):
        return True
    return nearest


_FAR: Final = frozenset(PLACES["company_far"])
_SENTENCE_END: Final = re.compile(r"[.!?।\]]\s|\n")
_OWN_BEHIND: Final = re.compile(
    r"[\"')]{0,2} (?:is|ist|est|are|hai|है) (?:our|unser|notre|hamar|the (?:hotline|helpline|office)|हमार)"
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
    "|".join((*(rf"\b{word}\b" if word.isascii() else word for word in PLACES["street"]), ",", r"\d{6}")),
    re.IGNORECASE,
)
_ADDRESS_END: Final = re.compile(
    r"(?<=[a-z\d)\u0900-\u097f])[.!?।](?=\s+[A-Z\u0900-\u097f*\[(]|\s*$)|\s[-–—]\s"
    r"|(?:,| and| or)\s+(?=(?:phone|mobile|e-?mail|account|policy|pan|aadhaar|dob|date of birth|contact|tel)\b)"
    r"|,?\s(?:and|but|so|who|which|until|since|now|yet|please|mein)(?=\s+[a-z]|[.,]?$)"
)
_WEB: Final = re.compile(r"\S*://\S*")
"""A pattern for a web address. Its digits and commas are not a street address."""


def find_postal_addresses(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find addresses that end in a postcode, streets after words for a person, and addresses after "lives at"."""
    if not reading.has_digits:
        return
    covered = bytearray(len(reading.text))
    for address in _find_postcode_and_street_addresses(reading):
        covered[address.start : address.end] = b"\x01" * (address.end - address.start)
        yield address
    for match in _DESCRIBED.finditer(reading.text) if reading.contains_any(*_DESCRIPTIONS) else ():
        end = _ADDRESS_END.search(match["where"])
        where = (match["where"][: end.start()] if end else match["where"]).rstrip()
        start = match.start("where") + len(where) - len(where.lstrip(" .,;"))
        where = where.lstrip(" .,;")
        street = _WEB.sub("", where)
        is_new = covered.find(1, start, start + len(where)) < 0
        if is_new and any(map(str.isdigit, street)) and _STREET_OR_CITY.search(street):
            yield _build_rated_address(reading, start, start + len(where))


def _build_rated_address(reading: DisclosureText, start: int, end: int) -> DisclosureCandidate:
    is_company = is_company_contact_if_known(reading, start, end, OURS)
    if is_company or _has_company_name(reading, start, end):
        strength = Strength.CONTACT
    else:
        strength = Strength.WEAK if is_company is None else Strength.LIKELY
    return DisclosureCandidate(DisclosureKind.STREET_ADDRESS, start, end, strength)


def _find_postcode_and_street_addresses(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    for country, start, end in _find_postcodes_with_country(reading.text):
        begin = _find_address_start(reading, country, start)
        if begin is not None and not _POSTAL_ITEM.fullmatch(reading.text, begin, end):
            yield _build_rated_address(reading, begin, end)
    if any(phrase.topic == PERSON for phrase in reading.cues_of_owners):
        for start, end in _find_streets(reading):
            if is_company_contact_if_known(reading, start, end) is False and not _has_company_name(
                reading, start, end
            ):
                yield DisclosureCandidate(DisclosureKind.STREET_ADDRESS, start, end, Strength.LIKELY)


def _find_postcodes_with_country(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the kind (``uk``, ``indian``, ``us`` or ``city``) and the span of each possible postcode.

    The span of a US postcode includes the state before it. The span of a ``city`` postcode includes the city after
    it.
    """
    for country, pattern in _POSTCODES:
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - _LENGTH_BEFORE_POSTCODE) : match.start()]
            if country == "uk":
                if area := _UK_AREA.search(before):
                    yield country, match.start() - len(area[0]), match.end()
            elif country == "indian":
                yield country, match.start(), match.end()
            elif state := _STATE.search(before):
                yield "us", match.start() - len(state[0]), match.end() - len(match["city"] or "")
            elif match["city"] and not before[-1:].isalnum():
                code = _COUNTRY_CODE.search(before)
                yield "city", match.start() - (len(code[0]) if code else 0), match.end()


def _find_streets(reading: DisclosureText) -> Iterator[tuple[int, int]]:
    """Yield streets with a house number, with or without a postcode: "9 Tannery Lane", "Lindenallee 23a"."""
    text, (words, starts, ends) = reading.text, reading.words_of_text
    for match in _NUMBER_AND_STREET.finditer(text):
        flat = _FLAT_BEFORE.search(text, max(0, match.start() - _MAX_FLAT_LENGTH), match.start())
        yield flat.start() if flat else match.start(), match.end()
    for index, word in enumerate(words[:-1]):
        if not (words[index + 1][0].isdigit() and word.endswith(_STREET_ENDINGS) and text[starts[index]].isupper()):
            continue
        if word in _NOT_STREETS:
            continue
        if match := _NUMBER_BEHIND_STREET.match(text, ends[index]):
            yield starts[index], match.end()


_HOUSE_STREETS: Final = (
    "Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Ct|Close|Crescent|Terrace|Place|Square|Boulevard|Blvd|Way|Trail|Row|"
    "Gardens|Grove|Mews|Rise|View|Walk|Quay|Parkway|Circle|Marg|Nagar"
)
_NUMBER_AND_STREET: Final = re.compile(
    r"\d(?<![\w.,:/\-]\d)\d{0,4}[A-Za-z]?(?:[-/]\d{1,4})?,? "
    rf"(?:(?:[A-Z]|[A-Z][\w'’]{{1,20}})\.? ){{1,3}}(?:{_HOUSE_STREETS})(?!\w)\.?"
    r"(?:,? (?:Flat|Unit|Apt\.?|Apartment|Suite|#) ?\w{1,5})?"
    r"(?:(?:,| in) [A-Z][\w'’\-]{2,20}(?: [A-Z][\w'’\-]{2,20})?)?"
)
_FLAT_BEFORE: Final = re.compile(r"(?<!\w)(?:Flat|Unit|Apartment|Apt\.?|House No\.?) \d{1,4}[A-Za-z]?,? $")
_MAX_FLAT_LENGTH: Final = 22
_NUMBER_BEHIND_STREET: Final = re.compile(
    r"\.? ?\d{1,4} ?[a-z]?(?![\w.])(?:,? (?:in )?\d{0,5} ?[A-ZÄÖÜ][\wäöüß\-]{2,30})?"
)


def _find_address_start(reading: DisclosureText, country: str, at: int) -> int | None:
    """Return the start of the address that ends in a postcode.

    Return ``None`` if no street precedes the postcode.
    """
    text, (words, starts, ends) = reading.text, reading.words_of_text
    anchor = bisect_left(starts, at)
    begin: int | None = None
    has_street = has_number = False
    count = 0
    until = at
    for index in range(anchor - 1, max(-1, anchor - 1 - _MAX_ADDRESS_WORDS), -1):
        word, written, between = words[index], text[starts[index]], text[ends[index] : until]
        is_street = word in _STREETS or (word.endswith(_STREET_ENDINGS) and word not in _NOT_STREETS)
        is_number = word[0].isdigit()
        is_end_of_sentence = _SENTENCE_GAP.match(between) and not (
            is_street or is_number or len(word) <= _MAX_ABBREVIATION or word in _INNER
        )
        if is_end_of_sentence or not _BETWEEN.fullmatch(between) or at - starts[index] > _MAX_ADDRESS_LENGTH:
            break
        if is_number and len(word) >= _MIN_LONG_NUMBER and between != " ":
            break  # a telephone or an account number precedes the address
        if is_number and index + 1 < anchor and words[index + 1][0].isdigit() and not between.strip(" -"):
            break
        is_inner = word in _INNER and not written.isupper()
        if word in _NOT_INSIDE and not (is_inner and begin is not None):
            break
        is_named = written.isupper() or (not written.isascii() and not written.islower() and word not in _STOP)
        if not (is_number or is_street or is_named):
            if is_inner:
                until = starts[index]
                continue
            break
        has_street, has_number = has_street or is_street, has_number or is_number
        begin, until, count = index, starts[index], count + 1
    if begin is None:
        return None
    is_house_last = words[anchor - 1][0].isdigit()
    is_address = {
        "us": has_number,
        "uk": count > 1 and (has_street or has_number),
        "city": count > 1 and (has_street or is_house_last) and has_number,
        "indian": count > 1 and has_street,
    }[country]
    return starts[begin] if is_address else None


OURS: Final = frozenset(PLACES["ours"])
_COMPANY_NAMES: Final = frozenset(PLACES["in_address_of_company"])


def _has_company_name(reading: DisclosureText, start: int, end: int) -> bool:
    """Return whether the address contains the name of a company."""
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


def find_spoken_email_addresses(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find e-mail addresses that are written in words: "jost punkt quandel ät nordpost punkt de"."""
    text, (words, starts, ends) = reading.text, reading.words_of_text
    for match in _LETTER_BY_LETTER.finditer(text) if " @ " in text else ():
        yield DisclosureCandidate(DisclosureKind.EMAIL, *match.span(), Strength.LIKELY)
    for phrase in reading.phrases:
        if phrase.topic != MAIL_AT or phrase.first == 0:
            continue
        is_plain = phrase.end == phrase.first + 1 and words[phrase.first] == "at"
        last = _find_domain_end(reading, phrase.end, allow_dots=not is_plain)
        before = phrase.first - 1
        is_named = words[before] not in _NOT_LOCAL and _MAIL_GAP.fullmatch(text, ends[before], starts[phrase.first])
        if last is not None and is_named:
            first = _find_mailbox_start(reading, before)
            yield DisclosureCandidate(DisclosureKind.EMAIL, starts[first], ends[last], Strength.LIKELY)


def _find_mailbox_start(reading: DisclosureText, last: int) -> int:
    """Return the index of the first word of a dictated mailbox, such as "yev underscore stroud".

    ``last`` is the index of the last word of the mailbox.
    """
    text, (words, starts, ends) = reading.text, reading.words_of_text
    first = last
    while first > 0 and last - first < _MAX_LOCAL_WORDS:
        gap = text[ends[first - 1] : starts[first]]
        is_joined = words[first - 1] in _JOINTS and not gap.strip(" -()[]") and first > 1
        if not (gap in {".", "_", "-", "+"} or is_joined or (words[first] in _JOINTS and not gap.strip(" ()[]"))):
            break
        first -= 1
    return first + (words[first] in _JOINTS)


def _find_domain_end(reading: DisclosureText, first: int, *, allow_dots: bool) -> int | None:
    """Return the index of the last word of a dictated domain: "brisk mail dot co dot uk".

    Return ``None`` if there is no domain.
    """
    text, (words, starts, ends) = reading.text, reading.words_of_text
    last = None
    for index in range(first, min(first + _MAX_DOMAIN_WORDS, len(words))):
        gap = text[ends[index - 1] : starts[index]]
        if not _MAIL_GAP.fullmatch(gap) or (". " in gap and index > first) or words[index] in _AT_WORDS:
            break
        is_dotted = words[index - 1] in _DOTS or (allow_dots and gap == ".")
        if index > first and is_dotted and words[index] in _DOMAINS:
            last = index
        elif last is not None and not (
            words[index] in _DOTS and index + 1 < len(words) and words[index + 1] in _DOMAINS
        ):
            break
    return last
