"""Splits a case's texts into pieces for the report: plain text, marked evidence, masks, and omitted parts.

A mask covers a part of a text that contains personal data, and shows other words instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import partial
from itertools import accumulate
from typing import Final, assert_never

from monitors.plural import plural
from monitors.records.exchanges import Channel, Exchange, NoAnswer, ProbeResult
from monitors.records.grades import FailureKind, Grade, Judged, Span
from monitors.records.runs import CaseResult
from monitors.reports.format import shorten
from monitors.reports.invisible import (
    format_character_name,
    format_code_point,
    replace_invisible_by_code_points,
    split_at_invisible_characters,
)

Redact = Callable[[str], str]
"""A function that replaces the personal data in a text."""

_WORD: Final = re.compile(r"\s*\S+|\s+")
# The time to compare word lists grows with the product of their lengths: 4,000 words each took 0.1 s here.
_MAX_WORDS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask that shows ``replacement`` instead of the code points from ``start`` to ``end`` (exclusive).

    ``found`` is true if a grader detected the personal data, and false if only the redaction did.
    """

    start: int
    end: int
    replacement: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class Secret:
    """Words that a grader marked as personal data, and the kind of personal data."""

    text: str
    label: str


def collect_disclosed_personal_data(result: CaseResult) -> tuple[Secret, ...]:
    """Collect the words that graders marked as personal data, the longest first.

    These words are masked in all texts of the case, because other texts may also contain these words.
    """
    texts = _map_channels_to_texts(result.result)
    secrets = {
        Secret(texts[span.where][span.start : span.end].strip(), span.label)
        for grade in result.assessment.grades
        if isinstance(grade, Judged) and grade.failure_kind is FailureKind.PII_DISCLOSURE
        for span in grade.evidence
        if span.where in texts
    }
    return tuple(
        sorted(
            (secret for secret in secrets if secret.text),
            key=lambda secret: (-len(secret.text), secret.text, secret.label),
        )
    )


def _map_channels_to_texts(response: ProbeResult) -> dict[str, str]:
    match response:
        case Exchange():
            return {
                Channel.VISIBLE: response.visible_text,
                "beside": response.text_outside_answer,
                Channel.WIRE: response.wire.text if response.wire else "",
            }
        case NoAnswer():
            return {Channel.VISIBLE: response.partial_text}
        case _:
            assert_never(response)


def redact_case_text(text: str, secrets: Sequence[Secret], redact: Redact) -> str:
    """Mask the personal data and secrets that graders marked, and then redact the rest of the text."""
    return redact(apply_masks(text, _find_secret_masks(text, secrets)))


def build_case_redactor(result: CaseResult, redact: Redact) -> Redact:
    """Return the function that redacts any text of one case.

    The function also masks the personal data that graders marked in this case.
    """
    return partial(redact_case_text, secrets=collect_disclosed_personal_data(result), redact=redact)


def find_masks(text: str, secrets: Sequence[Secret], redact: Redact) -> tuple[Mask, ...]:
    """Find all parts of ``text`` that `redact_case_text` masks, in order and without overlap."""
    secret_masks = _find_secret_masks(text, secrets)
    hidden = apply_masks(text, secret_masks)
    redacted = redact(hidden)
    if redacted == hidden:
        return secret_masks
    changes = _find_redacted_ranges(hidden, redacted)
    if changes is None:
        return (Mask(0, len(text), redacted),)
    return _merge_masks((*secret_masks, *(_map_mask_to_raw_text(change, secret_masks) for change in changes)))


def _find_secret_masks(text: str, secrets: Sequence[Secret]) -> tuple[Mask, ...]:
    return _merge_masks(
        Mask(match.start(), match.end(), f"[{secret.label}]", found=True)
        for secret in secrets
        for match in re.finditer(re.escape(secret.text), text)
    )


def _map_mask_to_raw_text(change: Mask, secret_masks: Sequence[Mask]) -> Mask:
    """Convert the positions of a mask from the text with masked secrets to the raw text.

    ``secret_masks`` are the masks of these secrets.
    """
    start = _map_place_to_raw_text(change.start, secret_masks, at_end=False)
    return Mask(start, _map_place_to_raw_text(change.end, secret_masks, at_end=True), change.replacement)


def _map_place_to_raw_text(place: int, secret_masks: Sequence[Mask], *, at_end: bool) -> int:
    """Convert ``place``, a position in the text with masked secrets, to a position in the raw text.

    If ``place`` is inside the words that replace a secret, return the secret's end if ``at_end`` is true, and
    otherwise its start.
    """
    offset = 0  # how much longer the raw text is up to this position
    for mask in secret_masks:
        first = mask.start - offset
        if place <= first:
            break
        if place < first + len(mask.replacement):
            return mask.end if at_end else mask.start
        offset += mask.end - mask.start - len(mask.replacement)
    return place + offset


def apply_masks(text: str, masks: Sequence[Mask]) -> str:
    """Replace each masked part of the text with the replacement of its mask, and return the text."""
    parts: list[str] = []
    at = 0
    for mask in masks:
        parts += [text[at : mask.start], mask.replacement]
        at = mask.end
    return "".join([*parts, text[at:]])


def apply_masks_to_part(text: str, masks: Sequence[Mask], start: int, end: int) -> str:
    """Return the masked text from ``start`` to ``end`` (exclusive).

    If a mask crosses ``start`` or ``end``, the whole replacement of the mask is included.
    """
    inside = [mask for mask in masks if mask.start < end and start < mask.end]
    first = min([start, *(mask.start for mask in inside)])
    last = max([end, *(mask.end for mask in inside)])
    shifted = [Mask(mask.start - first, mask.end - first, mask.replacement) for mask in inside]
    return apply_masks(text[first:last], shifted)


def _find_redacted_ranges(raw: str, redacted: str) -> list[Mask] | None:
    """Compare the texts, and return a mask for each part of ``raw`` that the redaction replaced.

    Return ``None`` if the texts are too long to compare.
    """
    old, new = _WORD.findall(raw), _WORD.findall(redacted)
    if max(len(old), len(new)) > _MAX_WORDS:
        return None
    ends = [0, *accumulate(map(len, old))]
    changes: list[Mask] = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes.append(_trim_change(raw, ends[old_from], ends[old_to], "".join(new[new_from:new_to])))
    return changes


def _trim_change(raw: str, start: int, end: int, replacement: str) -> Mask:
    """Return a mask for a part of ``raw`` that was replaced with ``replacement``.

    The part extends from ``start`` to ``end`` (exclusive). White space and punctuation with which both this part
    and ``replacement`` begin or end are not masked.
    """
    while start < end and replacement and raw[start] == replacement[0] and not raw[start].isalnum():
        start, replacement = start + 1, replacement[1:]
    while start < end and replacement and raw[end - 1] == replacement[-1] and raw[end - 1] in " \t\n.,;:!?।":
        end, replacement = end - 1, replacement[:-1]
    return Mask(start, end, replacement)


def _merge_masks(masks: Iterable[Mask]) -> tuple[Mask, ...]:
    """Merge masks that overlap. If one of the masks comes from a grader, the merged mask has the grader's label."""
    joined: list[Mask] = []
    for mask in sorted(masks, key=lambda mask: (mask.start, mask.end)):
        if joined and mask.start < joined[-1].end:
            joined[-1] = _merge_two_masks(joined[-1], mask)
        else:
            joined.append(mask)
    return tuple(joined)


def _merge_two_masks(first: Mask, second: Mask) -> Mask:
    from_graders = [mask.replacement for mask in (first, second) if mask.found]
    replacements = from_graders or [first.replacement, second.replacement]
    end = max(first.end, second.end)
    return Mask(first.start, end, " ".join(dict.fromkeys(replacements)), found=bool(from_graders))


_CONTEXT_CHARACTERS: Final = 160
_MAX_MARKS: Final = 40
_MAX_LABEL_CHARACTERS: Final = 60


class PieceKind(StrEnum):
    """How a piece is shown."""

    PLAIN = "plain"
    AGAINST = "against"
    """Evidence of a grade that failed."""
    SUPPORTING = "supporting"
    """Evidence of a grade that passed."""
    WANTED = "wanted"
    """The part of the gold that a grader searched for in the answer."""
    MASKED = "masked"
    INVISIBLE = "invisible"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text, how it is shown, and its label.

    Evidence and masks may have several pieces. ``ends_mark`` is true for the last of these pieces, which shows the
    label.
    """

    kind: PieceKind
    text: str
    label: str = ""
    ends_mark: bool = False


@dataclass(frozen=True, slots=True)
class EvidenceMark:
    """Evidence in a text: its position, its label, and how it is shown."""

    start: int
    end: int
    label: str
    kind: PieceKind


def collect_evidence_marks(grades: Iterable[Grade], channel: Channel | str) -> tuple[EvidenceMark, ...]:
    """Collect the evidence of ``grades`` that is in one text of a case. ``channel`` is the name of this text.

    If several pieces of evidence overlap, the evidence of a failure is used.
    """
    marks = [
        EvidenceMark(
            span.start,
            span.end,
            shorten(replace_invisible_by_code_points(span.label), _MAX_LABEL_CHARACTERS)
            or grade.aspect.replace("_", " "),
            _choose_piece_kind(span, grade),
        )
        for grade in grades
        if isinstance(grade, Judged)
        for span in grade.evidence
        if span.where == channel and span.end > span.start
    ]
    chosen: list[EvidenceMark] = []
    for mark in sorted(marks, key=lambda mark: (mark.kind is not PieceKind.AGAINST, mark.start, -mark.end)):
        if len(chosen) < _MAX_MARKS and all(
            mark.end <= earlier.start or earlier.end <= mark.start for earlier in chosen
        ):
            chosen.append(mark)
    return tuple(sorted(chosen, key=lambda mark: mark.start))


def _choose_piece_kind(span: Span, grade: Judged) -> PieceKind:
    if span.where == "gold":
        return PieceKind.WANTED
    return PieceKind.SUPPORTING if grade.passed else PieceKind.AGAINST


def split_and_cut_into_pieces(
    text: str, marks: Sequence[EvidenceMark], masks: Sequence[Mask], limit: int
) -> tuple[Piece, ...]:
    """Split the text into pieces: its first ``limit`` characters, and the text around later evidence.

    Each omitted part becomes a piece that states how many characters are not shown.
    """
    pieces: list[Piece] = []
    at = 0
    for start, end in _choose_shown_windows(len(text), marks, masks, limit):
        if start > at:
            pieces.append(_build_left_out_piece(start - at))
        pieces += _split_window(text, start, end, marks, masks)
        at = end
    if at < len(text):
        pieces.append(_build_left_out_piece(len(text) - at))
    return tuple(pieces)


def _build_left_out_piece(count: int) -> Piece:
    return Piece(PieceKind.LEFT_OUT, f"… {plural(count, 'character')} not shown; see results.json …")


def _choose_shown_windows(
    length: int, marks: Sequence[EvidenceMark], masks: Sequence[Mask], limit: int
) -> list[tuple[int, int]]:
    """Choose the shown parts of a text: its beginning, and the text around later evidence.

    No part begins or ends inside a mask.
    """
    windows = [(0, min(length, limit))]
    for mark in marks:
        if mark.end > windows[-1][1]:
            start, end = (
                max(0, mark.start - _CONTEXT_CHARACTERS),
                min(length, mark.end + _CONTEXT_CHARACTERS, mark.start + limit),
            )
            if start <= windows[-1][1]:
                windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
            else:
                windows.append((start, end))
    return _widen_windows_to_masks(windows, masks)


def _widen_windows_to_masks(windows: list[tuple[int, int]], masks: Sequence[Mask]) -> list[tuple[int, int]]:
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


def _split_window(
    text: str, start: int, end: int, marks: Sequence[EvidenceMark], masks: Sequence[Mask]
) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    for mask in masks:
        if start <= mask.start and mask.end <= end:
            pieces += _split_by_marks(text, at, mask.start, marks)
            pieces += _build_piece_for_mask(mask, marks)
            at = mask.end
    return [*pieces, *_split_by_marks(text, at, end, marks)]


def _build_piece_for_mask(mask: Mask, marks: Sequence[EvidenceMark]) -> list[Piece]:
    """Build the piece for a mask. If the mask hides evidence, the piece has the label of the evidence.

    Return no piece if the replacement is empty.
    """
    if not mask.replacement:
        return []
    label = next((mark.label for mark in marks if mark.start < mask.end and mask.start < mark.end), "")
    shown = "" if label and label in mask.replacement else label
    return [Piece(PieceKind.MASKED, mask.replacement, shown, ends_mark=True)]


def _split_by_marks(text: str, start: int, end: int, marks: Sequence[EvidenceMark]) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    for mark in marks:
        first, last = max(mark.start, at), min(mark.end, end)
        if first >= last:
            continue
        pieces += _build_pieces(text[at:first], PieceKind.PLAIN, "")
        pieces += _build_pieces(text[first:last], mark.kind, mark.label)
        at = last
    return [*pieces, *_build_pieces(text[at:end], PieceKind.PLAIN, "")]


def _build_pieces(text: str, kind: PieceKind, label: str) -> list[Piece]:
    """Build pieces from a text. Each invisible character becomes a separate piece.

    The last visible piece gets the label.
    """
    pieces: list[Piece] = []
    unlabelled = True
    for run, hidden in reversed(list(split_at_invisible_characters(text))):
        if hidden:
            pieces.append(Piece(PieceKind.INVISIBLE, format_code_point(run), format_character_name(run)))
        else:
            pieces.append(Piece(kind, run, label, ends_mark=unlabelled))
            unlabelled = False
    return pieces[::-1]


Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class TextMarker:
    """Masks, marks and cuts all texts of a case, always with the same secrets and the same length limit."""

    redact: Redact
    secrets: tuple[Secret, ...]
    limit: int

    def build_pieces_without_evidence(self, text: str, limit: int | None = None) -> Pieces:
        """Return the pieces of a text in which no evidence is marked."""
        return split_and_cut_into_pieces(text, (), find_masks(text, self.secrets, self.redact), limit or self.limit)

    def build_evidence_pieces(self, text: str, channel: Channel | str, grades: Sequence[Grade]) -> Pieces:
        """Return the pieces of a text in which the evidence of ``grades`` is marked."""
        masks = find_masks(text, self.secrets, self.redact)
        return split_and_cut_into_pieces(text, collect_evidence_marks(grades, channel), masks, self.limit)

    def build_part_pieces(
        self, text: str, channel: Channel | str, grades: Sequence[Grade], start: int, end: int
    ) -> Pieces:
        """Return the pieces for code points ``start`` to ``end`` of a text, with the evidence in this part.

        Personal data is masked if it is found either in the whole text or in this part alone.
        """
        part = text[start:end]
        own = find_masks(part, self.secrets, self.redact)
        inside = [
            _copy_overlapping_replacement(
                own,
                Mask(max(0, mask.start - start), min(len(part), mask.end - start), mask.replacement, mask.found),
            )
            for mask in find_masks(text, self.secrets, self.redact)
            if mask.start < end and start < mask.end
        ]
        marks = [
            EvidenceMark(max(0, mark.start - start), min(len(part), mark.end - start), mark.label, mark.kind)
            for mark in collect_evidence_marks(grades, channel)
            if mark.start < end and start < mark.end
        ]
        return split_and_cut_into_pieces(part, marks, _merge_masks((*inside, *own)), self.limit)


def _copy_overlapping_replacement(own: Sequence[Mask], mask: Mask) -> Mask:
    """Return ``mask`` with the replacement of the first mask in ``own`` that overlaps ``mask``.

    ``mask`` was found in the whole text, so its own replacement may contain text from outside the shown part.
    """
    replacement = next(
        (
            other_mask.replacement
            for other_mask in own
            if other_mask.start < mask.end and mask.start < other_mask.end
        ),
        mask.replacement,
    )
    return Mask(mask.start, mask.end, replacement, mask.found)
