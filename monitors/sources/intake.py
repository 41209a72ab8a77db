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


def compute_intake_window(
    watermark: Watermark | None, until: datetime, *, max_delay: timedelta, first_period: timedelta
) -> IntakeWindow:
    """What to read now. Ids that were taken since its ``since`` are what `fresh` must know.

    ``late_by`` is how long after it was completed a conversation may appear in the source. Without a watermark, the
    first nightly run reads the time ``first`` before ``until``.
    """
    if watermark is None:
        return IntakeWindow(until - first_period, until)
    return IntakeWindow(min(watermark.completed_to, until) - max_delay, until)


def advance_watermark(watermark: Watermark | None, source: Identifier, read: IntakeWindow) -> Watermark:
    """The watermark after all of a nightly run was read. It never goes back."""
    before = watermark.completed_to if watermark is not None else read.until
    return Watermark(source=source, completed_to=max(before, read.until))


class Offer(StrEnum):
    """What became of a conversation that was offered."""

    TAKEN = "taken"
    TAKEN_EARLIER = "known"
    """An earlier nightly run took it."""
    DUPLICATE = "again"
    """It is there already, the same or a later one of its id."""
    REPLACED = "instead"
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
        id_hash = hash_id(str(conversation_id))
        position = bisect_left(self._hashes, id_hash)
        return position < len(self._hashes) and self._hashes[position] == id_hash


def hash_id(conversation_id: str) -> int:
    """Which 64 bits stand for an id: the warehouse makes the same ones (``md5_number_upper``)."""
    return int.from_bytes(hashlib.md5(conversation_id.encode(), usedforsecurity=False).digest()[:8], "little")


_EPOCH: Final = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TIME_BYTES: Final = 8
_DIGEST_BYTES: Final = 12
_SORTED_BYTES: Final = _TIME_BYTES + _DIGEST_BYTES
_OPENING_BYTES: Final = 8
_FINGERPRINT_BYTES: Final = _SORTED_BYTES + _OPENING_BYTES
_PLACE_BYTES: Final = 5


class Intake:
    """Takes conversations one by one, in memory of about 250 bytes for each. It knows what it took, not the texts.

    Of two with one id the later counts, else the one with the larger digest, in whatever order they come.
    """

    def __init__(self, taken_earlier: Container[Identifier]) -> None:
        self._taken_earlier = taken_earlier
        self._fingerprints: dict[Identifier, bytes] = {}
        self._changed_ids: set[Identifier] = set()

    def __len__(self) -> int:
        """How many were taken."""
        return len(self._fingerprints)

    def __contains__(self, conversation_id: object) -> bool:
        """Whether it was taken."""
        return conversation_id in self._fingerprints

    def list_taken(self) -> Iterator[tuple[Identifier, datetime]]:
        """What was taken, with the time it counts for, in the order in which each id came first."""
        for conversation_id, record in self._fingerprints.items():
            yield conversation_id, _EPOCH + int.from_bytes(record[:_TIME_BYTES]) * _MICROSECOND

    def find_position(self, conversation_id: Identifier) -> int:
        """How many other ids came before one that was taken."""
        return int.from_bytes(self._fingerprints[conversation_id][_FINGERPRINT_BYTES:])

    def offer(self, conversation: Conversation, written: bytes | None = None) -> Offer:
        """Whether it is to be taken. ``written`` is the conversation as JSON, where somebody has it already."""
        if conversation.id in self._taken_earlier:
            return Offer.TAKEN_EARLIER
        fingerprint = _fingerprint(
            conversation, written if written is not None else conversation.model_dump_json().encode()
        )
        earlier = self._fingerprints.get(conversation.id)
        if earlier is None:
            self._fingerprints[conversation.id] = fingerprint + len(self._fingerprints).to_bytes(_PLACE_BYTES)
            return Offer.TAKEN
        if fingerprint[_SORTED_BYTES:] != earlier[_SORTED_BYTES:_FINGERPRINT_BYTES]:
            self._changed_ids.add(conversation.id)
        if fingerprint <= earlier[:_FINGERPRINT_BYTES]:
            return Offer.DUPLICATE
        self._fingerprints[conversation.id] = fingerprint + earlier[_FINGERPRINT_BYTES:]
        return Offer.REPLACED

    def build_warnings(self) -> tuple[SourceWarning, ...]:
        """One for each id that came with several questions: it is no id of a conversation."""
        return tuple(
            SourceWarning(
                kind=SourceWarningKind.ITEM_CHANGED,
                place=conversation_id,
                detail="several questions stand under this id, and only the latest was used: name in "
                "traffic fields.id what no two items share",
            )
            for conversation_id in sorted(self._changed_ids)
        )


def _fingerprint(conversation: Conversation, written: bytes) -> bytes:
    """When it was completed, then a digest: what sorts two with one id. Then one of the first question.

    A conversation that went on, or was rated, still begins with that question.
    """
    completed_us = (conversation.completed_at - _EPOCH) // _MICROSECOND
    opening = conversation.turns[0].user_text.encode()
    return b"".join(
        (
            completed_us.to_bytes(_TIME_BYTES),
            hashlib.blake2b(written, digest_size=_DIGEST_BYTES).digest(),
            hashlib.blake2b(opening, digest_size=_OPENING_BYTES).digest(),
        )
    )
