"""Parse lines of a hallucination log into entries; quarantine lines that are not entries."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final, cast

from pydantic import AwareDatetime, JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json

from monitors.json_path import collect_values
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
"""Called directly: at 50 MB/s the method around it costs a tenth of the time."""
_BLANK = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"


def is_whole_entry(raw: bytes) -> bool:
    """Whether a line without a line end is already a complete JSON object."""
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
    """Parse a line into an entry or a quarantined line; ``None`` for a blank one. Never raises on any bytes.

    ``fields`` give the paths of an entry's parts; other keys stay as they are. Byte order marks, carriage returns
    and the zero bytes that a crash leaves around a line are removed.
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
    """Like `parse_line`, but return only the entry's content, without its place."""
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
    """Return an id from the line's place and content: the same text at another place has another id."""
    return f"{line.generation}-{line.offset}-{line.sha256[:16]}"


def _strip_blanks(raw: bytes) -> bytes:
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def _build_reply(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    """Validate all fields at once where the entry has the default form, else search them one by one."""
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
    """Return the value at the first path that has one. A top-level key is removed from the entry."""
    for path in paths:
        candidates = [value.pop(path)] if path in value else collect_values(value, path) if "." in path else ()
        first_value = next((candidate for candidate in candidates if candidate is not None), None)
        if first_value is not None:
            return first_value
    return None


def _convert_form(name: str, value: JsonValue) -> JsonValue:
    """Turn a text into a list where a list is expected, and join a list where a text is expected."""
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
    """Parse ISO 8601 (UTC where no zone is given) or epoch seconds; ``None`` where it is neither."""
    try:
        return _TIME.validate_python(value)
    except ValidationError:
        pass
    try:
        return _TIME.validate_python(f"{value}Z") if isinstance(value, str) else None
    except ValidationError:
        return None


def _replace_non_finite(value: JsonValue) -> JsonValue:
    """Replace NaN and infinities, which some writers put into JSON, by their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_replace_non_finite(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _replace_non_finite(inner) for name, inner in value.items()}
    return value


def _quarantine_unreadable(log: Identifier, line: LogLine, text: bytes, error: ValueError) -> QuarantinedLine:
    """Quarantine an unparsable line with the reason and position, without quoting its content."""
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
