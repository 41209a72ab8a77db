"""Each conversation is taken once (T5), however late it comes, in whatever order, and however often. Pure.

What was seen is known by id. A night reads from some time before the watermark, so that what came late is among
what it reads; the ids that lie in that time tell what an earlier night had taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, SourceNotice, SourceNoticeKind, Watermark


class Night(NamedTuple):
    """What a night reads: conversations that were completed from ``since`` up to, but not at, ``until``."""

    since: datetime
    until: datetime


def night(watermark: Watermark | None, until: datetime, *, late_by: timedelta, first: timedelta) -> Night:
    """What to read now. Ids that were taken since its ``since`` are what `fresh` must know.

    ``late_by`` is how long after it was completed a conversation may appear in the source. Without a watermark,
    the first night reads the time ``first`` before ``until``.
    """
    if watermark is None:
        return Night(until - first, until)
    return Night(min(watermark.completed_to, until) - late_by, until)


def moved(watermark: Watermark | None, source: Identifier, read: Night) -> Watermark:
    """The watermark after all of a night was read. It never goes back."""
    before = watermark.completed_to if watermark is not None else read.until
    return Watermark(source=source, completed_to=max(before, read.until))


class Offer(StrEnum):
    """What became of a conversation that was offered."""

    TAKEN = "taken"
    KNOWN = "known"
    """An earlier night took it."""
    AGAIN = "again"
    """It is there already, the same or a later one of its id."""
    INSTEAD = "instead"
    """It is later than the one of its id that was taken before: that one must be given up for it."""


class _Seen(NamedTuple):
    """Which of two conversations with one id counts: the later, else the larger digest, in whatever order."""

    completed_at: datetime
    digest: bytes


class Intake:
    """Takes conversations one by one, in memory of about 300 bytes for each."""

    def __init__(self, known: AbstractSet[Identifier]) -> None:
        self._known = known
        self._seen: dict[Identifier, _Seen] = {}
        self._changed: set[Identifier] = set()

    def offer(self, conversation: Conversation) -> Offer:
        """Whether it is to be taken."""
        if conversation.id in self._known:
            return Offer.KNOWN
        mine = _Seen(conversation.completed_at, _digest(conversation))
        theirs = self._seen.get(conversation.id)
        if theirs is None:
            self._seen[conversation.id] = mine
            return Offer.TAKEN
        if mine.digest != theirs.digest:
            self._changed.add(conversation.id)
        if mine <= theirs:
            return Offer.AGAIN
        self._seen[conversation.id] = mine
        return Offer.INSTEAD

    def notices(self) -> tuple[SourceNotice, ...]:
        """One for each id that came with several contents."""
        return tuple(
            SourceNotice(
                kind=SourceNoticeKind.ITEM_CHANGED,
                place=changed,
                detail="came with several contents under one id; the latest one counts",
            )
            for changed in sorted(self._changed)
        )


class Fresh(NamedTuple):
    """What a night takes, ordered by time and id; ``known`` and ``again`` count what it does not."""

    taken: tuple[Conversation, ...]
    known: int
    again: int
    notices: tuple[SourceNotice, ...]


def fresh(conversations: Iterable[Conversation], known: AbstractSet[Identifier]) -> Fresh:
    """Those whose id is not ``known``, each once: the same for any order and any repetition.

    Of several contents under one id the latest counts, and a notice says so. What is ``known`` was taken by an
    earlier night and is not taken again, changed or not.
    """
    intake, taken, counts = Intake(known), dict[Identifier, Conversation](), dict.fromkeys(Offer, 0)
    for conversation in conversations:
        offer = intake.offer(conversation)
        counts[offer] += 1
        if offer in (Offer.TAKEN, Offer.INSTEAD):
            taken[conversation.id] = conversation
    return Fresh(
        taken=tuple(sorted(taken.values(), key=lambda one: (one.completed_at, one.id))),
        known=counts[Offer.KNOWN],
        again=counts[Offer.AGAIN] + counts[Offer.INSTEAD],
        notices=intake.notices(),
    )


def _digest(conversation: Conversation) -> bytes:
    return hashlib.sha256(conversation.model_dump_json().encode()).digest()
