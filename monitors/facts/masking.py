"""Personal data and secrets of a text replaced, each by what stands for its kind. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from monitors.facts.disclosure import Disclosure, DisclosureKind
from monitors.facts.disclosures import find_disclosures

LABELS: Final[dict[DisclosureKind, str]] = {
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

WITHHELD: Final = "[withheld]"
"""What stands for a whole text that cannot be masked piece by piece."""

_LABEL: Final = re.compile("|".join(re.escape(label) for label in LABELS.values()))
_PASSES: Final = 12


class Masked(NamedTuple):
    """A masked text, and what was masked: places are in the text as it was given."""

    text: str
    found: tuple[Disclosure, ...]


def label_of(kind: DisclosureKind, _text: str) -> str:
    """What redaction puts in the place of a find: its kind and nothing of what it says."""
    return LABELS[kind]


def mask(
    text: str,
    instead: Callable[[DisclosureKind, str], str] = label_of,
    *,
    account_patterns: Sequence[str] = (),
    safe: Iterable[tuple[int, int]] = (),
    also: Iterable[Disclosure] = (),
) -> Masked:
    """The text with all personal data and secrets replaced, weak finds too, and what was replaced.

    ``instead`` makes the replacement of a find out of its kind and its text. A masked text is read again until
    nothing more is found in it, because a mask can free what stood beside it. A text that would need more than
    twelve rounds (made to attack, two are usual) is `WITHHELD` whole. Labels that stand in the text already stay
    as they are, and so do ``safe`` stretches: those that an earlier masking left. ``also`` are finds that the text
    alone would not show; where they overlap one that it does, that one counts.
    """
    masks = _apart([*safe, *(match.span() for match in _LABEL.finditer(text))])
    found = list(find_disclosures(text, account_patterns=account_patterns, hidden=masks))
    found += _beside([*masks, *_places(found)], also)
    for _ in range(_PASSES):
        hidden = sorted(masks + _places(found))
        more = find_disclosures(text, account_patterns=account_patterns, hidden=hidden)
        if not more:
            found.sort(key=lambda one: one.start)
            return Masked(_replaced(text, found, instead), tuple(found))
        found += more
    return Masked(WITHHELD, tuple(found))


def _places(found: Iterable[Disclosure]) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in found]


def _beside(taken: Iterable[tuple[int, int]], also: Iterable[Disclosure]) -> list[Disclosure]:
    """Those that overlap nothing that is taken, nor each other."""
    places, beside = list(taken), list[Disclosure]()
    for one in also:
        if all(one.end <= start or end <= one.start for start, end in places):
            places.append((one.start, one.end))
            beside.append(one)
    return beside


def _apart(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches in order; of two that overlap the first."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart


def _replaced(text: str, found: list[Disclosure], instead: Callable[[DisclosureKind, str], str]) -> str:
    parts: list[str] = []
    at = 0
    for one in found:
        parts += (text[at : one.start], instead(one.kind, text[one.start : one.end]))
        at = one.end
    parts.append(text[at:])
    return "".join(parts)
