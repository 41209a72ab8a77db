"""Replace personal data and secrets in a text with labels such as ``[phone]``. This module is pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from monitors.facts.disclosures.candidates import Disclosure, DisclosureKind, Strength
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.values import KnownValues
from monitors.facts.text import Unread, find_unread_middle, split_around_unread

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
    DisclosureKind.SOCIAL_INSURANCE: "[social insurance number]",
    DisclosureKind.TAX_ID: "[tax number]",
    DisclosureKind.HEALTH_ID: "[health number]",
    DisclosureKind.ID_CARD: "[identity number]",
    DisclosureKind.POLICY_NUMBER: "[policy number]",
    DisclosureKind.ACCOUNT_NUMBER: "[account number]",
    DisclosureKind.PERSON: "[name]",
    DisclosureKind.STREET_ADDRESS: "[address]",
    DisclosureKind.BIRTH_DATE: "[date of birth]",
    DisclosureKind.SECRET: "[secret]",
}
"""The label of each kind in a redacted text."""

_KINDS_OF_A_SUITE: Final = frozenset({DisclosureKind.PERSON, DisclosureKind.PHONE, DisclosureKind.STREET_ADDRESS})
"""Kinds of disclosures that are not masked if the suite contains the value.

A suite may name hotlines, branches and people.
"""

WITHHELD: Final = "[withheld]"
"""The text that replaces a whole text if it could not be masked in parts."""

_MASKED: Final = re.compile(rf"\[(?:{'|'.join(re.escape(label[1:]) for label in LABELS.values())})")
_OWN_ID: Final = re.compile(
    r"[0-9a-f](?<![\w-].)"
    r"(?:\d{7}T\d{6}Z-[a-z0-9][a-z0-9_.-]{0,80}-[0-9a-f]{8,64}|[0-9a-f]{7}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])"
)
"""Run ids and UUIDs. They are not masked.

They do not identify a person, and engineers need them to find a case.
"""
_MAX_PASSES: Final = 12


FindDisclosuresBetween = Callable[[str, int, int], Iterable[Disclosure]]
"""A function that returns the disclosures between two offsets of a text, without overlaps."""


class MaskedText(NamedTuple):
    """A masked text, and the disclosures that were masked, with their offsets in the original text.

    ``unread`` is the middle of a very long text. The middle is not read, and is replaced with a short note.
    """

    text: str
    found: tuple[Disclosure, ...]
    unread: Unread | None = None


def get_redaction_label(kind: DisclosureKind, _text: str) -> str:
    """Return the label that replaces a disclosure of this kind in a redacted text."""
    return LABELS[kind]


def mask(
    text: str,
    build_replacement: Callable[[DisclosureKind, str], str] = get_redaction_label,
    *,
    account_patterns: Sequence[str] = (),
    safe: Iterable[tuple[int, int]] = (),
    find_more: FindDisclosuresBetween | None = None,
    strict: bool = False,
    suite: KnownValues | None = None,
) -> MaskedText:
    """Replace all personal data and secrets in a text. Return the masked text and the masked disclosures.

    Disclosures with weak evidence are also masked. The following are not masked:

    - run ids, and labels that an earlier masking left in the text;
    - the spans ``safe``;
    - names, telephone numbers and street addresses that occur in ``suite``, the texts of a suite;
    - the company's own contacts, unless ``strict`` is True (for texts that the public reads).

    ``build_replacement`` receives the kind and the text of a disclosure and returns its replacement. ``find_more``
    searches the text between the disclosures for values that the rules do not know.

    After a value is masked, the rules may recognise the text beside it. Therefore, the text is searched again until
    nothing new is found. Usually two searches are enough. After twelve searches, the whole text is replaced with
    `WITHHELD`. In a text longer than `MAX_TEXT_LENGTH` the two ends are masked and the middle is withheld.
    """
    min_strength = Strength.CONTACT if strict else Strength.WEAK

    def find_maskable(hidden: list[tuple[int, int]]) -> list[Disclosure]:
        disclosures = find_disclosures(text, account_patterns=account_patterns, hidden=hidden)
        return [
            disclosure
            for disclosure in disclosures
            if disclosure.strength >= min_strength
            and not (
                suite is not None
                and disclosure.kind in _KINDS_OF_A_SUITE
                and suite.contains(disclosure.kind, text[disclosure.start : disclosure.end])
            )
        ]

    unread = find_unread_middle(text)
    if unread is not None:
        return _mask_ends_and_withhold_middle(
            text,
            unread,
            build_replacement,
            account_patterns=account_patterns,
            safe=[*safe],
            find_more=find_more,
            strict=strict,
            suite=suite,
        )
    unmasked = (match.span() for pattern in (_MASKED, _OWN_ID) for match in pattern.finditer(text))
    masks = _drop_overlapping_spans([*safe, *unmasked])
    disclosures = find_maskable(masks)
    if find_more is not None:
        disclosures += [
            disclosure
            for gap in _find_gaps(len(text), [*masks, *_list_spans(disclosures)])
            for disclosure in find_more(text, *gap)
        ]
    for _ in range(_MAX_PASSES):
        more = find_maskable(sorted(masks + _list_spans(disclosures)))
        if not more:
            disclosures.sort(key=lambda disclosure: disclosure.start)
            return MaskedText(_replace_disclosures(text, disclosures, build_replacement), tuple(disclosures))
        disclosures += more
    return MaskedText(WITHHELD, tuple(disclosures))


def _mask_ends_and_withhold_middle(
    text: str,
    unread: Unread,
    build_replacement: Callable[[DisclosureKind, str], str],
    *,
    account_patterns: Sequence[str],
    safe: Sequence[tuple[int, int]],
    find_more: FindDisclosuresBetween | None,
    strict: bool,
    suite: KnownValues | None,
) -> MaskedText:
    """Mask the beginning and the end of a long text, and withhold the middle.

    Each end is searched slightly beyond its border, so that a disclosure across the border is found. Such a
    disclosure is withheld with the middle.
    """
    head, tail, tail_start = split_around_unread(text, unread)

    def mask_part(part: str, at: int) -> list[Disclosure]:
        masked = mask(
            part,
            build_replacement,
            account_patterns=account_patterns,
            safe=[(start - at, end - at) for start, end in safe if start >= at and end <= at + len(part)],
            find_more=find_more,
            strict=strict,
            suite=suite,
        )
        return [_shift_disclosure(disclosure, at) for disclosure in masked.found]

    first, last = mask_part(head, 0), mask_part(tail, tail_start)
    start = min([unread.start, *(disclosure.start for disclosure in first if disclosure.end > unread.start)])
    end = max([unread.end, *(disclosure.end for disclosure in last if disclosure.start < unread.end)])
    disclosures = [
        *(disclosure for disclosure in first if disclosure.end <= start),
        *(disclosure for disclosure in last if disclosure.start >= end),
    ]
    gap = Unread(start, end)
    return MaskedText(_replace_disclosures(text, disclosures, build_replacement, gap), tuple(disclosures), gap)


def _shift_disclosure(disclosure: Disclosure, by: int) -> Disclosure:
    return disclosure.model_copy(update={"start": disclosure.start + by, "end": disclosure.end + by})


def _list_spans(disclosures: Iterable[Disclosure]) -> list[tuple[int, int]]:
    return [(disclosure.start, disclosure.end) for disclosure in disclosures]


def _find_gaps(length: int, taken: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text that are not in the spans ``taken``."""
    at = 0
    for start, end in sorted(taken):
        if at < start:
            yield at, start
        at = max(at, end)
    if at < length:
        yield at, length


def _drop_overlapping_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order. If two spans overlap, only the first span is returned."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart


def _replace_disclosures(
    text: str,
    disclosures: list[Disclosure],
    build_replacement: Callable[[DisclosureKind, str], str],
    gap: Unread | None = None,
) -> str:
    replacements = [
        (
            disclosure.start,
            disclosure.end,
            build_replacement(disclosure.kind, text[disclosure.start : disclosure.end]),
        )
        for disclosure in disclosures
    ]
    parts: list[str] = []
    at = 0
    if gap is not None:
        replacements.append((gap.start, gap.end, gap.mark))
    for start, end, replacement in sorted(replacements):
        parts += (text[at:start], replacement)
        at = end
    parts.append(text[at:])
    return "".join(parts)
