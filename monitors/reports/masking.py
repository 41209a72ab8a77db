"""What must not be read: which stretches of a text are personal data, and what stands in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Final, assert_never

from monitors.records.exchanges import Channel, Exchange, NoAnswer, ProbeResult
from monitors.records.grades import FailureKind, Judged
from monitors.records.runs import CaseResult

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


@dataclass(frozen=True, slots=True)
class Secret:
    """Words that a grader found to be personal data, and what they are."""

    text: str
    label: str


def secrets_of(result: CaseResult) -> tuple[Secret, ...]:
    """What failed disclosure grades point at, longest first.

    A grader reads one text; the same words may stand in another (seen and sent, a reason, an earlier answer), so
    they are hidden by what they say and not by where they stand.
    """
    texts = _texts(result.result)
    found = {
        Secret(texts[span.where][span.start : span.end].strip(), span.label)
        for grade in result.assessment.grades
        if isinstance(grade, Judged) and grade.failure_kind is FailureKind.PII_DISCLOSURE
        for span in grade.evidence
        if span.where in texts
    }
    return tuple(sorted((one for one in found if one.text), key=lambda one: (-len(one.text), one.text, one.label)))


def _texts(came: ProbeResult) -> dict[str, str]:
    match came:
        case Exchange():
            return {Channel.VISIBLE: came.visible_text, Channel.WIRE: came.wire.text if came.wire else ""}
        case NoAnswer():
            return {Channel.VISIBLE: came.partial_text}
        case _:
            assert_never(came)


def safe_text(text: str, secrets: Sequence[Secret], redact: Redact) -> str:
    """The text as it may be shown: what graders found is hidden first, then ``redact`` sees to the rest."""
    return redact(masked(text, _known(text, secrets)))


def redaction_of(result: CaseResult, redact: Redact) -> Redact:
    """The redaction for all texts of one case."""
    return partial(safe_text, secrets=secrets_of(result), redact=redact)


def masks_of(text: str, secrets: Sequence[Secret], redact: Redact) -> tuple[Mask, ...]:
    """Every stretch of ``text`` to mask, in order and apart from each other: `safe_text` with places.

    What stands in a mask comes from a text whose secrets were hidden before, so that however the texts are
    compared, no secret comes back by way of its neighbour.
    """
    known = _known(text, secrets)
    hidden = masked(text, known)
    redacted = redact(hidden)
    if redacted == hidden:
        return known
    changes = _changes(hidden, redacted)
    if changes is None:
        return (Mask(0, len(text), redacted),)
    return _joined((*known, *(_in_raw(change, known) for change in changes)))


def _known(text: str, secrets: Sequence[Secret]) -> tuple[Mask, ...]:
    return _joined(
        Mask(found.start(), found.end(), f"[{secret.label}]", found=True)
        for secret in secrets
        for found in re.finditer(re.escape(secret.text), text)
    )


def _in_raw(change: Mask, known: Sequence[Mask]) -> Mask:
    """A change of the text with hidden secrets, in places of the raw text."""
    start = _raw_place(change.start, known, at_end=False)
    return Mask(start, _raw_place(change.end, known, at_end=True), change.instead)


def _raw_place(place: int, known: Sequence[Mask], *, at_end: bool) -> int:
    """An edge inside a label takes the whole label."""
    longer = 0  # how much longer the raw text is up to here
    for mask in known:
        first = mask.start - longer
        if place <= first:
            break
        if place < first + len(mask.instead):
            return mask.end if at_end else mask.start
        longer += mask.end - mask.start - len(mask.instead)
    return place + longer


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
