"""Parse the lines of a hallucination log into entries. Lines that are not entries are quarantined."""

from __future__ import annotations

import math
from typing import Final, cast

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from monitors.json_path import collect_values
from monitors.records.base import Identifier
from monitors.records.logs import BlockedReply, HallucinationEntry, QuarantinedLine, QuarantineReason
from monitors.sources.logs.settings import NAMES, LogFields
from monitors.sources.logs.tail import LogLine
from monitors.sources.traffic.names import to_snake_case
from monitors.sources.traffic.settings import Fields, Paths
from monitors.sources.traffic.times import parse_time
from monitors.sources.traffic.turns import read_turns_or_empty
from monitors.sources.traffic.unify import unify_keys

_DEFAULT_FIELDS: Final = LogFields()
_TEXTS: Final = ("user_text", "blocked_reply")
_LISTS: Final = ("reasons", "unsupported_claims", "policy_ids")
_VERDICTS: Final = tuple(
    [(name, True) for name in NAMES["verdicts"]["wrong"]] + [(name, False) for name in NAMES["verdicts"]["right"]]
)
_STOPPED: Final = tuple(NAMES["verdicts"]["stopped"])
_HEARTBEAT_KEYS: Final = frozenset(NAMES["heartbeat"]["keys"])
_HEARTBEAT_WORDS: Final = frozenset(NAMES["heartbeat"]["words"])
_MAX_KEYS: Final = 5
_MAX_KEY_LENGTH: Final = 40
"""Maximum number of characters of a key that is stored for a quarantined line."""
_BLOCKED_REPLY: Final = BlockedReply.__pydantic_validator__
"""The validator of `BlockedReply`.

The parser calls this validator directly, because calls of ``model_validate`` would take 10 % of the parsing time.
"""
_BLANK = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"


def is_whole_entry(raw: bytes) -> bool:
    """Return whether a line without a line ending is already a complete JSON object."""
    text = _strip_blanks(raw)
    if not text.endswith(b"}"):
        return False
    try:
        return isinstance(from_json(text), dict)
    except ValueError:
        return False


def parse_line(
    log: Identifier, line: LogLine, fields: LogFields = _DEFAULT_FIELDS
) -> HallucinationEntry | QuarantinedLine | None:
    """Parse a line of a log into an entry, or into a quarantined line if it is not a valid entry. Never raises.

    Returns ``None`` for a line without an entry: a blank line, ``{}``, a heartbeat, or a reply that the log marks
    as right.

    ``fields`` contains the paths to the parts of an entry. All other keys are stored unchanged. Byte order marks,
    carriage returns, and zero bytes that a crash left around a line are removed.
    """
    reply = parse_reply(log, line, fields)
    if not isinstance(reply, BlockedReply):
        return reply
    return HallucinationEntry(
        id=compute_line_id(line), log=log, generation=line.generation, offset=line.offset, reply=reply
    )


def parse_reply(
    log: Identifier, line: LogLine, fields: LogFields = _DEFAULT_FIELDS
) -> BlockedReply | QuarantinedLine | None:
    """Parse a line as `parse_line` does, but return only the entry's reply, without the position of the line."""
    if line.length > len(line.raw):
        return _build_quarantined_line(log, line, QuarantineReason.TOO_LONG, f"line of {line.length:,} bytes")
    text = _strip_blanks(line.raw)
    if not text:
        return None
    try:
        value = cast("JsonValue", from_json(text))
    except ValueError as error:
        return _build_unreadable_line(log, line, text, error)
    if not isinstance(value, dict):
        return _build_quarantined_line(
            log, line, QuarantineReason.NOT_AN_OBJECT, f"expected a JSON object, found {_name_json_type(value)}"
        )
    reply = _build_reply(value, fields)
    if not reply.has_text:
        reply = _build_reply_from_nested_fields(cast("dict[str, JsonValue]", from_json(text)), fields)
    if _is_marked_right(reply):
        return None
    if reply.has_text:
        return reply
    logged = cast("dict[str, JsonValue]", from_json(text))
    if not logged or _is_heartbeat(reply.extra):
        return None
    keys = ", ".join(key[:_MAX_KEY_LENGTH] for key in list(logged)[:_MAX_KEYS])
    detail = (
        f"no question, reply or claim has a known field name. The keys are {keys}. Set the field names in "
        "hallucination_log.fields"
    )
    return _build_quarantined_line(log, line, QuarantineReason.NO_TEXT, detail)


def compute_line_id(line: LogLine) -> Identifier:
    """Return an id computed from the position and the content of a line.

    The same text at another position has another id.
    """
    return f"{line.generation}-{line.offset}-{line.sha256[:16]}"


def _strip_blanks(raw: bytes) -> bytes:
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def _build_reply(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    """Build the blocked reply from ``value``, the JSON object of an entry.

    If all parts of the entry are at their usual paths, the parts are validated in one step. Otherwise, each part is
    searched for separately.
    """
    if value.keys().isdisjoint(fields.others):
        values = {name: value.pop(path) for name, path in fields.usual if path in value}
        try:
            return _BLOCKED_REPLY.validate_python({**values, "extra": value})
        except ValidationError:
            value |= {path: values[name] for name, path in fields.usual if name in values}
    return _build_reply_field_by_field(value, fields)


def _build_reply_from_nested_fields(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    """Build the blocked reply from an entry whose parts are not at their usual paths.

    The names of the parts may be in camel case, or the parts may be in inner objects or in messages.
    """
    unified = unify_keys(value)
    flat: dict[str, JsonValue] = {}
    pending: list[dict[str, JsonValue]] = [unified] if isinstance(unified, dict) else []
    while pending:
        inner = pending.pop(0)
        for name, inner_value in inner.items():
            if isinstance(inner_value, dict):
                pending.append(inner_value)
            else:
                flat.setdefault(name, inner_value)
    reply = _build_reply_field_by_field(flat, fields)
    turns = () if reply.has_text else read_turns_or_empty(value, Fields())
    if turns:
        texts = {"user_text": turns[-1].user_text, "blocked_reply": turns[-1].reply_text}
        return BlockedReply.model_validate(reply.model_dump() | texts)
    return reply


def _is_marked_right(reply: BlockedReply) -> bool:
    """Return whether the log marks the reply as right, as in ``"hallucinated": false`` or ``"grounded": true``."""
    flags = {to_snake_case(name): value for name, value in reply.extra.items() if isinstance(value, bool)}
    for value in reply.extra.values():
        if isinstance(value, dict):
            flags |= {to_snake_case(name): inner for name, inner in value.items() if isinstance(inner, bool)}
    if not flags:
        return False
    for name, means_wrong in _VERDICTS:
        if name in flags:
            return flags[name] is not means_wrong
    is_let_through = any(flags.get(name) is False for name in _STOPPED)
    return is_let_through and not reply.reasons and not reply.unsupported_claims


def _is_heartbeat(extra: dict[str, JsonValue]) -> bool:
    """Return whether an entry is a heartbeat, which only shows that the application is running."""
    words = (value for name, value in extra.items() if to_snake_case(name) in _HEARTBEAT_KEYS)
    return not _HEARTBEAT_WORDS.isdisjoint(to_snake_case(word) for word in words if isinstance(word, str))


def _build_reply_field_by_field(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    values: dict[str, JsonValue] = {
        name: _convert_to_field_type(name, field_value)
        for name, paths in fields
        if (field_value := _pop_first_value(value, paths)) is not None
    }
    try:
        return BlockedReply.model_validate({**values, "extra": value})
    except ValidationError:
        return _build_partial_reply(
            values, {name: _replace_non_finite(field_value) for name, field_value in value.items()}
        )


def _pop_first_value(value: dict[str, JsonValue], paths: Paths) -> JsonValue:
    """Return the value at the first path that has a value. If this path is a top-level key, the key is removed."""
    for path in paths:
        candidates = [value.pop(path)] if path in value else collect_values(value, path) if "." in path else ()
        first_value = next((candidate for candidate in candidates if candidate is not None), None)
        if first_value is not None:
            return first_value
    return None


def _convert_to_field_type(name: str, value: JsonValue) -> JsonValue:
    """Convert ``value`` to the type of the field ``name``, if possible.

    For a field that is a list, a string becomes a list of one element. For a field that is a text, a list of
    strings is joined to one text.
    """
    if name in _LISTS and isinstance(value, str):
        return [value]
    if name in _TEXTS and isinstance(value, list):
        texts = [text for text in value if isinstance(text, str)]
        return "\n\n".join(texts) if texts and texts == value else value
    return value


def _build_partial_reply(values: dict[str, JsonValue], extra: dict[str, JsonValue]) -> BlockedReply:
    valid_fields: dict[str, object] = {}
    for name, value in values.items():
        if value is None:
            continue
        parsed_value = parse_time(value) or value if name == "ts" else value
        if _is_valid_field(name, parsed_value):
            valid_fields[name] = parsed_value
        else:
            extra[name] = _replace_non_finite(value)
    return BlockedReply.model_validate({**valid_fields, "extra": extra})


def _is_valid_field(name: str, value: object) -> bool:
    try:
        BlockedReply.model_validate({name: value})
    except ValidationError:
        return False
    return True


def _replace_non_finite(value: JsonValue) -> JsonValue:
    """Replace NaN and infinity, which some applications write into JSON, with strings such as ``nan``."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_replace_non_finite(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _replace_non_finite(inner) for name, inner in value.items()}
    return value


def _build_unreadable_line(log: Identifier, line: LogLine, text: bytes, error: ValueError) -> QuarantinedLine:
    """Build the quarantined line for a line that is not JSON.

    ``detail`` of the result contains the position of the error, but no text from the line.
    """
    try:
        text.decode()
    except UnicodeDecodeError as decode_error:
        return _build_quarantined_line(
            log, line, QuarantineReason.NOT_UTF8, f"not UTF-8 at byte {decode_error.start:,}"
        )
    return _build_quarantined_line(
        log, line, QuarantineReason.NOT_JSON, str(error).split("\n", maxsplit=1)[0][:200]
    )


def _build_quarantined_line(
    log: Identifier, line: LogLine, reason: QuarantineReason, detail: str
) -> QuarantinedLine:
    return QuarantinedLine(
        id=compute_line_id(line),
        log=log,
        generation=line.generation,
        offset=line.offset,
        length=line.length,
        sha256=line.sha256,
        reason=reason,
        detail=detail,
    )


def _name_json_type(value: JsonValue) -> str:
    match value:
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "boolean"
        case None:
            return "null"
        case _:
            return "number"
