"""An item of stored traffic becomes a conversation, or a warning that says why not.

Byte order marks, zero bytes, NaN and half characters do not stop the reading. Texts, times, numbers and thumbs
become plain values, and nothing that stands there raises. The turns of a conversation may be stored in any shape.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from monitors.facts.agent_trace import AgentPath, read_trace, step_of
from monitors.facts.disclosures.find import find_disclosures
from monitors.json_path import items_at, leading, sources_at, values_at
from monitors.plural import plural
from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, Feedback, SourceWarning, SourceWarningKind, Thumb, Turn
from monitors.sources.traffic.settings import Fields

_BLANK: Final = b" \t\r\n\0"
_BOM: Final = b"\xef\xbb\xbf"


def bare(raw: bytes) -> bytes:
    """The text without what stands around it and is no part of it."""
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def parsed(raw: bytes) -> Any:
    """The value; ``ValueError`` says what is wrong and where, and never quotes it.

    NaN and infinities are let through, and a lone half of a character: readers of values pass them over.
    """
    text = bare(raw)
    try:
        return from_json(text)
    except ValueError as error:
        first = error
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}") from None
    try:
        return json.loads(decoded)  # takes escapes of half a character, which the quick reader refuses
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {str(first).splitlines()[0][:120]}") from None


def looks_like_html(raw: bytes) -> bool:
    """Whether it starts as a web page does: a login, an error page of a proxy."""
    return bare(raw[:200]).startswith(b"<")


_TIME: Final[TypeAdapter[datetime]] = TypeAdapter(datetime)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Each unit starts where the one before it would lie beyond the year 5138.
_PER_SECOND: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0))
_PART_TEXTS: Final = ("text", "content", "value", "message", "kwargs.content")
_DEEPEST: Final = 6

_UP: Final = (
    *("up", "thumbs_up", "thumbs-up", "thumbs up", "thumbsup", "like", "liked"),
    *("positive", "good", "helpful", "yes", "true", "1", "+1", "👍"),
)
_DOWN: Final = (
    *("down", "thumbs_down", "thumbs-down", "thumbs down", "thumbsdown", "dislike", "disliked"),
    *("negative", "bad", "unhelpful", "not helpful", "no", "false", "0", "-1", "👎"),
)


def found(item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """What stands at the paths, in their order, without what is empty."""
    for path in leading(item, paths):
        yield from (value for value in values_at(item, path) if value is not None and value != "")


def listed(item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """As `found`, where a list stands for its items, and an empty one for nothing."""
    for path in leading(item, paths):
        yield from (value for value in items_at(item, path) if value != "")


def text_of(value: Any, depth: int = 0) -> str | None:
    """A text, or the texts of a message's parts joined; ``None`` where there is none. Never half a character."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list) and depth < _DEEPEST:
        parts = [text for part in cast("list[Any]", value) if (text := text_of(part, depth + 1))]
        return "\n".join(parts) or None
    if isinstance(value, dict) and depth < _DEEPEST:
        texts = (text_of(inner, depth + 1) for inner in found(value, _PART_TEXTS))
        return next((text for text in texts if text), None)
    return None


def whole(text: str) -> str:
    """The text as UTF-8 can hold it: lone surrogates become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def first_text(item: Any, paths: tuple[str, ...]) -> str | None:
    """The first text at the paths."""
    return next((text for value in found(item, paths) if (text := text_of(value))), None)


def first_name(item: Any, paths: tuple[str, ...]) -> str | None:
    """The first name or number at the paths: ids and versions may be either."""
    for value in listed(item, paths):
        if isinstance(value, str) and value.strip():
            return whole(value.strip())
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def sources(item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The sources of the first path that names some."""
    named = next((said for path in leading(item, paths) if (said := sources_at(item, path))), ())
    return tuple(map(whole, named))


def texts(item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """All texts of the first path that has some; what is no text stands as JSON."""
    for path in leading(item, paths):
        said = tuple(_said(value) for value in items_at(item, path) if value not in ("", {}))
        if said:
            return said
    return ()


def _said(value: Any) -> str:
    keyed = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    named = next(found(keyed, ("title", "name", "source", "page_content")), None)
    text = text_of(value) or (named if isinstance(named, str) else None)
    return text if text is not None else whole(json.dumps(value, ensure_ascii=False, default=str, sort_keys=True))


def first_number(item: Any, paths: tuple[str, ...]) -> float | None:
    """The first number from zero upwards."""
    for value in listed(item, paths):
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            number = float(value) if abs(value) < 1e300 else math.inf  # noqa: PLR2004 - beyond what a float holds
            if math.isfinite(number) and number >= 0:
                return number
    return None


def first_time(item: Any, paths: tuple[str, ...]) -> datetime | None:
    """The first point in time at the paths, in UTC; without a zone it is UTC already."""
    return next((time for value in listed(item, paths) if (time := time_of(value))), None)


def time_of(value: Any) -> datetime | None:
    """ISO 8601, or the seconds (milli-, micro-, nanoseconds by their size) since 1970."""
    try:
        if isinstance(value, datetime):
            return _in_utc(value)
        if isinstance(value, str):
            return _from_text(value.strip())
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return _from_epoch(float(value))
    except (ValueError, OverflowError, ArithmeticError):
        return None
    return None


def _from_text(text: str) -> datetime | None:
    try:
        return _from_epoch(float(text))
    except ValueError:
        pass
    try:
        return _in_utc(_TIME.validate_python(text))
    except ValidationError:
        return None


def _from_epoch(number: float) -> datetime | None:
    if not math.isfinite(number) or number <= 0:
        return None
    per_second = next(per for least, per in _PER_SECOND if number >= least)
    return _EPOCH + timedelta(seconds=number / per_second)


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def first_flag(item: Any, paths: tuple[str, ...]) -> bool:
    """Whether the first value at the paths means yes."""
    value = next(listed(item, paths), False)
    return value.strip().lower() in {"true", "yes", "1"} if isinstance(value, str) else value in (True, 1)


def first_thumb(item: Any, paths: tuple[str, ...]) -> Thumb | None:
    """The first value at the paths that is a thumb."""
    return next((thumb for value in listed(item, paths) if (thumb := thumb_of(value))), None)


def thumb_of(value: Any) -> Thumb | None:
    """Up for true, 1 and words like it; down for false, 0, -1 and theirs. Stars and other scales are neither."""
    if isinstance(value, bool):
        return Thumb.UP if value else Thumb.DOWN
    if isinstance(value, int | float):
        return Thumb.UP if value == 1 else Thumb.DOWN if value in (0, -1) else None
    word = value.strip().lower() if isinstance(value, str) else ""
    return Thumb.UP if word in _UP else Thumb.DOWN if word in _DOWN else None


_JOINT = "\n\n"
"""Between messages that one side sent in a row."""
_PAIR = 2
_ASIDE = ("system", "developer")
"""Roles of messages that are neither side's."""


class _Draft(NamedTuple):
    """A turn as far as it was read: the texts of both sides, their messages, passages before the reply."""

    asked: tuple[str, ...]
    replied: tuple[str, ...] = ()
    parts: tuple[Any, ...] = ()
    context: tuple[str, ...] = ()


def turns_of(item: Any, fields: Fields) -> tuple[Turn, ...]:
    """The turns in order; none where nobody asked anything. What was asked but not replied to has an empty reply.

    Messages that came before the first question (a greeting) belong to no turn.
    """
    if _is_job(item, fields):
        return (_job(item, fields),)
    drafts = _drafts(item, fields)
    last = len(drafts) - 1
    return tuple(_turn(draft, item, fields, is_last=number == last) for number, draft in enumerate(drafts))


def holds_turns(item: Any, fields: Fields) -> bool:
    """Whether the item is a whole conversation, with its turns in a list; else it is one turn of one."""
    return any(isinstance(value, list) for value in found(item, fields.turns))


def has_place_for_reply(item: Any, fields: Fields) -> bool:
    """Whether an item without any reply could have held one: then there was none, and it is not merely elsewhere.

    A key for it that is empty, a message or pair of the bot's without text, messages of the user alone, an error.
    """
    if any(listed(item, fields.error)) or any(values_at(item, path) for path in fields.reply_text):
        return True
    if _is_job(item, fields):
        return True
    return any(_could_reply(_flat(value), fields) for value in found(item, fields.turns))


def _could_reply(messages: list[Any], fields: Fields) -> bool:
    """A message of the bot's, an error, or nothing but pairs and known roles: an unknown one may be the reply."""
    roles = {_role(one, fields) for one in messages}
    if roles & set(fields.reply_roles) or any(any(listed(one, fields.error)) for one in messages):
        return True
    others = [one for one in messages if _role(one, fields) not in (*_roles(fields), *_ASIDE)]
    pairs = [one for one in others if _is_pair(one, fields)]
    if len(pairs) < len(others):
        return False
    return bool(pairs) or bool(roles & set(fields.user_roles))


def _is_pair(one: Any, fields: Fields) -> bool:
    if isinstance(one, list):
        return len(cast("list[Any]", one)) == _PAIR
    return any(values_at(one, path) for path in fields.reply_text)


def unpaired(item: Any, fields: Fields) -> str | None:
    """Why lists of questions and of answers are no turns; ``None`` where they are, or there are none."""
    lists = _parallel(item, fields)
    if lists is None or _fit(*lists):
        return None
    asked, replied = lists
    return f"{plural(len(asked), 'question')} and {plural(len(replied), 'answer')}: which answers which?"


def _parallel(item: Any, fields: Fields) -> tuple[list[str | None], list[str | None]] | None:
    """The questions and the answers, where both are stored in lists of plain texts."""
    asked = next(found(item, fields.user_text), None)
    replied = next(found(item, fields.reply_text), None)
    if not isinstance(asked, list) or not isinstance(replied, list):
        return None
    both = cast("list[Any]", asked), cast("list[Any]", replied)
    return both if all(one is None or isinstance(one, str) for side in both for one in side) else None


def _fit(asked: list[str | None], replied: list[str | None]) -> bool:
    """Each question has its answer, or the last one has none yet."""
    return len(asked) - len(replied) in (0, 1)


def _from_lists(asked: list[str | None], replied: list[str | None]) -> list[_Draft]:
    pairs = zip_longest(asked, replied)
    return [
        _Draft((whole(question),), (whole(answer),) if answer else ()) for question, answer in pairs if question
    ]


def _is_job(item: Any, fields: Fields) -> bool:
    """Whether it is a job of an agent: an issue, with a place for the report on it."""
    titled = first_text(item, fields.issue_title) is not None
    return titled and any(values_at(item, path) for path in fields.report)


def _job(item: Any, fields: Fields) -> Turn:
    """A finished job as the turn that it is: the issue was given, the report came back."""
    issue = [first_text(item, fields.issue_title) or "", first_text(item, fields.issue_body) or ""]
    known = next((value for value in found(item, fields.report) if value not in ({}, [])), "")
    report = whole(known if isinstance(known, str) else json.dumps(known, ensure_ascii=False, default=str))
    draft = _Draft((_JOINT.join(part for part in issue if part),), (report,) if report else (), (item,))
    lists = [cast("list[Any]", value) for value in found(item, fields.steps) if isinstance(value, list)]
    path = next((path for steps in lists if (path := _path(steps)).steps), AgentPath())
    said = {"is_report": True, "issue_url": first_name(item, fields.issue_url), "is_question": False}
    return _turn(draft, item, fields, is_last=True).model_copy(
        update=said | {"steps": path.steps, "hops": path.hops}
    )


def _path(steps: list[Any]) -> AgentPath:
    """What a list of steps says. A conversation's messages without any call are no steps."""
    known = [cast("dict[str, Any]", step) for step in steps if isinstance(step, dict)]
    path = read_trace(known)
    if path is not None or any("content" in step or "role" in step for step in known):
        return path or AgentPath()
    return AgentPath(tuple(map(step_of, known)))


def _drafts(item: Any, fields: Fields) -> list[_Draft]:
    for value in found(item, fields.turns):
        messages = _flat(value)
        drafts = list(_listed(messages, fields)) if messages else []
        if drafts:
            return _with_last_reply(drafts, item, fields)
    lists = _parallel(item, fields)
    if lists is not None:
        return _from_lists(*lists) if _fit(*lists) else []
    asked = first_text(item, fields.user_text)
    if asked is None:
        return []
    replied = first_text(item, fields.reply_text)
    return [_Draft((asked,), (replied,) if replied else (), (item,))]


def _with_last_reply(drafts: list[_Draft], item: Any, fields: Fields) -> list[_Draft]:
    """The messages with the last reply beside them, where the messages are only what went in."""
    replied = first_text(item, fields.reply_text) if not drafts[-1].replied else None
    return [*drafts[:-1], drafts[-1]._replace(replied=(replied,))] if replied else drafts


def _flat(value: Any) -> list[Any]:
    """The messages; some tracers store a batch of one list."""
    messages = cast("list[Any]", value) if isinstance(value, list) else []
    if len(messages) == 1 and isinstance(messages[0], list):
        inner = cast("list[Any]", messages[0])
        return inner if all(isinstance(one, dict) for one in inner) else messages
    return messages


def _listed(messages: list[Any], fields: Fields) -> Iterator[_Draft]:
    pairs = [pair for one in messages if (pair := _pair(one, fields)) is not None]
    yield from pairs or _from_messages(messages, fields)


def _pair(one: Any, fields: Fields) -> _Draft | None:
    """A question with its reply: an object that holds both, or a list of two texts."""
    if isinstance(one, list) and len(cast("list[Any]", one)) == _PAIR:
        asked, replied = (text_of(side) for side in cast("list[Any]", one))
        return _Draft((asked,), (replied,) if replied else (), (one,)) if asked else None
    if not isinstance(one, dict) or _role(one, fields) in _roles(fields):
        return None
    asked, replied = first_text(one, fields.user_text), first_text(one, fields.reply_text)
    return _Draft((asked,), (replied,) if replied else (), (one,)) if asked else None


def _from_messages(messages: Iterable[Any], fields: Fields) -> Iterator[_Draft]:
    """A turn starts with what the user writes after a reply."""
    draft: _Draft | None = None
    for message in messages:
        role, text = _role(message, fields), first_text(message, fields.text) or ""
        if role in fields.user_roles and text:
            if draft is None or draft.replied:
                if draft is not None:
                    yield draft
                draft = _Draft(())
            draft = draft._replace(asked=(*draft.asked, text), parts=(*draft.parts, message))
        elif draft is not None and role in fields.reply_roles and text:
            draft = draft._replace(replied=(*draft.replied, text), parts=(*draft.parts, message))
        elif draft is not None and role in fields.context_roles and text:
            draft = draft._replace(context=(*draft.context, text))
    if draft is not None:
        yield draft


def _role(message: Any, fields: Fields) -> str:
    """``HumanMessage`` is human, as ``HUMAN`` is."""
    role = (first_name(message, fields.role) or "").lower()
    return role.removesuffix("chunk").removesuffix("message").strip("_- ") or role


def _roles(fields: Fields) -> tuple[str, ...]:
    return (*fields.user_roles, *fields.reply_roles, *fields.context_roles)


def _turn(draft: _Draft, item: Any, fields: Fields, *, is_last: bool) -> Turn:
    """What a turn's own messages say comes first; the item speaks of its last turn, and of the path of all."""
    places = (*reversed(draft.parts), *((item,) if is_last else ()))
    return Turn(
        user_text=_JOINT.join(draft.asked),
        reply_text=_JOINT.join(draft.replied),
        citations=next((said for one in places if (said := sources(one, fields.citations))), ()),
        context=draft.context + next((said for one in places if (said := texts(one, fields.context))), ()),
        app_path=next((name for one in (*places, item) if (name := first_name(one, fields.app_path))), None),
        latency_ms=next((ms for one in places if (ms := _latency_ms(one, fields)) is not None), None),
        is_question=_marked(places, fields),
        feedback=next((pressed for one in places if (pressed := _feedback(one, fields))), None),
    )


def _marked(places: tuple[Any, ...], fields: Fields) -> bool | None:
    """What the source itself says of it, if anything."""
    said = [first_flag(one, fields.is_question) for one in places if [*listed(one, fields.is_question)]]
    return any(said) if said else None


def _latency_ms(one: Any, fields: Fields) -> float | None:
    milliseconds = first_number(one, fields.latency_ms)
    if milliseconds is not None:
        return milliseconds
    seconds = first_number(one, fields.latency_s)
    return None if seconds is None else seconds * 1000


def _feedback(one: Any, fields: Fields) -> Feedback | None:
    thumb = first_thumb(one, fields.thumb)
    return Feedback(thumb=thumb, comment=first_text(one, fields.comment) or "") if thumb is not None else None


_IDENTIFIER: Final[TypeAdapter[str]] = TypeAdapter(Identifier)
_REQUESTS: Final = ("request_id", "trace_id", "run_id")
"""One request may write several rows, and share its id with them: such an id identifies a row, and joins none."""
_MOST_WAITING: Final = 1_000
"""Unusable items at the beginning that are held back until one has a time."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class Window(NamedTuple):
    """The time that is asked for: from ``since`` up to, but not at, ``until``."""

    since: datetime
    until: datetime

    def holds(self, time: datetime) -> bool:
        """Whether the time lies in it."""
        return self.since <= time < self.until


class LocatedItem(NamedTuple):
    """An item, or a warning about what was none, and where it stood."""

    place: str
    item: Any


def conversations_of(
    placed: Iterable[LocatedItem | SourceWarning], fields: Fields, window: Window
) -> Iterator[Conversation | SourceWarning]:
    """The conversations among the items that were completed in the window; others are passed over, unread.

    So is what was unusable in another nightly run. Where nobody can say when it was (a line that is no JSON, an
    item without a time), it is as old as the item before it, or behind it at the beginning: logs are written in
    order.
    """
    before: datetime | None = None
    waiting: list[SourceWarning] = []
    for one in placed:
        time = None if isinstance(one, SourceWarning) else _completed_at(one.item, fields)
        if time is None:
            waiting.append(one if isinstance(one, SourceWarning) else _without_time(one, fields))
            if before is None and len(waiting) < _MOST_WAITING:
                continue
        yield from _dated(waiting, before or time, window)
        waiting.clear()
        before = time or before
        if not isinstance(one, SourceWarning) and time is not None and window.holds(time):
            yield _read_item(one, fields, time)
    yield from waiting


def _dated(issues: Iterable[SourceWarning], at: datetime | None, window: Window) -> Iterator[SourceWarning]:
    """The warnings with their time, where that lies in the window; all of them, where the time is unknown."""
    if at is None or window.holds(at):
        yield from (one.model_copy(update={"at": at}) for one in issues)


def _completed_at(item: Any, fields: Fields) -> datetime | None:
    return first_time(item, fields.completed_at) if isinstance(item, dict) else None


def _without_time(placed: LocatedItem, fields: Fields) -> SourceWarning:
    why = f"no time when it was completed at {_tried(fields.completed_at)}"
    return _unreadable(placed.place, why if isinstance(placed.item, dict) else "expected an object")


def _read_item(placed: LocatedItem, fields: Fields, completed_at: datetime) -> Conversation | SourceWarning:
    """The conversation that was completed then, or why it is none. Takes any value and never raises.

    A question that nothing came back for is a conversation: the application gave no answer. An item that has no
    place for a reply at all is none: whether there was one stays open.
    """
    place, item = placed
    turns = turns_of(item, fields)
    if not turns:
        return _unreadable(
            place,
            unpaired(item, fields)
            or f"nothing that a user wrote at {_tried(fields.turns)} or {_tried(fields.user_text)}",
            completed_at,
        )
    if not any(turn.reply_text for turn in turns) and not has_place_for_reply(item, fields):
        return _unreadable(place, f"no reply at {_tried(fields.reply_text)} or in its messages", completed_at)
    try:
        return _conversation(item, completed_at, turns, fields)
    except ValidationError as error:
        keys = sorted({str(detail["loc"][0]) for detail in error.errors() if detail["loc"]})
        return _unreadable(place, f"cannot be taken: {', '.join(keys)}", completed_at)


def _conversation(item: Any, completed_at: datetime, turns: tuple[Turn, ...], fields: Fields) -> Conversation:
    shared = first_name(item, fields.conversation_id)
    given = first_name(item, fields.id) or (shared if holds_turns(item, fields) else None)
    if given is None:
        requests = (name for path in _REQUESTS if (name := first_name(item, (path,))))
        made = _made_id([shared or "", *requests], completed_at, turns)
    else:
        made = safe_id(given)
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
    """Whether an id says nothing about a person. A UUID does not, whatever its digits resemble."""
    return _UUID.fullmatch(origin_id) is not None or not find_disclosures(origin_id)


def _made_id(parts: Sequence[str], completed_at: datetime, turns: tuple[Turn, ...]) -> Identifier:
    """The same for the same texts at the same time in the same conversation and request."""
    said = (part for turn in turns for part in (turn.user_text, turn.reply_text))
    return "made-" + _digest("\0".join((*parts, completed_at.isoformat(), *said)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tried(paths: tuple[str, ...]) -> str:
    shown = ", ".join(paths[:3])
    return f"{shown}, …" if len(paths) > 3 else shown or "no path"  # noqa: PLR2004 - enough to know which setting


def _unreadable(place: str, detail: str, at: datetime | None = None) -> SourceWarning:
    return SourceWarning(kind=SourceWarningKind.ITEM_UNREADABLE, place=place, detail=detail, at=at)
