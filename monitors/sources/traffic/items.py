"""Parse stored items into conversations, or into warnings with the reason.

Texts with zero bytes, and invalid numbers such as NaN, are accepted. If each row contains only one message, the
rows of a session are joined to a conversation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from monitors.errors import SourceUnavailable
from monitors.facts.disclosures.find import find_disclosures
from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, SourceWarning, SourceWarningKind, Turn, UnusableReason
from monitors.sources.traffic.messages import LoggedMessage, Side, has_text, read_messages, read_side
from monitors.sources.traffic.settings import Fields
from monitors.sources.traffic.times import detect_day_first, is_date_ambiguous, parse_time
from monitors.sources.traffic.turns import UnusableItem, build_joined_turns, format_first_paths, read_turns
from monitors.sources.traffic.unify import Unified, parse_and_unify_json_text, unify_item_keys
from monitors.sources.traffic.values import find_first_name, find_flattened_values, find_values, has_any_path

_BLANK: Final = b" \t\r\n\0"
_BOM: Final = b"\xef\xbb\xbf"


def strip_blanks(raw: bytes) -> bytes:
    """Return the text without a byte order mark, and without white space and zero bytes at its start and end."""
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def parse_json(raw: bytes) -> Any:
    """Parse a JSON text.

    Raises ``ValueError`` with the problem and its position, but without a quote from the text.
    """
    text = strip_blanks(raw)
    try:
        return from_json(text)
    except ValueError as error:
        first = error
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}") from None
    try:
        return json.loads(decoded)  # accepts escapes of lone surrogates, which the fast parser refuses
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {str(first).splitlines()[0][:120]}") from None


def looks_like_html(raw: bytes) -> bool:
    """Return whether the bytes start like a web page, such as a login page or the error page of a proxy."""
    return strip_blanks(raw[:200]).startswith(b"<")


_IDENTIFIER: Final[TypeAdapter[str]] = TypeAdapter(Identifier)
_REQUEST_ID_PATHS: Final = ("request_id", "trace_id", "run_id")
"""Paths of request ids. A request id does not identify an item, because one request may write several rows."""
_MAX_UNDATED_ITEMS: Final = 1_000
"""Maximum number of items without a time that are held in memory until an item with a time follows."""
_MAX_SHOWN_CHARACTERS: Final = 60
"""Maximum number of characters of an unreadable time that a warning shows."""
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]m)?", re.IGNORECASE)
_VISIT_PAUSE: Final = timedelta(hours=4)
_MAX_VISIT: Final = timedelta(days=1)
"""A session that ends in the window may have begun at most this long before the window."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class Window(NamedTuple):
    """The period to read: from ``since`` (inclusive) to ``until`` (exclusive)."""

    since: datetime
    until: datetime

    def contains(self, time: datetime) -> bool:
        """Return whether the time is in the window."""
        return self.since <= time < self.until


class LocatedItem(NamedTuple):
    """An item and its location in the source, such as ``run 4f1c``."""

    place: str
    item: Any


class LocatedRecord(NamedTuple):
    """A conversation or a warning, with the locations of the source items from which it was built."""

    places: tuple[str, ...]
    record: Conversation | SourceWarning


def parse_conversations(
    located_items: Iterable[LocatedItem | SourceWarning],
    fields: Fields,
    window: Window,
    visits: Visits | None = None,
) -> Iterator[Conversation | SourceWarning]:
    """Yield conversations and warnings for the items that were completed in the window.

    An item without a readable time gets the time of the item before it, because logs are written in order. A row
    with only one message is added to ``visits``, and the caller reads the joined conversations from ``visits`` at
    the end. Without ``visits``, the joined conversations are yielded at the end.
    """
    return (located.record for located in parse_located_conversations(located_items, fields, window, visits))


def parse_located_conversations(
    located_items: Iterable[LocatedItem | SourceWarning],
    fields: Fields,
    window: Window,
    visits: Visits | None = None,
) -> Iterator[LocatedRecord]:
    """Yield the records of `parse_conversations` with their locations in the source."""
    located_items, day_first = _peek_date_order(located_items, fields)
    last_time: datetime | None = None
    undated: list[SourceWarning] = []
    joined = visits or Visits(fields, window)
    for located in located_items:
        source_item = None if isinstance(located, SourceWarning) else unify_item_keys(located.item)
        time = _find_completion_time(source_item, fields, day_first)
        if time is None:
            undated.append(
                located
                if isinstance(located, SourceWarning)
                else _build_no_time_warning(located.place, source_item, fields)
            )
            if last_time is None and len(undated) < _MAX_UNDATED_ITEMS:
                continue
        yield from _add_time_to_window_warnings(undated, last_time or time, window)
        undated.clear()
        last_time = time or last_time
        if not isinstance(located, SourceWarning) and time is not None and time < window.until:
            row = _read_message_row(source_item, located.place, time, fields)
            if row is not None:
                record = joined.add(row)
                yield from () if record is None else (record,)
            elif window.contains(time):
                yield LocatedRecord((located.place,), _parse_item(located.place, source_item, fields, time))
    yield from (LocatedRecord((warning.place,), warning) for warning in undated)
    if visits is None:
        yield from joined.build()


def _add_time_to_window_warnings(
    warnings: Iterable[SourceWarning], at: datetime | None, window: Window
) -> Iterator[LocatedRecord]:
    """Yield the ``warnings`` with the time ``at`` added, but only if ``at`` is in the window.

    If ``at`` is ``None``, the time is unknown, and all warnings are yielded.
    """
    if at is None or window.contains(at):
        yield from (LocatedRecord((row.place,), row.model_copy(update={"at": at})) for row in warnings)


def _peek_date_order(
    located_items: Iterable[LocatedItem | SourceWarning], fields: Fields
) -> tuple[Iterable[LocatedItem | SourceWarning], bool | None]:
    """Return all items, and whether the day comes first in dates such as ``03/11/2026``.

    The first rows determine the order. The second value is ``None`` if the rows do not show the order.
    """
    rest = iter(located_items)
    head: list[LocatedItem | SourceWarning] = []
    order: bool | None = None
    try:
        for located in islice(rest, _MAX_UNDATED_ITEMS):
            head.append(located)
            source_item = None if isinstance(located, SourceWarning) else unify_item_keys(located.item)
            values = find_flattened_values(source_item, fields.completed_at)
            order = next((order for value in values if (order := detect_day_first(value)) is not None), None)
            if order is not None:
                break
    except SourceUnavailable as error:
        return chain(head, _raise_error_when_iterated(error)), order
    return chain(head, rest), order


def _raise_error_when_iterated(error: SourceUnavailable) -> Iterator[LocatedItem]:
    """Raise ``error`` when this iterator is read.

    The caller places this iterator after the items that were read before the error, so that these items are yielded
    first.
    """
    yield from ()
    raise error


def _find_completion_time(source_item: Any, fields: Fields, day_first: bool | None) -> datetime | None:
    """Return the completion time of an item: the time of the item or of its last message, whichever is later."""
    if not isinstance(source_item, dict):
        return None
    times = [_find_time(source_item, fields, day_first)]
    for value in find_values(source_item, fields.turns):
        messages = (
            list(cast("dict[str, Any]", value).values())
            if isinstance(value, Unified)
            else parse_and_unify_json_text(value)
        )
        if isinstance(messages, list) and messages and isinstance(messages[-1], Unified):
            last = messages[-1]
            times += [_find_time(last, fields, day_first), _find_time(last.get("message"), fields, day_first)]
    return max((time for time in times if time is not None), default=None)


def _find_time(source_item: Any, fields: Fields, day_first: bool | None) -> datetime | None:
    """Return the first time at the configured paths, in UTC, or ``None`` if there is none.

    A date and a clock time in separate fields are combined to one time.
    """
    clock = None
    for value in find_flattened_values(source_item, fields.completed_at):
        if isinstance(value, str) and _CLOCK.fullmatch(value.strip()):
            clock = value
        time = parse_time(value, day_first=day_first)
        if time is not None:
            date_with_clock = (
                parse_time(f"{value} {clock}", day_first=day_first) if clock and isinstance(value, str) else None
            )
            return date_with_clock or time
    return None


def _build_no_time_warning(place: str, source_item: Any, fields: Fields) -> SourceWarning:
    if not isinstance(source_item, dict):
        return _build_unreadable_warning(place, "expected an object", UnusableReason.BROKEN)
    detail = f"the item has no completion time at {format_first_paths(fields.completed_at)}"
    value = next(find_values(source_item, fields.completed_at), None)
    shown = "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    if shown and len(shown) <= _MAX_SHOWN_CHARACTERS and is_impersonal_id(shown):
        order = ", but no row shows whether the day or the month comes first" if is_date_ambiguous(value) else ""
        detail += f". The first value is {shown}{order}"
    return _build_unreadable_warning(place, detail, UnusableReason.NO_TIME)


class _MessageRow(NamedTuple):
    """A row that contains one message of a session."""

    time: datetime
    place: str
    item: Unified
    message: LoggedMessage


def _read_message_row(source_item: Any, place: str, time: datetime, fields: Fields) -> _MessageRow | None:
    """Return ``source_item`` as a row if it contains only one message.

    Return ``None`` if it contains a question and a reply.
    """
    if not isinstance(source_item, Unified) or any(
        isinstance(source_item.get(name), list | dict) for name in _CONVERSATION_KEYS
    ):
        return None
    side = read_side(source_item, fields, _drop_span_name_paths(fields.role))
    if side is None or side is Side.UNKNOWN or not has_text(source_item, fields):
        return None
    is_pair = has_any_path(source_item, _QUESTIONS) and has_any_path(source_item, _REPLIES)
    if is_pair or (side in (Side.USER, Side.REPLY) and source_item.get("input") and source_item.get("output")):
        return None
    messages = read_messages([source_item], side, fields)
    return _MessageRow(
        time,
        place,
        source_item,
        messages[0]._replace(place=source_item) if messages else LoggedMessage(side, place=source_item),
    )


_CONVERSATION_KEYS: Final = ("messages", "turns", "history", "conversation", "choices", "candidates", "parts_of")
_QUESTIONS: Final = ("question", "query", "user_text", "prompt", "user_message", "request")
_REPLIES: Final = ("answer", "reply_text", "response", "reply", "bot_message", "completion")


@lru_cache(maxsize=64)
def _drop_span_name_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``paths`` without the paths that may contain the name of a span instead of the role of a message."""
    return tuple(path for path in paths if path not in ("name", "kind", "event", "source"))


class Visits:
    """Joins rows that each contain one message into conversations.

    The rows of a conversation have the same session. After a pause of four hours, a new conversation begins in the
    session. The rows of the window and of the day before the window are stored until the end.
    """

    def __init__(self, fields: Fields, window: Window) -> None:
        self._fields, self._window = fields, window
        self._rows: dict[str, list[_MessageRow]] = {}

    def add(self, row: _MessageRow) -> LocatedRecord | None:
        """Add a row. Return a warning if the row does not name a session."""
        session = find_first_name(row.item, self._fields.conversation_id)
        if session is not None:
            if row.time.timestamp() >= self._window.since.timestamp() - _MAX_VISIT.total_seconds():
                self._rows.setdefault(session, []).append(row)
            return None
        if not self._window.contains(row.time):
            return None
        detail = f"the message has no conversation id at {format_first_paths(self._fields.conversation_id)}"
        warning = _build_unreadable_warning(row.place, detail, UnusableReason.UNPAIRED, row.time)
        return LocatedRecord((row.place,), warning)

    def build(self) -> Iterator[LocatedRecord]:
        """Yield a conversation for each session that ended in the window."""
        for session, rows in self._rows.items():
            visit: list[_MessageRow] = []
            for row in [*sorted(rows, key=lambda row: row.time), None]:
                if visit and (row is None or row.time - visit[-1].time > _VISIT_PAUSE):
                    if self._window.contains(visit[-1].time):
                        yield self._build_record(session, visit)
                    visit = []
                if row is not None:
                    visit.append(row)

    def _build_record(self, session: str, rows: Sequence[_MessageRow]) -> LocatedRecord:
        places, ended_at = tuple(row.place for row in rows), rows[-1].time
        visit_id = f"{session}@{rows[0].time:%Y%m%dT%H%M%S}"
        try:
            turns = build_joined_turns([row.message for row in rows], self._fields)
            conversation = Conversation(
                id=hash_id_if_unsafe(visit_id),
                origin_id=session,
                completed_at=ended_at,
                turns=turns,
                app_version=next(
                    filter(None, (find_first_name(row.item, self._fields.app_version) for row in rows)), None
                ),
                user_key=next(filter(None, (find_first_name(row.item, self._fields.user) for row in rows)), None),
            )
        except UnusableItem as unusable:
            warning = _build_unreadable_warning(places[-1], str(unusable), unusable.reason, ended_at)
            return LocatedRecord(places, warning)
        except ValidationError as error:
            return LocatedRecord(places, _build_invalid_warning(places[-1], error, ended_at))
        return LocatedRecord(places, conversation)


def _parse_item(
    place: str, source_item: Any, fields: Fields, completed_at: datetime
) -> Conversation | SourceWarning:
    """Return the conversation in an item whose keys are unified (see `unify_item_keys`), or a warning.

    Accepts any value and never raises.

    If the field for the reply is empty, the item is a conversation in which the app gave no answer. If the item has
    no field for a reply, it is not a conversation, because the reply may be stored elsewhere.
    """
    try:
        return _build_conversation(source_item, completed_at, read_turns(source_item, fields), fields)
    except UnusableItem as unusable:
        return _build_unreadable_warning(place, str(unusable), unusable.reason, completed_at)
    except ValidationError as error:
        return _build_invalid_warning(place, error, completed_at)


def _build_invalid_warning(place: str, error: ValidationError, at: datetime) -> SourceWarning:
    keys = sorted({str(detail["loc"][0]) for detail in error.errors() if detail["loc"]})
    detail = f"Lookout cannot store the value of: {', '.join(keys)}"
    return _build_unreadable_warning(place, detail, UnusableReason.INVALID, at)


def _build_conversation(
    source_item: Any, completed_at: datetime, turns: tuple[Turn, ...], fields: Fields
) -> Conversation:
    shared = find_first_name(source_item, fields.conversation_id)
    source_id = find_first_name(source_item, fields.id) or (
        shared if any(isinstance(value, list) for value in find_values(source_item, fields.turns)) else None
    )
    if source_id is None:
        requests = (name for path in _REQUEST_ID_PATHS if (name := find_first_name(source_item, (path,))))
        safe = _derive_id([shared or "", *requests], completed_at, turns)
    else:
        safe = hash_id_if_unsafe(source_id)
    return Conversation(
        id=safe,
        origin_id=safe if source_id is None else source_id,
        completed_at=completed_at,
        turns=turns,
        app_version=find_first_name(source_item, fields.app_version),
        user_key=find_first_name(source_item, fields.user),
    )


def hash_id_if_unsafe(source_id: str) -> Identifier:
    """Return the id from the source if it is a valid identifier without personal data.

    Otherwise, return a hash of the id.
    """
    try:
        _IDENTIFIER.validate_python(source_id)
    except ValidationError:
        return f"h-{_hash_text(source_id)}"
    return source_id if is_impersonal_id(source_id) else f"h-{_hash_text(source_id)}"


def is_impersonal_id(origin_id: str) -> bool:
    """Return whether an id contains no personal data. A UUID never contains personal data."""
    return _UUID.fullmatch(origin_id) is not None or not find_disclosures(origin_id)


def _derive_id(parts: Sequence[str], completed_at: datetime, turns: tuple[Turn, ...]) -> Identifier:
    """Return an id for a conversation whose item has no id.

    The id is a hash of ``parts`` (the ids of the conversation and the request), the completion time, and all
    texts.
    """
    texts = (part for turn in turns for part in (turn.user_text, turn.reply_text))
    return "made-" + _hash_text("\0".join((*parts, completed_at.isoformat(), *texts)))


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _build_unreadable_warning(
    place: str, detail: str, reason: UnusableReason, at: datetime | None = None
) -> SourceWarning:
    return SourceWarning(kind=SourceWarningKind.ITEM_UNREADABLE, place=place, detail=detail, reason=reason, at=at)
