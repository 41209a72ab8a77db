from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from monitors.errors import WarehouseBusy
from tests.warehouse.sample_rows import exchange
from tests.warehouse.temporary_stores import count, store_in
from warehouse.database.connection import Deadline, WaitPolicy, acquire_lock
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
        """Advance the clock, and let another process try to read in every pause of the writer."""
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
