"""A text cut into pieces: plain, marked as evidence, masked, left out. Escaping is left to the template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from monitors.records.exchanges import Channel
from monitors.records.grades import Grade, Judged, Span
from monitors.reports.masking import Mask
from monitors.reports.visible import code_point, name_of, show_invisible, split_invisible
from monitors.reports.wording import shortened

_AROUND: Final = 160
_MOST_MARKS: Final = 40
_LONGEST_LABEL: Final = 60


class PieceKind(StrEnum):
    """How a piece is drawn."""

    PLAIN = "plain"
    AGAINST = "against"
    """Evidence of a grade that failed."""
    SUPPORTING = "supporting"
    """Evidence of a grade that passed."""
    WANTED = "wanted"
    """What the gold states, where a grade looked for it."""
    MASKED = "masked"
    INVISIBLE = "invisible"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, how it is drawn, and what is said beside it."""

    kind: PieceKind
    text: str
    label: str = ""
    ends_mark: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Evidence in a text: code points ``start`` to ``end``, what they show, and how it speaks."""

    start: int
    end: int
    label: str
    kind: PieceKind


def marks_of(grades: Iterable[Grade], where: Channel | str) -> tuple[Mark, ...]:
    """The evidence that judged grades point at in one text, apart from each other; failing grades go first."""
    found = [
        Mark(span.start, span.end, _label(span, grade), _kind(span, grade))
        for grade in grades
        if isinstance(grade, Judged)
        for span in grade.evidence
        if span.where == where and span.end > span.start
    ]
    kept: list[Mark] = []
    for mark in sorted(found, key=_weight):
        if len(kept) < _MOST_MARKS and all(mark.end <= other.start or other.end <= mark.start for other in kept):
            kept.append(mark)
    return tuple(sorted(kept, key=lambda mark: mark.start))


def _weight(mark: Mark) -> tuple[bool, int, int]:
    return (mark.kind is not PieceKind.AGAINST, mark.start, -mark.end)


def _kind(span: Span, grade: Judged) -> PieceKind:
    if span.where == "gold":
        return PieceKind.WANTED
    return PieceKind.SUPPORTING if grade.passed else PieceKind.AGAINST


def _label(span: Span, grade: Judged) -> str:
    return shortened(show_invisible(span.label), _LONGEST_LABEL) or grade.aspect.replace("_", " ")


def pieces_of(text: str, marks: Sequence[Mark], masks: Sequence[Mask], limit: int) -> tuple[Piece, ...]:
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


def _windows(length: int, marks: Sequence[Mark], masks: Sequence[Mask], limit: int) -> list[tuple[int, int]]:
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


def _between(text: str, start: int, end: int, marks: Sequence[Mark], masks: Sequence[Mask]) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    for mask in masks:
        if start <= mask.start and mask.end <= end:
            pieces += _marked(text, at, mask.start, marks)
            pieces += _masked(mask, marks)
            at = mask.end
    return [*pieces, *_marked(text, at, end, marks)]


def _masked(mask: Mask, marks: Sequence[Mark]) -> list[Piece]:
    """A mask, with the label of the evidence it hides. A mask of nothing (text was added) is shown all the same."""
    if not mask.instead:
        return []
    label = next((mark.label for mark in marks if mark.start < mask.end and mask.start < mark.end), "")
    shown = "" if label and label in mask.instead else label
    return [Piece(PieceKind.MASKED, mask.instead, shown, ends_mark=True)]


def _marked(text: str, start: int, end: int, marks: Sequence[Mark]) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    for mark in marks:
        first, last = max(mark.start, at), min(mark.end, end)
        if first >= last:
            continue
        pieces += _drawn(text[at:first], PieceKind.PLAIN, "")
        pieces += _drawn(text[first:last], mark.kind, mark.label)
        at = last
    return [*pieces, *_drawn(text[at:end], PieceKind.PLAIN, "")]


def _drawn(text: str, kind: PieceKind, label: str) -> list[Piece]:
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
