"""Take each conversation only once, even if it arrives late, out of order or repeatedly.

The period of a nightly run begins some time before the end of the previous period. The run therefore also reads
conversations that arrived late. Conversations that an earlier run has taken are recognised by their ids.
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
    """The period that a nightly run reads.

    The run reads the conversations that were completed from ``since`` (inclusive) to ``until`` (exclusive).
    """

    since: datetime
    until: datetime


def compute_intake_window(
    watermark: Watermark | None, until: datetime, *, max_delay: timedelta, first_period: timedelta
) -> IntakeWindow:
    """Return the period to read now.

    ``watermark`` contains the end of the last period. ``max_delay`` is the longest time from the end of a
    conversation until it appears in the source. The first nightly run has no watermark: its period starts
    ``first_period`` before ``until``.
    """
    if watermark is None:
        return IntakeWindow(until - first_period, until)
    return IntakeWindow(min(watermark.completed_to, until) - max_delay, until)


def advance_watermark(watermark: Watermark | None, source: Identifier, window: IntakeWindow) -> Watermark:
    """Return the watermark after ``window`` was read completely.

    The new watermark is the end of the window, and is never earlier than the previous watermark.
    """
    previous = watermark.completed_to if watermark is not None else window.until
    return Watermark(source=source, completed_to=max(previous, window.until))


class IntakeDecision(StrEnum):
    """What `Intake` decided about a conversation that was offered to it."""

    TAKEN = "taken"
    TAKEN_EARLIER = "known"
    """An earlier nightly run has already taken the conversation."""
    DUPLICATE = "again"
    """This run has already taken the conversation, or a later version of it."""
    REPLACED = "instead"
    """The conversation replaces an earlier version that this run has taken."""


class KnownIds:
    """The ids of the conversations that earlier nightly runs have taken, stored as hashes of 8 bytes.

    With a million new and a million known ids, two ids have the same hash in about one of ten million runs.
    ``hashes`` contains the `hash_id` of each id, in ascending order.
    """

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = array("Q", hashes)

    def __contains__(self, conversation_id: object) -> bool:
        """Return whether an earlier run has taken the conversation with this id."""
        id_hash = hash_id(str(conversation_id))
        position = bisect_left(self._hashes, id_hash)
        return position < len(self._hashes) and self._hashes[position] == id_hash


def hash_id(conversation_id: str) -> int:
    """Return 64 bits of the MD5 of an id, as the function ``md5_number_upper`` of the warehouse does."""
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
    """Decides for each conversation whether to take it. If two versions have the same id, the later version counts.

    Each conversation needs about 250 bytes of memory, because its texts are not stored.
    """

    def __init__(self, taken_earlier: Container[Identifier]) -> None:
        self._taken_earlier = taken_earlier
        self._fingerprints: dict[Identifier, bytes] = {}
        self._changed_ids: set[Identifier] = set()

    def __len__(self) -> int:
        """Return the number of conversations that were taken."""
        return len(self._fingerprints)

    def __contains__(self, conversation_id: object) -> bool:
        """Return whether the conversation with this id was taken."""
        return conversation_id in self._fingerprints

    def list_taken(self) -> Iterator[tuple[Identifier, datetime]]:
        """Yield id and completion time of each taken conversation, in the order in which the ids first arrived."""
        for conversation_id, record in self._fingerprints.items():
            yield conversation_id, _EPOCH + int.from_bytes(record[:_TIME_BYTES]) * _MICROSECOND

    def find_arrival_position(self, conversation_id: Identifier) -> int:
        """Return how many ids arrived before ``conversation_id``, which must be the id of a taken conversation."""
        return int.from_bytes(self._fingerprints[conversation_id][_FINGERPRINT_BYTES:])

    def offer(self, conversation: Conversation, conversation_json: bytes | None = None) -> IntakeDecision:
        """Decide whether to take a conversation, and store its id if it is taken. Return the decision.

        ``conversation_json`` is the conversation as JSON, if the caller has it already.
        """
        if conversation.id in self._taken_earlier:
            return IntakeDecision.TAKEN_EARLIER
        if conversation_json is None:
            conversation_json = conversation.model_dump_json().encode()
        # Versions with the same id are ordered by completion time, then by a digest of the conversation. The digest
        # of the first question does not change if a conversation is continued or rated later.
        completed_us = (conversation.completed_at - _EPOCH) // _MICROSECOND
        opening = conversation.turns[0].user_text.encode()
        fingerprint = b"".join(
            (
                completed_us.to_bytes(_TIME_BYTES),
                hashlib.blake2b(conversation_json, digest_size=_DIGEST_BYTES).digest(),
                hashlib.blake2b(opening, digest_size=_OPENING_BYTES).digest(),
            )
        )
        earlier = self._fingerprints.get(conversation.id)
        if earlier is None:
            self._fingerprints[conversation.id] = fingerprint + len(self._fingerprints).to_bytes(_PLACE_BYTES)
            return IntakeDecision.TAKEN
        if fingerprint[_SORTED_BYTES:] != earlier[_SORTED_BYTES:_FINGERPRINT_BYTES]:
            self._changed_ids.add(conversation.id)
        if fingerprint <= earlier[:_FINGERPRINT_BYTES]:
            return IntakeDecision.DUPLICATE
        self._fingerprints[conversation.id] = fingerprint + earlier[_FINGERPRINT_BYTES:]
        return IntakeDecision.REPLACED

    def build_duplicate_id_warnings(self) -> tuple[SourceWarning, ...]:
        """Return a warning for each id that conversations with different first questions have in common."""
        return tuple(
            SourceWarning(
                kind=SourceWarningKind.ITEM_CHANGED,
                place=conversation_id,
                detail="conversations with different questions have this id. Lookout used only the latest. Set "
                "fields.id of the source to a path with a unique value for each item",
            )
            for conversation_id in sorted(self._changed_ids)
        )
