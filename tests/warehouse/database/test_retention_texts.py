"""Test that texts of sampled conversations and log entries are deleted everywhere, and all counts stay correct."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from monitors.records.logs import BlockedReply, HallucinationEntry, LoggedHallucination
from tests.warehouse.sample_nights import find_newest_report, list_sampled_conversations, night_report, seen
from tests.warehouse.sample_rows import NOON
from tests.warehouse.temporary_stores import SteppingClock, bare_store_in, store_in
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments, remove_personal_data
from warehouse.database.store import Store
from warehouse.journal.rows import ANY_ROW, ConversationRow, HallucinationRow, NightlyRunRow
from warehouse.queries.traffic import iterate_known_conversation_hashes

KEY = b"0123456789abcdef"
LATER = NOON + timedelta(days=1)
SECRET = "Asha Rao, 42 Hill Road"


def blocked(number: int = 1) -> LoggedHallucination:
    """Return an entry of the hallucination log with a person's name in every field that can contain a text."""
    reply = BlockedReply(
        ts=NOON,
        user_text=SECRET,
        blocked_reply=SECRET,
        reasons=("citation_missing",),
        unsupported_claims=(SECRET,),
        top_score=0.5,
        extra={"session": SECRET, "n": {"deep": [SECRET]}},
    )
    entry = HallucinationEntry(id=f"0-{number}-abc", log="bot", generation=0, offset=number, reply=reply)
    return LoggedHallucination(target="bot", fingerprint="a" * 64, read_at=NOON, notify=True, entry=entry)


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def store(tmp_path, clock) -> Store:
    store = store_in(tmp_path, clock=clock)
    taken = [ConversationRow(row=seen("talk-1")), ConversationRow(row=seen("talk-2", sampled_in=SECRET))]
    store.journal.append([*taken, NightlyRunRow(row=night_report())], run_id="night-1")
    store.journal.append([HallucinationRow(row=blocked())], run_id=None)
    store.load_pending(1)
    return store


def aged(store: Store, before: datetime = LATER) -> int:
    """Delete the texts that are older than ``before``, and return the number of archives that were replaced."""
    return remove_personal_data(store, before=before, key=KEY, wait_s=1).archives


def journal_files(store: Store, ending: str) -> Sequence[Path]:
    return sorted((store.database.file.parent / "journal").rglob(f"*{ending}"))


def all_text(store: Store) -> str:
    found = "".join(str(rows_of(store, table)) for table in ("conversations", "nightly_runs", "hallucinations"))
    for parquet in journal_files(store, ".parquet"):
        found += str(duckdb.sql(f"select * from '{parquet}'").fetchall())
    return found + "".join(segment.read_text("utf-8") for segment in journal_files(store, ".jsonl"))


def rows_of(store: Store, table: str) -> object:
    return store.query(f"select * from {table} order by all").rows


def test_texts_are_gone_everywhere_and_what_is_counted_stays(store):
    columns = "target, source, id, run_id, completed_at, stratum, inclusion_probability"
    before, nights = (
        store.query(f"select {columns} from conversations order by id").rows,
        rows_of(store, "nightly_runs"),
    )
    assert SECRET in all_text(store)
    assert aged(store) == 1
    assert SECRET not in all_text(store)
    rows = store.query(f"select {columns} from conversations order by id").rows
    assert rows == before
    assert store.query("select count(record) from conversations").rows == ((0,),)
    assert rows_of(store, "nightly_runs") == nights
    assert find_newest_report(store) == night_report()
    assert check_database(store, wait_s=1).is_sound


def test_an_aged_conversation_is_still_known_and_not_among_those_with_texts(store):
    aged(store)
    assert len(list(iterate_known_conversation_hashes(store, "helpdesk", "chats", NOON, except_run="none"))) == 2
    assert list_sampled_conversations(store, "night-1") == ()


def test_of_a_log_entry_place_incident_and_figures_stay(store):
    aged(store)
    columns = "log, id, fingerprint, user_text, blocked_reply, reasons, unsupported_claims, top_score"
    found = store.query(f"select {columns} from hallucinations").rows
    assert found == (("bot", "0-1-abc", "a" * 64, "", "", ["citation_missing"], [], 0.5),)


@pytest.mark.whole_only
def test_a_rebuild_brings_nothing_back(store):
    aged(store)
    before = [rows_of(store, table) for table in ("conversations", "nightly_runs", "hallucinations")]
    rebuild_database(store, wait_s=1)
    assert [rows_of(store, table) for table in ("conversations", "nightly_runs", "hallucinations")] == before
    assert check_database(store, wait_s=1).is_sound
    assert SECRET not in all_text(store)


def test_aging_twice_is_once(store):
    aged(store)
    archives, text = [file.read_bytes() for file in journal_files(store, ".parquet")], all_text(store)
    assert aged(store) == 0
    assert [file.read_bytes() for file in journal_files(store, ".parquet")] == archives
    assert all_text(store) == text


def test_aged_rows_can_still_be_read_as_records(store):
    aged(store)
    (parquet,) = journal_files(store, ".parquet")
    lines = duckdb.sql(f"select table_name, row_json from '{parquet}'").fetchall()
    found = [ANY_ROW.validate_json(f'{{"table":"{table}","row":{row}}}') for table, row in lines]
    (sampled,) = [each.row.sampled for each in found if isinstance(each, ConversationRow) and each.row.sampled]
    assert (sampled.conversation.id, sampled.inclusion_probability, sampled.conversation.user_key) == (
        "talk-2",
        0.1,
        None,
    )
    (entry,) = [each.row.entry for each in found if isinstance(each, HallucinationRow)]
    assert (entry.id, entry.reply.extra) == ("0-1-abc", {})


def test_recent_data_stays_unchanged(store):
    before = all_text(store)
    assert aged(store, before=NOON) == 0
    assert all_text(store) == before


@pytest.mark.whole_only
def test_a_conversation_that_a_younger_segment_has_too_stays_as_it_aged(store, clock):
    """If two nightly runs sampled a conversation, its row has no texts after the retention of the first run ends.

    The later run's segment in the journal keeps the texts until its own retention ends.
    """
    clock.skip(days=30)
    store.journal.append([ConversationRow(row=seen("talk-2", "night-2", sampled_in=SECRET))], run_id="night-2")
    store.load_pending(1)
    aged(store)
    assert SECRET not in str(rows_of(store, "conversations"))
    assert check_database(store, wait_s=1).is_sound
    rebuild_database(store, wait_s=1)
    assert SECRET not in str(rows_of(store, "conversations"))
    aged(store, before=LATER + timedelta(days=40))
    assert SECRET not in all_text(store)
    assert check_database(store, wait_s=1).is_sound
    rows = store.query("select run_id from conversations where id = 'talk-2'").rows
    assert rows == (("night-1",),)


@pytest.mark.whole_only
def test_killed_between_journal_and_tables_the_next_load_finishes(store):
    """If a kill leaves a redacted archive and old rows in the tables, the next load finishes the deletion."""
    folder = store.database.file.parent
    compact_segments(store, before=LATER, wait_s=1, unfinished=True)
    before = store.database.file.read_bytes()
    old = {file: file.read_bytes() for file in (folder / "journal" / "_archive").iterdir()}
    aged(store)
    store.database.file.write_bytes(before)
    for file, data in old.items():
        file.write_bytes(data)
    again = bare_store_in(folder, seed=7)
    assert check_database(again, wait_s=1).is_sound, "the old archive counts until the new one is loaded"
    again.load_pending(1)
    compact_segments(again, before=LATER, wait_s=1)
    assert SECRET not in all_text(again)
    assert check_database(again, wait_s=1).is_sound
