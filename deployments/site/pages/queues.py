"""What waits for a person beside the sampled answers: drafts of documents, translations, drafts of incidents."""

from __future__ import annotations

from enum import StrEnum

from deployments.cli.gold.draft import DEFAULT_DRAFTS
from deployments.cli.gold.grow import load_waiting_drafts
from deployments.site.page import PageRequest
from monitors.goldset.drafts import read_drafts
from monitors.records.base import Record
from monitors.records.cases import DraftState, GoldDraft


class DraftKind(StrEnum):
    """What a draft was made of."""

    DOCUMENT = "document"
    TRANSLATION = "translation"


class QueueCounts(Record):
    """How much waits in each queue of drafts."""

    documents: int
    translations: int
    incidents: int


def load_drafts() -> tuple[GoldDraft, ...] | None:
    """All drafts of the file where the site was started; ``None`` where there is no file."""
    return read_drafts(DEFAULT_DRAFTS) if DEFAULT_DRAFTS.exists() else None


def classify_draft(draft: GoldDraft) -> DraftKind:
    """A draft rests on a clause of a document, or on the case that it translates."""
    return DraftKind.DOCUMENT if draft.original is None else DraftKind.TRANSLATION


def count_queues(request: PageRequest) -> QueueCounts:
    """How much waits; a copy in files does not say."""
    if request.static is not None:
        return QueueCounts(documents=0, translations=0, incidents=0)
    kinds = [classify_draft(draft) for draft in load_drafts() or () if draft.state is DraftState.DRAFTED]
    return QueueCounts(
        documents=kinds.count(DraftKind.DOCUMENT),
        translations=kinds.count(DraftKind.TRANSLATION),
        incidents=len(load_waiting_drafts(request.site.store, request.site.config.data_folder, None)),
    )
