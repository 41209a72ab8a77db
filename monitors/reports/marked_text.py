"""A case's texts, masked, marked and cut into pieces: plain, marked as evidence, masked, left out.

Masking says which stretches of a text are personal data, and what stands in their place. The template does the
escaping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import partial
from typing import Final, assert_never

from monitors.records.exchanges import Channel, Exchange, NoAnswer, ProbeResult
from monitors.records.grades import FailureKind, Grade, Judged, Span
from monitors.records.runs import CaseResult
from monitors.reports.format import shortened
from monitors.reports.invisible import code_point, name_of, show_invisible, split_invisible

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
    """The change without the white space and punctuation that both sides share: only what changed is masked."""
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


_AROUND: Final = 160
_MOST_MARKS: Final = 40
_LONGEST_LABEL: Final = 60


class PieceKind(StrEnum):
    """How a piece is shown."""

    PLAIN = "plain"
    AGAINST = "against"
    """Evidence of a grade that failed."""
    SUPPORTING = "supporting"
    """Evidence of a grade that passed."""
    WANTED = "wanted"
    """What the gold states, where a grade searched for it."""
    MASKED = "masked"
    INVISIBLE = "invisible"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, how it is shown, and what is said beside it."""

    kind: PieceKind
    text: str
    label: str = ""
    ends_mark: bool = False


@dataclass(frozen=True, slots=True)
class EvidenceMark:
    """Evidence in a text: code points ``start`` to ``end``, what they show, and how it speaks."""

    start: int
    end: int
    label: str
    kind: PieceKind


def marks_of(grades: Iterable[Grade], where: Channel | str) -> tuple[EvidenceMark, ...]:
    """The evidence that judged grades point at in one text, apart from each other; failing grades go first."""
    found = [
        EvidenceMark(span.start, span.end, _label(span, grade), _kind(span, grade))
        for grade in grades
        if isinstance(grade, Judged)
        for span in grade.evidence
        if span.where == where and span.end > span.start
    ]
    left: list[EvidenceMark] = []
    for mark in sorted(found, key=_weight):
        if len(left) < _MOST_MARKS and all(mark.end <= other.start or other.end <= mark.start for other in left):
            left.append(mark)
    return tuple(sorted(left, key=lambda mark: mark.start))


def _weight(mark: EvidenceMark) -> tuple[bool, int, int]:
    return (mark.kind is not PieceKind.AGAINST, mark.start, -mark.end)


def _kind(span: Span, grade: Judged) -> PieceKind:
    if span.where == "gold":
        return PieceKind.WANTED
    return PieceKind.SUPPORTING if grade.passed else PieceKind.AGAINST


def _label(span: Span, grade: Judged) -> str:
    return shortened(show_invisible(span.label), _LONGEST_LABEL) or grade.aspect.replace("_", " ")


def pieces_of(text: str, marks: Sequence[EvidenceMark], masks: Sequence[Mask], limit: int) -> tuple[Piece, ...]:
    """The text with marks and masks, at most about ``limit`` characters and what surrounds later marks.

    Everything that is left out is counted in a piece of its own. Masks win over marks.
    """
    pieces: list[Piece] = []
    at = 0
    for start, end in _windows(len(text), marks, masks, limit):
        if start > at:
            pieces.append(_left_out(start - at))
        pieces += _between(text, start, end, marks, masks)
        at = end
    if at < len(text):
        pieces.append(_left_out(len(text) - at))
    return tuple(pieces)


def _left_out(count: int) -> Piece:
    return Piece(PieceKind.LEFT_OUT, f"… {count:,} characters not shown; results.json has them …")


def _windows(
    length: int, marks: Sequence[EvidenceMark], masks: Sequence[Mask], limit: int
) -> list[tuple[int, int]]:
    """What is shown: the beginning, and some text around each mark beyond it. No window cuts a mask."""
    windows = [(0, min(length, limit))]
    for mark in marks:
        if mark.end > windows[-1][1]:
            start, end = max(0, mark.start - _AROUND), min(length, mark.end + _AROUND, mark.start + limit)
            if start <= windows[-1][1]:
                windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
            else:
                windows.append((start, end))
    return _around_masks(windows, masks)


def _around_masks(windows: list[tuple[int, int]], masks: Sequence[Mask]) -> list[tuple[int, int]]:
    widened: list[tuple[int, int]] = []
    for window_start, window_end in windows:
        start, end = window_start, window_end
        for mask in masks:
            if mask.start < start < mask.end:
                start = mask.start
            if mask.start < end < mask.end:
                end = mask.end
        if widened and start <= widened[-1][1]:
            start, end = widened[-1][0], max(end, widened[-1][1])
            widened.pop()
        widened.append((start, end))
    return widened


def _between(text: str, start: int, end: int, marks: Sequence[EvidenceMark], masks: Sequence[Mask]) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    for mask in masks:
        if start <= mask.start and mask.end <= end:
            pieces += _marked(text, at, mask.start, marks)
            pieces += _masked(mask, marks)
            at = mask.end
    return [*pieces, *_marked(text, at, end, marks)]


def _masked(mask: Mask, marks: Sequence[EvidenceMark]) -> list[Piece]:
    """A mask, with the label of the evidence it hides. A mask of nothing (text was added) is shown all the same."""
    if not mask.instead:
        return []
    label = next((mark.label for mark in marks if mark.start < mask.end and mask.start < mark.end), "")
    shown = "" if label and label in mask.instead else label
    return [Piece(PieceKind.MASKED, mask.instead, shown, ends_mark=True)]


def _marked(text: str, start: int, end: int, marks: Sequence[EvidenceMark]) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    for mark in marks:
        first, last = max(mark.start, at), min(mark.end, end)
        if first >= last:
            continue
        pieces += _pieces(text[at:first], PieceKind.PLAIN, "")
        pieces += _pieces(text[first:last], mark.kind, mark.label)
        at = last
    return [*pieces, *_pieces(text[at:end], PieceKind.PLAIN, "")]


def _pieces(text: str, kind: PieceKind, label: str) -> list[Piece]:
    """The label goes with the last piece that shows anything."""
    pieces: list[Piece] = []
    unlabelled = True
    for run, hidden in reversed(list(split_invisible(text))):
        if hidden:
            pieces.append(Piece(PieceKind.INVISIBLE, code_point(run), name_of(run)))
        else:
            pieces.append(Piece(kind, run, label, ends_mark=unlabelled))
            unlabelled = False
    return pieces[::-1]


Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class TextMarker:
    """What is hidden and how much is shown, the same for every text of a case."""

    redact: Redact
    secrets: tuple[Secret, ...]
    limit: int

    def plain(self, text: str, limit: int | None = None) -> Pieces:
        """A text without evidence in it."""
        return pieces_of(text, (), masks_of(text, self.secrets, self.redact), limit or self.limit)

    def marked(self, text: str, where: Channel | str, grades: Sequence[Grade]) -> Pieces:
        """A text with what its grades point at."""
        masks = masks_of(text, self.secrets, self.redact)
        return pieces_of(text, marks_of(grades, where), masks, self.limit)

    def marked_part(self, text: str, where: Channel | str, grades: Sequence[Grade], start: int, end: int) -> Pieces:
        """Code points ``start`` to ``end`` of a text with what its grades point at there.

        What is personal data within the whole text stays masked, and so does what is it within the part alone.
        """
        part = text[start:end]
        own = masks_of(part, self.secrets, self.redact)
        inside = [
            _shown_as_its_neighbour(
                own, Mask(max(0, mask.start - start), min(len(part), mask.end - start), mask.instead, mask.found)
            )
            for mask in masks_of(text, self.secrets, self.redact)
            if mask.start < end and start < mask.end
        ]
        marks = [
            EvidenceMark(max(0, mark.start - start), min(len(part), mark.end - start), mark.label, mark.kind)
            for mark in marks_of(grades, where)
            if mark.start < end and start < mark.end
        ]
        return pieces_of(part, marks, _joined((*inside, *own)), self.limit)


def _shown_as_its_neighbour(own: Sequence[Mask], mask: Mask) -> Mask:
    """The mask shown as the one that it overlaps: its own may hold what follows the part in the text."""
    instead = next((one.instead for one in own if one.start < mask.end and mask.start < one.end), mask.instead)
    return Mask(mask.start, mask.end, instead, mask.found)
