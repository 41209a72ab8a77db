"""How far another language is behind English, on questions that were asked in both."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Finding, Language, Probability, Record

Count = Annotated[int, Field(ge=0)]
Difference = Annotated[float, Field(ge=-1.0, le=1.0)]
"""A share minus another, from -1 to 1."""


class ParityGap(Record):
    """English against ``language`` over the pairs that could be told in both.

    ``gap`` is the share right in English minus the share right in the other; positive means the other is behind.
    ``low`` and ``high`` are its 95 % interval. ``met`` is `Finding.UNTOLD` while there are too few pairs to ask,
    or no target. ``left_out`` counts pairs of which one side could not be told.
    """

    language: Language
    both: Count
    english_only: Count
    other_only: Count
    neither: Count
    left_out: Count = 0
    gap: Difference
    low: Difference
    high: Difference
    target: Probability | None = None
    met: Finding

    @property
    def pairs(self) -> int:
        """How many questions were told in both languages."""
        return self.both + self.english_only + self.other_only + self.neither
