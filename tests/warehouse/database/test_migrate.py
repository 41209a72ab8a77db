from __future__ import annotations

import duckdb
import pytest

from monitors.errors import WarehouseError
from tests.warehouse.sample_rows import run_report
from tests.warehouse.temporary_stores import SteppingClock, bare_store_in, count
from warehouse.database.check import DERIVED_TABLES
from warehouse.database.database import Migration, Schema, load_bundled_schema, migrate
from warehouse.journal.rows import RunRow


def test_the_steps_are_numbered_without_gaps():
    numbers = [step.number for step in load_bundled_schema().migrations]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_file_of_the_version_before_opens_and_keeps_its_rows(tmp_path):
    whole, store = load_bundled_schema(), bare_store_in(tmp_path)
    store.journal.append([RunRow(row=run_report())], run_id="run-1")
    store.load_pending(1)
    step = "alter table runs add column mood varchar; update runs set mood = 'calm';"
    newer = Schema([*whole.migrations, Migration(whole.newest + 1, "mood", step)], whole.views)
    later = bare_store_in(tmp_path, seed=2, schema=newer)
    with later.database.open_for_writing(1):
        pass
    rows = later.query("select run_id, mood from runs").rows
    assert rows == (("run-1", "calm"),)
    steps = later.query("select number from lookout_migrations order by number").rows
    assert [row[0] for row in steps] == list(range(1, whole.newest + 2))


def test_a_new_file_has_every_table(tmp_path):
    present = bare_store_in(tmp_path)
    present.load_pending(1)
    for table in (*DERIVED_TABLES, "archives"):
        assert count(present, table) == 0


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path):
    store = bare_store_in(tmp_path)
    store.load_pending(1)
    whole = load_bundled_schema()
    broken = Migration(whole.newest + 1, "broken", "create table half (n integer); select * from nowhere;")
    newer = bare_store_in(tmp_path, seed=2, schema=Schema([*whole.migrations, broken], whole.views))
    with pytest.raises((WarehouseError, duckdb.CatalogException)):
        newer.load_pending(1)
    tables = store.query("select table_name from duckdb_tables()").rows
    assert ("half",) not in tables
    assert count(store, "lookout_migrations") == whole.newest


def test_views_are_renewed_when_they_change_and_only_then(tmp_path):
    bare_store_in(tmp_path).load_pending(1)
    whole = load_bundled_schema()
    changed = whole.views + "\ncreate or replace view answer as select 42 as n;\n"
    newer = bare_store_in(tmp_path, seed=2, schema=Schema(whole.migrations, changed))
    assert newer.query("select n from answer").rows == ((42,),)
    before = newer.database.file.stat().st_mtime_ns
    newer.query("select n from answer")
    assert newer.database.file.stat().st_mtime_ns == before


def test_bringing_up_twice_does_nothing(tmp_path):
    store = bare_store_in(tmp_path)
    with store.database.open_for_writing(1) as connection:
        assert migrate(connection, store.database.file, load_bundled_schema(), SteppingClock()) == []


def test_a_new_file_appears_whole_or_not_at_all(tmp_path):
    """A new warehouse file appears completely or not at all.

    If a process was killed while it created the file, the next process replaces what remained.
    """
    (tmp_path / "warehouse.duckdb.new").write_bytes(b"half a file")
    (tmp_path / "warehouse.duckdb.new.wal").write_bytes(b"half a log")
    store = bare_store_in(tmp_path)
    store.load_pending(1)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == [f"warehouse.duckdb{end}" for end in ("", ".ledger", ".lock", ".turn")]
