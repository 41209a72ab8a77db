"""Functions that count the drafts that wait for review: from documents, translations and incidents."""

from __future__ import annotations

from enum import StrEnum

from deployments.cli.gold.draft import DEFAULT_DRAFTS
from deployments.cli.gold.grow import load_waiting_drafts
from deployments.site.page import PageRequest
from monitors.goldset.drafts import read_drafts
from monitors.records.base import Record
from monitors.records.cases import DraftState, GoldDraft


class DraftKind(StrEnum):
    """The source of a draft."""

    DOCUMENT = "document"
    TRANSLATION = "translation"


class QueueCounts(Record):
    """The number of drafts that wait in each queue."""

    documents: int
    translations: int
    incidents: int


def load_gold_drafts() -> tuple[GoldDraft, ...] | None:
    """Load the drafts from the file in the site's working directory. Return ``None`` if there is no file."""
    return read_drafts(DEFAULT_DRAFTS) if DEFAULT_DRAFTS.exists() else None


def classify_draft(draft: GoldDraft) -> DraftKind:
    """Return ``TRANSLATION`` for the translation of a case, and ``DOCUMENT`` for any other draft."""
    return DraftKind.DOCUMENT if draft.original is None else DraftKind.TRANSLATION


def count_waiting_drafts(request: PageRequest) -> QueueCounts:
    """Count the waiting drafts. In a static export, all counts are 0."""
    if request.static is not None:
        return QueueCounts(documents=0, translations=0, incidents=0)
    kinds = [classify_draft(draft) for draft in load_gold_drafts() or () if draft.state is DraftState.DRAFTED]
    return QueueCounts(
        documents=kinds.count(DraftKind.DOCUMENT),
        translations=kinds.count(DraftKind.TRANSLATION),
        incidents=len(load_waiting_drafts(request.site.store, request.site.config.data_folder, None)),
    )
