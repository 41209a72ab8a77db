"""The queues of drafts for review: from documents, translations and incidents."""

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
    """The number of waiting drafts in each queue."""

    documents: int
    translations: int
    incidents: int


def load_drafts() -> tuple[GoldDraft, ...] | None:
    """Load the drafts file of the site's working directory; ``None`` if there is none."""
    return read_drafts(DEFAULT_DRAFTS) if DEFAULT_DRAFTS.exists() else None


def classify_draft(draft: GoldDraft) -> DraftKind:
    """Return whether a draft is from a clause of a document or a translation of a case."""
    return DraftKind.DOCUMENT if draft.original is None else DraftKind.TRANSLATION


def count_queues(request: PageRequest) -> QueueCounts:
    """Count the waiting drafts; a static export has no counts."""
    if request.static is not None:
        return QueueCounts(documents=0, translations=0, incidents=0)
    kinds = [classify_draft(draft) for draft in load_drafts() or () if draft.state is DraftState.DRAFTED]
    return QueueCounts(
        documents=kinds.count(DraftKind.DOCUMENT),
        translations=kinds.count(DraftKind.TRANSLATION),
        incidents=len(load_waiting_drafts(request.site.store, request.site.config.data_folder, None)),
    )
