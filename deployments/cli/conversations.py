"""``lookout conversations``: show how the nightly run reads logged objects, one JSON line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from deployments.cli.exit_codes import ExitCode
from deployments.cli.pipes import Fields, answer_stream, encode_line
from monitors.records.traffic import Conversation, SourceWarning, UnusableReason
from monitors.sources.traffic.files import parse_lines, read_lines
from monitors.sources.traffic.items import LocatedRecord, Window, parse_located_conversations
from monitors.sources.traffic.settings import Fields as ItemFields

_ALWAYS: Final = Window(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_MAX_LINE_BYTES: Final = 64_000_000


def conversations_command() -> ExitCode:
    """Show how a nightly run reads a log. Read JSON Lines from stdin; write question, answer, passages and time."""
    return answer_stream(answer_lines)


def answer_lines(stream: BinaryIO, out: BinaryIO) -> ExitCode:
    """Answer every line of the stream in its order, after the last one: a line may belong to an earlier one.

    Returns ``PASS`` (0), also for no lines at all; ``USAGE`` (2) when there were lines and none was an object.
    """
    items = parse_lines(read_lines(stream, max_bytes=_MAX_LINE_BYTES), "")
    records = list(parse_located_conversations(items, ItemFields(), _ALWAYS))
    out.writelines(map(encode_line, sorted(build_answers(records), key=lambda answer: answer["line"])))
    out.flush()
    broken = [
        isinstance(row.record, SourceWarning) and row.record.reason is UnusableReason.BROKEN for row in records
    ]
    return ExitCode.USAGE if broken and all(broken) else ExitCode.PASS


def build_answers(records: Iterable[LocatedRecord]) -> Iterator[Fields]:
    """Yield an answer for each line. Of joined lines the last one holds the conversation."""
    for located in records:
        *earlier, last = sorted(map(int, located.places))
        for line in earlier:
            yield {"line": line, "usable": False, "why": f"part of the conversation at line {last}"} | _EMPTY
        yield {"line": last} | _describe_record(located.record)


_EMPTY: Final[Fields] = {"question": "", "answer": "", "context_passages": [], "completed_at": None, "turns": []}


def _describe_record(record: Conversation | SourceWarning) -> Fields:
    if isinstance(record, SourceWarning):
        has_time = record.reason not in (UnusableReason.NO_TIME, UnusableReason.BROKEN)  # else it is a neighbour's
        completed_at = record.at if has_time else None
        return {"usable": False, "why": record.detail} | _EMPTY | {"completed_at": _format_time(completed_at)}
    turns: list[dict[str, Any]] = [
        {"question": turn.user_text, "answer": turn.reply_text, "context_passages": list(turn.context)}
        for turn in record.turns
    ]
    completed_at = _format_time(record.completed_at)
    return {"usable": True, "why": None} | turns[-1] | {"completed_at": completed_at, "turns": turns}


def _format_time(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat().replace("+00:00", "Z")
