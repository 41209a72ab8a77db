"""What must not be read: which stretches of a text are personal data, and what stands in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from monitors.records.exchanges import Channel
from monitors.records.grades import FailureKind, Grade, Judged, Span

Redact = Callable[[str], str]
"""Replaces personal data in a text by something safe. The station that knows how is not imported: it is given."""

_WORD: Final = re.compile(r"\s*\S+|\s+")
# Comparing word lists costs up to the product of their lengths; 4,000 words each way took 0.1 s here.
_MOST_WORDS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Mask:
    """Code points ``start`` to ``end`` (exclusive) of a text are shown as ``instead``.

    ``found`` is true where a grader found it: its text must not come back by way of a neighbour's replacement.
    """

    start: int
    end: int
    instead: str
    found: bool = False


def disclosure_spans(grades: Iterable[Grade]) -> tuple[Span, ...]:
    """The spans that a failed disclosure grade points at: they are masked whatever the redaction finds."""
    return tuple(
        span
        for grade in grades
        if isinstance(grade, Judged) and grade.failure_kind is FailureKind.PII_DISCLOSURE
        for span in grade.evidence
    )


def masks_of(text: str, disclosed: Sequence[Span], where: Channel | str, redact: Redact) -> tuple[Mask, ...]:
    """Every stretch of ``text`` to mask, in order and apart from each other.

    The graders' spans and what ``redact`` changes are joined, so that what either found is hidden.
    """
    known = _joined(
        Mask(span.start, min(span.end, len(text)), f"[{span.label}]", found=True)
        for span in disclosed
        if span.where == where and span.start < min(span.end, len(text))
    )
    redacted = redact(text)
    if redacted == text:
        return known
    changes = _changes(text, redacted)
    if changes is None:
        return (Mask(0, len(text), redact(masked(text, known)), found=True),)
    return _joined((*known, *changes))


def masked(text: str, masks: Sequence[Mask]) -> str:
    """The text with its masks in place."""
    parts: list[str] = []
    at = 0
    for mask in masks:
        parts += [text[at : mask.start], mask.instead]
        at = mask.end
    return "".join([*parts, text[at:]])


def masked_part(text: str, masks: Sequence[Mask], start: int, end: int) -> str:
    """Code points ``start`` to ``end`` of the text, masked; a mask that reaches over an edge is shown whole."""
    inside = [mask for mask in masks if mask.start < end and start < mask.end]
    first = min([start, *(mask.start for mask in inside)])
    last = max([end, *(mask.end for mask in inside)])
    moved = [Mask(mask.start - first, mask.end - first, mask.instead) for mask in inside]
    return masked(text[first:last], moved)


def safe_text(text: str, disclosed: Sequence[Span], where: Channel | str, redact: Redact) -> str:
    """The text as it may be shown, without marks."""
    return masked(text, masks_of(text, disclosed, where, redact))


def _changes(raw: str, redacted: str) -> list[Mask] | None:
    """What a redaction replaced, or ``None`` where the texts are too long to compare.

    Words are compared, because spans count in the raw text and must stay in place.
    """
    old, new = _WORD.findall(raw), _WORD.findall(redacted)
    if max(len(old), len(new)) > _MOST_WORDS:
        return None
    ends = _ends(old)
    changes: list[Mask] = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes.append(_trimmed(raw, ends[old_from], ends[old_to], "".join(new[new_from:new_to])))
    return changes


def _ends(words: Sequence[str]) -> list[int]:
    ends = [0]
    for word in words:
        ends.append(ends[-1] + len(word))
    return ends


def _trimmed(raw: str, start: int, end: int, instead: str) -> Mask:
    """Without the white space and punctuation that both sides share, so that only what changed is masked."""
    while start < end and instead and raw[start] == instead[0] and not raw[start].isalnum():
        start, instead = start + 1, instead[1:]
    while start < end and instead and raw[end - 1] == instead[-1] and raw[end - 1] in " \t\n.,;:!?।":
        end, instead = end - 1, instead[:-1]
    return Mask(start, end, instead)


def _joined(masks: Iterable[Mask]) -> tuple[Mask, ...]:
    """Overlapping masks become one over both, with the graders' labels where a grader found any of it."""
    joined: list[Mask] = []
    for mask in sorted(masks, key=lambda mask: (mask.start, mask.end)):
        if joined and mask.start < joined[-1].end:
            joined[-1] = _over_both(joined[-1], mask)
        else:
            joined.append(mask)
    return tuple(joined)


def _over_both(one: Mask, other: Mask) -> Mask:
    found = [mask.instead for mask in (one, other) if mask.found]
    said = found or [one.instead, other.instead]
    end = max(one.end, other.end)
    return Mask(one.start, end, " ".join(dict.fromkeys(said)), found=bool(found))
