"""Cases by their ids, with where the page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaseLink:
    """A case that is named, with where the page shows it (nowhere: an empty anchor)."""

    id: str
    anchor: str


def links_to(case_ids: Iterable[str], anchors: Mapping[str, str]) -> tuple[CaseLink, ...]:
    """In the given order; ``anchors`` says where a case is shown."""
    return tuple(CaseLink(case_id, anchors.get(case_id, "")) for case_id in case_ids)
