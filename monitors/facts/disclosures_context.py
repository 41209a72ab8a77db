"""What the words before a number say that it is. The nearest one decides.

"Mobile 98765 43210, order 482910573829" holds a phone number and an order number although "mobile" stands
before both: of all the words in reach the last one counts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property

REACH = 48
"""Characters before a number in which a word counts. The longest natural label met ("account number of the
other policy holder is") has 46."""


class Context(StrEnum):
    """What a number is said to be."""

    NONE = "none"
    ORDER = "order"
    """A thing's number, not a person's: an order, an invoice, a parcel, a time stamp, a part."""
    MONEY = "money"
    PHONE = "phone"
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


# One word each, in lower case: English, Hindi in Latin letters, Hindi.
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
        "version versions ver v release build section sections clause clauses para paragraph article articles "
        "rule rules chapter chapters annexure §"
    ),
    Context.ORDER: (
        "order orders invoice invoices bill bills receipt receipts transaction transactions txn utr rrn ref "
        "reference tracking awb consignment shipment parcel booking pnr serial sku part parts batch lot isbn "
        "ean barcode imei timestamp epoch sha sha1 sha256 md5 hash uuid commit form uin ऑर्डर आर्डर रसीद बिल"
    ),
    Context.PHONE: (
        "phone phones telephone mobile mob cell tel call calling called dial ring whatsapp toll fax sms helpline "
        "hotline landline desk contact contacts reach ph registered messages sampark फ़ोन फोन मोबाइल मोबाईल "
        "संपर्क सम्पर्क कॉल व्हाट्सएप"
    ),
    Context.MONEY: (
        "₹ rs inr rupee rupees usd eur gbp $ € £ sum premium amount balance limit रुपये रुपए लाख lakh crore"
    ),
}
_CONTEXTS = {word: context for context, words in _WORDS.items() for word in words.split()}
_CARDS = frozenset(("card", "cards", "कार्ड"))
_CARRIERS = frozenset((Context.AADHAAR, Context.PAN, Context.VOTER))
_WORD = re.compile(r"(?<![A-Za-z0-9])(?:[Aa]/[Cc]|[A-Za-z]+(?:\d{1,3}(?![\d.]))?)|[\u0900-\u097f]+|[₹$€£§]")
THINGS = frozenset({Context.ORDER, Context.MONEY, Context.VERSION})
"""What makes a number a thing's and not a person's."""
_BREAK = re.compile(r"[.!?।;]\s+[^\W\d]|[\])\n]")
_LINK = re.compile(
    r"(?:[\s:#=.,\-(\"']|\b(?:numbers?|no|num|nos|id|ids|code|is|was|of|the|for|hai|ka|ki|under)\b|नंबर|है|संख्या){0,12}",
    re.IGNORECASE,
)
_LONGEST = max(map(len, _CONTEXTS)) + 1
_FEW = 40


class Words:
    """The telling words of a text: looked up around each number, and all at once where numbers are many."""

    def __init__(self, text: str, islands: tuple[tuple[int, int], ...]) -> None:
        self._text = text
        self._islands = islands
        self._asked = 0

    @cached_property
    def _near_digits(self) -> list[tuple[int, Context]]:
        found = (self._read(start, end) for start, end in self._islands)
        return [word for ends, contexts in found for word in zip(ends, contexts, strict=True)]

    @cached_property
    def _everywhere(self) -> tuple[list[int], list[Context]]:
        return self._read(0, len(self._text))

    def _read(self, start: int, end: int) -> tuple[list[int], list[Context]]:
        """The ends of the telling words from ``start`` to ``end``, and what each says."""
        ends: list[int] = []
        contexts: list[Context] = []
        for match in _WORD.finditer(self._text, start, end):
            word = match[0].lower()
            context = _CONTEXTS.get(word)
            if match.start() == start > 0:
                continue  # it may be the end of a longer word
            if context is None or (word in _CARDS and _is_carried(ends, contexts, match.start())):
                continue
            ends.append(match.end())
            contexts.append(context)
        return ends, contexts

    def before(self, at: int, reach: int = REACH) -> Context:
        """What the nearest telling word says whose end is at most ``reach`` characters before ``at``.

        A word that makes a number a thing's reaches no further than its own sentence or bracket.
        """
        end, context = self._nearest(at, reach)
        if context in THINGS and _BREAK.search(self._text, end, at):
            return Context.NONE
        return context

    def linked(self, at: int) -> Context:
        """What the nearest telling word says where only "number is" and the like stand between it and ``at``."""
        end, context = self._nearest(at, REACH)
        return context if context and _LINK.fullmatch(self._text, end, at) else Context.NONE

    def _nearest(self, at: int, reach: int) -> tuple[int, Context]:
        self._asked += 1
        ends, contexts = (
            self._everywhere if self._asked > _FEW else self._read(max(0, at - reach - _LONGEST), at + _LONGEST)
        )
        index = bisect_right(ends, at) - 1
        if index < 0 or ends[index] < at - reach:
            return at, Context.NONE
        return ends[index], contexts[index]

    def regions(self, context: Context) -> Iterator[tuple[int, int]]:
        """Where a number that this context decides may begin: behind each of its words, up to the next word."""
        words = self._near_digits
        for index, (end, said) in enumerate(words):
            if said is context:
                following = words[index + 1][0] if index + 1 < len(words) else end + REACH
                yield end, min(end + REACH, following)


def _is_carried(ends: list[int], contexts: list[Context], start: int) -> bool:
    """Whether "card" only completes the word before it: an Aadhaar card is no payment card."""
    return bool(ends) and contexts[-1] in _CARRIERS and start - ends[-1] <= 1
