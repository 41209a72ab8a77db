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

_USUAL: Final = LogFields()
_TEXTS: Final = ("user_text", "blocked_reply")
_LISTS: Final = ("reasons", "unsupported_claims", "policy_ids")
_TIME: Final[TypeAdapter[AwareDatetime]] = TypeAdapter(AwareDatetime)
_BLOCKED_REPLY: Final = BlockedReply.__pydantic_validator__
"""At fifty megabytes a second the method around it costs a tenth."""
_BLANK = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"


def is_whole_entry(raw: bytes) -> bool:
    """Whether a line without its end is an object already: nothing that follows could make it another one."""
    text = _bare(raw)
    if not text.endswith(b"}"):
        return False
    try:
        return isinstance(from_json(text), dict)
    except ValueError:
        return False


def read_line(
    log: Identifier, line: LogLine, fields: LogFields = _USUAL
) -> HallucinationEntry | QuarantinedLine | None:
    """An entry, a line to put aside, or ``None`` for a blank one. Never raises on any bytes.

    ``fields`` say where in an entry its parts lie; what they do not name stays as it is. Byte order marks, carriage
    returns and the zero bytes that a crash leaves around a line are no part of it.
    """
    reply = read_reply(log, line, fields)
    if not isinstance(reply, BlockedReply):
        return reply
    return HallucinationEntry(
        id=line_id(line), log=log, generation=line.generation, offset=line.offset, reply=reply
    )


def read_reply(log: Identifier, line: LogLine, fields: LogFields = _USUAL) -> BlockedReply | QuarantinedLine | None:
    """As `read_line`, what the entry says alone, without its place."""
    if line.length > len(line.raw):
        return _aside(log, line, QuarantineReason.TOO_LONG, f"a line of {line.length:,} bytes")
    text = _bare(line.raw)
    if not text:
        return None
    try:
        value = cast("JsonValue", from_json(text))
    except ValueError as error:
        return _unreadable(log, line, text, error)
    if not isinstance(value, dict):
        return _aside(log, line, QuarantineReason.NOT_AN_OBJECT, f"a JSON {_kind(value)}, expected an object")
    return _reply(value, fields)


def line_id(line: LogLine) -> Identifier:
    """The same for the same line at the same place, another for the same text elsewhere."""
    return f"{line.generation}-{line.offset}-{line.sha256[:16]}"


def _bare(raw: bytes) -> bytes:
    return raw.strip(_BLANK).removeprefix(_BOM).strip(_BLANK)


def _reply(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    """All fields at once where the entry is in the usual form, else one by one."""
    if value.keys().isdisjoint(fields.others):
        known = {name: value.pop(path) for name, path in fields.usual if path in value}
        try:
            return _BLOCKED_REPLY.validate_python({**known, "extra": value})
        except ValidationError:
            value |= {path: known[name] for name, path in fields.usual if name in known}
    return _searched(value, fields)


def _searched(value: dict[str, JsonValue], fields: LogFields) -> BlockedReply:
    known: dict[str, JsonValue] = {
        name: _in_its_form(name, given) for name, paths in fields if (given := _taken(value, paths)) is not None
    }
    try:
        return BlockedReply.model_validate({**known, "extra": value})
    except ValidationError:
        return _odd(known, {name: _finite(given) for name, given in value.items()})


def _taken(value: dict[str, JsonValue], paths: Paths) -> JsonValue:
    """What stands at the first path that leads to something. A name of the entry's own is taken out of it."""
    for path in paths:
        found = [value.pop(path)] if path in value else values_at(value, path) if "." in path else ()
        given = next((one for one in found if one is not None), None)
        if given is not None:
            return given
    return None


def _in_its_form(name: str, given: JsonValue) -> JsonValue:
    """One text where a list of texts belongs is a list of one; several where one belongs are joined."""
    if name in _LISTS and isinstance(given, str):
        return [given]
    if name in _TEXTS and isinstance(given, list):
        texts = [one for one in given if isinstance(one, str)]
        return "\n\n".join(texts) if texts and texts == given else given
    return given


def _odd(known: dict[str, JsonValue], extra: dict[str, JsonValue]) -> BlockedReply:
    fitting: dict[str, object] = {}
    for name, given in known.items():
        if given is None:
            continue
        read = _time(given) or given if name == "ts" else given
        if _fits(name, read):
            fitting[name] = read
        else:
            extra[name] = _finite(given)
    return BlockedReply.model_validate({**fitting, "extra": extra})


def _fits(name: str, given: object) -> bool:
    try:
        BlockedReply.model_validate({name: given})
    except ValidationError:
        return False
    return True


def _time(given: JsonValue) -> datetime | None:
    """ISO 8601 with a zone; without one it is UTC, as the applications that we know write it. Or epoch seconds."""
    try:
        return _TIME.validate_python(given)
    except ValidationError:
        pass
    try:
        return _TIME.validate_python(f"{given}Z") if isinstance(given, str) else None
    except ValidationError:
        return None


def _finite(given: JsonValue) -> JsonValue:
    """NaN and infinities, which some writers put into JSON, become their names."""
    if isinstance(given, float) and not math.isfinite(given):
        return str(given)
    if isinstance(given, list):
        return [_finite(item) for item in given]
    if isinstance(given, dict):
        return {name: _finite(item) for name, item in given.items()}
    return given


def _unreadable(log: Identifier, line: LogLine, text: bytes, error: ValueError) -> QuarantinedLine:
    """Why, and where in the line; never what stands there."""
    try:
        text.decode()
    except UnicodeDecodeError as bad:
        return _aside(log, line, QuarantineReason.NOT_UTF8, f"not UTF-8 at byte {bad.start:,}")
    return _aside(log, line, QuarantineReason.NOT_JSON, str(error).split("\n", maxsplit=1)[0][:200])


def _aside(log: Identifier, line: LogLine, reason: QuarantineReason, detail: str) -> QuarantinedLine:
    return QuarantinedLine(
        id=line_id(line),
        log=log,
        generation=line.generation,
        offset=line.offset,
        length=line.length,
        sha256=line.sha256,
        reason=reason,
        detail=detail,
    )


def _kind(value: JsonValue) -> str:
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
