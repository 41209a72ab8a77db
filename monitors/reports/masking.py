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
    """Code points ``start`` to ``end`` (exclusive) of a text are shown as ``instead``."""

    start: int
    end: int
    instead: str


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
    known = [
        Mask(span.start, min(span.end, len(text)), f"[{span.label}]")
        for span in disclosed
        if span.where == where and span.start < min(span.end, len(text))
    ]
    return _joined([*known, *_changes(text, redact(text))])


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


def _changes(raw: str, redacted: str) -> list[Mask]:
    """What a redaction replaced, found by comparing words: spans count in the raw text and must stay in place."""
    if raw == redacted:
        return []
    old, new = _WORD.findall(raw), _WORD.findall(redacted)
    if max(len(old), len(new)) > _MOST_WORDS:
        return [Mask(0, len(raw), redacted)]
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


def _joined(masks: list[Mask]) -> tuple[Mask, ...]:
    """Overlapping masks become one over both; the graders' label comes first in the list and is the one kept."""
    joined: list[Mask] = []
    for _, mask in sorted(enumerate(masks), key=lambda pair: (pair[1].start, pair[0])):
        if joined and mask.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Mask(last.start, max(last.end, mask.end), last.instead)
        else:
            joined.append(mask)
    return tuple(joined)
