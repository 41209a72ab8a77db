"""One piece of personal data, or one secret, that a text gives away: its kind, its place, how sure it is."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record


class DisclosureKind(StrEnum):
    """What sort of personal data or secret a text gives away."""

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
    POLICY_NUMBER = "policy_number"
    ACCOUNT_NUMBER = "account_number"
    PERSON = "person"
    """A name behind the words for a customer. Other names are not looked for."""
    STREET_ADDRESS = "street_address"
    BIRTH_DATE = "birth_date"
    SECRET = "secret"  # noqa: S105 - the name of a kind, not a secret
    """A key, a token, a password, a private key."""


class Strength(IntEnum):
    """How much speaks for a disclosure. A redactor masks all three; only the upper two are worth a page."""

    WEAK = 1
    """Its form alone, or a public contact: a toll-free line, a role mailbox, a private network address."""
    LIKELY = 2
    """Its form, and words around it that say what it is."""
    CERTAIN = 3
    """A check digit, or a form that nothing else has."""


class Disclosure(Record):
    """Where a text gives something away. It points, it never copies.

    ``start`` and ``end`` count Unicode code points of the text as it was given, end exclusive.
    """

    kind: DisclosureKind
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    strength: Strength
