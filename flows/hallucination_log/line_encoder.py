"""Converts log lines to rows of the journal: parses, checks, redacts and encodes the lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pydantic import JsonValue

from monitors.alerts.observe import compute_fingerprint
from monitors.alerts.redact import redact
from monitors.facts.disclosures.sieve import has_possible_disclosure, is_possible_disclosure
from monitors.records.base import Identifier, Record
from monitors.records.incidents import IncidentKind
from monitors.records.logs import BlockedReply, HallucinationEntry, LogCursor, LoggedHallucination, QuarantinedLine
from monitors.sources.logs.entries import compute_line_id, parse_reply
from monitors.sources.logs.settings import LogFields
from monitors.sources.logs.tail import LogLine
from warehouse.journal.rows import HallucinationRow, QuarantineRow
from warehouse.journal.segments import EncodedRows, encode_rows

_BLOCKED_REPLY: Final = BlockedReply.__pydantic_serializer__
MAX_ASIDE_SHOWN: Final = 10
"""Maximum number of invalid lines that a result contains. The result's count includes all of them."""


class LineSettings(Record):
    """A target's settings for storing log entries.

    If ``store_raw`` is true, entries are stored without redaction.
    """

    target: Identifier
    fields: LogFields = LogFields()
    account_patterns: tuple[str, ...] = ()
    store_raw: bool = False


class EncodedLines(NamedTuple):
    """The encoded rows of a batch of lines.

    ``history`` counts the entries that were written before the first poll.
    """

    rows: EncodedRows
    entries: int
    history: int
    aside: tuple[QuarantinedLine, ...]
    aside_count: int


class LineEncoder:
    """Encodes the lines of one target's log."""

    def __init__(self, settings: LineSettings) -> None:
        self._settings = settings

    def encode(self, lines: Sequence[LogLine], cursor: LogCursor, read_at: datetime) -> EncodedLines:
        """Encode lines as rows of the journal. ``cursor`` shows which lines were written before the first poll."""
        templates: dict[tuple[int, bool], _RowTemplate] = {}
        aside: list[QuarantinedLine] = []
        encoded: list[bytes] = []
        notified = Counter[bool]()
        target = self._settings.target
        for line in lines:
            reply = parse_reply(target, line, self._settings.fields)
            if isinstance(reply, BlockedReply):
                kind = line.generation, not cursor.is_written_before_watching(line.generation, line.offset)
                if kind not in templates:
                    templates[kind] = _RowTemplate(target, *kind, read_at)
                encoded.append(templates[kind].build_row_json(line, self._redact_unless_raw(reply)))
                notified[kind[1]] += 1
            elif reply is not None:
                aside.append(reply)
        entries = EncodedRows(b"".join(encoded), {"hallucinations": len(encoded)} if encoded else {})
        rows = entries + encode_rows(QuarantineRow(row=quarantined) for quarantined in aside)
        return EncodedLines(rows, notified[True], notified[False], tuple(aside[:MAX_ASIDE_SHOWN]), len(aside))

    def _redact_unless_raw(self, reply: BlockedReply) -> BlockedReply:
        settings = self._settings
        if settings.store_raw or not has_possible_disclosure(_collect_texts(reply), settings.account_patterns):
            return reply
        return redact_reply(reply, settings.account_patterns)


class _RowTemplate:
    """The JSON of a row, with gaps for the values of an entry. Filling the gaps is faster than building a record.

    The template is made from the JSON of a record. Therefore rows from the template have the same format as
    records.
    """

    def __init__(self, target: Identifier, generation: int, notify: bool, read_at: datetime) -> None:
        entry = HallucinationEntry(id="0", log=target, generation=generation, offset=0, reply=BlockedReply())
        logged = LoggedHallucination(
            target=target, fingerprint="0" * 64, read_at=read_at, notify=notify, entry=entry
        )
        rest = HallucinationRow(row=logged).model_dump_json()
        parts: list[bytes] = []
        gaps = {"fingerprint": f'"{logged.fingerprint}"', "id": '"0"', "offset": "0"}
        for name, gap in (gaps | {"reply": entry.reply.model_dump_json()}).items():
            before, separator, rest = rest.partition(f'"{name}":{gap}')
            assert separator
            parts.append(f'{before}"{name}":'.encode())
        self._target, self._parts, self._end = target, parts, f"{rest}\n".encode()

    def build_row_json(self, line: LogLine, reply: BlockedReply) -> bytes:
        """Fill the gaps with the values of one entry. Return the row as JSON with a line break."""
        entry_id = compute_line_id(line)
        entry_fingerprint = compute_fingerprint(self._target, IncidentKind.HALLUCINATION, entry_id)
        first, second, third, fourth = self._parts
        return b'%b"%b"%b"%b"%b%d%b%b%b' % (
            first, entry_fingerprint.encode(), second, entry_id.encode(), third, line.offset, fourth,
            _BLOCKED_REPLY.to_json(reply), self._end,
        )  # fmt: skip


def redact_reply(reply: BlockedReply, account_patterns: Sequence[str] = ()) -> BlockedReply:
    """Return ``reply`` with personal data and secrets redacted in all strings, including unknown fields."""
    values = reply.model_dump(mode="json", exclude={"ts"})
    safe = {name: _redact_value(value, account_patterns) for name, value in values.items()}
    return BlockedReply.model_validate({**safe, "ts": reply.ts})


def _redact_value(value: JsonValue, account_patterns: Sequence[str]) -> JsonValue:
    match value:
        case str():
            return _redact_text(value, account_patterns)
        case list():
            return [_redact_value(item, account_patterns) for item in value]
        case dict():
            return {
                _redact_text(name, account_patterns): _redact_value(item, account_patterns)
                for name, item in value.items()
            }
        case _:
            return value


def _redact_text(text: str, account_patterns: Sequence[str]) -> str:
    return (
        redact(text, account_patterns=account_patterns) if is_possible_disclosure(text, account_patterns) else text
    )


def _collect_texts(reply: BlockedReply) -> list[str]:
    """Collect all strings that `redact_reply` redacts."""
    texts = (reply.user_text or "", reply.blocked_reply or "")
    return [*texts, *reply.reasons, *reply.unsupported_claims, *reply.policy_ids, *_iterate_texts(reply.extra)]


def _iterate_texts(values: Mapping[str, JsonValue] | Sequence[JsonValue]) -> Iterator[str]:
    if isinstance(values, Mapping):
        yield from values
        values = [*values.values()]
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | dict):
            yield from _iterate_texts(value)
