from __future__ import annotations

import duckdb
import pytest

from monitors.errors import WarehouseError
from tests.warehouse.places import SteppingClock, bare_store_in, count
from warehouse.check import DERIVED
from warehouse.migrate import Migration, Schema, bring_up, bundled_schema


def schema_up_to(number: int) -> Schema:
    """The steps as an earlier version had them; its views spoke of its own columns and are left out."""
    return Schema([step for step in bundled_schema().migrations if step.number <= number], "select 1;")


def test_the_steps_are_numbered_without_gaps():
    numbers = [step.number for step in bundled_schema().migrations]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("number", range(1, bundled_schema().newest + 1))
def test_a_file_of_every_earlier_version_opens(tmp_path, number):
    with bare_store_in(tmp_path, schema=schema_up_to(number)).database.writing(1):
        pass
    present = bare_store_in(tmp_path, seed=2)
    present.load_pending(1)
    for table in (*DERIVED, "archives"):
        assert count(present, table) == 0
    steps = present.query("select number from lookout_migrations order by number").rows
    assert [row[0] for row in steps] == list(range(1, bundled_schema().newest + 1))


def test_grades_of_an_earlier_version_get_what_the_later_one_would_have_written(tmp_path):
    row = "('run-1', 'case-1', 0, {}, 'g', '1', 'factual_match', 'judged', {}, null, null, '', null, {}, null, null, 0, null)"
    rows = [row.format(0, "false", "null"), row.format(1, "true", "null"), row.format(2, "true", "'judge'")]
    with bare_store_in(tmp_path, schema=schema_up_to(2)).database.writing(1) as connection:
        connection.execute(f"insert into grades values {', '.join(rows)}")
    found = bare_store_in(tmp_path, seed=2).query("select plain_passed from grades order by position").rows
    assert found == ((None,), (None,), (False,))


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path):
    store = bare_store_in(tmp_path)
    store.load_pending(1)
    whole = bundled_schema()
    broken = Migration(whole.newest + 1, "broken", "create table half (n integer); select * from nowhere;")
    newer = bare_store_in(tmp_path, seed=2, schema=Schema([*whole.migrations, broken], whole.views))
    with pytest.raises((WarehouseError, duckdb.CatalogException)):
        newer.load_pending(1)
    assert count(store, "duckdb_tables() where table_name = 'half'") == 0
    assert count(store, "lookout_migrations") == whole.newest


def test_views_are_renewed_when_they_change_and_only_then(tmp_path):
    bare_store_in(tmp_path).load_pending(1)
    whole = bundled_schema()
    changed = whole.views + "\ncreate or replace view answer as select 42 as n;\n"
    newer = bare_store_in(tmp_path, seed=2, schema=Schema(whole.migrations, changed))
    assert newer.query("select n from answer").rows == ((42,),)
    before = newer.database.file.stat().st_mtime_ns
    newer.query("select n from answer")
    assert newer.database.file.stat().st_mtime_ns == before


def test_bringing_up_twice_does_nothing(tmp_path):
    store = bare_store_in(tmp_path)
    with store.database.writing(1) as connection:
        assert bring_up(connection, store.database.file, bundled_schema(), SteppingClock()) == []


def test_a_new_file_appears_whole_or_not_at_all(tmp_path):
    """What a killed creator left beside is replaced, and nothing of it stays."""
    (tmp_path / "warehouse.duckdb.new").write_bytes(b"half a file")
    (tmp_path / "warehouse.duckdb.new.wal").write_bytes(b"half a log")
    store = bare_store_in(tmp_path)
    store.load_pending(1)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == [f"warehouse.duckdb{end}" for end in ("", ".ledger", ".lock", ".turn")]
