from __future__ import annotations

import hashlib
from datetime import timedelta

import duckdb
import pytest

from monitors.errors import ConfigError, WarehouseUnwritable
from monitors.storage import move
from tests.warehouse.sample_rows import NOON, assessment, deploy, exchange, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.database.check import DERIVED_TABLES
from warehouse.database.parquet import DAY_EXPRESSIONS, export_parquet
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, DeployRow, ResultRow, RunRow

FIRST = NOON.date()


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with the rows of three days, with one run each day."""
    store = store_in(tmp_path)
    for number in range(3):
        run_id = f"run-{number}"
        asked = exchange(run_id).model_copy(update={"asked_at": NOON + timedelta(days=number)})
        store.journal.append([ResultRow(row=asked), AssessmentRow(row=assessment(run_id))], run_id=run_id)
        store.journal.append([RunRow(row=run_report(run_id, hours=24 * number))], run_id=run_id)
    store.journal.append([DeployRow(row=deploy())], run_id=None)
    store.journal.append_suite(suite())
    store.load_pending(1)
    return store


def test_every_table_of_facts_is_exported_and_checked(store):
    """Every table of facts is exported, and the export is checked.

    Add a new table to `DERIVED_TABLES` and `DAY_EXPRESSIONS`.

    Tables about the state of the file or the position of a reader are not facts.
    """
    found = store.query("select table_name from duckdb_tables() where not internal and not temporary").rows
    bookkeeping = {"segments", "archives", "leases", "lookout_migrations", "view_set"}
    facts = {str(row[0]) for row in found} - bookkeeping
    assert facts == set(DERIVED_TABLES)
    assert facts - {"quarantined_lines", "log_cursors"} == set(DAY_EXPRESSIONS)


def days(goal, table):
    return sorted(folder.name for folder in (goal / table).iterdir())


def digests(goal):
    return {
        str(file.relative_to(goal)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in goal.rglob("*.parquet")
    }


def test_every_day_has_a_folder_and_every_row_is_there(store, tmp_path):
    goal = tmp_path / "lake"
    report = export_parquet(store, goal, since=FIRST, until=FIRST + timedelta(days=9), wait_s=1)
    assert days(goal, "grades") == ["day=2026-03-01", "day=2026-03-02", "day=2026-03-03"]
    assert days(goal, "deploys") == ["day=2026-03-01"]
    found = duckdb.sql(f"select count(*) from read_parquet('{goal}/grades/**/*.parquet', hive_partitioning=true)")
    assert found.fetchall() == [(9,)]
    assert days(goal, "cases") == ["day=2026-03-01"], "with the first of three runs that asked them"
    metrics_and_tallies = 3 + 9
    assert report.rows == 3 + 3 + 9 + 3 + 1 + 3 + metrics_and_tallies
    assert report.files == 13 + 1 + 6


def test_exporting_twice_gives_the_same_files(store, tmp_path):
    goal = tmp_path / "lake"
    span = {"since": FIRST, "until": FIRST + timedelta(days=9), "wait_s": 1}
    export_parquet(store, goal, **span)
    before = digests(goal)
    export_parquet(store, goal, **span)
    assert digests(goal) == before


def test_at_most_one_day_of_a_table_is_missing_during_an_export(store, tmp_path, monkeypatch):
    goal = tmp_path / "lake"
    span = {"since": FIRST, "until": FIRST + timedelta(days=9), "wait_s": 1}
    export_parquet(store, goal, **span)
    day_counts = []

    def move_and_count(new, old):
        if old.parent.name == "results":
            day_counts.append(len(days(goal, "results")))
        move(new, old)

    monkeypatch.setattr("warehouse.database.parquet.move", move_and_count)
    export_parquet(store, goal, **span)
    assert day_counts == [2, 2, 2]


def test_only_the_days_asked_for_are_touched(store, tmp_path):
    goal = tmp_path / "lake"
    export_parquet(store, goal, since=FIRST, until=FIRST + timedelta(days=9), wait_s=1)
    before = digests(goal)
    with store.database.open_for_writing(1) as connection:
        connection.execute("delete from results where run_id in ('run-0', 'run-1')")
    export_parquet(store, goal, since=FIRST, until=FIRST, wait_s=1)
    assert days(goal, "results") == ["day=2026-03-02", "day=2026-03-03"]
    assert {name: each for name, each in before.items() if "03-02" in name or "03-03" in name}.items() <= digests(
        goal
    ).items()


def test_a_span_the_wrong_way_round_is_said(store, tmp_path):
    with pytest.raises(ConfigError, match="is after"):
        export_parquet(store, tmp_path / "lake", since=FIRST, until=FIRST - timedelta(days=1), wait_s=1)


def test_a_file_in_the_export_s_place_is_left_alone(store, tmp_path):
    goal = tmp_path / "lake"
    goal.write_text("mine")
    with pytest.raises(WarehouseUnwritable, match="lake"):
        export_parquet(store, goal, since=FIRST, until=FIRST, wait_s=1)
    assert goal.read_text() == "mine"
