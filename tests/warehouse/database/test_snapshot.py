"""Test the copy of the warehouse that the site reads.

The copy blocks no process, no process blocks the copy, and the copy is always complete.
"""

from __future__ import annotations

import threading

import pytest

from monitors.errors import WarehouseBusy, WarehouseUnwritable
from tests.warehouse.sample_rows import assessment
from tests.warehouse.temporary_stores import count, store_in
from warehouse.database.snapshot import build_snapshot_and_store, remove_snapshots
from warehouse.journal.rows import AssessmentRow


def add(store, name):
    """Add a segment with one assessment to the journal, and load it."""
    store.journal.append([AssessmentRow(row=assessment("run-1", name))], run_id="run-1")
    store.load_pending(5)


def test_a_reader_goes_on_while_a_writer_has_the_file(tmp_path):
    """While a writer keeps the warehouse open, a query of the copy returns at once.

    The query sees the previous content.
    """
    store = store_in(tmp_path)
    add(store, "case-1")
    snapshot, copy = build_snapshot_and_store(store)
    assert snapshot.refresh(5)
    with store.database.open_for_writing(5) as connection:
        connection.execute("delete from assessments")
        assert count(copy, "assessments") == 1
        before = snapshot.as_of
        with pytest.raises(WarehouseBusy):
            snapshot.source.copy_and_return_version(tmp_path / "other.duckdb", 0.0)
        assert snapshot.as_of == before
    assert snapshot.refresh(5)
    assert count(copy, "assessments") == 0
    snapshot.close()


def test_the_copy_is_renewed_only_where_something_changed(tmp_path):
    """The copy is renewed after a load, but not if the warehouse is unchanged."""
    store = store_in(tmp_path)
    snapshot, copy = build_snapshot_and_store(store)
    assert [snapshot.refresh(5), snapshot.refresh(5)] == [True, False]
    add(store, "case-1")
    assert [snapshot.refresh(5), snapshot.refresh(5)] == [True, False]
    assert count(copy, "assessments") == 1
    snapshot.close()


def test_a_reader_of_an_old_copy_finishes_with_it(tmp_path):
    """A running query keeps its rows while the copy is replaced. After the query, only the new copy remains."""
    store = store_in(tmp_path)
    add(store, "case-1")
    snapshot, copy = build_snapshot_and_store(store)
    snapshot.refresh(5)
    with snapshot.open_cursor() as old:
        add(store, "case-2")
        assert snapshot.refresh(5)
        assert old.execute("select count(*) from assessments").fetchone() == (1,)
        assert count(copy, "assessments") == 2
    assert len(list((tmp_path / "snapshots").glob("warehouse-*.duckdb"))) == 1
    snapshot.close()


def test_two_sites_share_one_copy(tmp_path):
    """If two sites read the same warehouse, the second site opens the copy that the first site made."""
    store = store_in(tmp_path)
    (first, one), (second, other) = build_snapshot_and_store(store), build_snapshot_and_store(store)
    first.refresh(5)
    made = list((tmp_path / "snapshots").glob("warehouse-*.duckdb"))
    second.refresh(5)
    assert list((tmp_path / "snapshots").glob("warehouse-*.duckdb")) == made
    add(store, "case-1")
    second.refresh(5)
    first.refresh(5)
    assert count(one, "assessments") == count(other, "assessments") == 1
    first.close()
    second.close()


def test_an_unfinished_copy_is_not_used(tmp_path):
    """A copy that was not completed is not used, but made again."""
    store = store_in(tmp_path)
    add(store, "case-1")
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "making.duckdb").write_bytes(b"half")
    (tmp_path / "snapshots" / "making.duckdb.wal").write_bytes(b"half")
    snapshot, copy = build_snapshot_and_store(store)
    assert snapshot.refresh(5)
    assert count(copy, "assessments") == 1
    snapshot.close()


def test_a_copy_is_never_written(tmp_path):
    """A write to the copy is rejected, because the next copy would lose the change."""
    snapshot, copy = build_snapshot_and_store(store_in(tmp_path))
    snapshot.refresh(5)
    with pytest.raises(WarehouseUnwritable, match="read-only copy"):
        copy.load_pending(1)
    snapshot.close()


def test_copies_are_removed_with_what_is_removed_from_the_warehouse(tmp_path):
    """`remove_snapshots` deletes all copies, so that no copy keeps data that was deleted from the warehouse."""
    store = store_in(tmp_path)
    snapshot, _ = build_snapshot_and_store(store)
    snapshot.refresh(5)
    snapshot.close()
    remove_snapshots(tmp_path)
    assert not list((tmp_path / "snapshots").glob("*.duckdb"))


@pytest.mark.whole_only
def test_many_readers_and_a_loader_at_once(tmp_path):
    """While rows are loaded and copies are replaced, readers get no error, and the number of rows never falls."""
    store = store_in(tmp_path)
    snapshot, copy = build_snapshot_and_store(store)
    snapshot.refresh(5)
    stop, wrong = threading.Event(), []

    def read():
        seen = 0
        while not stop.is_set():
            try:
                now = count(copy, "assessments")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test is about
                wrong.append(error)
                return
            wrong.extend([(seen, now)] if now < seen else [])
            seen = now

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(10):
        add(store, f"case-{number}")
        snapshot.refresh(5)
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert count(copy, "assessments") == 10
    snapshot.close()
