"""The turns of a stored conversation, whatever shape it was kept in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from monitors.records.traffic import Feedback, Turn
from monitors.sources.item_values import (
    first_flag,
    first_name,
    first_number,
    first_text,
    first_thumb,
    found,
    text_of,
    texts,
)
from monitors.sources.traffic_fields import Fields

_JOINT = "\n\n"
"""Between messages that one side sent in a row."""
_PAIR = 2


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
    drafts = _drafts(item, fields)
    last = len(drafts) - 1
    return tuple(_turn(draft, item, fields, is_last=number == last) for number, draft in enumerate(drafts))


def holds_turns(item: Any, fields: Fields) -> bool:
    """Whether the item is a whole conversation, with its turns in a list; else it is one turn of one."""
    return any(isinstance(value, list) for value in found(item, fields.turns))


def _drafts(item: Any, fields: Fields) -> list[_Draft]:
    for value in found(item, fields.turns):
        listed = _flat(value)
        drafts = list(_listed(listed, fields)) if listed else []
        if drafts:
            return _with_last_reply(drafts, item, fields)
    asked = first_text(item, fields.user_text)
    if asked is None:
        return []
    replied = first_text(item, fields.reply_text)
    return [_Draft((asked,), (replied,) if replied else (), (item,))]


def _with_last_reply(drafts: list[_Draft], item: Any, fields: Fields) -> list[_Draft]:
    """Where the messages are what went in, the last reply stands beside them."""
    replied = first_text(item, fields.reply_text) if not drafts[-1].replied else None
    return [*drafts[:-1], drafts[-1]._replace(replied=(replied,))] if replied else drafts


def _flat(value: Any) -> list[Any]:
    """The messages; some tracers keep a batch of one list."""
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    if len(listed) == 1 and isinstance(listed[0], list):
        inner = cast("list[Any]", listed[0])
        return inner if all(isinstance(one, dict) for one in inner) else listed
    return listed


def _listed(listed: list[Any], fields: Fields) -> Iterator[_Draft]:
    pairs = [pair for one in listed if (pair := _pair(one, fields)) is not None]
    yield from pairs or _from_messages(listed, fields)


def _pair(one: Any, fields: Fields) -> _Draft | None:
    """A question with its reply: an object that holds both, or a list of two texts."""
    if isinstance(one, list) and len(cast("list[Any]", one)) == _PAIR:
        asked, replied = (text_of(side) for side in cast("list[Any]", one))
        return _Draft((asked,), (replied,) if replied else (), (one,)) if asked else None
    if not isinstance(one, dict) or _role(one, fields) in _roles(fields):
        return None
    asked, replied = first_text(one, fields.user_text), first_text(one, fields.reply_text)
    return _Draft((asked,), (replied,) if replied else (), (one,)) if asked else None


def _from_messages(listed: Iterable[Any], fields: Fields) -> Iterator[_Draft]:
    """A turn begins with what the user writes after a reply."""
    draft: _Draft | None = None
    for message in listed:
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
        citations=next((said for one in places if (said := texts(one, fields.citations))), ()),
        context=draft.context + next((said for one in places if (said := texts(one, fields.context))), ()),
        app_path=next((name for one in (*places, item) if (name := first_name(one, fields.app_path))), None),
        latency_ms=next((ms for one in places if (ms := _latency_ms(one, fields)) is not None), None),
        is_question=any(first_flag(one, fields.is_question) for one in places),
        feedback=next((pressed for one in places if (pressed := _feedback(one, fields))), None),
    )


def _latency_ms(one: Any, fields: Fields) -> float | None:
    milliseconds = first_number(one, fields.latency_ms)
    if milliseconds is not None:
        return milliseconds
    seconds = first_number(one, fields.latency_s)
    return None if seconds is None else seconds * 1000


def _feedback(one: Any, fields: Fields) -> Feedback | None:
    thumb = first_thumb(one, fields.thumb)
    return Feedback(thumb=thumb, comment=first_text(one, fields.comment) or "") if thumb is not None else None
