"""The texts of one case, masked, marked and cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitors.records.exchanges import Channel
from monitors.records.grades import Grade
from monitors.reports.marks import Piece, marks_of, pieces_of
from monitors.reports.masking import Redact, Secret, masks_of

Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class TextDrawer:
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
