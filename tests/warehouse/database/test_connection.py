from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from monitors.errors import QueryInvalid, WarehouseBusy
from tests.soak.forked_process import forked
from tests.warehouse.sample_rows import exchange
from tests.warehouse.temporary_stores import count, store_in
from warehouse.database.connection import Deadline, WaitPolicy, acquire_lock, open_connection
from warehouse.journal.rows import ResultRow


class FakeTime:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def patience(self) -> WaitPolicy:
        return WaitPolicy(lambda: self.now_s, self.sleep)


def test_waiting_grows_up_to_a_tenth_of_a_second_and_ends_on_time():
    time = FakeTime()
    deadline = Deadline(time.patience(), 1.0)
    while deadline.pause():
        pass
    assert time.pauses[0] == 0.005
    assert max(time.pauses) == 0.1
    assert sum(time.pauses) == pytest.approx(1.0)


def test_no_waiting_means_one_try():
    time = FakeTime()
    assert not Deadline(time.patience(), 0).pause()
    assert time.pauses == []


def test_a_second_writer_in_the_same_process_waits_for_the_first(tmp_path):
    store = store_in(tmp_path)
    with store.database.open_for_writing(1), pytest.raises(WarehouseBusy):
        store.load_pending(0)
    store.load_pending(0)


def test_a_reader_waits_for_a_writer_of_the_same_process(tmp_path):
    """A reader waits for a writer in the same process.

    DuckDB itself would reject the reader's connection at once.
    """
    store = store_in(tmp_path)
    writing = threading.Event()
    free = threading.Event()

    def write() -> None:
        with store.database.open_for_writing(1):
            writing.set()
            free.wait(30)

    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(write)
        writing.wait(30)
        with pytest.raises(WarehouseBusy):
            store.query("select 1", wait_s=0.05)
        reader = pool.submit(store.query, "select 1", wait_s=30)
        free.set()
        assert reader.result().rows == ((1,),)
        writer.result()


def test_readers_do_not_wait_for_each_other(tmp_path):
    store = store_in(tmp_path)
    store.load_pending(1)
    with store.database.open_for_reading(1), store.database.open_for_reading(0) as other:
        assert other.execute("select 1").fetchall() == [(1,)]


def test_threads_that_load_query_and_append_at_once_all_succeed(tmp_path):
    store = store_in(tmp_path)

    def work(number: int) -> None:
        store.journal.append([ResultRow(row=exchange(case_id=f"case-{number}"))], run_id="run-1")
        store.load_pending(60)
        store.query("select count(*) from results", wait_s=60)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert count(store, "results") == 12


def test_readers_who_follow_each_other_do_not_bar_a_writer(tmp_path):
    """While a writer waits for the file, no new reader starts at first, so that readers cannot keep the writer out.

    If the writer waits for more than two seconds, for example because of one long reader, other readers can start
    from time to time.
    """
    file = tmp_path / "file"
    time = FakeTime()
    let_in: list[float] = []

    def sleep(seconds: float) -> None:
        """Advance the clock. In each pause of the writer, let another process try to read."""
        time.sleep(seconds)
        try:
            with acquire_lock(file, Deadline(FakeTime().patience(), 0), exclusive=False):
                let_in.append(time.now_s)
        except WarehouseBusy:
            pass

    def write(wait_s: float) -> None:
        with acquire_lock(file, Deadline(WaitPolicy(lambda: time.now_s, sleep), wait_s), exclusive=True):
            pass

    with acquire_lock(file, Deadline(time.patience(), 0), exclusive=False), pytest.raises(WarehouseBusy):
        write(10)
    assert time.now_s == pytest.approx(10)
    assert [now for now in let_in if now < 2] == []
    assert [now for now in let_in if 2 < now < 3] != []
    assert len(let_in) < len(time.pauses) / 2
    write(0)


READ = """
import os, sys
from pathlib import Path
from tests.warehouse.temporary_stores import bare_store_in
store = bare_store_in(Path(sys.argv[1]))
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print(store.query("select count(*) from results").rows)
"""


def test_a_user_without_write_permission_can_read(tmp_path):
    (tmp_path / "data").mkdir()
    store = store_in(tmp_path / "data")
    store.load_pending(1)
    store.database.file.with_name("warehouse.duckdb.lock").unlink()
    for folder in (tmp_path, *tmp_path.parents):
        if "pytest" in str(folder):
            folder.chmod(0o755)
    (tmp_path / "data").chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, str(tmp_path / "data")], capture_output=True, text=True, check=False
        )
    finally:
        (tmp_path / "data").chmod(0o755)
    assert done.stdout == "((0,),)\n", done.stderr
    assert not store.database.file.with_name("warehouse.duckdb.lock").exists()


def test_the_next_connection_has_no_table_setting_or_attached_file_of_the_last(tmp_path):
    for name in ("first.duckdb", "second.duckdb", "other.duckdb"):
        with open_file(tmp_path / name) as connection:
            connection.execute("create table named as select ? as name", [name])
    with open_file(tmp_path / "first.duckdb") as connection:
        connection.execute("create temp table scratch as select 1")
        connection.execute("set timezone = 'Asia/Tokyo'")
        connection.execute(f"attach '{tmp_path / 'other.duckdb'}' as other")
    with open_file(tmp_path / "other.duckdb"), open_file(tmp_path / "second.duckdb") as connection:
        names = connection.execute("select name from named").fetchall()
        tables = connection.execute("select table_name from duckdb_tables()").fetchall()
        zone = connection.execute("select current_setting('timezone')").fetchall()
    assert (names, tables, zone) == ([("second.duckdb",)], [("named",)], [("UTC",)])


def test_duckdb_is_started_once_for_all_accesses(tmp_path, monkeypatch):
    with open_file(tmp_path / "first.duckdb"):
        pass
    monkeypatch.delattr(duckdb, "connect")
    for name in ("first.duckdb", "second.duckdb"):
        with open_file(tmp_path / name):
            pass


def test_after_a_query_of_a_person_lookout_can_open_the_file_again(tmp_path):
    store = store_in(tmp_path)
    for _ in range(3):
        assert store.query_for_user("select 1").rows == ((1,),)
        store.load_pending(1)


def test_a_query_of_a_person_reads_no_file(tmp_path):
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(QueryInvalid, match="disabled by configuration"):
        store_in(tmp_path).query_for_user(f"from '{tmp_path / 'secret.csv'}'")


def test_large_queries_spill_into_a_folder_beside_the_file(tmp_path):
    for name in ("first.duckdb", "second.duckdb"):
        with open_file(tmp_path / name) as connection:
            folder = connection.execute("select current_setting('temp_directory')").fetchone()
        assert folder == (f"{tmp_path / name}.tmp",)


def test_after_a_query_that_spilled_to_disk_another_file_can_be_opened(tmp_path):
    with open_file(tmp_path / "large.duckdb") as connection:
        connection.execute("set memory_limit = '80MB'")
        connection.execute("create table t as select range, hash(range)::varchar as text from range(3_000_000)")
        connection.execute("select * from t order by text limit 2_900_000").fetchmany(1)
        assert (tmp_path / "large.duckdb.tmp").exists()
    assert read_version(tmp_path / "small.duckdb")
    assert not (tmp_path / "large.duckdb.tmp").exists()


def test_a_forked_process_can_open_a_file(tmp_path):
    with open_file(tmp_path / "parent.duckdb"):
        pass
    child = forked(lambda say: say(read_version(tmp_path / "child.duckdb")))
    assert child.rest() == [read_version(tmp_path / "parent.duckdb")]


def read_version(file) -> str:
    with open_file(file) as connection:
        (row,) = connection.execute("select version()").fetchall()
    return str(row[0])


def open_file(file):
    return open_connection(file, Deadline(FakeTime().patience(), 1), read_only=False)
