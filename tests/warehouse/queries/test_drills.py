"""Test that fire drills are stored separately from runs and never count in a figure about an application.

The drills are listed newest first.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest

from monitors.records.self_checks import DrillStation, StationState
from tests.warehouse.sample_drills import BEGAN, drill, station
from tests.warehouse.temporary_stores import count, store_in
from warehouse.journal.rows import DrillRow
from warehouse.queries.drills import find_last_drill

FAILED = drill(
    stations=(station(DrillStation.SLACK, StationState.FAILED, "the token was revoked", "set SLACK_BOT_TOKEN"),)
)


def test_the_newest_drill_is_read_back_as_it_was_written(tmp_path):
    """If two drills are stored, the later one is read, with its stations.

    Before the first drill, ``None`` is returned.
    """
    store = store_in(tmp_path)
    assert find_last_drill(store) is None
    later = FAILED.model_copy(update={"drill_id": "drill-2", "started_at": BEGAN + timedelta(days=7)})
    store.journal.append([DrillRow(row=later), DrillRow(row=drill())], run_id=None)
    store.load_pending(5)
    assert find_last_drill(store) == later


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_drill_that_stored_itself_on_its_way_is_replaced_by_its_end(tmp_path, order):
    """A drill is stored while it runs and again at its end. Only the record of its end counts.

    This is true in any order of loading. The record contains the failed station with the reason and what to do.
    """
    store = store_in(tmp_path)
    for one in (drill(finished=False), FAILED):
        store.journal.append([DrillRow(row=one)], run_id=None)
    names = [name for name in store.journal.segments.list_segments() if not name.startswith("_suites")]
    hidden = {name: store.journal.segments.read(name) for name in names}
    files = [store.database.file.parent / "journal" / name for name in names]
    for file in files:
        file.unlink()
    for place in order:
        files[place].write_bytes(hidden[names[place]])
        store.load_pending(5)
    rows = store.query("select finished, passed, failed_station, found, to_do from last_drills").rows
    assert rows == ((True, False, "Slack", "the token was revoked", "set SLACK_BOT_TOKEN"),)


def test_a_drill_is_in_no_table_that_scores_are_made_of(tmp_path):
    """After a drill was loaded, every table of results is still empty: runs, answers, grades, tallies."""
    store = store_in(tmp_path)
    store.journal.append([DrillRow(row=drill())], run_id=None)
    store.load_pending(5)
    tables = [str(row[0]) for row in store.query("select table_name from duckdb_tables()").rows]
    filled = {table for table in tables if not table.startswith("lookout") and count(store, table)}
    assert filled - {"segments", "view_set"} == {"drills"}
