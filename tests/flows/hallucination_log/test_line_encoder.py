"""Test that encoded log lines equal the JSON of the redacted records, in whichever process they are encoded."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice

import pytest
from pydantic import JsonValue

from flows.hallucination_log.encoder_pool import MIN_BATCHES_FOR_WORKERS, EncoderPool
from flows.hallucination_log.line_encoder import EncodedLines, LineEncoder, LineSettings, redact_reply
from monitors.alerts.observe import compute_fingerprint
from monitors.alerts.redact import redact
from monitors.records.incidents import IncidentKind
from monitors.records.logs import BlockedReply, FileMark, HallucinationEntry, LogCursor, LoggedHallucination
from monitors.sources.logs.entries import parse_line
from monitors.sources.logs.tail import NOTHING_READ, LogBatch, LogLine
from tests.process_tree import descendants
from warehouse.journal.rows import ANY_ROW, HallucinationRow, QuarantineRow

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TARGET = "bot"
USUAL = {
    "ts": "2026-03-01T10:00:00+05:30", "user_text": "Is cataract covered?", "blocked_reply": "Yes — up to ₹40,000.",
    "reasons": ["unsupported_number: 40,000"], "unsupported_claims": ["₹40,000"], "chunk_count": 6, "top_score": 0.5,
    "policy_ids": ["gold"], "number": 7, "session": {"id": "3f2a9c1e", "tries": [1, None, True, 0.25]},
}  # fmt: skip
LINES: list[dict[str, JsonValue]] = [
    USUAL,
    {"user_text": "My number is 98765 43210.", "blocked_reply": "Write to tara@mailbox.example"},
    {"question": "Aadhaar २३४५ ६७८९ ०१२४?", "answer": ["one", "PAN ABCPK1234F"], "reason": "no_source"},
    {"reasons": "policy number: NG-00004277", "claims": ["call +91 98231 77450"], "policy_ids": ["ABCPK1234F"]},
    {
        "note": {"deep": ["token ghp_abcdefghijklmnopqrstuvwxyz0123456789"]},
        "asha@okaxis": 1,
        "blocked_reply": "No.",
    },
    {"chunk_count": "three, call 98231 77450", "top_score": 7, "blocked_reply": "No."},
    {"user_text": None, "reasons": None, "blocked_reply": "No."},
]


def line(raw: bytes, offset: int) -> LogLine:
    return LogLine(0, offset, raw, len(raw), hashlib.sha256(raw).hexdigest())


def lines() -> list[LogLine]:
    raw = [json.dumps(value, ensure_ascii=number % 2 == 0).encode() for number, value in enumerate(LINES)]
    return [
        line(each, 1_000 * number)
        for number, each in enumerate([*raw, b"", b"{broken 98765 43210", b"[1]", b"\xff"])
    ]


def cursor(*, history_to: int = 0) -> LogCursor:
    return LogCursor(log=TARGET, current=NOTHING_READ, history_to=history_to)


def encoded(settings: LineSettings, *, history_to: int = 0) -> EncodedLines:
    return LineEncoder(settings).encode(lines(), cursor(history_to=history_to), AT)


def masked(value: JsonValue) -> JsonValue:
    """Return ``value`` with every text in it redacted by the rules."""
    match value:
        case str():
            return redact(value)
        case list():
            return [masked(one) for one in value]
        case dict():
            return {redact(name): masked(one) for name, one in value.items()}
        case _:
            return value


def slowly(one: LogLine, *, history_to: int) -> HallucinationRow | QuarantineRow | None:
    """Encode a log line in the slow way: build the records, and redact each text without the fast pre-filter."""
    read = parse_line(TARGET, one)
    if not isinstance(read, HallucinationEntry):
        return None if read is None else QuarantineRow(row=read)
    values = read.reply.model_dump(mode="json", exclude={"ts"})
    safe = BlockedReply.model_validate(
        {name: masked(value) for name, value in values.items()} | {"ts": read.reply.ts}
    )
    logged = LoggedHallucination(
        target=TARGET,
        fingerprint=compute_fingerprint(TARGET, IncidentKind.HALLUCINATION, read.id),
        read_at=AT,
        notify=one.offset >= history_to,
        entry=read.model_copy(update={"reply": safe}),
    )
    return HallucinationRow(row=logged)


def test_rows_are_those_of_records_with_every_text_masked() -> None:
    found = encoded(LineSettings(target=TARGET), history_to=2_500)
    expected = [row for one in lines() if (row := slowly(one, history_to=2_500)) is not None]
    entries = [row for row in expected if isinstance(row, HallucinationRow)]
    aside = [row for row in expected if isinstance(row, QuarantineRow)]
    assert found.rows.body.splitlines() == [row.model_dump_json().encode() for row in (*entries, *aside)]
    assert dict(found.rows.counts) == {"hallucinations": len(entries), "quarantined_lines": len(aside)}
    assert [ANY_ROW.validate_json(one) for one in found.rows.body.splitlines()] == [*entries, *aside]
    assert (found.history, found.entries) == (3, len(entries) - 3)
    assert (found.aside, found.aside_count) == (tuple(row.row for row in aside), len(aside))


def test_f87_nothing_personal_is_stored() -> None:
    stored = encoded(LineSettings(target=TARGET)).rows.body.decode()
    for text in ("43210", "mailbox.example", "२३४५", "ABCPK1234F", "00004277", "77450", "ghp_", "okaxis"):
        assert text not in stored, text
    assert "up to ₹40,000" in stored


def test_a_log_may_be_stored_as_it_is() -> None:
    stored = encoded(LineSettings(target=TARGET, store_raw=True)).rows.body.decode()
    assert "98765 43210" in stored


def test_the_targets_own_numbers_are_masked() -> None:
    reply = BlockedReply(user_text="see LP-77", extra={"LP-78": "none"})
    assert redact_reply(reply, (r"LP-\d+",)) == BlockedReply(
        user_text="see [account number]", extra={"[account number]": "none"}
    )
    settings = LineSettings(target=TARGET, account_patterns=(r"4\.2$",))
    given = [line(b'{"user_text": "see 4.2", "blocked_reply": "none"}', 0)]
    assert b"see [account number]" in LineEncoder(settings).encode(given, cursor(), AT).rows.body


def batches(count: int) -> list[LogBatch]:
    mark = FileMark(generation=0, offset=1, tail_bytes=0, tail_sha256="0" * 64)
    return [
        LogBatch(
            tuple(one._replace(offset=one.offset + 100_000 * number) for one in lines()),
            LogCursor(log=TARGET, sequence=number + 1, current=mark, history_to=300_000),
        )
        for number in range(count)
    ]


@pytest.mark.whole_only
@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "workers are killed"])
def test_workers_give_the_same_in_the_same_order(killed: bool) -> None:
    settings, given = LineSettings(target=TARGET), batches(MIN_BATCHES_FOR_WORKERS + 12)
    alone = list(EncoderPool(settings, 1, lambda: AT).encode_batches(given))
    found: list[tuple[LogBatch, EncodedLines]] = []
    for number, one in enumerate(EncoderPool(settings, 2, lambda: AT).encode_batches(given)):
        found.append(one)
        if killed and number in (MIN_BATCHES_FOR_WORKERS, MIN_BATCHES_FOR_WORKERS + 4):
            for worker in descendants(os.getpid()):
                if "encoder_pool" in worker.command:
                    os.kill(worker.pid, signal.SIGKILL)
    assert found == alone
    assert [batch.cursor.sequence for batch, _ in found] == list(range(1, len(given) + 1))


def test_no_worker_is_left_where_reading_ends_early() -> None:
    with closing(
        EncoderPool(LineSettings(target=TARGET), 2, lambda: AT).encode_batches(batches(MIN_BATCHES_FOR_WORKERS + 8))
    ) as some:
        assert len(list(islice(some, MIN_BATCHES_FOR_WORKERS + 1))) == MIN_BATCHES_FOR_WORKERS + 1
        assert any("encoder_pool" in one.command for one in descendants(os.getpid()))
    assert not any("encoder_pool" in one.command for one in descendants(os.getpid()))
