"""Text made safe to send: personal data and secrets are masked by type. The only place that makes `Redacted`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from monitors.facts.disclosure import Disclosure, DisclosureKind
from monitors.facts.disclosures import find_disclosures
from monitors.records.incidents import Redacted

LABELS = {
    DisclosureKind.EMAIL: "[e-mail]",
    DisclosureKind.PHONE: "[phone]",
    DisclosureKind.CARD: "[card number]",
    DisclosureKind.IBAN: "[IBAN]",
    DisclosureKind.AADHAAR: "[Aadhaar]",
    DisclosureKind.PAN: "[PAN]",
    DisclosureKind.GSTIN: "[GSTIN]",
    DisclosureKind.UPI: "[UPI id]",
    DisclosureKind.PASSPORT: "[passport number]",
    DisclosureKind.VOTER_ID: "[voter id]",
    DisclosureKind.VEHICLE: "[vehicle number]",
    DisclosureKind.DRIVING_LICENCE: "[driving licence]",
    DisclosureKind.IP: "[IP address]",
    DisclosureKind.US_SSN: "[social security number]",
    DisclosureKind.POLICY_NUMBER: "[policy number]",
    DisclosureKind.ACCOUNT_NUMBER: "[account number]",
    DisclosureKind.PERSON: "[name]",
    DisclosureKind.STREET_ADDRESS: "[address]",
    DisclosureKind.BIRTH_DATE: "[date of birth]",
    DisclosureKind.SECRET: "[secret]",
}
"""What stands in a redacted text for each kind."""

_LABEL = re.compile("|".join(re.escape(label) for label in LABELS.values()))
_WITHHELD = Redacted("[withheld]")
_PASSES = 12


class Redaction(NamedTuple):
    """A redacted text, and what was masked: places are in the text as it was given."""

    text: Redacted
    found: tuple[Disclosure, ...]


def redact(text: str, *, account_patterns: Sequence[str] = ()) -> Redacted:
    """The text with all personal data and secrets masked by type. See `redact_with_findings`."""
    return redact_with_findings(text, account_patterns=account_patterns).text


def redact_with_findings(text: str, *, account_patterns: Sequence[str] = ()) -> Redaction:
    """Mask all personal data and secrets, weak finds too, and say what was masked.

    A masked text is read again until nothing more is found in it, because a mask can free what stood beside
    it; so redacting twice is redacting once. A text that would need more than twelve rounds (made to attack,
    two are usual) is withheld whole. Labels that stand in the text already stay as they are.
    """
    labels = [match.span() for match in _LABEL.finditer(text)]
    found: list[Disclosure] = []
    for _ in range(_PASSES):
        hidden = sorted(labels + [(one.start, one.end) for one in found])
        more = find_disclosures(text, account_patterns=account_patterns, hidden=hidden)
        if not more:
            return Redaction(_masked(text, found), tuple(found))
        found = sorted((*found, *more), key=lambda one: one.start)
    return Redaction(_WITHHELD, tuple(found))


def _masked(text: str, found: list[Disclosure]) -> Redacted:
    parts: list[str] = []
    at = 0
    for one in found:
        parts += (text[at : one.start], LABELS[one.kind])
        at = one.end
    parts.append(text[at:])
    return Redacted("".join(parts))
