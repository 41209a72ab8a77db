from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from monitors.errors import ConfigError, WarehouseUnwritable
from tests.warehouse.sample_rows import NOON, assessment, deploy, exchange, suite
from tests.warehouse.temporary_stores import SteppingClock, seeded_entropy
from warehouse.journal.journal import Journal
from warehouse.journal.rows import AssessmentRow, CaseRow, DeployRow, ResultRow


def journal_in(folder, *, clock=None, seed=1) -> Journal:
    return Journal(folder, clock=clock or SteppingClock(), entropy=seeded_entropy(seed))


def test_a_run_is_read_back_in_the_order_of_writing(tmp_path):
    journal = journal_in(tmp_path)
    written = []
    for number in range(20):
        case = f"case-{number}"
        rows = [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case))]
        journal.append(rows, run_id="run-1")
        written += rows
    journal.append([ResultRow(row=exchange("run-2"))], run_id="run-2")
    journal.append([DeployRow(row=deploy())], run_id=None)
    assert list(journal_in(tmp_path, seed=2).read_run("run-1")) == written
    assert list(journal.read_run("never-ran")) == []


def test_a_suite_is_stored_once(tmp_path):
    journal = journal_in(tmp_path)
    first = journal.append_suite(suite(4))
    assert journal_in(tmp_path, seed=2).append_suite(suite(4)) == first
    assert len(journal.segments.list_segments()) == 1
    rows = list(journal.read(journal.segments.list_segments()[0]).rows())
    assert [row.row.case for row in rows if isinstance(row, CaseRow)] == list(suite(4).cases)


def test_files_of_a_killed_writer_are_ignored_and_removed_when_old(tmp_path):
    clock = SteppingClock()
    journal = journal_in(tmp_path, clock=clock)
    journal.append([ResultRow(row=exchange())], run_id="run-1")
    whole = tmp_path / journal.segments.list_segments()[0]
    left = whole.with_name(f".{whole.name}.77-1.tmp")
    left.write_bytes(whole.read_bytes()[:40])
    os.utime(left, (NOON.timestamp(), NOON.timestamp()))
    assert len(list(journal.read_run("run-1"))) == 1
    assert journal.remove_stale_files() == 0, "its writer may still be at it"
    clock.skip(hours=2)
    assert journal.remove_stale_files() == 1
    assert [file.name for file in whole.parent.iterdir()] == [whole.name]


def test_a_damaged_segment_is_passed_over_on_resuming(tmp_path):
    journal = journal_in(tmp_path)
    for case in ("a", "b"):
        journal.append([ResultRow(row=exchange(case_id=case))], run_id="run-1")
    first = tmp_path / journal.segments.list_segments()[0]
    first.write_bytes(first.read_bytes()[:-5])
    assert [row.row.case_id for row in journal.read_run("run-1") if isinstance(row, ResultRow)] == ["b"]


@pytest.mark.parametrize("run_id", ["../evil", "a/b", "..", "", "_shared", "a..b"])
def test_f85_a_run_id_cannot_leave_the_journal(tmp_path, run_id):
    journal = journal_in(tmp_path / "journal")
    with pytest.raises(ValueError, match="run_id"):
        journal.append([DeployRow(row=deploy())], run_id=run_id)
    with pytest.raises(ConfigError, match="not a valid run id"):
        list(journal.read_run(run_id))
    assert list(tmp_path.iterdir()) == []


def test_threads_append_at_once_without_losing_any(tmp_path):
    journal = journal_in(tmp_path, clock=lambda: NOON)
    with ThreadPoolExecutor(8) as pool:
        ids = list(
            pool.map(
                lambda number: journal.append([ResultRow(row=exchange(case_id=f"c{number}"))], run_id="run-1"),
                range(100),
            )
        )
    assert len(set(ids)) == 100
    assert len(list(journal.read_run("run-1"))) == 100


def test_a_file_where_the_folder_must_be_is_said(tmp_path):
    (tmp_path / "journal").write_text("mine")
    with pytest.raises(WarehouseUnwritable, match=r"journal.*; a (file|part) .*choose another data folder"):
        journal_in(tmp_path / "journal").append([DeployRow(row=deploy())], run_id=None)


APPEND = """
import os, sys, resource
from pathlib import Path
from monitors.errors import WarehouseUnwritable
from tests.warehouse.journal.test_journal import journal_in, big_row
kind, folder = sys.argv[1], Path(sys.argv[2])
if kind == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
elif os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    journal_in(folder).append([big_row()], run_id="run-1")
except WarehouseUnwritable as error:
    print(error)
"""


def big_row() -> ResultRow:
    return ResultRow(row=exchange(text="long " * 20_000))


@pytest.mark.parametrize(
    ("kind", "advice"), [("full", "the file size limit is reached"), ("read-only", "no permission")]
)
@pytest.mark.whole_only
def test_a_place_that_cannot_be_written_is_named_with_what_to_do(tmp_path, kind, advice):
    """If a folder cannot be written or the disk is full, the error says what to do, and no partial file remains.

    The test uses a real limit and real permissions in a separate process.
    """
    folder = tmp_path / "journal"
    folder.mkdir(mode=0o755)
    for each in (tmp_path, *tmp_path.parents):
        if each.owner() == folder.owner() and each != each.parent and "pytest" in str(each):
            each.chmod(0o755)
    if os.getuid() != 0 and kind == "read-only":
        folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", APPEND, kind, str(folder)], capture_output=True, text=True, check=False
    )
    assert advice in done.stdout, done.stderr
    assert str(folder) in done.stdout
    assert [file for file in folder.rglob("*") if file.is_file()] == []


def test_ids_follow_time_across_restarts(tmp_path):
    early = journal_in(tmp_path, clock=lambda: NOON).append([DeployRow(row=deploy())], run_id=None)
    late = journal_in(tmp_path, clock=lambda: NOON + timedelta(seconds=1)).append(
        [DeployRow(row=deploy("later"))], run_id=None
    )
    assert early < late
