"""Lines of a hallucination log into entries; what is no entry goes aside, with its place."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final, cast

from pydantic import AwareDatetime, JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json

from monitors.json_path import values_at
from monitors.records.base import Identifier
from monitors.records.logs import BlockedReply, HallucinationEntry, QuarantinedLine, QuarantineReason
from monitors.sources.logs.settings import LogFields
from monitors.sources.logs.tail import LogLine
from monitors.sources.traffic.settings import Paths

_DEFAULT_FIELDS: Final = LogFields()
_TEXTS: Final = ("user_text", "blocked_reply")
_LISTS: Final = ("reasons", "unsupported_claims", "policy_ids")
_TIME: Final[TypeAdapter[AwareDatetime]] = TypeAdapter(AwareDatetime)
_BLOCKED_REPLY: Final = BlockedReply.__pydantic_validator__
"""At fifty megabytes a second the method around it costs a tenth."""
_BLANK = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"


def is_whole_entry(raw: bytes) -> bool:
    """Whether a line without its end is an object already: nothing that follows could make it another one."""
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
    """An entry, a line to put aside, or ``None`` for a blank one. Never raises on any bytes.

    ``fields`` say where in an entry its parts lie; what they do not name stays as it is. Byte order marks, carriage
    returns and the zero bytes that a crash leaves around a line are no part of it.
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
    """As `read_line`, what the entry says alone, without its place."""
    if line.length > len(line.raw):
        return _quarantine(log, line, QuarantineReason.TOO_LONG, f"a line of {line.length:,} bytes")
    text = _strip_blanks(line.raw)
    if not text:
        return None
    try:
        value = cast("JsonValue", from_json(text))
    except ValueError as error:
        return _quarantine_unreadable(log, line, text, error)
    if not isinstance(value, dict):
        return _quarantine(
            log, line, QuarantineReason.NOT_AN_OBJECT, f"a JSON {_name_json_type(value)}, expected an object"
        )
    return _build_reply(value, fields)


def compute_line_id(line: LogLine) -> Identifier:
    """The same for the same line at the same place, another for the same text elsewhere."""
    return f"{line.generation}-{line.offset}-{line.sha256[:16]}"


def _strip_blanks(raw: bytes) -> bytes:
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def _build_reply(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    """All fields at once where the entry is in the usual form, else one by one."""
    if value.keys().isdisjoint(fields.others):
        values = {name: value.pop(path) for name, path in fields.usual if path in value}
        try:
            return _BLOCKED_REPLY.validate_python({**values, "extra": value})
        except ValidationError:
            value |= {path: values[name] for name, path in fields.usual if name in values}
    return _search_fields(value, fields)


def _search_fields(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    values: dict[str, JsonValue] = {
        name: _convert_form(name, field_value)
        for name, paths in fields
        if (field_value := _take_first_value(value, paths)) is not None
    }
    try:
        return BlockedReply.model_validate({**values, "extra": value})
    except ValidationError:
        return _build_partial_reply(
            values, {name: _replace_non_finite(field_value) for name, field_value in value.items()}
        )


def _take_first_value(value: dict[str, JsonValue], paths: Paths) -> JsonValue:
    """What stands at the first path that leads to something. A name of the entry's own is taken out of it."""
    for path in paths:
        candidates = [value.pop(path)] if path in value else values_at(value, path) if "." in path else ()
        first_value = next((candidate for candidate in candidates if candidate is not None), None)
        if first_value is not None:
            return first_value
    return None


def _convert_form(name: str, value: JsonValue) -> JsonValue:
    """One text where a list of texts belongs is a list of one; several where one belongs are joined."""
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
        parsed_value = _parse_time(value) or value if name == "ts" else value
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


def _parse_time(value: JsonValue) -> datetime | None:
    """ISO 8601 with a zone; without one it is UTC, as the applications that we know write it. Or epoch seconds."""
    try:
        return _TIME.validate_python(value)
    except ValidationError:
        pass
    try:
        return _TIME.validate_python(f"{value}Z") if isinstance(value, str) else None
    except ValidationError:
        return None


def _replace_non_finite(value: JsonValue) -> JsonValue:
    """NaN and infinities, which some writers put into JSON, become their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_replace_non_finite(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _replace_non_finite(inner) for name, inner in value.items()}
    return value


def _quarantine_unreadable(log: Identifier, line: LogLine, text: bytes, error: ValueError) -> QuarantinedLine:
    """Why, and where in the line; never what stands there."""
    try:
        text.decode()
    except UnicodeDecodeError as decode_error:
        return _quarantine(log, line, QuarantineReason.NOT_UTF8, f"not UTF-8 at byte {decode_error.start:,}")
    return _quarantine(log, line, QuarantineReason.NOT_JSON, str(error).split("\n", maxsplit=1)[0][:200])


def _quarantine(log: Identifier, line: LogLine, reason: QuarantineReason, detail: str) -> QuarantinedLine:
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
