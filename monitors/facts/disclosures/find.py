"""Find personal data and secrets in a text, with their position and strength.

The rules read a normalized view of the text (`candidates`). Each family of rules has a separate module. If two
disclosures overlap, the stronger disclosure wins. Every rule is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from monitors.facts.disclosures.candidates import (
    HIDDEN,
    Disclosure,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
    build_normalised_view,
)
from monitors.facts.disclosures.identifiers import (
    find_aadhaar,
    find_account_and_policy_numbers,
    find_cards,
    find_ibans,
    find_official_id_numbers,
    find_ssns,
)
from monitors.facts.disclosures.labelled import find_labelled_values
from monitors.facts.disclosures.names import WHOSE, find_names
from monitors.facts.disclosures.phones import find_dictated_numbers, find_phones
from monitors.facts.disclosures.places import (
    OURS,
    find_postal_addresses,
    find_spoken_email_addresses,
    is_company_contact_if_known,
)
from monitors.facts.disclosures.secrets import find_emails_upi_ids_and_ips, find_secrets

# If two disclosures of equal strength overlap, the disclosure with the more specific form wins.
_RANK = {
    kind: rank
    for rank, kind in enumerate(
        (
            DisclosureKind.SECRET,
            DisclosureKind.IBAN,
            DisclosureKind.GSTIN,
            DisclosureKind.CARD,
            DisclosureKind.AADHAAR,
            DisclosureKind.EMAIL,
            DisclosureKind.UPI,
            DisclosureKind.IP,
            DisclosureKind.PAN,
            DisclosureKind.PASSPORT,
            DisclosureKind.DRIVING_LICENCE,
            DisclosureKind.VEHICLE,
            DisclosureKind.VOTER_ID,
            DisclosureKind.US_SSN,
            DisclosureKind.HEALTH_ID,
            DisclosureKind.TAX_ID,
            DisclosureKind.SOCIAL_INSURANCE,
            DisclosureKind.ID_CARD,
            DisclosureKind.BIRTH_DATE,
            DisclosureKind.POLICY_NUMBER,
            DisclosureKind.ACCOUNT_NUMBER,
            DisclosureKind.PHONE,
            DisclosureKind.STREET_ADDRESS,
            DisclosureKind.PERSON,
        )
    )
}


def find_disclosures(
    text: str, *, account_patterns: Sequence[str] = (), hidden: Iterable[tuple[int, int]] = ()
) -> tuple[Disclosure, ...]:
    """Return all personal data and secrets of a text, in order and without overlaps.

    ``account_patterns`` are regular expressions for the target's own numbers. ``hidden`` are the parts of the text
    that are already masked (sorted, not overlapping). The rules read a placeholder in place of each hidden part.
    """
    return _find_disclosures_cached(text, tuple(account_patterns), tuple(hidden))


def find_private_data_except_names(text: str, account_patterns: Sequence[str] = ()) -> tuple[Disclosure, ...]:
    """Return the personal data and secrets of a text. Names and the contacts of companies are excluded.

    The questions and expected answers of a suite may name employees and hotlines of the company, but must not
    contain data of customers.
    """
    return tuple(
        disclosure
        for disclosure in find_disclosures(text, account_patterns=account_patterns)
        if disclosure.strength > Strength.CONTACT and disclosure.kind is not DisclosureKind.PERSON
    )


@lru_cache(maxsize=16)
def _find_disclosures_cached(
    text: str, account_patterns: tuple[str, ...], hidden: tuple[tuple[int, int], ...]
) -> tuple[Disclosure, ...]:
    """Return the disclosures of a text.

    The results of the latest calls are cached, because several callers check the same reply.
    """
    view = build_normalised_view(text, hidden)
    candidates = _resolve_overlaps(
        list(_collect_candidates(view.text, _compile_patterns(account_patterns))), len(view.text)
    )
    # After the removal of overlaps, only a comma may remain of an address or a name.
    candidates = [
        candidate
        for candidate in candidates
        if candidate.kind not in _IN_WORDS or any(map(str.isalnum, view.text[candidate.start : candidate.end]))
    ]
    placed = ((candidate, *view.find_original_span(candidate.start, candidate.end)) for candidate in candidates)
    return tuple(
        Disclosure(kind=candidate.kind, start=start, end=end, strength=candidate.strength)
        for candidate, start, end in placed
    )


@lru_cache(maxsize=64)
def _compile_patterns(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


def _collect_candidates(text: str, account_patterns: Sequence[re.Pattern[str]]) -> Iterator[DisclosureCandidate]:
    reading = DisclosureText(text)
    for candidate in _apply_rules(reading, account_patterns):
        if candidate.kind in _BUSINESS_NUMBERS and _is_company_tax_number(reading, candidate):
            continue
        yield _rate_contact(reading, candidate) if candidate.kind in _CONTACTS else candidate


def _rate_contact(reading: DisclosureText, candidate: DisclosureCandidate) -> DisclosureCandidate:
    """Rate a telephone number or e-mail address. A company's own contact gets the strength `CONTACT`."""
    is_company = is_company_contact_if_known(reading, candidate.start, candidate.end)
    if is_company:
        return candidate._replace(strength=Strength.CONTACT)
    is_personal = is_company is False and candidate.kind is DisclosureKind.EMAIL
    if is_personal and _OWN.search(reading.lowered, max(0, candidate.start - _OWN_REACH), candidate.start):
        return candidate._replace(strength=max(candidate.strength, Strength.WEAK))
    return candidate


_OWN = re.compile(
    rf"\b(?:your|his|her|their|my|ihre?|seine?|deine?|votre|son|sa|su|tu|aapka|aapki|unka|unki)\b[^@{HIDDEN}]*$"
    rf"|(?:आपका|उनका|उनकी)[^@{HIDDEN}]*$"
)
"""A pattern for a word for the owner ("your", "her") and all text after it, if that text has no e-mail address."""
_OWN_REACH = 40
"""Maximum number of characters between an e-mail address and the word for its owner (`_OWN`)."""


_BUSINESS_NUMBERS = frozenset({DisclosureKind.TAX_ID, DisclosureKind.GSTIN})
_MAX_WORDS_BEFORE = 8
_GSTIN_OF_COMPANY = re.compile(r"\d{2}[A-Z]{3}[CGL][A-Z]\d{4}[A-Z]")
"""The GSTIN of a company or an authority.

A GSTIN contains a PAN, whose fourth letter is C (company), G or L (authority).
"""


def _is_company_tax_number(reading: DisclosureText, candidate: DisclosureCandidate) -> bool:
    """Return whether a tax number belongs to a company or an authority, and not to a private person.

    The form of the number shows this, or the words before it: "our VAT number is".
    """
    start = candidate.start
    if _GSTIN_OF_COMPANY.match(reading.text, start):
        return True
    words, starts, _ = reading.words_of_text
    after = bisect_left(starts, start)
    first = bisect_left(starts, max(reading.text.rfind(stop, 0, start) for stop in (". ", "! ", "? ", "\n")))
    near = words[max(first, after - _MAX_WORDS_BEFORE) : after]
    if candidate.kind is DisclosureKind.TAX_ID and not _SALES_TAX.isdisjoint(near):
        return True
    is_ours = not OURS.isdisjoint(near) or (not _WE.isdisjoint(near) and _HAVE.isdisjoint(near))
    return is_ours and WHOSE.isdisjoint(near)


_SALES_TAX = frozenset({"ust", "umsatzsteuer", "vat", "tva", "iva"})
"""Words for sales tax. Only businesses have a sales tax number, so it is not personal data."""
_WE = frozenset({"we", "wir", "nous", "hum", "हम"})
_HAVE = frozenset({"have", "hold", "stored", "noted", "haben", "avons"})
"""Words after which a tax number belongs to a customer: "we have the tax number 12 345 on file"."""
_IN_WORDS = frozenset({DisclosureKind.STREET_ADDRESS, DisclosureKind.PERSON})
_CONTACTS = frozenset({DisclosureKind.PHONE, DisclosureKind.EMAIL})


def _apply_rules(
    reading: DisclosureText, account_patterns: Sequence[re.Pattern[str]]
) -> Iterator[DisclosureCandidate]:
    yield from find_secrets(reading)
    yield from find_emails_upi_ids_and_ips(reading)
    yield from find_dictated_numbers(reading)
    if reading.islands:
        yield from find_cards(reading)
        yield from find_aadhaar(reading)
        yield from find_ibans(reading)
        yield from find_ssns(reading)
        yield from find_official_id_numbers(reading)
        yield from find_phones(reading)
    yield from find_account_and_policy_numbers(reading, account_patterns)
    yield from find_labelled_values(reading)
    yield from find_postal_addresses(reading)
    yield from find_spoken_email_addresses(reading)
    yield from find_names(reading)


def _resolve_overlaps(candidates: list[DisclosureCandidate], length: int) -> list[DisclosureCandidate]:
    """Remove overlaps. The stronger candidate keeps the overlap, and the weaker one keeps the rest of its text."""
    taken = bytearray(length)
    left: list[DisclosureCandidate] = []
    for candidate in sorted(candidates, key=lambda c: (-c.strength, _RANK[c.kind], c.start - c.end, c.start)):
        left += [
            candidate._replace(start=start, end=end)
            for start, end in _find_free_spans(taken, candidate.start, candidate.end)
        ]
        taken[candidate.start : candidate.end] = b"\x01" * (candidate.end - candidate.start)
    return sorted(left, key=lambda c: c.start)


def _find_free_spans(taken: bytearray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans between ``start`` and ``end`` that no other candidate has taken."""
    at = start
    while at < end:
        first = taken.find(0, at, end)
        if first < 0:
            return
        after = taken.find(1, first, end)
        at = end if after < 0 else after
        yield first, at
