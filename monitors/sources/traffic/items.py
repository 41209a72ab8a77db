"""Parse an item of stored traffic into a conversation, or a warning that says why not.

Byte order marks, zero bytes, NaN and lone surrogates are tolerated. Texts, times, numbers and thumbs become plain
values, and no value raises. The turns of a conversation may be stored in many formats.
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

from monitors.facts.agent_trace import AgentPath, build_step, read_trace
from monitors.facts.disclosures.find import find_disclosures
from monitors.json_path import collect_items, collect_sources, collect_values, select_leading_paths
from monitors.plural import plural
from monitors.records.base import Identifier
from monitors.records.traffic import Conversation, Feedback, SourceWarning, SourceWarningKind, Thumb, Turn
from monitors.sources.traffic.settings import Fields

_BLANK: Final = b" \t\r\n\0"
_BOM: Final = b"\xef\xbb\xbf"


def strip_blanks(raw: bytes) -> bytes:
    """Return the text without byte order mark, white space and zero bytes around it."""
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def parse_json(raw: bytes) -> Any:
    """Parse JSON; ``ValueError`` says what is wrong and where, without quoting it.

    NaN, infinities and lone surrogates are accepted: readers of values skip them.
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
    """Whether the bytes start like a web page: a login, an error page of a proxy."""
    return strip_blanks(raw[:200]).startswith(b"<")


_TIME: Final[TypeAdapter[datetime]] = TypeAdapter(datetime)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Each unit starts where the one before it would lie beyond the year 5138.
_PER_SECOND: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0))
_PART_TEXTS: Final = ("text", "content", "value", "message", "kwargs.content")
_MAX_DEPTH: Final = 6

_UP_WORDS: Final = (
    *("up", "thumbs_up", "thumbs-up", "thumbs up", "thumbsup", "like", "liked"),
    *("positive", "good", "helpful", "yes", "true", "1", "+1", "👍"),
)
_DOWN_WORDS: Final = (
    *("down", "thumbs_down", "thumbs-down", "thumbs down", "thumbsdown", "dislike", "disliked"),
    *("negative", "bad", "unhelpful", "not helpful", "no", "false", "0", "-1", "👎"),
)


def find_values(item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values at the paths in order, without empty ones."""
    for path in select_leading_paths(item, paths):
        yield from (value for value in collect_values(item, path) if value is not None and value != "")


def find_list_items(item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """Like `find_values`, but yield the items of lists."""
    for path in select_leading_paths(item, paths):
        yield from (value for value in collect_items(item, path) if value != "")


def extract_text(value: Any, depth: int = 0) -> str | None:
    """Return a text, or the joined texts of a message's parts; ``None`` without any. No lone surrogates."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list) and depth < _MAX_DEPTH:
        parts = [text for part in cast("list[Any]", value) if (text := extract_text(part, depth + 1))]
        return "\n".join(parts) or None
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        texts = (extract_text(inner, depth + 1) for inner in find_values(value, _PART_TEXTS))
        return next((text for text in texts if text), None)
    return None


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, so that the text can be encoded as UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def find_text(item: Any, paths: tuple[str, ...]) -> str | None:
    """Return the first text at the paths."""
    return next((text for value in find_values(item, paths) if (text := extract_text(value))), None)


def find_name(item: Any, paths: tuple[str, ...]) -> str | None:
    """Return the first name or number at the paths as text: ids and versions may be either."""
    for value in find_list_items(item, paths):
        if isinstance(value, str) and value.strip():
            return replace_surrogates(value.strip())
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def find_sources(item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources at the first path that names some."""
    sources = next(
        (names for path in select_leading_paths(item, paths) if (names := collect_sources(item, path))), ()
    )
    return tuple(map(replace_surrogates, sources))


def find_texts(item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return all texts at the first path that has some; other values as JSON."""
    for path in select_leading_paths(item, paths):
        passages = tuple(_format_passage(value) for value in collect_items(item, path) if value not in ("", {}))
        if passages:
            return passages
    return ()


def _format_passage(value: Any) -> str:
    keyed = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    named = next(find_values(keyed, ("title", "name", "source", "page_content")), None)
    text = extract_text(value) or (named if isinstance(named, str) else None)
    return (
        text
        if text is not None
        else replace_surrogates(json.dumps(value, ensure_ascii=False, default=str, sort_keys=True))
    )


def find_number(item: Any, paths: tuple[str, ...]) -> float | None:
    """Return the first number at the paths that is not negative."""
    for value in find_list_items(item, paths):
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            number = float(value) if abs(value) < 1e300 else math.inf  # noqa: PLR2004 - more than a float holds
            if math.isfinite(number) and number >= 0:
                return number
    return None


def parse_time(value: Any) -> datetime | None:
    """Parse ISO 8601, or the seconds (milli-, micro-, nanoseconds by their size) since 1970.

    The time is in UTC; one without a zone is UTC.
    """
    try:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = _TIME.validate_python(value.strip())  # a ValidationError is a ValueError
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return _parse_epoch(float(value))
    except (ValueError, OverflowError, ArithmeticError):
        return None
    return None


def _parse_epoch(number: float) -> datetime | None:
    if not math.isfinite(number) or number <= 0:
        return None
    per_second = next(per for threshold, per in _PER_SECOND if number >= threshold)
    return _EPOCH + timedelta(seconds=number / per_second)


def is_flag_set(item: Any, paths: tuple[str, ...]) -> bool:
    """Whether the first value at the paths means yes."""
    value = next(find_list_items(item, paths), False)
    return value.strip().lower() in {"true", "yes", "1"} if isinstance(value, str) else value in (True, 1)


def parse_thumb(value: Any) -> Thumb | None:
    """Parse up (true, 1, "like", …) or down (false, 0, -1, "bad", …). Stars and other scales are neither."""
    if isinstance(value, bool):
        return Thumb.UP if value else Thumb.DOWN
    if isinstance(value, int | float):
        return Thumb.UP if value == 1 else Thumb.DOWN if value in (0, -1) else None
    word = value.strip().lower() if isinstance(value, str) else ""
    return Thumb.UP if word in _UP_WORDS else Thumb.DOWN if word in _DOWN_WORDS else None


_SEPARATOR = "\n\n"
"""Between messages that one side sent in a row."""
_PAIR_LENGTH = 2
_NEUTRAL_ROLES = ("system", "developer")
"""Roles of messages that neither the user nor the application wrote."""


class _Draft(NamedTuple):
    """A turn while it is read: the texts of both sides, their messages, the context before the reply."""

    questions: tuple[str, ...]
    replies: tuple[str, ...] = ()
    messages: tuple[Any, ...] = ()
    context: tuple[str, ...] = ()


def parse_turns(item: Any, fields: Fields) -> tuple[Turn, ...]:
    """Return the turns in order; none without a question. A question without a reply has an empty reply.

    Messages before the first question (a greeting) belong to no turn.
    """
    if _is_job(item, fields):
        return (_parse_job(item, fields),)
    drafts = _parse_drafts(item, fields)
    last = len(drafts) - 1
    return tuple(_build_turn(draft, item, fields, is_last=number == last) for number, draft in enumerate(drafts))


def has_turns(item: Any, fields: Fields) -> bool:
    """Whether the item is a conversation with its turns in a list; else it is a single turn."""
    return any(isinstance(value, list) for value in find_values(item, fields.turns))


def has_place_for_reply(item: Any, fields: Fields) -> bool:
    """Whether an item without a reply has a place for one: then the application gave no answer.

    That is an empty key, a message or pair of the bot without text, messages of the user only, or an error.
    """
    if any(find_list_items(item, fields.error)) or any(collect_values(item, path) for path in fields.reply_text):
        return True
    if _is_job(item, fields):
        return True
    return any(_can_hold_reply(_flatten_batch(value), fields) for value in find_values(item, fields.turns))


def _can_hold_reply(messages: list[Any], fields: Fields) -> bool:
    """Whether messages include one of the bot, an error, or only pairs and known roles."""
    roles = {_read_role(message, fields) for message in messages}
    if roles & set(fields.reply_roles) or any(any(find_list_items(message, fields.error)) for message in messages):
        return True
    others = [
        message
        for message in messages
        if _read_role(message, fields) not in (*_list_roles(fields), *_NEUTRAL_ROLES)
    ]
    pairs = [message for message in others if _is_pair(message, fields)]
    if len(pairs) < len(others):
        return False
    return bool(pairs) or bool(roles & set(fields.user_roles))


def _is_pair(message: Any, fields: Fields) -> bool:
    if isinstance(message, list):
        return len(cast("list[Any]", message)) == _PAIR_LENGTH
    return any(collect_values(message, path) for path in fields.reply_text)


def explain_unpaired(item: Any, fields: Fields) -> str | None:
    """Return why lists of questions and answers do not form turns; ``None`` where they do or do not exist."""
    lists = _find_parallel_lists(item, fields)
    if lists is None or _can_pair(*lists):
        return None
    questions, answers = lists
    return f"{plural(len(questions), 'question')} and {plural(len(answers), 'answer')}: which answers which?"


def _find_parallel_lists(item: Any, fields: Fields) -> tuple[list[str | None], list[str | None]] | None:
    """Return the questions and the answers where both are stored as lists of texts."""
    questions = next(find_values(item, fields.user_text), None)
    answers = next(find_values(item, fields.reply_text), None)
    if not isinstance(questions, list) or not isinstance(answers, list):
        return None
    both = cast("list[Any]", questions), cast("list[Any]", answers)
    return both if all(text is None or isinstance(text, str) for side in both for text in side) else None


def _can_pair(questions: list[str | None], answers: list[str | None]) -> bool:
    """Whether each question has an answer, or only the last one has none yet."""
    return len(questions) - len(answers) in (0, 1)


def _drafts_from_lists(questions: list[str | None], answers: list[str | None]) -> list[_Draft]:
    pairs = zip_longest(questions, answers)
    return [
        _Draft((replace_surrogates(question),), (replace_surrogates(answer),) if answer else ())
        for question, answer in pairs
        if question
    ]


def _is_job(item: Any, fields: Fields) -> bool:
    """Whether the item is an agent's job: an issue with a place for the report."""
    titled = find_text(item, fields.issue_title) is not None
    return titled and any(collect_values(item, path) for path in fields.report)


def _parse_job(item: Any, fields: Fields) -> Turn:
    """Return a finished job as a turn: the issue is the question, the report the reply."""
    issue = [find_text(item, fields.issue_title) or "", find_text(item, fields.issue_body) or ""]
    report_value = next((value for value in find_values(item, fields.report) if value not in ({}, [])), "")
    report = replace_surrogates(
        report_value if isinstance(report_value, str) else json.dumps(report_value, ensure_ascii=False, default=str)
    )
    draft = _Draft((_SEPARATOR.join(part for part in issue if part),), (report,) if report else (), (item,))
    lists = [cast("list[Any]", value) for value in find_values(item, fields.steps) if isinstance(value, list)]
    path = next((path for steps in lists if (path := _parse_path(steps)).steps), AgentPath())
    job_fields = {"is_report": True, "issue_url": find_name(item, fields.issue_url), "is_question": False}
    return _build_turn(draft, item, fields, is_last=True).model_copy(
        update=job_fields | {"steps": path.steps, "hops": path.hops}
    )


def _parse_path(steps: list[Any]) -> AgentPath:
    """Parse a list of steps. Messages of a conversation without any call are not steps."""
    known_steps = [cast("dict[str, Any]", step) for step in steps if isinstance(step, dict)]
    path = read_trace(known_steps)
    if path is not None or any("content" in step or "role" in step for step in known_steps):
        return path or AgentPath()
    return AgentPath(tuple(map(build_step, known_steps)))


def _parse_drafts(item: Any, fields: Fields) -> list[_Draft]:
    for value in find_values(item, fields.turns):
        messages = _flatten_batch(value)
        pairs = [pair for message in messages if (pair := _parse_pair(message, fields)) is not None]
        drafts = pairs or list(_drafts_from_messages(messages, fields))
        if not drafts:
            continue
        # Where the messages hold only the input, the item has the last reply.
        reply = find_text(item, fields.reply_text) if not drafts[-1].replies else None
        return [*drafts[:-1], drafts[-1]._replace(replies=(reply,))] if reply else drafts
    lists = _find_parallel_lists(item, fields)
    if lists is not None:
        return _drafts_from_lists(*lists) if _can_pair(*lists) else []
    question = find_text(item, fields.user_text)
    if question is None:
        return []
    reply = find_text(item, fields.reply_text)
    return [_Draft((question,), (reply,) if reply else (), (item,))]


def _flatten_batch(value: Any) -> list[Any]:
    """Return the messages; some tracers store a batch of one list."""
    messages = cast("list[Any]", value) if isinstance(value, list) else []
    if len(messages) == 1 and isinstance(messages[0], list):
        inner = cast("list[Any]", messages[0])
        return inner if all(isinstance(message, dict) for message in inner) else messages
    return messages


def _parse_pair(message: Any, fields: Fields) -> _Draft | None:
    """Parse a question with its reply: an object that holds both, or a list of two texts."""
    if isinstance(message, list) and len(cast("list[Any]", message)) == _PAIR_LENGTH:
        question, reply = (extract_text(side) for side in cast("list[Any]", message))
        return _Draft((question,), (reply,) if reply else (), (message,)) if question else None
    if not isinstance(message, dict) or _read_role(message, fields) in _list_roles(fields):
        return None
    question, reply = find_text(message, fields.user_text), find_text(message, fields.reply_text)
    return _Draft((question,), (reply,) if reply else (), (message,)) if question else None


def _drafts_from_messages(messages: Iterable[Any], fields: Fields) -> Iterator[_Draft]:
    """Yield turns of messages. A turn starts with the first user message after a reply."""
    draft: _Draft | None = None
    for message in messages:
        role, text = _read_role(message, fields), find_text(message, fields.text) or ""
        if role in fields.user_roles and text:
            if draft is None or draft.replies:
                if draft is not None:
                    yield draft
                draft = _Draft(())
            draft = draft._replace(questions=(*draft.questions, text), messages=(*draft.messages, message))
        elif draft is not None and role in fields.reply_roles and text:
            draft = draft._replace(replies=(*draft.replies, text), messages=(*draft.messages, message))
        elif draft is not None and role in fields.context_roles and text:
            draft = draft._replace(context=(*draft.context, text))
    if draft is not None:
        yield draft


def _read_role(message: Any, fields: Fields) -> str:
    """Return the role in lower case, without LangChain's suffixes: ``HumanMessage`` is human."""
    role = (find_name(message, fields.role) or "").lower()
    return role.removesuffix("chunk").removesuffix("message").strip("_- ") or role


def _list_roles(fields: Fields) -> tuple[str, ...]:
    return (*fields.user_roles, *fields.reply_roles, *fields.context_roles)


def _build_turn(draft: _Draft, item: Any, fields: Fields, *, is_last: bool) -> Turn:
    """Build a turn from its own messages; the last turn also from the item's fields."""
    places = (*reversed(draft.messages), *((item,) if is_last else ()))
    latencies_ms = (
        number * milliseconds
        for place in places
        for paths, milliseconds in ((fields.latency_ms, 1), (fields.latency_s, 1000))
        if (number := find_number(place, paths)) is not None
    )
    # Whether the source marks the reply as a question; nothing without a mark.
    question_flags = [
        is_flag_set(place, fields.is_question) for place in places if [*find_list_items(place, fields.is_question)]
    ]
    feedbacks = (
        Feedback(thumb=thumb, comment=find_text(place, fields.comment) or "")
        for place in places
        if (thumb := next(filter(None, map(parse_thumb, find_list_items(place, fields.thumb))), None))
    )
    return Turn(
        user_text=_SEPARATOR.join(draft.questions),
        reply_text=_SEPARATOR.join(draft.replies),
        citations=next((texts for place in places if (texts := find_sources(place, fields.citations))), ()),
        context=draft.context
        + next((texts for place in places if (texts := find_texts(place, fields.context))), ()),
        app_path=next((name for place in (*places, item) if (name := find_name(place, fields.app_path))), None),
        latency_ms=next(latencies_ms, None),
        is_question=any(question_flags) if question_flags else None,
        feedback=next(feedbacks, None),
    )


_IDENTIFIER: Final[TypeAdapter[str]] = TypeAdapter(Identifier)
_REQUEST_ID_PATHS: Final = ("request_id", "trace_id", "run_id")
"""One request may write several rows with its id: such an id does not identify an item on its own."""
_MAX_WAITING: Final = 1_000
"""Unusable items at the beginning that are buffered until an item has a time."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class Window(NamedTuple):
    """The requested period: [``since``, ``until``)."""

    since: datetime
    until: datetime

    def contains(self, time: datetime) -> bool:
        """Whether the time is in the window."""
        return self.since <= time < self.until


class LocatedItem(NamedTuple):
    """An item and its place in the source."""

    place: str
    item: Any


def parse_conversations(
    placed: Iterable[LocatedItem | SourceWarning], fields: Fields, window: Window
) -> Iterator[Conversation | SourceWarning]:
    """Yield the conversations and warnings of items completed in the window; others are skipped, not parsed.

    An item without a readable time (broken JSON, no time) gets the time of the item before it, or of the next one
    at the beginning: logs are written in order.
    """
    last_time: datetime | None = None
    undated: list[SourceWarning] = []
    for located in placed:
        value = None if isinstance(located, SourceWarning) else located.item
        times = (
            map(parse_time, find_list_items(value, fields.completed_at)) if isinstance(value, dict) else iter(())
        )
        time = next(filter(None, times), None)
        if time is None:
            undated.append(
                located if isinstance(located, SourceWarning) else _build_no_time_warning(located, fields)
            )
            if last_time is None and len(undated) < _MAX_WAITING:
                continue
        at = last_time or time
        if at is None or window.contains(at):
            yield from (warning.model_copy(update={"at": at}) for warning in undated)
        undated.clear()
        last_time = time or last_time
        if not isinstance(located, SourceWarning) and time is not None and window.contains(time):
            yield _parse_item(located, fields, time)
    yield from undated


def _build_no_time_warning(located: LocatedItem, fields: Fields) -> SourceWarning:
    reason = f"no time when it was completed at {_format_paths(fields.completed_at)}"
    return _build_unreadable_warning(
        located.place, reason if isinstance(located.item, dict) else "expected an object"
    )


def _parse_item(located: LocatedItem, fields: Fields, completed_at: datetime) -> Conversation | SourceWarning:
    """Parse an item into a conversation or a warning. Accepts any value and never raises.

    A question without a reply is a conversation: the application gave no answer. An item without a place for a
    reply is not: the reply may be stored elsewhere.
    """
    place, item = located
    turns = parse_turns(item, fields)
    if not turns:
        return _build_unreadable_warning(
            place,
            explain_unpaired(item, fields)
            or f"nothing that a user wrote at {_format_paths(fields.turns)} or {_format_paths(fields.user_text)}",
            completed_at,
        )
    if not any(turn.reply_text for turn in turns) and not has_place_for_reply(item, fields):
        return _build_unreadable_warning(
            place, f"no reply at {_format_paths(fields.reply_text)} or in its messages", completed_at
        )
    shared = find_name(item, fields.conversation_id)
    source_id = find_name(item, fields.id) or (shared if has_turns(item, fields) else None)
    if source_id is None:
        requests = (name for path in _REQUEST_ID_PATHS if (name := find_name(item, (path,))))
        safe_id = _derive_id([shared or "", *requests], completed_at, turns)
    else:
        safe_id = make_safe_id(source_id)
    try:
        return Conversation(
            id=safe_id,
            origin_id=safe_id if source_id is None else source_id,
            completed_at=completed_at,
            turns=turns,
            app_version=find_name(item, fields.app_version),
            user_key=find_name(item, fields.user),
        )
    except ValidationError as error:
        keys = sorted({str(detail["loc"][0]) for detail in error.errors() if detail["loc"]})
        return _build_unreadable_warning(place, f"cannot be taken: {', '.join(keys)}", completed_at)


def make_safe_id(source_id: str) -> Identifier:
    """Return the source's id where it fits in a file name and holds no personal data; else a digest of it."""
    try:
        _IDENTIFIER.validate_python(source_id)
    except ValidationError:
        return f"h-{_hash_text(source_id)}"
    return source_id if is_impersonal_id(source_id) else f"h-{_hash_text(source_id)}"


def is_impersonal_id(origin_id: str) -> bool:
    """Whether an id holds no personal data. A UUID never does, whatever its digits resemble."""
    return _UUID.fullmatch(origin_id) is not None or not find_disclosures(origin_id)


def _derive_id(parts: Sequence[str], completed_at: datetime, turns: tuple[Turn, ...]) -> Identifier:
    """Derive an id from the texts, the time, the conversation and the request."""
    texts = (part for turn in turns for part in (turn.user_text, turn.reply_text))
    return "made-" + _hash_text("\0".join((*parts, completed_at.isoformat(), *texts)))


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _format_paths(paths: tuple[str, ...]) -> str:
    text = ", ".join(paths[:3])
    return f"{text}, …" if len(paths) > 3 else text or "no path"  # noqa: PLR2004 - enough to know which setting


def _build_unreadable_warning(place: str, detail: str, at: datetime | None = None) -> SourceWarning:
    return SourceWarning(kind=SourceWarningKind.ITEM_UNREADABLE, place=place, detail=detail, at=at)
