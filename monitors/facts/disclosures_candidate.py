"""A find in the view of a text, before overlaps are settled."""

from __future__ import annotations

from typing import NamedTuple

from monitors.facts.disclosure import DisclosureKind, Strength


class Candidate(NamedTuple):
    """A stretch of the view that may give something away; ``start`` and ``end`` count its characters."""

    kind: DisclosureKind
    start: int
    end: int
    strength: Strength
