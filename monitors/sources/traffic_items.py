"""An item of stored traffic into a conversation, or a notice that says why not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from monitors.facts.disclosures import find_disclosures
from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, SourceNotice, SourceNoticeKind, Turn
from monitors.sources.item_turns import holds_turns, turns_of
from monitors.sources.item_values import first_name, first_time, found
from monitors.sources.traffic_fields import Fields

_IDENTIFIER: Final[TypeAdapter[str]] = TypeAdapter(Identifier)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class Window(NamedTuple):
    """The time that is asked for: from ``since`` up to, but not at, ``until``."""

    since: datetime
    until: datetime

    def holds(self, time: datetime) -> bool:
        """Whether the time lies in it."""
        return self.since <= time < self.until


class Placed(NamedTuple):
    """An item, or a notice of what was none, and where it stood."""

    place: str
    item: Any


def conversations_of(
    placed: Iterable[Placed | SourceNotice], fields: Fields, window: Window
) -> Iterator[Conversation | SourceNotice]:
    """The conversations among the items that were completed in the window; others are passed over."""
    for one in placed:
        read = one if isinstance(one, SourceNotice) else read_item(one, fields)
        if isinstance(read, SourceNotice) or window.holds(read.completed_at):
            yield read


def read_item(placed: Placed, fields: Fields) -> Conversation | SourceNotice:
    """The conversation, or why it is none. Takes any value and never raises."""
    place, item = placed
    if not isinstance(item, dict):
        return _unreadable(place, "expected an object")
    completed_at = first_time(item, fields.completed_at)
    if completed_at is None:
        return _unreadable(place, f"no time when it was completed at {_tried(fields.completed_at)}")
    turns = turns_of(item, fields)
    if not turns:
        return _unreadable(
            place, f"nothing that a user wrote at {_tried(fields.turns)} or {_tried(fields.user_text)}"
        )
    if not any(turn.reply_text for turn in turns) and not any(found(item, fields.error)):
        return _unreadable(place, f"no reply at {_tried(fields.reply_text)} or in its messages")
    try:
        return _conversation(item, completed_at, turns, fields)
    except ValidationError as error:
        keys = sorted({str(detail["loc"][0]) for detail in error.errors() if detail["loc"]})
        return _unreadable(place, f"cannot be taken: {', '.join(keys)}")


def _conversation(item: Any, completed_at: datetime, turns: tuple[Turn, ...], fields: Fields) -> Conversation:
    shared = first_name(item, fields.conversation_id)
    given = first_name(item, fields.id) or (shared if holds_turns(item, fields) else None)
    made = safe_id(given) if given is not None else _made_id(shared, completed_at, turns)
    return Conversation(
        id=made,
        origin_id=made if given is None else given,
        completed_at=completed_at,
        turns=turns,
        app_version=first_name(item, fields.app_version),
        user_key=first_name(item, fields.user),
    )


def safe_id(given: str) -> Identifier:
    """The source's own id where it can stand in a file name and gives nobody away; else a digest of it."""
    try:
        _IDENTIFIER.validate_python(given)
    except ValidationError:
        return f"h-{_digest(given)}"
    return given if is_plain(given) else f"h-{_digest(given)}"


def is_plain(origin_id: str) -> bool:
    """Whether an id says nothing about a person. A UUID does not, whatever its digits look like."""
    return _UUID.fullmatch(origin_id) is not None or not find_disclosures(origin_id)


def _made_id(shared: str | None, completed_at: datetime, turns: tuple[Turn, ...]) -> Identifier:
    """The same for the same texts at the same time in the same conversation."""
    said = (part for turn in turns for part in (turn.user_text, turn.reply_text))
    return "made-" + _digest("\0".join((shared or "", completed_at.isoformat(), *said)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tried(paths: tuple[str, ...]) -> str:
    shown = ", ".join(paths[:3])
    return f"{shown}, …" if len(paths) > 3 else shown or "no path"  # noqa: PLR2004 - enough to know which setting


def _unreadable(place: str, detail: str) -> SourceNotice:
    return SourceNotice(kind=SourceNoticeKind.ITEM_UNREADABLE, place=place, detail=detail)
