"""Read the turns of an item: each question of the user, its reply, and the passages for the reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final, NamedTuple, cast

from monitors.facts.agent_trace import AgentPath, build_step, read_trace
from monitors.plural import plural
from monitors.records.traffic import Feedback, Turn, UnusableReason
from monitors.sources.traffic.messages import LoggedMessage, Side, read_messages, read_reply
from monitors.sources.traffic.names import get_names, to_snake_case
from monitors.sources.traffic.passages import find_passages
from monitors.sources.traffic.settings import Fields
from monitors.sources.traffic.unify import (
    Unified,
    add_enveloped_keys,
    format_with_original_keys,
    parse_and_unify_json_text,
    select_branch,
    unify_item_keys,
)
from monitors.sources.traffic.values import (
    find_first_name,
    find_first_non_negative_number,
    find_flattened_values,
    find_source_names,
    find_thumb,
    find_values,
    has_any_path,
    is_flag_set,
    replace_surrogates,
    select_reachable_paths,
)

_SEPARATOR: Final = "\n\n"
"""The separator between messages that one side sent in succession."""
_HISTORY: Final = frozenset(get_names("inside", "history"))
_OPENING: Final = get_names("inside", "opening")
_REPLY_LISTS: Final = frozenset(
    {"messages", "conversation_parts.conversation_parts", "conversation_parts", "comments"}
)
"""Names of lists in which all messages may be replies. If so, the question is in another field."""
_LEAF: Final = get_names("inside", "leaf")
_SPAN_KINDS: Final = get_names("spans", "kind")
_SPANS_WITHOUT_CONVERSATION: Final = frozenset(get_names("spans", "without_conversation"))
_MAX_DEPTH: Final = 4


class UnusableItem(Exception):
    """Raised if an item is not a conversation. The message names paths, but contains no text from a user."""

    def __init__(self, reason: UnusableReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _TurnDraft(NamedTuple):
    """A turn that is being read: the texts and messages of both sides, and the context of the reply."""

    questions: tuple[str, ...]
    replies: tuple[str, ...] = ()
    places: tuple[Any, ...] = ()
    context: tuple[str, ...] = ()


def read_turns_or_empty(source_item: Any, fields: Fields) -> tuple[Turn, ...]:
    """Return the turns of an item in order. The result is empty if the item is not a conversation."""
    try:
        return read_turns(unify_item_keys(source_item), fields)
    except UnusableItem:
        return ()


def read_turns(source_item: Any, fields: Fields) -> tuple[Turn, ...]:
    """Return the turns of an item, in order. The item's keys must be unified (see `unify_item_keys`).

    Raises `UnusableItem` if the item is not a conversation.

    If a question has no reply, its turn has an empty reply. A greeting before the first question is ignored.
    """
    if _is_job(source_item, fields):
        return (_build_turn_from_job(source_item, fields),)
    kind = _find_non_conversation_span_kind(source_item)
    if kind is not None:
        raise UnusableItem(
            UnusableReason.NO_CONVERSATION, f"a span of kind {kind} contains neither a user message nor a reply"
        )
    pairs = _read_parallel_lists(source_item, fields)
    reading = _ItemMessages(pairs, has_place=True) if pairs else _collect_messages(source_item, fields)
    drafts = list(_split_messages_into_turns(reading.messages))
    if not drafts:
        raise _build_no_question_error(reading, fields)
    if not any(draft.replies for draft in drafts) and not (
        reading.has_place or any(find_flattened_values(source_item, fields.error))
    ):
        raise _build_no_reply_error(reading, fields)
    last = len(drafts) - 1
    return tuple(
        _build_turn(draft, source_item, fields, is_last=number == last) for number, draft in enumerate(drafts)
    )


def build_joined_turns(messages: Iterable[LoggedMessage], fields: Fields) -> tuple[Turn, ...]:
    """Build turns from messages that were stored separately. Raises `UnusableItem` if there is no question."""
    reading = _ItemMessages(tuple(messages), has_place=True)
    drafts = list(_split_messages_into_turns(reading.messages))
    if not drafts:
        raise _build_no_question_error(reading, fields)
    return tuple(_build_turn(draft, None, fields, is_last=False) for draft in drafts)


def _build_no_question_error(reading: _ItemMessages, fields: Fields) -> UnusableItem:
    if any(message.side is Side.CONTEXT for message in reading.messages):
        return UnusableItem(
            UnusableReason.NO_CONVERSATION,
            "the item is the result of a tool or a search and has no user messages",
        )
    paths = f"{format_first_paths(fields.turns)} or {format_first_paths(fields.user_text)}"
    return UnusableItem(UnusableReason.NO_QUESTION, f"the item has no user text at {paths}")


def _build_no_reply_error(reading: _ItemMessages, fields: Fields) -> UnusableItem:
    if reading.unreadable:
        return UnusableItem(
            UnusableReason.REPLY_UNREADABLE, (f"the reply at {reading.unreadable} has an unknown format")
        )
    if reading.retrieved:
        return UnusableItem(
            UnusableReason.NO_CONVERSATION,
            ("the output is a list of documents, which is a search result, not a reply to a user"),
        )
    return UnusableItem(
        UnusableReason.NO_REPLY_PLACE,
        f"the item has no reply at {format_first_paths(fields.reply_text)} or in its messages",
    )


class _ItemMessages(NamedTuple):
    """The messages of an item in order, and information about the reply.

    - ``has_place`` is true if the item has a field for a reply, even if the field is empty.
    - ``unreadable`` is the path of a reply whose format is unknown.
    - ``retrieved`` is true if the output contains only documents and no reply.
    """

    messages: tuple[LoggedMessage, ...] = ()
    has_place: bool = False
    unreadable: str | None = None
    retrieved: bool = False


def _collect_messages(source_item: Any, fields: Fields, depth: int = 0) -> _ItemMessages:
    """Return the messages of an item: its list of turns, a separate question, and the reply."""
    listed, path = _read_message_list(source_item, fields)
    has_reply_at_end = _has_reply_at_end(listed)
    question, asked = None, _ItemMessages()
    if not any(message.side is Side.USER for message in listed) or path in _HISTORY or has_reply_at_end:
        question, asked = _read_question(source_item, fields, depth)
    messages = list(listed)
    if asked.messages and not _is_question_listed(asked.messages, listed):
        is_opening = path is not None and path not in _HISTORY and has_any_path(source_item, _OPENING)
        messages = (
            [*asked.messages, *listed]
            if is_opening or not _has_user_message(listed)
            else [*listed, *asked.messages]
        )
    elif has_reply_at_end and _has_user_message(listed):
        return _ItemMessages(tuple(listed), has_place=True)
    reply = read_reply(source_item, fields, question)
    answered = [message for message in reply.messages if message.side in (Side.REPLY, Side.CONTEXT)]
    if not _has_reply_at_end(messages):
        messages += answered
    has_place = reply.has_place or asked.has_place or _can_hold_reply(listed)
    retrieved = bool(answered) and not any(message.side is Side.REPLY for message in messages)
    return _ItemMessages(
        tuple(messages), has_place and not retrieved, reply.unreadable or asked.unreadable, retrieved
    )


def _has_user_message(messages: Iterable[LoggedMessage]) -> bool:
    return any(message.side is Side.USER and message.text for message in messages)


def _read_message_list(source_item: Any, fields: Fields, depth: int = 0) -> tuple[list[LoggedMessage], str | None]:
    """Return the messages of the first list that contains a message of a user, and the path of this list.

    If there is no such list, return the first list that contains only replies, and its path.
    """
    replies: tuple[list[LoggedMessage], str | None] = [], None
    for path in select_reachable_paths(source_item, fields.turns):
        for value in find_values(source_item, (path,)):
            opened = parse_and_unify_json_text(value)
            leaf = find_first_name(source_item, _LEAF)
            opened = select_branch(opened, leaf) or opened if isinstance(opened, Unified) or leaf else opened
            if isinstance(opened, Unified) and depth < _MAX_DEPTH:
                nested, _ = _read_message_list(opened, fields, depth + 1)
                if _has_user_message(nested):
                    return nested, path
            messages = read_messages(opened, Side.UNKNOWN, fields) if isinstance(opened, list) else None
            if messages and _has_user_message(messages):
                return messages, path
            if messages and not replies[0] and path in _REPLY_LISTS:
                replies = [m for m in read_messages(opened, Side.REPLY, fields) or [] if m.side is Side.REPLY], path
    return replies


def _read_question(source_item: Any, fields: Fields, depth: int) -> tuple[Any, _ItemMessages]:
    """Return the value that contains the question, and the messages in this value."""
    for value in find_values(source_item, fields.user_text):
        opened = parse_and_unify_json_text(value)
        if isinstance(opened, Unified) and depth < _MAX_DEPTH:
            add_enveloped_keys(opened)
            reading = _collect_messages(opened, fields, depth + 1)
            if _has_user_message(reading.messages):
                return value, reading
        messages = read_messages(value, Side.USER, fields)
        if messages and _has_user_message(messages):
            return value, _ItemMessages(tuple(messages), isinstance(opened, list) and _has_reply_at_end(messages))
    return None, _ItemMessages()


def _has_reply_at_end(messages: list[LoggedMessage]) -> bool:
    spoken = [
        m for m in messages if m.side in (Side.USER, Side.REPLY, Side.CONTEXT) and (m.text.strip() or m.passages)
    ]
    return bool(spoken) and spoken[-1].side is Side.REPLY


def _is_question_listed(asked: Iterable[LoggedMessage], listed: list[LoggedMessage]) -> bool:
    """Return whether ``listed``, a list of messages, already contains the question from a separate field.

    ``asked`` contains the messages of this field.
    """
    texts = {message.text.strip() for message in listed if message.side is Side.USER}
    return all(message.text.strip() in texts for message in asked if message.side is Side.USER)


def _can_hold_reply(messages: Iterable[LoggedMessage]) -> bool:
    """Return whether a reply, if there is one, is in the list with these messages and not in another field."""
    sides = {message.side for message in messages}
    return Side.REPLY in sides or (Side.USER in sides and Side.UNKNOWN not in sides)


def _find_non_conversation_span_kind(source_item: Any) -> str | None:
    """Return the kind of the item if it is a span without a conversation. Return ``None`` for any other item."""
    if not isinstance(source_item, Unified) or "messages" in source_item:
        return None
    kinds = (to_snake_case(str(kind)) for kind in find_values(source_item, _SPAN_KINDS) if isinstance(kind, str))
    return next((kind for kind in kinds if kind in _SPANS_WITHOUT_CONVERSATION), None)


def _read_parallel_lists(source_item: Any, fields: Fields) -> tuple[LoggedMessage, ...]:
    """Return the messages of an item that has a list of questions and a list of answers.

    The result is empty for any other item. Raises `UnusableItem` if the lists have different lengths.
    """
    sides = [next(find_values(source_item, paths), None) for paths in (fields.user_text, fields.reply_text)]
    if not all(map(_is_list_of_texts, sides)):
        return ()
    questions, answers = cast("list[list[str | None]]", sides)
    if len(questions) - len(answers) not in (0, 1):
        counts = f"{plural(len(questions), 'question')} and {plural(len(answers), 'answer')}"
        raise UnusableItem(UnusableReason.UNPAIRED, f"questions and answers cannot be paired: {counts}")
    return tuple(
        LoggedMessage(side, replace_surrogates(text or ""))
        for question, answer in zip_longest(questions, answers)
        if question
        for side, text in ((Side.USER, question), (Side.REPLY, answer))
    )


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(
        text is None or isinstance(text, str) for text in cast("list[Any]", value)
    )


def _split_messages_into_turns(messages: Iterable[LoggedMessage]) -> Iterator[_TurnDraft]:
    """Yield the turns in ``messages``. The first user message after a reply starts a new turn."""
    draft: _TurnDraft | None = None
    before: tuple[str, ...] = ()
    is_answered = False
    for message in messages:
        if message.side is Side.USER and message.text:
            if draft is None or is_answered:
                if draft is not None:
                    yield draft
                draft, is_answered = _TurnDraft((), context=before), False
            draft = draft._replace(
                questions=(*draft.questions, message.text), places=(*draft.places, message.place)
            )
        elif message.side is Side.CONTEXT and draft is None:
            before = (*before, *message.passages)
        elif message.side is Side.REPLY and draft is not None:
            is_answered = True
            replies = (*draft.replies, message.text) if message.text else draft.replies
            draft = draft._replace(replies=replies, places=(*draft.places, message.place))
        if draft is not None and message.side is not Side.SILENT:
            draft = draft._replace(context=(*draft.context, *message.passages))
    if draft is not None:
        yield draft


def _build_turn(draft: _TurnDraft, source_item: Any, fields: Fields, *, is_last: bool) -> Turn:
    """Build a turn from its messages. For the last turn, also use fields of the item."""
    places = (*reversed(draft.places), *((source_item,) if is_last else ()))
    stored = next((texts for place in places if (texts := find_passages(place, fields.context))), ())
    return Turn(
        user_text=_SEPARATOR.join(draft.questions),
        reply_text=_SEPARATOR.join(draft.replies),
        citations=next((texts for place in places if (texts := find_source_names(place, fields.citations))), ()),
        lists_citations=any(has_any_path(place, fields.citations) for place in places),
        context=tuple(dict.fromkeys((*draft.context, *stored))),
        app_path=next(
            (name for place in (*places, source_item) if (name := find_first_name(place, fields.app_path))), None
        ),
        latency_ms=next((ms for place in places if (ms := _read_latency_ms(place, fields)) is not None), None),
        is_question=_is_reply_marked_as_question(places, fields),
        feedback=next((feedback for place in places if (feedback := _read_feedback(place, fields))), None),
    )


def _is_reply_marked_as_question(places: tuple[Any, ...], fields: Fields) -> bool | None:
    """Return whether the source marks the reply as a question to the user.

    Return ``None`` if the source does not mark this reply.
    """
    flags = [
        is_flag_set(place, fields.is_question)
        for place in places
        if [*find_flattened_values(place, fields.is_question)]
    ]
    return any(flags) if flags else None


def _read_latency_ms(place: Any, fields: Fields) -> float | None:
    milliseconds = find_first_non_negative_number(place, fields.latency_ms)
    if milliseconds is not None:
        return milliseconds
    seconds = find_first_non_negative_number(place, fields.latency_s)
    return None if seconds is None else seconds * 1000


def _read_feedback(place: Any, fields: Fields) -> Feedback | None:
    thumb = find_thumb(place, fields.thumb)
    comment = next((text for text in find_values(place, fields.comment) if isinstance(text, str)), "")
    return Feedback(thumb=thumb, comment=replace_surrogates(comment)) if thumb is not None else None


def _is_job(source_item: Any, fields: Fields) -> bool:
    """Return whether the item is an agent's job, which has an issue title and a field for the report."""
    return _find_text(source_item, fields.issue_title) != "" and has_any_path(source_item, fields.report)


def _find_text(source_item: Any, paths: tuple[str, ...]) -> str:
    return next((replace_surrogates(text) for text in find_values(source_item, paths) if isinstance(text, str)), "")


def _build_turn_from_job(source_item: Any, fields: Fields) -> Turn:
    """Return a finished job as a turn. The issue is the question, and the report is the reply."""
    issue = [_find_text(source_item, fields.issue_title), _find_text(source_item, fields.issue_body)]
    report_value = next((value for value in find_values(source_item, fields.report) if value not in ({}, [])), "")
    report = replace_surrogates(
        report_value if isinstance(report_value, str) else format_with_original_keys(report_value)
    )
    draft = _TurnDraft(
        (_SEPARATOR.join(part for part in issue if part),), (report,) if report else (), (source_item,)
    )
    lists = [
        cast("list[Any]", value) for value in find_values(source_item, fields.steps) if isinstance(value, list)
    ]
    path = next((path for steps in lists if (path := _parse_agent_path(steps)).steps), AgentPath())
    job_fields = {
        "is_report": True,
        "issue_url": find_first_name(source_item, fields.issue_url),
        "is_question": False,
    }
    return _build_turn(draft, source_item, fields, is_last=True).model_copy(
        update=job_fields | {"steps": path.steps, "hops": path.hops}
    )


def _parse_agent_path(steps: list[Any]) -> AgentPath:
    """Return an agent's steps. Messages do not count as steps if the conversation has no tool calls."""
    logged_steps = json.loads(format_with_original_keys(steps))
    known_steps = [cast("dict[str, Any]", step) for step in logged_steps if isinstance(step, dict)]
    path = read_trace(known_steps)
    if path is not None or any("content" in step or "role" in step for step in known_steps):
        return path or AgentPath()
    return AgentPath(tuple(map(build_step, known_steps)))


def format_first_paths(paths: tuple[str, ...]) -> str:
    """Return the first paths of a setting, as text for use in a message. An ellipsis replaces further paths."""
    text = ", ".join(paths[:3])
    return f"{text}, …" if len(paths) > 3 else text or "no path"  # noqa: PLR2004 - enough to know which setting
