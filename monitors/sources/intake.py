"""Each conversation is taken once (T5), however late it comes, in whatever order, and however often. Pure.

What was seen is known by id. A nightly run reads from some time before the watermark, so that what came late is
among what it reads; the ids that lie in that time show what an earlier run had taken.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind, Watermark


class IntakeWindow(NamedTuple):
    """What a nightly run reads: conversations completed from ``since`` up to, but not at, ``until``."""

    since: datetime
    until: datetime


def read_window(
    watermark: Watermark | None, until: datetime, *, late_by: timedelta, first: timedelta
) -> IntakeWindow:
    """What to read now. Ids that were taken since its ``since`` are what `fresh` must know.

    ``late_by`` is how long after it was completed a conversation may appear in the source. Without a watermark, the
    first nightly run reads the time ``first`` before ``until``.
    """
    if watermark is None:
        return IntakeWindow(until - first, until)
    return IntakeWindow(min(watermark.completed_to, until) - late_by, until)


def moved(watermark: Watermark | None, source: Identifier, read: IntakeWindow) -> Watermark:
    """The watermark after all of a nightly run was read. It never goes back."""
    before = watermark.completed_to if watermark is not None else read.until
    return Watermark(source=source, completed_to=max(before, read.until))


class Offer(StrEnum):
    """What became of a conversation that was offered."""

    TAKEN = "taken"
    KNOWN = "known"
    """An earlier nightly run took it."""
    AGAIN = "again"
    """It is there already, the same or a later one of its id."""
    INSTEAD = "instead"
    """It is later than the one of its id that was taken before: that one must be given up for it."""


class KnownIds:
    """Ids that earlier nightly runs took, 8 bytes each.

    That one of a million new ids is taken for one of a million known ones happens once in ten million nightly runs.

    ``hashes`` are `hash_of` of each id, in ascending order.
    """

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = array("Q", hashes)

    def __contains__(self, conversation_id: object) -> bool:
        """Whether it was taken."""
        mine = hash_of(str(conversation_id))
        place = bisect_left(self._hashes, mine)
        return place < len(self._hashes) and self._hashes[place] == mine


def hash_of(conversation_id: str) -> int:
    """Which 64 bits stand for an id: the warehouse makes the same ones (``md5_number_upper``)."""
    return int.from_bytes(hashlib.md5(conversation_id.encode(), usedforsecurity=False).digest()[:8], "little")


_EPOCH: Final = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TIME_BYTES: Final = 8
_DIGEST_BYTES: Final = 12
_SORTED_BYTES: Final = _TIME_BYTES + _DIGEST_BYTES
_OPENING_BYTES: Final = 8
_WHAT_BYTES: Final = _SORTED_BYTES + _OPENING_BYTES
_PLACE_BYTES: Final = 5


class Intake:
    """Takes conversations one by one, in memory of about 250 bytes for each. It knows what it took, not the texts.

    Of two with one id the later counts, else the one with the larger digest, in whatever order they come.
    """

    def __init__(self, known: Container[Identifier]) -> None:
        self._known = known
        self._seen: dict[Identifier, bytes] = {}
        self._changed: set[Identifier] = set()

    def __len__(self) -> int:
        """How many were taken."""
        return len(self._seen)

    def __contains__(self, conversation_id: object) -> bool:
        """Whether it was taken."""
        return conversation_id in self._seen

    def taken(self) -> Iterator[tuple[Identifier, datetime]]:
        """What was taken, with the time it counts for, in the order in which each id came first."""
        for key, seen in self._seen.items():
            yield key, _EPOCH + int.from_bytes(seen[:_TIME_BYTES]) * _MICROSECOND

    def place_of(self, conversation_id: Identifier) -> int:
        """How many other ids came before one that was taken."""
        return int.from_bytes(self._seen[conversation_id][_WHAT_BYTES:])

    def offer(self, conversation: Conversation, written: bytes | None = None) -> Offer:
        """Whether it is to be taken. ``written`` is the conversation as JSON, where somebody has it already."""
        if conversation.id in self._known:
            return Offer.KNOWN
        mine = _what(conversation, written if written is not None else conversation.model_dump_json().encode())
        theirs = self._seen.get(conversation.id)
        if theirs is None:
            self._seen[conversation.id] = mine + len(self._seen).to_bytes(_PLACE_BYTES)
            return Offer.TAKEN
        if mine[_SORTED_BYTES:] != theirs[_SORTED_BYTES:_WHAT_BYTES]:
            self._changed.add(conversation.id)
        if mine <= theirs[:_WHAT_BYTES]:
            return Offer.AGAIN
        self._seen[conversation.id] = mine + theirs[_WHAT_BYTES:]
        return Offer.INSTEAD

    def issues(self) -> tuple[SourceWarning, ...]:
        """One for each id that came with several questions: it is no id of a conversation."""
        return tuple(
            SourceWarning(
                kind=SourceWarningKind.ITEM_CHANGED,
                place=changed,
                detail="several questions stand under this id, and only the latest was used: name in "
                "traffic fields.id what no two items share",
            )
            for changed in sorted(self._changed)
        )


def _what(conversation: Conversation, written: bytes) -> bytes:
    """When it was completed, then a digest: what sorts two with one id. Then one of the first question.

    A conversation that went on, or was rated, still begins with that question.
    """
    at = (conversation.completed_at - _EPOCH) // _MICROSECOND
    opening = conversation.turns[0].user_text.encode()
    return b"".join(
        (
            at.to_bytes(_TIME_BYTES),
            hashlib.blake2b(written, digest_size=_DIGEST_BYTES).digest(),
            hashlib.blake2b(opening, digest_size=_OPENING_BYTES).digest(),
        )
    )
