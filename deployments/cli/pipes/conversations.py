"""``lookout conversations``: show the conversations that a nightly run reads from the JSON Lines of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from deployments.cli.exit_codes import ExitCode
from deployments.cli.pipes.commands import Fields, encode_line, run_on_standard_streams
from monitors.records.traffic import Conversation, SourceWarning, UnusableReason
from monitors.sources.traffic.files import parse_lines, read_lines
from monitors.sources.traffic.items import LocatedRecord, Window, parse_located_conversations
from monitors.sources.traffic.settings import Fields as ItemFields

_ALWAYS: Final = Window(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_MAX_LINE_BYTES: Final = 64_000_000


def conversations_command() -> ExitCode:
    """Show the conversations that a nightly run reads from a log. Input on stdin: the log's JSON Lines."""
    return run_on_standard_streams(answer_logged_conversations)


def answer_logged_conversations(stream: BinaryIO, out: BinaryIO) -> ExitCode:
    """Write one output line for every input line. All lines are read first, because lines can belong together.

    Returns ``USAGE`` (2) if there are lines and none is a JSON object. Otherwise, returns ``PASS`` (0).
    """
    items = parse_lines(read_lines(stream, max_bytes=_MAX_LINE_BYTES), "")
    records = list(parse_located_conversations(items, ItemFields(), _ALWAYS))
    out.writelines(map(encode_line, sorted(build_conversation_answers(records), key=lambda answer: answer["line"])))
    out.flush()
    broken = [
        isinstance(row.record, SourceWarning) and row.record.reason is UnusableReason.BROKEN for row in records
    ]
    return ExitCode.USAGE if broken and all(broken) else ExitCode.PASS


def build_conversation_answers(records: Iterable[LocatedRecord]) -> Iterator[Fields]:
    """Yield the output for each line. If several lines form one conversation, only the last output contains it."""
    for located in records:
        *earlier, last = sorted(map(int, located.places))
        for line in earlier:
            yield {
                "line": line,
                "usable": False,
                "why": f"part of the conversation that is shown at line {last}",
            } | _EMPTY
        yield {"line": last} | _describe_log_record(located.record)


_EMPTY: Final[Fields] = {"question": "", "answer": "", "context_passages": [], "completed_at": None, "turns": []}


def _describe_log_record(record: Conversation | SourceWarning) -> Fields:
    if isinstance(record, SourceWarning):
        # Without a time of its own, the record has the time of a line nearby, which is not shown.
        has_time = record.reason not in (UnusableReason.NO_TIME, UnusableReason.BROKEN)
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
