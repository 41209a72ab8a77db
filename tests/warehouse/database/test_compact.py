from __future__ import annotations

from datetime import timedelta

import pytest

from monitors.errors import WarehouseUnwritable
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import NOON, assessment, exchange, incident, run_report, suite
from tests.warehouse.temporary_stores import SteppingClock, count, store_in
from warehouse.database.check import CheckProblemKind, check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow

LATER = NOON + timedelta(days=1)


def append_run(store: Store, run_id: str, cases: int = 5, *, interrupted: bool = False) -> None:
    for number in range(cases):
        case = f"case-{number}"
        rows = [ResultRow(row=exchange(run_id, case)), AssessmentRow(row=assessment(run_id, case))]
        store.journal.append(rows, run_id=run_id)
    store.journal.append([RunRow(row=run_report(run_id, interrupted=interrupted))], run_id=run_id)


@pytest.fixture
def store(tmp_path):
    store = store_in(tmp_path, clock=SteppingClock())
    append_run(store, "run-1")
    store.load_pending(1)
    return store


def archives(store):
    return list((store.database.file.parent / "journal" / "_archive").glob("*"))


def test_old_segments_move_into_an_archive_and_everything_stays_the_same(store):
    before = store.query("select * from grades order by all").rows
    report = compact_segments(store, before=LATER, wait_s=1)
    assert (report.segments, report.archives) == (6, 1)
    assert report.bytes_after < report.bytes_before
    assert store.journal.segments.list_segments() == []
    assert not (store.database.file.parent / "journal" / "run-1").exists(), (
        "the run's folder goes with its segments"
    )
    assert check_database(store, wait_s=1).is_sound
    assert store.load_pending(1).segments == 0
    rebuild_database(store, wait_s=1)
    rows = store.query("select * from grades order by all").rows
    assert rows == before
    assert store.find_report("run-1") == run_report()
    assert check_database(store, wait_s=1).is_sound


def test_compacting_twice_changes_nothing_and_later_segments_get_an_archive_of_their_own(store):
    compact_segments(store, before=LATER, wait_s=1)
    assert compact_segments(store, before=LATER, wait_s=1).segments == 0
    append_run(store, "run-2")
    assert compact_segments(store, before=LATER, wait_s=1).segments == 6
    assert len(archives(store)) == 4
    rebuild_database(store, wait_s=1)
    assert count(store, "results") == 10


def test_recent_unfinished_and_suite_segments_stay_in_the_journal(store):
    store.journal.append_suite(suite())
    append_run(store, "run-2", interrupted=True)
    store.journal.append([ResultRow(row=exchange("run-3"))], run_id="run-3")
    assert compact_segments(store, before=NOON, wait_s=1).segments == 0
    assert compact_segments(store, before=LATER, wait_s=1).segments == 6
    left = {name.partition("/")[0] for name in store.journal.segments.list_segments()}
    assert left == {"_suites", "run-2", "run-3"}


def test_a_decision_knows_archived_incidents_even_in_a_new_file(store):
    decide(store, store.journal, "helpdesk", lambda _: OutboxDecision(incidents=(incident(),)), wait_s=1)
    compact_segments(store, before=LATER, wait_s=1)
    store.database.file.unlink()
    seen = []
    decide(
        store,
        store.journal,
        "helpdesk",
        lambda known: seen.append(list(known.values())) or OutboxDecision(),
        wait_s=1,
    )
    assert seen == [[incident()]]


def test_a_kill_between_archiving_and_deleting_counts_once_and_is_tidied_up(store):
    """Segments that a kill left both in the journal and in the archive are counted once.

    The next compaction removes them from the journal.
    """
    segments = {name: store.journal.segments.read(name) for name in store.journal.segments.list_segments()}
    compact_segments(store, before=LATER, wait_s=1)
    for name, data in segments.items():
        store.journal.segments.write(name, data)
    orphan = archives(store)[0].with_name("0" * 64 + ".parquet")
    orphan.write_bytes(b"half of it")
    assert check_database(store, wait_s=1).is_sound
    rebuild_database(store, wait_s=1)
    assert count(store, "results") == 5
    compact_segments(store, before=LATER, wait_s=1)
    assert store.journal.segments.list_segments() == []
    assert not orphan.exists()


def test_a_damaged_archive_is_noticed_and_the_rest_goes_on(store):
    compact_segments(store, before=LATER, wait_s=1)
    parquet = next(file for file in archives(store) if file.suffix == ".parquet")
    data = bytearray(parquet.read_bytes())
    data[len(data) // 2] ^= 1
    parquet.write_bytes(data)
    append_run(store, "run-2")
    kinds = {problem.kind for problem in check_database(store, wait_s=1).problems}
    assert CheckProblemKind.SEGMENT_DAMAGED in kinds
    report = rebuild_database(store, wait_s=1)
    assert len(report.loaded.damaged) == 1
    assert "a backup" in report.loaded.damaged[0].error
    assert not report.has_all_data
    assert {each.restored_rows for each in report.missing} == {each.rows for each in report.missing}
    assert count(store, "results") == 10, "what the archive held is there from the old file"


def test_without_a_place_for_the_archive_nothing_is_deleted(store):
    (store.database.file.parent / "journal" / "_archive").write_text("mine")
    with pytest.raises(WarehouseUnwritable, match="_archive"):
        compact_segments(store, before=LATER, wait_s=1)
    assert len(store.journal.segments.list_segments()) == 6
