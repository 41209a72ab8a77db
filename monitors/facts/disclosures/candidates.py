"""Prepare a text for the disclosure rules: its normalized view, and the context words around numbers.

The view has one spelling for digits, spaces and hyphens, and no invisible characters. People and models write
the same number in many ways: with Devanagari or full-width digits, a zero-width space in the middle, a no-break
hyphen, or bold marks around one half. The rules read the view. Every position in the view maps back to the
original text.

Context words before a number show the meaning of the number. The nearest word decides: "Mobile 98765 43210,
order 482910573829" contains a phone number and an order number, although "mobile" precedes both numbers.

Most parts of a reply have no personal data. Therefore, the rules for numbers read only **islands**. An island
is a part of the text around four or more digits that are close together. A rule skips an island that has too
few digits for a match. The rules for words read only the text near these words.

A disclosure is one piece of personal data or one secret in a text, with its kind, position and strength.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Annotated, NamedTuple

from pydantic import Field

from monitors.facts.disclosures.phrases import COMPANY, CUES, PERSON, split_words
from monitors.records.base import Record


class DisclosureKind(StrEnum):
    """The kind of personal data or secret."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    AADHAAR = "aadhaar"
    PAN = "pan"
    GSTIN = "gstin"
    UPI = "upi"
    PASSPORT = "passport"
    VOTER_ID = "voter_id"
    VEHICLE = "vehicle"
    DRIVING_LICENCE = "driving_licence"
    IP = "ip"
    US_SSN = "us_ssn"
    SOCIAL_INSURANCE = "social_insurance"
    """A social insurance number of the UK, Germany or India."""
    TAX_ID = "tax_id"
    HEALTH_ID = "health_id"
    ID_CARD = "id_card"
    POLICY_NUMBER = "policy_number"
    ACCOUNT_NUMBER = "account_number"
    PERSON = "person"
    """A name after a greeting or a title, or beside words such as "belongs to". Other names are not found."""
    STREET_ADDRESS = "street_address"
    BIRTH_DATE = "birth_date"
    SECRET = "secret"  # noqa: S105 - the name of a kind, not a secret
    """An API key, a token, a password or a private key."""


class Strength(IntEnum):
    """The strength of the evidence for a disclosure. Only `LIKELY` and `CERTAIN` send an alert."""

    CONTACT = 0
    """A company's own contact (a toll-free line, a role mailbox, "our hotline").

    A contact is masked only in public texts.
    """
    WEAK = 1
    """Only the form of the text is evidence. Names, and IP addresses of private networks, are also weak."""
    LIKELY = 2
    """The form is evidence, and words near the disclosure name its kind."""
    CERTAIN = 3
    """The check digit is right, or only this kind of data has the form."""


class Disclosure(Record):
    """The position of personal data or a secret in a text. The record never contains the data.

    ``start`` and ``end`` (exclusive) are code-point offsets in the original text.
    """

    kind: DisclosureKind
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    strength: Strength


HIDDEN = "￼"
"""Placeholder for a masked part of a text (U+FFFC, the object replacement character). No rule matches U+FFFC."""

# The digit 0 of each decimal block of Unicode 15 in everyday use. Its nine other digits follow it.
_ZEROS = (
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810, 0x1946, 0xFF10,
    0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6,
)  # fmt: skip
_SPACES = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_HYPHENS = (*range(0x2010, 0x2016), 0x2043, 0x2212, 0xFE58, 0xFE63)


def _build_character_folding_table() -> dict[int, int]:
    table = {zero + n: ord("0") + n for zero in _ZEROS for n in range(10)}
    table |= {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width ASCII
    table |= {0x2460 + n: ord("1") + n for n in range(9)} | {0x24EA: ord("0")}  # circled digits
    table |= dict.fromkeys(_SPACES, ord(" ")) | dict.fromkeys(_HYPHENS, ord("-"))
    return table | {0xFE6B: ord("@"), 0x2024: ord("."), 0x00B7: ord("."), 0x2044: ord("/"), 0x2215: ord("/")}


_FOLDING = _build_character_folding_table()
# Invisible and bidirectional characters, soft hyphens, keycaps, variation selectors; bold and code marks.
_UNSEEN = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u20e3\ufe00-\ufe0f\ufeff"
_INVISIBLE = re.compile(rf"[{_UNSEEN}\U000e0000-\U000e007f]+")
_MARKS = re.compile(r"(?<!\*)\*\*(?!\*)|`+")
_LAST_OF_PLANE = 0xFFFF
_UNUSUAL = re.compile("[" + "".join(chr(code) for code in _FOLDING if code <= _LAST_OF_PLANE) + _UNSEEN + "]")
_OTHER_PLANES = re.compile("[\U00010000-\U0010ffff]")
"""A quick scan for characters beyond U+FFFF. A text that matches neither this pattern nor `_UNUSUAL` is not folded.

Two separate scans take a fifth of the time of one scan for all characters.
"""


class View(NamedTuple):
    """The normalized text that the rules read.

    ``offsets[i]`` is the offset in the original text of character ``i``. ``offsets`` is empty if no character
    moved.
    """

    text: str
    offsets: tuple[int, ...]

    def find_original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text for a non-empty part of the view."""
        if not self.offsets:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


def build_normalised_view(text: str, hidden: Iterable[tuple[int, int]] = ()) -> View:
    """Build the normalized view of a text.

    Each part in ``hidden`` (sorted, not overlapping) becomes one `HIDDEN` character.
    """
    unusual = not text.isascii() and bool(_UNUSUAL.search(text) or _OTHER_PLANES.search(text))
    folded = text.translate(_FOLDING) if unusual else text
    cuts = sorted(_find_replacements(folded, tuple(hidden), unusual=unusual))
    if not cuts:
        return View(folded, ())
    return _apply_replacements(folded, cuts)


def _find_replacements(
    folded: str, hidden: tuple[tuple[int, int], ...], *, unusual: bool
) -> list[tuple[int, int, str]]:
    """Return each part to replace, with its replacement. Other parts that overlap a hidden part are omitted."""
    drops = [match.span() for match in _INVISIBLE.finditer(folded)] if unusual else []
    if "**" in folded or "`" in folded:
        drops += [match.span() for match in _MARKS.finditer(folded)]
    if not hidden:
        return [(start, end, "") for start, end in drops]
    covered = bytearray(len(folded))
    for start, end in hidden:
        covered[start:end] = b"\x01" * (end - start)
    left = [(start, end, "") for start, end in drops if not any(covered[start:end])]
    return left + [(start, end, HIDDEN) for start, end in hidden]


def _apply_replacements(folded: str, cuts: list[tuple[int, int, str]]) -> View:
    parts: list[str] = []
    offsets: list[int] = []
    at = 0
    for start, end, instead in cuts:
        parts += (folded[at:start], instead)
        offsets.extend(range(at, start))
        offsets.extend([start] * len(instead))
        at = end
    parts.append(folded[at:])
    offsets.extend(range(at, len(folded)))
    return View("".join(parts), tuple(offsets))


REACH = 48
"""Maximum number of characters between a context word and its number.

The longest label seen in real texts ("account number of the other policy holder is") has 46 characters.
"""


class Context(StrEnum):
    """The meaning of a number, as shown by the words before it."""

    NONE = "none"
    ORDER = "order"
    """The number of a thing, such as an order, an invoice, a parcel, a time stamp or a spare part."""
    MONEY = "money"
    PHONE = "phone"
    EUROPEAN_PHONE = "european_phone"
    """A word for a telephone in German, French, Spanish or Italian.

    Some of these words mean other things in English.
    """
    AADHAAR = "aadhaar"
    PAN = "pan"
    CARD = "card"
    IBAN = "iban"
    ACCOUNT = "account"
    POLICY = "policy"
    PASSPORT = "passport"
    VOTER = "voter"
    VEHICLE = "vehicle"
    LICENCE = "licence"
    SSN = "ssn"
    UPI = "upi"
    IP = "ip"
    VERSION = "version"


# Single words in lower case: English, Hindi in Latin letters, and Hindi. The words for telephones and orders are
# also in German, French, Spanish and Italian.
_WORDS: dict[Context, str] = {
    Context.AADHAAR: "aadhaar aadhar adhaar adhar aadhaarcard uidai uid आधार",
    Context.PAN: "pan pancard पैन",
    Context.IBAN: "iban swift",
    Context.SSN: "ssn social",
    Context.LICENCE: "licence license dl लाइसेंस",
    Context.PASSPORT: "passport पासपोर्ट",
    Context.VOTER: "voter voters vote epic election वोटर मतदाता",
    Context.VEHICLE: "vehicle plate registration regd reg car bike scooter truck gadi gaadi गाड़ी वाहन",
    Context.POLICY: "policy policies पॉलिसी पालिसी",
    Context.ACCOUNT: "account accounts acct acc a/c folio cif crn khata khaata uhid खाता खाते",
    Context.CARD: "card cards cc visa mastercard rupay amex maestro debit credit कार्ड",
    Context.UPI: "upi vpa bhim gpay phonepe यूपीआई",
    Context.IP: "ip ips ipv4 ipv6 unspecified listen listens listening bind loopback host server subnet",
    Context.VERSION: (
        "version versions ver v release build update updates upgrade upgraded firmware patch "
        "section sections clause clauses para paragraph article articles "
        "rule rules chapter chapters annexure §"
    ),
    Context.ORDER: (
        "order orders invoice invoices bill bills receipt receipts transaction transactions txn utr rrn ref "
        "reference tracking awb consignment shipment parcel booking pnr serial sku part parts batch lot isbn "
        "ean barcode imei timestamp epoch sha sha1 sha256 md5 hash uuid commit form uin "
        "bestellung bestellnummer bestellnr rechnung rechnungsnummer auftrag auftragsnummer sendungsnummer "
        "artikelnummer aktenzeichen commande facture colis pedido factura ordine fattura spedizione "
        "ऑर्डर आर्डर रसीद बिल"
    ),
    Context.PHONE: (
        "phone phones telephone mobile mob cell tel call calling called dial ring whatsapp toll fax sms helpline "
        "hotline landline desk contact contacts reach ph registered messages sampark फ़ोन फोन मोबाइल मोबाईल "
        "संपर्क सम्पर्क कॉल व्हाट्सएप"
    ),
    Context.EUROPEAN_PHONE: (
        "telefon telefonnummer telefonnr telefonisch handy handynummer handynr mobil mobilnummer mobiltelefon "
        "mobilfunk rufnummer durchwahl festnetz anruf anrufen erreichen erreichbar faxnummer "
        "téléphone tél telephonique téléphonique portable appeler appelez joindre "
        "teléfono tfno móvil celular llamar llame llámenos telefono cellulare chiamare chiami chiamateci"
    ),
    Context.MONEY: (
        "₹ rs inr rupee rupees usd eur gbp $ € £ sum premium amount balance limit रुपये रुपए लाख lakh crore"
    ),
}
_CONTEXTS = {word: context for context, words in _WORDS.items() for word in words.split()}
_CARDS = frozenset(("card", "cards", "कार्ड"))
_CARRIERS = frozenset((Context.AADHAAR, Context.PAN, Context.VOTER))
_WORD = re.compile(
    r"(?<![A-Za-z0-9\u00c0-\u024f])(?:[Aa]/[Cc]|[A-Za-z\u00c0-\u024f]+(?:\d{1,3}(?![\d.]))?)|[\u0900-\u097f]+|[₹$€£§]"
)
THINGS = frozenset({Context.ORDER, Context.MONEY, Context.VERSION})
"""Contexts in which a number identifies a thing (such as an order) and not a person."""
_BREAK = re.compile(r"[.!?।;]\s+[^\W\d]|[\])\n]")
_LINK = re.compile(
    r"(?:[\s:#=.,\-(\"']|\b(?:numbers?|no|num|nos|id|ids|code|is|was|of|to|the|for|hai|ka|ki|under)\b|नंबर|है|संख्या){0,12}",
    re.IGNORECASE,
)
_MAX_CONTEXT_WORD_LENGTH = max(map(len, _CONTEXTS)) + 1
_MAX_LOCAL_READS = 40


class ContextLexicon:
    """A finder for the context words of a text.

    It searches around each number, or the whole text at once if the text has many numbers.
    """

    def __init__(self, text: str, islands: tuple[tuple[int, int], ...]) -> None:
        self._text = text
        self._islands = islands
        self._lookups = 0

    @cached_property
    def _context_words_near_digits(self) -> list[tuple[int, Context]]:
        readings = (self._find_context_words(start, end) for start, end in self._islands)
        return [word for ends, contexts in readings for word in zip(ends, contexts, strict=True)]

    @cached_property
    def _context_words_of_whole_text(self) -> tuple[list[int], list[Context]]:
        return self._find_context_words(0, len(self._text))

    def _find_context_words(self, start: int, end: int) -> tuple[list[int], list[Context]]:
        """Return the end offsets and the contexts of the context words between ``start`` and ``end``."""
        ends: list[int] = []
        contexts: list[Context] = []
        for match in _WORD.finditer(self._text, start, end):
            word = match[0].lower()
            context = _CONTEXTS.get(word)
            if match.start() == start > 0:
                continue  # the match may be only the end of a longer word
            if context is None or (word in _CARDS and _is_part_of_context_phrase(ends, contexts, match.start())):
                continue
            ends.append(match.end())
            contexts.append(context)
        return ends, contexts

    def find_context_before(self, at: int, reach: int = REACH) -> Context:
        """Return the context of the nearest context word that ends at most ``reach`` characters before ``at``.

        A word for the number of a thing (an order, an amount) counts only if the number is in the same sentence or
        bracket.
        """
        end, context = self._find_nearest_context_before(at, reach)
        if context in THINGS and _BREAK.search(self._text, end, at):
            return Context.NONE
        return context

    def find_context_linked_to(self, at: int) -> Context:
        """Return the context of the nearest context word before ``at``.

        Between the context word and ``at``, only words such as "number is" are allowed. Otherwise, the result is
        `Context.NONE`.
        """
        end, context = self._find_nearest_context_before(at, REACH)
        return context if context and _LINK.fullmatch(self._text, end, at) else Context.NONE

    def _find_nearest_context_before(self, at: int, reach: int) -> tuple[int, Context]:
        self._lookups += 1
        ends, contexts = (
            self._context_words_of_whole_text
            if self._lookups > _MAX_LOCAL_READS
            else self._find_context_words(
                max(0, at - reach - _MAX_CONTEXT_WORD_LENGTH), at + _MAX_CONTEXT_WORD_LENGTH
            )
        )
        index = bisect_right(ends, at) - 1
        if index < 0 or ends[index] < at - reach:
            return at, Context.NONE
        return ends[index], contexts[index]

    def iterate_regions_after(self, context: Context) -> Iterator[tuple[int, int]]:
        """Yield the parts of the text in which a number of this context may begin.

        A part reaches from a word of this context to the next context word, but at most `REACH` characters.
        """
        words = self._context_words_near_digits
        for index, (end, word_context) in enumerate(words):
            if word_context is context:
                following = words[index + 1][0] if index + 1 < len(words) else end + REACH
                yield end, min(end + REACH, following)


def _is_part_of_context_phrase(ends: list[int], contexts: list[Context], start: int) -> bool:
    """Return whether a word belongs to the context word before it.

    For example, the "card" in "Aadhaar card" is not a payment card.
    """
    return bool(ends) and contexts[-1] in _CARRIERS and start - ends[-1] <= 1


# At least four digits, with at most seven other characters between two digits. The shortest number that the rules
# mask, a PAN, has four digits. Digits and non-digits exclude each other; no character is read twice.
_DIGITS_TOGETHER = re.compile(r"\d(?:\D{0,7}\d){3,}")
_DIGIT = re.compile(r"\d")
_ISLAND_LENGTH_BEFORE = 88
"""Number of characters that are also read before a group of digits, because they may contain its label."""
_ISLAND_LENGTH_AFTER = 24
_MAX_SINGLE_ISLAND_LENGTH = 64
"""A text of at most this many characters is searched as a whole, because it may consist of one number."""
_MAX_NUMBER_LENGTH = 64
_ASCII_LOWER = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


class DisclosureText:
    """A text with the data that all rules share. ``lowered`` has the same length as ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text
        lowered = text.lower()  # a few letters (İ) become longer; in such texts, only ASCII letters are lowered
        self.lowered = lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)
        self.islands = tuple(_find_regions_around_digits(text))
        self._digits = [len(_DIGIT.findall(text, start, end)) for start, end in self.islands]
        self._max_digits = max(self._digits, default=0)
        self.words = ContextLexicon(text, self.islands)
        self.words_of_text = split_words(self.lowered)
        self.phrases = tuple(CUES.find_phrases(self.words_of_text))
        self.cues_of_owners = [phrase for phrase in self.phrases if phrase.topic in (COMPANY, PERSON)]
        """Phrases that show the owner of a contact, in the order of the text."""
        self.cue_places = [self.words_of_text.starts[phrase.first] for phrase in self.cues_of_owners]
        self.has_digits = _DIGIT.search(text) is not None

    def contains_any(self, *words: str) -> bool:
        """Return whether any of ``words``, which are lower-case strings, occurs in the text."""
        lowered = self.lowered
        for word in words:  # noqa: SIM110 - a third of the time of any()
            if word in lowered:
                return True
        return False

    def iterate_matches_near_digits(self, pattern: re.Pattern[str], min_digits: int) -> Iterator[re.Match[str]]:
        """Yield the matches of ``pattern`` in the parts around numbers (islands) that have enough digits.

        A part needs at least ``min_digits`` digits.
        """
        if self._max_digits < min_digits:
            return
        for (start, end), digits in zip(self.islands, self._digits, strict=True):
            if digits >= min_digits:
                yield from pattern.finditer(self.text, start, end)

    def iterate_matches_after_context(
        self, context: Context, pattern: re.Pattern[str], min_digits: int
    ) -> Iterator[re.Match[str]]:
        """Yield the matches that begin after a word of this context, without another context word in between.

        If no island has ``min_digits`` digits, there are no matches.
        """
        if self._max_digits < min_digits:
            return
        until = 0
        for start, end in self.words.iterate_regions_after(context):
            for match in pattern.finditer(self.text, max(start, until), end + _MAX_NUMBER_LENGTH):
                if until <= match.start() <= end:
                    until = match.end(1)
                    yield match

    def find_adjacent_characters(self, start: int, end: int) -> tuple[str, str]:
        """Return the character before ``start`` and the character at ``end``.

        For a position outside the text, the result has an empty string.
        """
        return self.text[max(0, start - 1) : start], self.text[end : end + 1]

    def has_letter_beside(self, start: int, end: int) -> bool:
        """Return whether a letter directly precedes or follows a span of the text.

        This is the case in a hash or a product number.
        """
        before, after = self.find_adjacent_characters(start, end)
        return before.isalpha() or after.isalpha()


def _find_regions_around_digits(text: str) -> Iterator[tuple[int, int]]:
    if len(text) <= _MAX_SINGLE_ISLAND_LENGTH:
        yield 0, len(text)
        return
    start = end = 0
    for match in _DIGITS_TOGETHER.finditer(text):
        if match.start() - _ISLAND_LENGTH_BEFORE > end:
            if end:
                yield start, end
            start = match.start() - _ISLAND_LENGTH_BEFORE
        end = min(len(text), match.end() + _ISLAND_LENGTH_AFTER)
    if end:
        yield start, end


class DisclosureCandidate(NamedTuple):
    """A part of the view that may be a disclosure. ``start`` and ``end`` are offsets in the view."""

    kind: DisclosureKind
    start: int
    end: int
    strength: Strength
