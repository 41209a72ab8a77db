"""Test the rows of the fault matrix that concern storage. Each test causes a real fault."""

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from monitors.errors import SchemaTooNew, WarehouseBusy, WarehouseDamaged, WarehouseError, WarehouseUnwritable
from tests.warehouse.crash_worker import longer_schema
from tests.warehouse.sample_rows import assessment, exchange
from tests.warehouse.temporary_stores import bare_store_in, count, store_in
from warehouse.database.check import CheckProblemKind, check_database
from warehouse.database.load import load_journal
from warehouse.database.rebuild import rebuild_database
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, ResultRow

BLOCK_BYTES = 256 * 1024
"""The block size of DuckDB in bytes. Damage to one block does not affect other blocks."""


def append(store: Store, *cases: str) -> None:
    for case in cases:
        rows = [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case))]
        store.journal.append(rows, run_id="run-1")


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run_kills(kills: int, seed: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.soak_warehouse", "--kills", str(kills), "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.whole_only
def test_f76_killed_at_any_step():
    """After a kill at any step, every acknowledged change exists once, and the check reports no fault.

    The test runs a part of the soak test of the warehouse.
    """
    printed = run_kills(kills=4, seed=76)
    assert re.search(r": 0$", printed.strip()), printed


def load_and_abort_checkpoint(store: Store, step: str) -> None:
    with store.database.open_for_writing(1) as connection:
        load_journal(connection, store.journal, store.database.scratch)
        connection.execute(f"set debug_checkpoint_abort = '{step}'")
        connection.execute("checkpoint")


@pytest.mark.parametrize("step", ["before_header", "before_truncate", "after_free_list_write"])
def test_f77_checkpoint_aborted(tmp_path, step):
    store = store_in(tmp_path)
    append(store, "a", "b")
    with pytest.raises(WarehouseError):
        load_and_abort_checkpoint(store, step)
    append(store, "c")
    store.load_pending(1)
    assert count(store, "results") == 3
    assert count(store, "grades") == 9
    assert check_database(store, wait_s=1).problems == ()


def leave_log_behind(store: Store) -> Path:
    """Load pending rows in a process that is killed before it closes the file.

    The loaded rows are then only in the file's write-ahead log, and not in the file itself.
    """
    child = os.fork()
    if child == 0:
        try:
            with store.database.open_for_writing(30) as connection:
                load_journal(connection, store.journal, store.database.scratch)
                store.save_ledger_if_complete(connection)
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)  # a child that failed must never run on as a second copy of the tests
    os.waitpid(child, 0)
    log = store.database.file.with_name("warehouse.duckdb.wal")
    assert log.stat().st_size > 0
    return log


def tear(log: Path, rng: random.Random) -> None:
    os.truncate(log, rng.randrange(log.stat().st_size))


def flip(log: Path, rng: random.Random) -> None:
    data = bytearray(log.read_bytes())
    data[rng.randrange(len(data))] ^= 0xFF
    log.write_bytes(data)


def delete(log: Path, _: random.Random) -> None:
    log.unlink()


@pytest.mark.whole_only
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("damage", [tear, flip, delete])
def test_f78_log_tail_damaged(tmp_path, damage, seed):
    """If the end of the log is damaged, the check detects the damage.

    The load restores the rows, or fails and names the command for a rebuild. A rebuild then has all rows.
    """
    store = store_in(tmp_path)
    append(store, "a", "b")
    store.load_pending(1)
    append(store, "c")
    damage(leave_log_behind(store), random.Random(seed))
    report = check_database(store, wait_s=1)
    assert {problem.kind for problem in report.problems} & {
        CheckProblemKind.LOADED_ROWS_LOST,
        CheckProblemKind.FILE_DAMAGED,
    }
    if report.problems[0].kind is CheckProblemKind.LOADED_ROWS_LOST:
        assert store.load_pending(1).restored == 1
    else:
        with pytest.raises(WarehouseDamaged, match="lookout warehouse rebuild"):
            store.load_pending(1)
    rebuild_database(store, wait_s=1)
    assert count(store, "results") == 3
    assert count(store, "grades") == 9
    assert check_database(store, wait_s=1).is_sound


@pytest.mark.whole_only
def test_f78_file_itself_damaged(tmp_path):
    """If a damaged file has changed rows, the check reports a fault, and a rebuild restores the rows."""
    store = store_in(tmp_path)
    append(store, *(f"case-{number}" for number in range(50)))
    store.load_pending(1)
    whole = store.database.file.read_bytes()
    noticed = 0
    for place in range(0, len(whole), BLOCK_BYTES):
        store.database.file.write_bytes(whole[:place] + b"\xa5" * 4096 + whole[place + 4096 :])
        noticed += not check_database(store, wait_s=1).is_sound
    assert noticed >= 2, "free blocks can be overwritten without harm, those in use not"
    rebuild_database(store, wait_s=1)
    assert check_database(store, wait_s=1).is_sound
    assert count(store, "results") == 50


@pytest.mark.whole_only
def test_f78_a_query_that_meets_a_changed_block_names_the_file(tmp_path):
    store = store_in(tmp_path)
    append(store, *(f"case-{number}" for number in range(50)))
    store.load_pending(1)
    whole, damaged = store.database.file.read_bytes(), 0
    for place in range(3 * 4096 + 100, len(whole), BLOCK_BYTES):
        store.database.file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            store.query("from results")
        except WarehouseDamaged as error:
            assert str(store.database.file) in str(error)  # noqa: PT017 - the free blocks raise nothing
            damaged += 1
    assert damaged >= 3


HOLDER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reader")
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("kind", ["reader", "writer"])
def test_f79_file_held_by_a_stranger(tmp_path, kind):
    """If another process holds the file open, the wait for it is limited, and the run continues without loading.

    When that process ends, everything is loaded.
    """
    store = store_in(tmp_path)
    store.load_pending(1)
    command = [sys.executable, "-c", HOLDER, str(store.database.file), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WarehouseBusy, match="safe in the journal"):
            store.load_pending(0.2)
        append(store, "a")
        assert len(list(store.journal.read_run("run-1"))) == 2
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert store.load_pending(30).segments == 1
    assert count(store, "results") == 1


def test_f80_older_file_is_migrated_and_keeps_its_rows(tmp_path):
    old = store_in(tmp_path)
    append(old, "a")
    old.load_pending(1)
    new = store_in(tmp_path, seed=2, schema=longer_schema(2))
    assert count(new, "results") == 1
    append(new, "b")
    new.load_pending(1)
    assert count(new, "extra_2") == 20_000
    found = new.query("select number, name from lookout_migrations order by number").rows
    assert [name for _, name in found][-2:] == ["extra_1", "extra_2"]
    assert check_database(new, wait_s=1).is_sound


def test_f80_newer_file_is_refused_and_left_alone(tmp_path):
    new = store_in(tmp_path, schema=longer_schema(1))
    new.load_pending(1)
    before = digest(new.database.file)
    old = store_in(tmp_path, seed=2)
    append(old, "a")
    for use in (lambda: old.load_pending(1), lambda: old.query("select 1"), lambda: check_database(old, wait_s=1)):
        with pytest.raises(SchemaTooNew, match="update Lookout"):
            use()
    assert digest(new.database.file) == before
    new.load_pending(1)
    assert count(new, "results") == 1


def make_empty(file: Path) -> None:
    file.touch()


def make_garbage(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(10_000))


def make_short(file: Path) -> None:
    file.write_bytes(b"DUCK")


def make_sqlite(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("create table t (n)")
    connection.close()


def make_other_duckdb(file: Path) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("create table precious as select 42 as n")


@pytest.mark.parametrize("make", [make_empty, make_garbage, make_short, make_sqlite, make_other_duckdb])
def test_f81_a_file_that_is_no_warehouse_is_never_overwritten(tmp_path, make):
    store = bare_store_in(tmp_path)
    append(store, "a")
    make(store.database.file)
    before = digest(store.database.file)
    for use in (lambda: store.load_pending(1), lambda: store.query("select 1")):
        with pytest.raises((WarehouseDamaged, WarehouseUnwritable), match=r"warehouse\.duckdb .*did not change it"):
            use()
    assert digest(store.database.file) == before
    report = rebuild_database(store, wait_s=1)
    assert report.stored_at is not None
    assert digest(Path(report.stored_at)) == before
    assert count(store, "results") == 1


def test_f81_a_folder_in_the_file_s_place(tmp_path):
    store = bare_store_in(tmp_path)
    store.database.file.mkdir()
    with pytest.raises(WarehouseError, match=r"warehouse\.duckdb"):
        store.load_pending(1)


@pytest.mark.whole_only
def test_f78_a_damaged_index_is_reported_by_the_write_that_meets_it(tmp_path):
    """If an index in the file is damaged, the next load is either correct or fails with advice.

    A rebuild then loses nothing.
    """
    store = store_in(tmp_path)
    append(store, "a", "b")
    store.load_pending(1)
    append(store, "c")
    whole, failures = store.database.file.read_bytes(), 0
    for place in range(12 * 1024, len(whole), len(whole) // 12):
        store.database.file.write_bytes(whole[:place] + b"\xa5" * 64 + whole[place + 64 :])
        failures += not loads_right(store, 3)
    assert failures >= 1
    rebuild_database(store, wait_s=1)
    assert count(store, "results") == 3


def loads_right(store: Store, results: int) -> bool:
    """Return whether the load succeeded with ``results`` rows.

    Check that the error of a failed load names the command for a rebuild.
    """
    said = ""
    try:
        store.load_pending(1)
        assert count(store, "results") == results
    except WarehouseDamaged as error:
        said = str(error)
    assert not said or "lookout warehouse rebuild" in said
    return not said
