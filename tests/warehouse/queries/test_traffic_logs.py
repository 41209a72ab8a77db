"""Test that lines of a followed log are stored once, with the read position, and cause at most one alert each."""

from __future__ import annotations

from datetime import timedelta

from monitors.records.logs import (
    BlockedReply,
    FileMark,
    HallucinationEntry,
    LogCursor,
    LoggedHallucination,
    QuarantinedLine,
    QuarantineReason,
)
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import NOON, incident
from tests.warehouse.temporary_stores import store_in
from warehouse.database.retention import remove_personal_data
from warehouse.journal.rows import CursorRow, HallucinationRow, QuarantineRow
from warehouse.queries.traffic import find_log_cursor, list_entry_times, list_log_entries_awaiting_alert

EMPTY = "0" * 64
READ_AT = NOON + timedelta(hours=1)


def cursor(sequence: int, offset: int) -> CursorRow:
    mark = FileMark(generation=0, offset=offset, tail_bytes=0, tail_sha256=EMPTY)
    return CursorRow(row=LogCursor(log="bot", sequence=sequence, current=mark))


def logged(number: int, *, tell: bool = True, text: str = "Is cataract covered?") -> HallucinationRow:
    reply = BlockedReply(
        ts=NOON + timedelta(minutes=number), user_text=text, reasons=("citation_missing",), extra={"n": number}
    )
    place = abs(number)
    entry = HallucinationEntry(id=f"0-{place}-abc", log="bot", generation=0, offset=place, reply=reply)
    fingerprint = f"{place:064x}"
    return HallucinationRow(
        row=LoggedHallucination(target="bot", fingerprint=fingerprint, read_at=READ_AT, notify=tell, entry=entry)
    )


def test_reading_goes_on_where_the_furthest_cursor_stands(tmp_path):
    store = store_in(tmp_path)
    assert find_log_cursor(store, "bot") is None
    store.journal.append([logged(1), cursor(1, 10)], run_id=None)
    store.journal.append([logged(2), cursor(2, 20)], run_id=None)
    store.load_pending(1)
    found = find_log_cursor(store, "bot")
    assert found is not None
    assert (found.sequence, found.current.offset) == (2, 20)
    assert find_log_cursor(store, "another") is None


def test_a_line_that_two_readers_read_is_there_once(tmp_path):
    store = store_in(tmp_path)
    store.journal.append([logged(1), cursor(1, 10)], run_id=None)
    store.journal.append([logged(1), logged(2), cursor(1, 20)], run_id=None)
    store.load_pending(1)
    assert [entry.entry.offset for entry in list_log_entries_awaiting_alert(store, "bot", limit=9)] == [1, 2]
    assert store.query("select count(*) from hallucinations").rows == ((2,),)


def test_a_line_of_an_earlier_load_is_there_once_and_the_new_ones_beside_it_too(tmp_path):
    """If a poll after a kill reads lines again that were loaded before, each line exists once in the table.

    New lines of the same poll are stored as well.
    """
    store = store_in(tmp_path)
    store.journal.append([logged(1, text="first"), cursor(1, 10)], run_id=None)
    store.load_pending(1)
    store.journal.append([logged(1, text="again"), logged(2), cursor(1, 20)], run_id=None)
    store.journal.append([logged(3), cursor(2, 30)], run_id=None)
    assert store.load_pending(1).damaged == ()
    found = store.query("select user_text from hallucinations order by id").rows
    assert found == (("first",), ("Is cataract covered?",), ("Is cataract covered?",))


def test_entries_with_an_incident_or_from_before_are_not_alerted(tmp_path):
    store = store_in(tmp_path)
    store.journal.append([logged(1), logged(2), logged(3, tell=False), cursor(1, 10)], run_id=None)
    store.load_pending(1)
    known = incident().model_copy(update={"fingerprint": f"{1:064x}", "target": "bot"})
    decide(store, store.journal, "bot", lambda _: OutboxDecision(incidents=(known,)), wait_s=1)
    assert [entry.entry.offset for entry in list_log_entries_awaiting_alert(store, "bot", limit=9)] == [2]
    assert list_log_entries_awaiting_alert(store, "another", limit=9) == []


def test_entries_come_back_as_they_were(tmp_path):
    store = store_in(tmp_path)
    row = logged(1)
    store.journal.append([row, cursor(1, 10)], run_id=None)
    store.load_pending(1)
    assert list(list_log_entries_awaiting_alert(store, "bot", limit=9)) == [row.row]
    assert list_entry_times(store, "bot", NOON - timedelta(days=1)) == [NOON + timedelta(minutes=1)]
    assert list_entry_times(store, "bot", NOON + timedelta(days=1)) == []


def test_an_entry_that_was_read_as_it_came_was_not_written_after_that_nor_long_before(tmp_path):
    """The stated time of an entry that was read soon after it was written is used only if it is plausible.

    If the stated time is after the time of reading, or more than a week before, the time of reading is used. An
    entry from the history of a log can have any age.
    """
    store = store_in(tmp_path)
    ten_days = 10 * 24 * 60
    rows = [logged(90), logged(-ten_days), logged(-ten_days - 1, tell=False)]
    store.journal.append([*rows, cursor(1, 10)], run_id=None)
    store.load_pending(1)
    history = NOON - timedelta(minutes=ten_days + 1)
    assert sorted(list_entry_times(store, "bot", NOON)) == [history, READ_AT, READ_AT]


def test_quarantined_lines_are_stored_by_place_and_digest(tmp_path):
    store = store_in(tmp_path)
    line = QuarantinedLine(
        id="0-7-abc",
        log="bot",
        generation=0,
        offset=7,
        length=9,
        sha256=EMPTY,
        reason=QuarantineReason.NOT_JSON,
        detail="EOF",
    )
    store.journal.append([QuarantineRow(row=line), cursor(1, 16)], run_id=None)
    store.load_pending(1)
    rows = store.query("select byte_offset, length, reason from quarantined_lines").rows
    assert rows == ((7, 9, "not_json"),)


def test_texts_of_entries_age_out(tmp_path):
    store = store_in(tmp_path)
    store.journal.append([logged(1, text="my name is Asha"), cursor(1, 10)], run_id=None)
    store.load_pending(1)
    remove_personal_data(store, before=NOON + timedelta(days=400), key=b"sixteen byte key", wait_s=1)
    ((text, record),) = store.query("select user_text, record from hallucinations").rows
    assert text == ""
    assert "Asha" not in str(record)
    assert '"n"' not in str(record)
    assert store.query("select reasons from hallucinations").rows == ((["citation_missing"],),)
