"""Read the messages of an item in the formats of common loggers.

Each message has a side: the user, the reply, the context of the next reply, or unknown. Content that the user does
not see, such as system prompts, reasoning and tool calls, has the side "silent". Silent content is omitted from all
texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any, Final, NamedTuple, cast

from monitors.json_path import collect_values
from monitors.sources.traffic.names import get_codes, get_names, to_snake_case
from monitors.sources.traffic.passages import is_document, read_tool_result
from monitors.sources.traffic.settings import Fields
from monitors.sources.traffic.unify import Unified, parse_and_unify_json_text, select_branch
from monitors.sources.traffic.values import (
    find_names,
    find_values,
    has_any_path,
    is_yes,
    replace_surrogates,
    select_reachable_paths,
)

_SILENT_ROLES: Final = frozenset(get_names("silent", "roles"))
_SILENT_PARTS: Final = frozenset(get_names("silent", "parts"))
_FLAGS: Final = frozenset(get_names("silent", "flags"))
_CHANNELS: Final = frozenset(get_names("silent", "channels"))
_TOOL_WORDS: Final = get_names("silent", "tool_words")
_FOLDED: Final = get_names("silent", "folded")
_PASSAGE_PARTS: Final = frozenset(get_names("passages", "parts"))
_PASSAGE_VALUES: Final = get_names("passages", "values")
_NESTED_REPLY_KEYS: Final = get_names("inside", "reply")
_ALTERNATIVES: Final = frozenset(get_names("inside", "alternatives"))
_ENDED: Final = frozenset(get_names("inside", "ended"))
_ENVELOPES: Final = frozenset(get_names("inside", "envelopes"))
_REFUSALS: Final = get_names("inside", "refusals")
_USER_FLAGS: Final = get_names("sides", "user")
_REPLY_FLAGS: Final = get_names("sides", "reply")
_USER_KEYS: Final = get_names("sides", "user_keys")
_REPLY_KEYS: Final = get_names("sides", "reply_keys")
_REPLY_ENDINGS: Final = get_names("sides", "reply_endings")
_CODES: Final = get_codes("sides", "numbers")
_SIDE_KEYS: Final = frozenset(
    path.split(".")[0] for path in (*_USER_FLAGS, *_REPLY_FLAGS, *_USER_KEYS, *_REPLY_KEYS, *_CODES)
)
_THINKING_TAG: Final = re.compile(rf"<(/?)({'|'.join(get_names('silent', 'tags'))})\b[^<>]*>", re.IGNORECASE)
_HTML_TAGS: Final = frozenset(get_names("silent", "html_tags"))
_BLOCK_TAGS: Final = frozenset(get_names("silent", "html_blocks"))
_HTML: Final = re.compile(
    r"\A\s*<([a-z][a-z0-9]*)\b[^<>]*>.*(?:</[a-z][a-z0-9]*>|<br\s*/?>)\s*\Z", re.DOTALL | re.IGNORECASE
)
_SENTENCE_END: Final = re.compile(r"[.!?:…।。][\"')\]*_]*\Z")
_ROLE_AFFIX: Final = re.compile(r"^(?:gen_ai|role)[._]|[_ -]?(?:message|chunk|msg)$")
_MAX_DEPTH: Final = 8
_MAX_KEY_LENGTH: Final = 40
PAIR_LENGTH: Final = 2


class Side(StrEnum):
    """The author or the purpose of a message.

    ``CONTEXT`` is text for the next reply, such as a tool result. ``SILENT`` is content that users do not see, such
    as a system prompt.
    """

    USER = "user"
    REPLY = "reply"
    CONTEXT = "context"
    SILENT = "silent"
    UNKNOWN = "unknown"


class LoggedMessage(NamedTuple):
    """One message: its side, the text that users see, its passages, and the logged object."""

    side: Side
    text: str = ""
    passages: tuple[str, ...] = ()
    place: Any = None


class _MessageContent(NamedTuple):
    """The texts and passages that were read from the parts of one message.

    ``silent`` is true if at least one of the parts is hidden from users.
    """

    texts: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    silent: bool = False


def read_messages(value: Any, default: Side, fields: Fields, depth: int = 0) -> list[LoggedMessage] | None:
    """Return the messages in a value, or ``None`` if the format of the value is unknown.

    A message without a role gets the side ``default``. A message may have no text.
    """
    if depth > _MAX_DEPTH or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _read_text(value, default, fields, depth)
    if isinstance(value, int | float):
        return [LoggedMessage(default, str(value))]
    if value in (None, [], {}):
        return [LoggedMessage(default)] if default is Side.REPLY else []
    if isinstance(value, list):
        return _read_list(cast("list[Any]", value), default, fields, depth)
    return _read_object(value, default, fields, depth) if isinstance(value, Unified) else None


def _read_text(text: str, default: Side, fields: Fields, depth: int) -> list[LoggedMessage] | None:
    parsed = parse_and_unify_json_text(text)
    if parsed is not text and not (isinstance(parsed, Unified) and parsed.get("error")):
        messages = read_messages(parsed, default, fields, depth + 1)
        if messages and (isinstance(parsed, list) or any(m.text or m.side is not default for m in messages)):
            return messages
    return [LoggedMessage(default, extract_visible_text(text, default))]


def _read_list(values: list[Any], default: Side, fields: Fields, depth: int) -> list[LoggedMessage] | None:
    if len(values) == 1 and isinstance(values[0], list):
        inner = cast("list[Any]", values[0])
        if not is_pair_of_texts(inner):
            return read_messages(inner, default, fields, depth + 1)
    branch = select_branch(values, None) or values
    if all(is_document(value) for value in branch) and default is Side.REPLY:
        return [
            LoggedMessage(
                Side.CONTEXT, passages=tuple(text for value in branch for text in read_tool_result(value))
            )
        ]
    if default is Side.REPLY and (chunks := [text for value in branch for text in _iterate_streamed_text(value)]):
        return [LoggedMessage(default, extract_visible_text("".join(chunks), default))]
    if all(
        isinstance(value, str) or (isinstance(value, Unified) and _is_message_part(value, fields))
        for value in branch
    ):
        content = _read_content(branch, default)
        return [LoggedMessage(default, _join_texts(content.texts), content.passages, branch)]
    in_pairs = any(isinstance(value, Unified) and _is_question_with_reply(value, fields) for value in branch)
    return [
        message
        for value in branch
        for message in _read_list_element(value, default, fields, depth, in_pairs=in_pairs)
    ]


def _iterate_streamed_text(value: Any) -> Iterator[str]:
    """Yield the text of one piece of a streamed reply."""
    for path in ("delta.content", "delta.text", "choices.0.delta.content"):
        yield from (text for text in collect_values(value, path) if isinstance(text, str))


def _read_list_element(
    value: Any, default: Side, fields: Fields, depth: int, *, in_pairs: bool = False
) -> Iterator[LoggedMessage]:
    """Yield the messages in an element of a list: one message, or a question with its reply.

    ``in_pairs`` is true if other elements of the list are questions with their replies. If so, an element that
    contains only a question counts as a question without a reply.
    """
    if isinstance(value, list):
        yield from _read_pair(cast("list[Any]", value), fields)
        return
    value = parse_and_unify_json_text(value)
    if not isinstance(value, Unified):
        return
    side = read_side(value, fields)
    if side is None and (
        _is_question_with_reply(value, fields) or (in_pairs and has_any_path(value, fields.user_text))
    ):
        yield from _read_keyed_pair(value, fields, depth)
        return
    if side is None and _is_message_part(value, fields):
        content = _read_content([value], default)
        side = default if content.texts else Side.CONTEXT if content.passages else Side.SILENT
        yield LoggedMessage(side, _join_texts(content.texts), content.passages, value)
        return
    if side is None and default is Side.REPLY and (inside := _read_nested_reply(value, fields, depth + 1)):
        yield from inside
        return
    if side is None and default is Side.USER and has_text(value, fields):
        side = Side.USER
    yield _read_message(value, side or Side.UNKNOWN, fields)
    children = value.get("children")
    if isinstance(children, list) and children and isinstance(children[-1], Unified):
        yield from _read_list_element(children[-1], default, fields, depth + 1)


def is_pair_of_texts(value: Any) -> bool:
    """Return whether a value is a question and its reply in Gradio's format: a list of two strings or nulls."""
    return (
        isinstance(value, list)
        and len(cast("list[Any]", value)) == PAIR_LENGTH
        and all(text is None or isinstance(text, str) for text in cast("list[Any]", value))
    )


def _read_pair(pair: list[Any], fields: Fields) -> Iterator[LoggedMessage]:
    """Yield the messages in a list of two texts: usually a question and its reply.

    If the first text is a role, as LangChain writes it, the second text is the only message.
    """
    if len(pair) != PAIR_LENGTH:
        return
    texts = [_join_texts(_read_content(side, Side.USER).texts) for side in pair]
    side = _find_side_of_role(texts[0].lower(), fields)
    if side is not None and texts[1]:
        yield LoggedMessage(side, extract_visible_text(texts[1], side), place=pair)
    elif texts[0]:
        yield LoggedMessage(Side.USER, texts[0], place=pair)
        yield LoggedMessage(Side.REPLY, extract_visible_text(texts[1], Side.REPLY), place=pair)


def _is_question_with_reply(value: Unified, fields: Fields) -> bool:
    question = next(find_values(value, fields.user_text), None)
    return question is not None and (has_any_path(value, fields.reply_text) or has_any_path(value, fields.error))


def _read_keyed_pair(value: Unified, fields: Fields, depth: int) -> Iterator[LoggedMessage]:
    question = next(find_values(value, fields.user_text), None)
    asked = [
        m for m in read_messages(question, Side.USER, fields, depth + 1) or [] if m.side is Side.USER and m.text
    ]
    if not asked:
        return
    yield asked[-1]._replace(place=value)
    yield from (message._replace(place=value) for message in read_reply(value, fields, question, depth).messages)


class Reply(NamedTuple):
    """The messages of a reply. ``has_place`` is true if the item has a field for a reply, even an empty one.

    ``unreadable`` is the path of a value whose format is unknown.
    """

    messages: tuple[LoggedMessage, ...] = ()
    has_place: bool = False
    unreadable: str | None = None


def read_reply(source_item: Any, fields: Fields, question: Any, depth: int = 0) -> Reply:
    """Return the first reply in the item that has a text. If there is no such reply, return a reply without a text.

    If a field contains a whole conversation, the messages after the user's last message are the reply.
    """
    empty, unreadable = Reply(), None
    for path in select_reachable_paths(source_item, fields.reply_text):
        for value in find_values(source_item, (path,)):
            if value is question or (path == "message" and not isinstance(value, Unified)):
                continue
            first = _select_first_if_alternatives(path, value)
            messages = read_messages(first, Side.REPLY, fields, depth + 1)
            if messages is None:
                unreadable = unreadable or f"{path} ({_describe_keys_or_type(value)})"
                continue
            last_asked = max((n for n, m in enumerate(messages) if m.side is Side.USER and m.text), default=-1)
            messages = messages[last_asked + 1 :]
            if any(message.side is Side.REPLY and message.text.strip() for message in messages):
                return Reply(tuple(messages), has_place=True)
            if any(message.side is Side.REPLY for message in messages) and not empty.has_place:
                empty = Reply(tuple(messages), has_place=True)
            elif messages and not empty.messages:
                empty = empty._replace(messages=tuple(messages))
    if unreadable and not empty.has_place:
        return empty._replace(unreadable=unreadable)
    return empty._replace(has_place=empty.has_place or _has_empty_reply_field(source_item, fields, question))


def _describe_keys_or_type(value: Any) -> str:
    """Return the keys or the type of a value, without its content."""
    if isinstance(value, Unified):
        return f"an object with the keys {', '.join(key[:_MAX_KEY_LENGTH] for key in list(value)[:3])}"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"


def _has_empty_reply_field(source_item: Any, fields: Fields, question: Any) -> bool:
    """Return whether the item has a field for a reply, and the field is empty."""
    return any(
        value in ("", [], {}) or (value is None and path not in _ENVELOPES)
        for path in select_reachable_paths(source_item, fields.reply_text)
        for value in collect_values(source_item, path)
        if value is not question
    )


def _read_object(value: Unified, default: Side, fields: Fields, depth: int) -> list[LoggedMessage] | None:
    branch = select_branch(value, None)
    if branch is not None:
        return _read_list(branch, default, fields, depth + 1)
    side = read_side(value, fields)
    if side is not None and side is not Side.UNKNOWN and has_text(value, fields):
        return list(_read_list_element(value, default, fields, depth))
    if default is Side.REPLY and is_document(value):
        return [LoggedMessage(Side.CONTEXT, passages=tuple(read_tool_result(value)))]
    if side is None and _is_message_part(value, fields):
        content = _read_content([value], default)
        return [LoggedMessage(default, _join_texts(content.texts), content.passages, value)]
    if default is Side.REPLY:
        return _read_nested_reply(value, fields, depth)
    return None


def _read_nested_reply(value: Unified, fields: Fields, depth: int) -> list[LoggedMessage] | None:
    """Return the reply in an inner object such as ``choices``, or ``None`` if the object has no known key."""
    messages: list[LoggedMessage] | None = None
    for name in select_reachable_paths(value, _NESTED_REPLY_KEYS):
        for inner in find_values(value, (name,)):
            if name == "message" and isinstance(inner, str) and depth:
                continue  # often the text of an error
            inner_messages = read_messages(
                _select_first_if_alternatives(name, inner), Side.REPLY, fields, depth + 1
            )
            if inner_messages and any(message.text for message in inner_messages if message.side is Side.REPLY):
                tools = _read_content([value], Side.REPLY).passages if "type" in value else ()
                return [*([LoggedMessage(Side.CONTEXT, passages=tools)] if tools else []), *inner_messages]
            messages = messages or inner_messages
    is_empty = any(name in value for name in _NESTED_REPLY_KEYS) and all(
        value.get(name) in (None, "", [], {}) for name in _NESTED_REPLY_KEYS if name in value
    )
    if messages is None and (is_empty or _ENDED & value.keys() or value.get("error")):
        return [LoggedMessage(Side.REPLY, place=value)]
    return messages


def _select_first_if_alternatives(name: str, value: Any) -> Any:
    """Return the first reply if ``value`` is a list of alternative replies.

    Users saw only the first one. Any other value is returned unchanged.
    """
    alternatives = cast("list[Any]", value) if isinstance(value, list) and name in _ALTERNATIVES else []
    return alternatives[0] if alternatives and not isinstance(alternatives[0], str) else cast("Any", value)


def read_side(message: Unified, fields: Fields, paths: tuple[str, ...] | None = None) -> Side | None:
    """Return the side of a message according to its role, or ``None`` if the message has no role.

    ``paths`` lead to the role. By default, they are the paths in the settings.
    """
    if not _SIDE_KEYS.isdisjoint(message) and (side := _read_side_without_role(message)) is not None:
        return side
    inner = message.get("message")
    if isinstance(inner, Unified) and (inner_side := read_side(inner, fields, paths)):
        return inner_side
    for name in find_names(message, fields.role if paths is None else paths):
        side = _find_side_of_role(to_snake_case(name), fields) or _find_side_of_role(normalise_role(name), fields)
        if side is not None:
            return side
    has_role = any(isinstance(message.get(key), str) for key in ("role", "sender", "from", "author", "speaker"))
    return Side.UNKNOWN if has_role else None


def _read_side_without_role(message: Unified) -> Side | None:
    """Return the side of a message that has no role, or ``None`` if the side is unknown.

    The side is derived from a flag, from a code, or from a key that only messages of one side have.
    """
    for flags, side, other in ((_USER_FLAGS, Side.USER, Side.REPLY), (_REPLY_FLAGS, Side.REPLY, Side.USER)):
        flag = next((message[name] for name in flags if message.get(name) not in (None, "")), None)
        if flag is not None and "role" not in message:
            return side if is_yes(flag) else other
    for keys, side in ((_USER_KEYS, Side.USER), (_REPLY_KEYS, Side.REPLY)):
        if next(find_values(message, keys), None) is not None:
            return side
    for path, codes in _CODES.items():
        code = next((codes[name] for name in find_names(message, (path,)) if name in codes), None)
        if code is not None:
            return Side(code)
    return None


@lru_cache(maxsize=1024)
def normalise_role(name: str) -> str:
    """Return a role in lower case and without a logger's additions: ``HumanMessage`` becomes ``human``."""
    role = to_snake_case(name).strip()
    for _ in range(2):
        role = _ROLE_AFFIX.sub("", role).strip("_-. ") or role
    return role


def _find_side_of_role(role: str, fields: Fields) -> Side | None:
    if role in fields.user_roles:
        return Side.USER
    if role in fields.reply_roles:
        return Side.REPLY
    if role in fields.context_roles or role in _PASSAGE_PARTS:
        return Side.CONTEXT
    if role.endswith(_REPLY_ENDINGS):
        return Side.REPLY
    return Side.SILENT if role in _SILENT_ROLES or role in _SILENT_PARTS else None


def has_text(value: Unified, fields: Fields) -> bool:
    """Return whether an object has one of these fields: the text of a message, a refusal, or tool calls."""
    return has_any_path(value, fields.text) or has_any_path(value, _REFUSALS) or "tool_calls" in value


def _read_message(value: Unified, side: Side, fields: Fields) -> LoggedMessage:
    inner = value.get("message")
    if isinstance(inner, Unified):
        return _read_message(inner, side, fields)
    if is_hidden(value):
        return LoggedMessage(Side.SILENT, place=value)
    content = _MessageContent()
    for piece in find_values(value, fields.text):
        content = _read_content(piece, side)
        if content.texts or content.passages or content.silent:
            break
    if side is Side.REPLY and not content.texts:
        content = content._replace(texts=tuple(t for t in find_values(value, _REFUSALS) if isinstance(t, str)))
    folded = " ".join(find_names(value, _FOLDED)).lower()
    if side is Side.CONTEXT or (folded and any(word in folded for word in _TOOL_WORDS)):
        raw = next(find_values(value, (*_PASSAGE_VALUES, *fields.text)), None)
        return LoggedMessage(Side.CONTEXT, passages=content.passages or tuple(read_tool_result(raw)), place=value)
    if folded:
        return LoggedMessage(Side.SILENT, place=value)
    if side is Side.USER and content.passages and not content.texts:
        side = Side.CONTEXT  # the result of a tool, to which some providers give the user's role
    return LoggedMessage(side, extract_visible_text(_join_texts(content.texts), side), content.passages, value)


def is_hidden(message: Unified) -> bool:
    """Return whether users did not see a message, for example a thought or a private note."""
    channel = message.get("channel")
    flags = () if _FLAGS.isdisjoint(message) else _FLAGS & message.keys()
    return any(message[flag] is True for flag in flags) or (isinstance(channel, str) and channel in _CHANNELS)


def _is_message_part(value: Unified, fields: Fields) -> bool:
    """Return whether an object is a part of a message rather than a whole message.

    A part has no author, and has a known type or a text.
    """
    authors = _select_author_paths(fields.role)
    if read_side(value, fields, authors) is not None:
        return False
    if _find_part_kind(value) is not None:
        return True
    return isinstance(value.get("text"), str) and not is_document(value) and not has_any_path(value, authors)


@lru_cache(maxsize=64)
def _select_author_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return only the ``paths`` that lead to the author of a whole message.

    Paths that also occur in parts of a message, such as types and names, are removed.
    """
    return tuple(path for path in paths if path not in ("type", "kind", "name", "event", "message_type", "id.-1"))


def _find_part_kind(value: Unified) -> str | None:
    """Return the kind of a part, such as ``tool_result``, or ``None`` if the object has no known kind."""
    for key in ("type", "part_kind", "kind", "content_type"):
        kind = value.get(key)
        if isinstance(kind, str):
            name = to_snake_case(kind.replace("-", "_"))
            if name in _TEXT_PARTS or name in _SILENT_PARTS or name in _PASSAGE_PARTS:
                return name
            if name.startswith(("tool_", "dynamic_tool")):
                return "tool_part"
    return next(
        (key for key in value if key in _PASSAGE_PARTS or (key in _SILENT_PARTS and key in _KEYED_PARTS)), None
    )


_TEXT_PARTS: Final = frozenset(get_names("silent", "text_parts"))
_KEYED_PARTS: Final = frozenset(get_names("silent", "keyed_parts"))


def _read_content(content: Any, side: Side, depth: int = 0) -> _MessageContent:
    """Return the texts in the content of a message, in order, and the passages in its parts."""
    if isinstance(content, str):
        text = content
        if depth == 0 and (parsed := parse_and_unify_json_text(content)) is not content:
            inner = _read_content(parsed, side, 1) if _has_message_parts(parsed) else _MessageContent()
            if inner.texts or inner.passages:
                return inner
        return _MessageContent((replace_surrogates(text),)) if text else _MessageContent()
    if isinstance(content, list) and depth < _MAX_DEPTH:
        return _merge_contents([_read_content(piece, side, depth + 1) for piece in cast("list[Any]", content)])
    if isinstance(content, Unified) and depth < _MAX_DEPTH:
        return _read_part(content, side, depth)
    return (
        _MessageContent((str(content),))
        if isinstance(content, int) and not isinstance(content, bool)
        else _MessageContent()
    )


def _has_message_parts(value: Any) -> bool:
    """Return whether all elements of a JSON value look like parts of a message.

    If not, the JSON is treated as a text that a person wrote.
    """
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(parts) and all(
        isinstance(piece, Unified) and (_find_part_kind(piece) is not None or set(piece) & {"content", "text"})
        for piece in parts
    )


def _read_part(piece: Unified, side: Side, depth: int) -> _MessageContent:
    kind = _find_part_kind(piece)
    if is_hidden(piece):
        return _MessageContent(silent=True)
    if kind in _PASSAGE_PARTS or kind == "tool_part":
        held = piece[kind] if kind in piece else next(find_values(piece, _PASSAGE_VALUES), None)
        if kind == "tool_part":
            held = next(find_values(piece, ("output", "result", "tool_invocation.result")), None)
        return _MessageContent(passages=tuple(read_tool_result(held)), silent=True)
    if kind in _SILENT_PARTS:
        held = next(find_values(piece, ("result", "output", "results", "tool_invocation.result")), None)
        return _MessageContent(passages=tuple(read_tool_result(held)), silent=True)
    if isinstance(piece.get("refusal"), str):
        return _MessageContent((piece["refusal"],))
    for name in (
        "text",
        "content",
        "value",
        "message",
        "parts",
        "output_text",
        "kwargs",
        "transcript",
        "items",
        "body",
    ):
        inner = _read_content(piece[name], side, depth + 1) if piece.get(name) else _MessageContent()
        if inner.texts or inner.passages:
            return inner
    return _MessageContent()


def _merge_contents(contents: Iterable[_MessageContent]) -> _MessageContent:
    """Join the texts of the parts of a message. Texts before and after a tool call stay separate."""
    texts: list[str] = []
    passages: list[str] = []
    is_apart, silent = True, False
    for content in contents:
        for text in content.texts:
            apart = is_apart or (_SENTENCE_END.search(texts[-1]) is not None and not text[:1].isspace())
            if apart:
                texts.append(text)
            else:
                texts[-1] += text
            is_apart = False
        passages += content.passages
        is_apart = is_apart or not content.texts
        silent = silent or content.silent
    return _MessageContent(tuple(texts), tuple(passages), silent)


def _join_texts(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text)


def extract_visible_text(text: str, side: Side) -> str:
    """Return a text as users see it, without the reasoning of a model and without HTML tags."""
    text = replace_surrogates(text)
    if side is Side.REPLY and "<" in text:
        text = _remove_thinking(text)
    return extract_text_if_html(text) if "</" in text or "<br" in text else text


def _remove_thinking(text: str) -> str:
    """Return a text without the parts in thinking tags.

    If a tag at the start of the text is not closed, everything after the tag is removed. If there is only a closing
    tag, everything before this tag is removed.
    """
    pieces: list[str] = []
    opened, start, position = "", 0, 0
    for tag in _THINKING_TAG.finditer(text):
        if not tag[1] and not opened:
            pieces.append(text[position : tag.start()])
            opened, start = tag[2].lower(), tag.start()
        elif tag[1] and (opened == tag[2].lower() or (not opened and position == 0)):
            pieces = pieces if opened else []
            opened, position = "", tag.end()
    if position == 0 and not opened:
        return text
    if opened and "".join(pieces).strip():
        pieces[-1] += text[start:]
    elif not opened:
        pieces.append(text[position:])
    return "\n".join(pieces).strip()


class _HtmlText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.add(tag)
        if tag in _BLOCK_TAGS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCK_TAGS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def extract_text_if_html(text: str) -> str:
    """Return the text of HTML that a chat product stored as a message. Any other text is returned unchanged."""
    match = _HTML.match(text)
    if match is None or match[1].lower() not in _HTML_TAGS:
        return text
    parser = _HtmlText()
    parser.feed(text)
    parser.close()
    if not parser.tags <= _HTML_TAGS:
        return text
    lines = (" ".join(line.split()) for line in "".join(parser.pieces).splitlines())
    return "\n".join(line for line in lines if line) or text
