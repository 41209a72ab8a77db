"""Test the storage of live traffic.

Each conversation is stored once, and its texts only if it was sampled. If a night has several reports, the last one
counts.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import duckdb
import pytest

from monitors.errors import WarehouseDamaged
from monitors.records.estimates import RateUnknown
from monitors.sources.intake import KnownIds
from tests.warehouse.sample_nights import (
    drift_reading,
    find_newest_report,
    list_sampled_conversations,
    night_report,
    seen,
)
from tests.warehouse.sample_rows import NOON
from tests.warehouse.temporary_stores import SteppingClock, count, store_in
from warehouse.database.check import check_database
from warehouse.database.parquet import export_parquet
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments
from warehouse.database.store import Store
from warehouse.journal.rows import ConversationRow, JournalRow, NightlyRunRow
from warehouse.queries.traffic import (
    iterate_known_conversation_hashes,
    list_recent_nightly_reports,
)

LATER = NOON + timedelta(days=1)
TEXT = "How long is the waiting period?"


def keep(store: Store, *rows: JournalRow, run_id: str = "night-1") -> None:
    store.journal.append(rows, run_id=run_id)
    store.load_pending(1)


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with one night of three conversations, of which two were sampled."""
    store = store_in(tmp_path)
    conversations = (
        seen("talk-1"),
        seen("talk-2", sampled_in=TEXT, minutes=2),
        seen("talk-3", sampled_in="And for twins?", minutes=1),
    )
    keep(store, *(ConversationRow(row=each) for each in conversations), NightlyRunRow(row=night_report()))
    return store


def everything(store: Store) -> tuple[object, ...]:
    return tuple(
        store.query(f"select * from {table} order by all").rows for table in ("conversations", "nightly_runs")
    )


def test_texts_are_stored_only_of_sampled_conversations(store):
    columns = "id, run_id, completed_at, stratum, inclusion_probability, record->>'$.turns[0].user_text'"
    found = store.query(f"select {columns} from conversations order by id").rows
    later = [NOON + timedelta(minutes=minutes) for minutes in (0, 2, 1)]
    assert found == (
        ("talk-1", "night-1", later[0], "disclosure", None, None),
        ("talk-2", "night-1", later[1], "disclosure", 0.1, TEXT),
        ("talk-3", "night-1", later[2], "disclosure", 0.1, "And for twins?"),
    )


def test_a_night_lies_in_its_columns(store):
    columns = '"read", known, conversations, sampled, graded, cost_usd, graded_by, drifted'
    found = store.query(f"select {columns} from nightly_runs").rows
    assert found == ((1000, 20, 1000, 100, 90, Decimal("0.123456789"), "claude-haiku-5-5", None),)
    shares = "severe_rate, severe_low, severe_high, failed_rate, failed_low, failed_high, confidence"
    assert store.query(f"select {shares} from nightly_runs").rows == (
        (0.004, 0.002, 0.008, 0.04, 0.02, 0.08, 0.95),
    )


def test_a_night_without_grades_has_no_shares(tmp_path):
    store = store_in(tmp_path)
    unknown = RateUnknown(conversations=7, sampled=3, why="no judge")
    quiet = night_report().model_copy(update={"severe": unknown, "failed": unknown, "strata": ()})
    keep(store, NightlyRunRow(row=quiet))
    found = store.query("select conversations, graded, severe_rate, failed_high, confidence from nightly_runs").rows
    assert found == ((7, 0, None, None, None),)
    assert find_newest_report(store) == quiet
    assert check_database(store, wait_s=1).is_sound


def test_a_conversation_is_claimed_once_by_the_first(store):
    again = seen("talk-1", "night-2", sampled_in="Another text", minutes=9)
    elsewhere = seen("talk-1", "night-2").model_copy(update={"source": "page"})
    keep(store, ConversationRow(row=again), ConversationRow(row=elsewhere), run_id="night-2")
    found = store.query("select source, run_id, inclusion_probability from conversations where id = 'talk-1'").rows
    assert sorted(found) == [("chats", "night-1", None), ("page", "night-2", None)]
    rebuild_database(store, wait_s=1)
    assert count(store, "conversations") == 4
    assert check_database(store, wait_s=1).is_sound


def test_of_one_segment_the_first_of_two_stays(tmp_path):
    store = store_in(tmp_path)
    keep(store, ConversationRow(row=seen(minutes=1)), ConversationRow(row=seen(minutes=2)))
    assert store.query("select completed_at from conversations").rows == ((NOON + timedelta(minutes=1),),)


def test_a_resumed_night_replaces_its_report(store):
    """If a nightly run was resumed, its later report counts, both before and after a rebuild."""
    resumed = night_report(late_s=600)
    keep(store, NightlyRunRow(row=resumed))
    assert find_newest_report(store) == resumed
    rebuild_database(store, wait_s=1)
    assert find_newest_report(store) == resumed
    assert count(store, "nightly_runs") == 1


def test_a_segment_that_is_loaded_late_changes_neither_what_came_before_nor_after(tmp_path):
    clock = SteppingClock()
    early, late = store_in(tmp_path, clock=clock), store_in(tmp_path, seed=2, clock=clock)
    early.journal.append(
        [ConversationRow(row=seen(sampled_in=TEXT)), NightlyRunRow(row=night_report())], run_id="night-1"
    )
    (name,) = early.journal.segments.list_segments()
    data = early.journal.segments.read(name)
    early.journal.segments.delete(name)
    clock.skip(hours=1)
    keep(late, ConversationRow(row=seen()), NightlyRunRow(row=night_report(late_s=9)))
    late.journal.segments.write(name, data)
    late.load_pending(1)
    assert [each.id for each in list_sampled_conversations(late, "night-1")] == ["talk-1"]
    assert find_newest_report(late) == night_report(late_s=9)
    assert check_database(late, wait_s=1).is_sound


def known(store, target, source, since, but="another"):
    """Return which of the conversations ``talk-1`` to ``talk-4`` the warehouse knows."""
    there = KnownIds(iterate_known_conversation_hashes(store, target, source, since, except_run=but))
    return {one for one in ("talk-1", "talk-2", "talk-3", "talk-4") if one in there}


def test_known_are_those_of_the_source_since_a_time(store):
    assert known(store, "helpdesk", "chats", NOON) == {"talk-1", "talk-2", "talk-3"}
    assert known(store, "helpdesk", "chats", NOON + timedelta(minutes=1)) == {"talk-2", "talk-3"}
    assert known(store, "helpdesk", "page", NOON) == set()
    assert known(store, "another", "chats", NOON) == set()


def test_sampled_conversations_come_back_unchanged_in_order_of_time(store):
    expected = (seen("talk-3", sampled_in="And for twins?", minutes=1), seen("talk-2", sampled_in=TEXT, minutes=2))
    assert list_sampled_conversations(store, "night-1") == expected
    assert list_sampled_conversations(store, "night-2") == ()


def test_nights_come_newest_first_by_when_they_began(tmp_path):
    """Nightly reports are sorted by the start of their night, newest first.

    If two nights start at the same time, the report that ended later is first.
    """
    store = store_in(tmp_path)
    assert find_newest_report(store) is None
    reports = [night_report("c", nights=2), night_report("a"), night_report("b", nights=1, late_s=9)]
    reports += [night_report("b-again", nights=1, late_s=5)]
    keep(store, *(NightlyRunRow(row=each) for each in reports))
    assert [each.run_id for each in list_recent_nightly_reports(store, "helpdesk", 9)] == ["c", "b", "b-again", "a"]
    assert list_recent_nightly_reports(store, "helpdesk", 1) == (reports[0],)
    assert list_recent_nightly_reports(store, "another", 9) == ()


def test_a_report_of_another_form_is_said(store):
    with store.database.open_for_writing(1) as connection:
        connection.execute("update nightly_runs set record = json_merge_patch(record, '{\"read\": -1}')")
    with pytest.raises(WarehouseDamaged, match="read"):
        find_newest_report(store)


def test_a_row_that_was_changed_is_found(store):
    assert check_database(store, wait_s=1).is_sound
    with store.database.open_for_writing(1) as connection:
        connection.execute("update conversations set stratum = 'rest' where id = 'talk-1'")
        connection.execute("update nightly_runs set severe_rate = 0")
    texts = [problem.text for problem in check_database(store, wait_s=1).problems]
    assert ["table conversations" in texts[0], "table nightly_runs" in texts[1], len(texts)] == [True, True, 2]


def test_an_archive_and_a_rebuild_have_the_same_as_before(store):
    """Compacting and rebuilding change no content.

    A nightly run is compacted although it has no run report, because it has a nightly report.
    """
    store.journal.append([ConversationRow(row=seen("talk-9", "night-9"))], run_id="night-9")
    store.load_pending(1)
    before = everything(store)
    assert compact_segments(store, before=LATER, wait_s=1).segments == 1
    assert [name.partition("/")[0] for name in store.journal.segments.list_segments()] == ["night-9"]
    assert everything(store) == before
    rebuild_database(store, wait_s=1)
    assert everything(store) == before
    assert check_database(store, wait_s=1).is_sound


def test_a_day_of_traffic_is_exported(store, tmp_path):
    goal = tmp_path / "lake"
    export_parquet(store, goal, since=NOON.date(), until=NOON.date(), wait_s=1)
    picked = f"read_parquet('{goal}/conversations/day=2026-03-01/*.parquet')"
    assert duckdb.sql(f"select count(*), count(record) from {picked}").fetchall() == [(3, 2)]
    nights = f"read_parquet('{goal}/nightly_runs/day=2026-03-01/*.parquet')"
    assert duckdb.sql(f"select run_id, severe_rate from {nights}").fetchall() == [("night-1", 0.004)]


def test_the_trend_has_a_line_per_night_and_says_which_way_it_drifted(tmp_path):
    store = store_in(tmp_path)
    readings = (
        None,
        drift_reading(0.01, 0.01, drifted=False),
        drift_reading(0.01, 0.05, drifted=True),
        drift_reading(0.05, 0.01, drifted=True),
    )
    reports = (
        night_report(f"night-{number}", nights=number).model_copy(update={"drift_reading": reading})
        for number, reading in enumerate(readings)
    )
    keep(store, *(NightlyRunRow(row=each) for each in reports))
    found = store.query("select run_id, drift, drift_since from nightly_trend").rows
    since = NOON - timedelta(days=2)
    assert found == (
        ("night-0", None, None),
        ("night-1", "none", None),
        ("night-2", "worse", since),
        ("night-3", "better", since),
    )
    columns = "conversations, sampled, graded, severe_rate, severe_low, severe_high, failed_rate, cost_usd"
    first = store.query(f"select {columns} from nightly_trend limit 1").rows
    assert first == ((1000, 100, 90, 0.004, 0.002, 0.008, 0.04, Decimal("0.123456789")),)
