"""Test that `lookout warehouse rebuild` installs only a complete new file, and reports every loss."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from deployments.cli.exit_codes import ExitCode
from flows.data_folder import open_store_in
from monitors.errors import WarehouseError
from monitors.records.base import Severity
from tests import fork_server
from tests.builders import assessment, exchange, gold_case
from tests.conftest import ROOT
from tests.warehouse.sample_rows import run_report
from warehouse.database.connection import translate_error
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow

CASES = 40
TOO_SMALL_BYTES = 1_300_000
"""A limit of the file size in bytes: enough for the new file's log (0.3 MB), too small for the new file (3 MB)."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with one loaded run. Each answer has its own segment.

    Several tests share the folder: copy it, do not change it.
    """
    folder = tmp_path_factory.mktemp("filled") / "data"
    fill(folder)
    return folder


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder `filled` that a test can change."""
    return shutil.copytree(filled, tmp_path / "data")


def segment_names(data: Path) -> list[str]:
    """Return the names of the run's segments in the order in which they were written."""
    return sorted(file.name for file in (data / "journal" / "run-1").iterdir())


def fill(folder: Path) -> None:
    store, rng = open_store_in(folder), random.Random(1)
    for number in range(CASES):
        case = gold_case(f"case-{number}", severity=Severity.MAJOR)
        rows = (ResultRow(row=exchange(case, rng.randbytes(1000).hex())), AssessmentRow(row=assessment(case)))
        store.journal.append(rows, run_id="run-1")
    store.load_pending(5)


def lookout(*arguments: str, data: Path, limit_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    words = (*arguments, "--data-folder", str(data))
    if limit_bytes is None:
        return fork_server.run(*words, cwd=data.parent, env=os.environ | fork_server.WARM)
    return subprocess.run(
        [sys.executable, "-m", "deployments.cli.app", *words],
        cwd=data.parent,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes)),
    )


def count(data: Path, what: str = "results") -> int:
    return int(str(ask(data, f"select count(*) from {what}")))


def ask(data: Path, sql: str) -> object:
    return open_store_in(data).query(sql).rows[0][0]


def digest(data: Path) -> str:
    return hashlib.sha256((data / "warehouse.duckdb").read_bytes()).hexdigest()


def beside(data: Path) -> Sequence[str]:
    return sorted(path.name for path in data.iterdir() if path.name.startswith("warehouse.duckdb."))


@pytest.mark.whole_only
def test_without_room_for_the_new_file_the_old_one_stays(data):
    """If the new file exceeds a limit of the file size, the old file stays.

    As on a full disk, DuckDB closes the new file without an error.
    """
    before, names = digest(data), beside(data)
    done = lookout("warehouse", "rebuild", data=data, limit_bytes=TOO_SMALL_BYTES)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "File too large" in done.stderr
    assert "damaged" not in done.stderr
    assert (digest(data), beside(data)) == (before, names)
    assert count(data) == CASES


@pytest.mark.whole_only
def test_a_check_without_room_says_so_and_leaves_nothing(data):
    names = beside(data)
    done = lookout("warehouse", "check", data=data, limit_bytes=TOO_SMALL_BYTES)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "File too large" in done.stderr
    assert beside(data) == names


@pytest.mark.whole_only
def test_without_room_for_a_first_file_there_is_none(tmp_path):
    data = tmp_path / "data"
    store = open_store_in(data)
    case = gold_case("case-1", severity=Severity.MAJOR)
    store.journal.append((ResultRow(row=exchange(case)),), run_id="run-1")
    done = lookout("warehouse", "load", data=data, limit_bytes=400_000)
    assert done.returncode == 4, done.stdout + done.stderr
    assert not (data / "warehouse.duckdb").exists()
    assert not {"warehouse.duckdb.new", "warehouse.duckdb.new.wal"} & set(beside(data))
    assert lookout("warehouse", "load", data=data).returncode == 0
    assert count(data) == 1


@pytest.mark.whole_only
def test_on_a_full_disk_the_old_file_stays(tmp_path):
    """On a full file system of 12 MB, a rebuild fails and the old file stays. A rebuild with enough space succeeds.

    The test needs the right to mount a file system.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        data = disk / "data"
        fill(data)
        before = digest(data)
        free = os.statvfs(disk)
        (disk / "other").write_bytes(bytes(free.f_bavail * free.f_bsize - 1_500_000))
        done = lookout("warehouse", "rebuild", data=data)
        assert done.returncode == 4, done.stdout + done.stderr
        assert "No space left" in done.stderr
        assert digest(data) == before
        (disk / "other").unlink()
        assert lookout("warehouse", "check", data=data).returncode == 0
        assert lookout("warehouse", "rebuild", data=data).returncode == 0
        assert count(data) == CASES
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def harm(data: Path, name: str) -> Path:
    segment = data / "journal" / "run-1" / name
    whole = segment.read_bytes()
    segment.write_bytes(whole.replace(b"case-", b"care-", 1))
    return segment


def test_a_rebuild_over_a_damaged_segment_names_it_and_keeps_its_rows(data):
    """If one of 40 segments is damaged, a rebuild has all 40 rows. The lost row comes from the old file.

    The output of the rebuild names the damaged segment.
    """
    name = segment_names(data)[7]
    harm(data, name)
    done = lookout("warehouse", "rebuild", data=data)
    assert done.returncode == 4
    assert f"Rebuilt the warehouse from {CASES - 1} segments" in done.stdout
    assert "no longer readable in the journal" in done.stdout
    assert f"run-1/{name}" in done.stdout
    assert "2 of 2 rows were restored" in done.stdout
    assert (count(data), count(data, "assessments"), count(data, "grades")) == (CASES, CASES, 5 * CASES)
    again = json.loads(lookout("warehouse", "rebuild", "--json", data=data).stdout)
    assert [(lost["name"], lost["restored_rows"]) for lost in again["missing"]] == [(f"run-1/{name}", 2)]
    assert count(data) == CASES


@pytest.mark.whole_only
def test_rows_that_only_the_old_file_has_are_left_out_on_demand(data):
    name = segment_names(data)[7]
    harm(data, name)
    done = lookout("warehouse", "rebuild", "--journal-only", data=data)
    assert done.returncode == 4
    assert f"run-1/{name}" in done.stdout
    assert "0 of 2 rows were restored" in done.stdout
    assert count(data) == CASES - 1


@pytest.mark.whole_only
def test_a_segment_brought_back_makes_the_rebuild_whole(data):
    name = segment_names(data)[7]
    segment = data / "journal" / "run-1" / name
    whole = segment.read_bytes()
    harm(data, name)
    assert lookout("warehouse", "rebuild", data=data).returncode == 4
    segment.write_bytes(whole)
    for left in (data / "journal" / "_damaged").iterdir():
        left.unlink()
    done = lookout("warehouse", "rebuild", data=data)
    assert (done.returncode, "no longer readable in the journal" in done.stdout) == (0, False), done.stdout
    assert lookout("warehouse", "check", data=data).returncode == 0


def test_lost_lines_of_an_unreadable_old_file_are_counted(data):
    """If the old file is unreadable, a rebuild cannot name the lost rows. It takes their number from the ledger."""
    name = segment_names(data)[7]
    (data / "journal" / "run-1" / name).unlink()
    (data / "warehouse.duckdb").write_bytes(b"not a database")
    done = lookout("warehouse", "rebuild", "--json", data=data)
    assert done.returncode == 4
    report = json.loads(done.stdout)
    assert report["unknown"] == 1
    assert count(data) == CASES - 1


def test_a_row_that_a_lost_segment_had_replaced_stays_replaced(tmp_path):
    """If the segment with a case's second answer is lost, a rebuild copies this answer from the old file.

    The segment with the first answer still exists, but the first answer does not replace the second one.
    """
    data = tmp_path / "data"
    store = open_store_in(data)
    case = gold_case("case-1", severity=Severity.MAJOR)
    for text in ("first answer", "second answer"):
        rows = (ResultRow(row=exchange(case, text)), AssessmentRow(row=assessment(case)))
        second = store.journal.append(rows, run_id="run-1")
    store.journal.append((RunRow(row=run_report()),), run_id="run-1")
    store.load_pending(5)
    metrics = count(data, "metrics")
    for lost in (data / "journal" / "run-1").iterdir():
        if lost.stem >= second:
            lost.unlink()
    assert lookout("warehouse", "rebuild", data=data).returncode == 4
    assert ask(data, "select visible_text from results") == "second answer"
    assert (count(data, "runs"), count(data, "metrics")) == (1, metrics)


def test_a_halved_warehouse_is_one_sentence_without_the_database_s_words(data):
    file = data / "warehouse.duckdb"
    os.truncate(file, file.stat().st_size // 2)
    done = lookout("alerts", "list", data=data)
    (line,) = done.stderr.splitlines()
    assert done.returncode == ExitCode.MONITOR
    assert "lookout warehouse rebuild" in line
    assert not [word for word in ("IO Error", "bytes", "Catalog") if word in done.stderr]


def test_a_folder_in_the_warehouse_s_place_is_named_and_moved_aside_by_a_rebuild(data):
    file = data / "warehouse.duckdb"
    file.unlink()
    file.mkdir()
    (file / "notes.txt").write_text("mine", encoding="utf-8")
    refused, rebuilt = (lookout("warehouse", command, data=data) for command in ("load", "rebuild"))
    assert (refused.returncode, rebuilt.returncode) == (ExitCode.MONITOR, ExitCode.PASS)
    assert "is a folder" in refused.stderr
    (aside,) = data.glob("warehouse.duckdb.before-*")
    assert (aside / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert count(data) == CASES


def test_a_rebuild_stores_one_copy(data):
    for _ in range(3):
        assert lookout("warehouse", "rebuild", data=data).returncode == ExitCode.PASS
    assert len(list(data.glob("warehouse.duckdb.before-*"))) == 1
    assert count(data) == CASES


def test_too_little_memory_is_one_sentence(data):
    """If memory runs out, the error is one sentence. DuckDB raises errors of several types for this."""
    file = data / "warehouse.duckdb"
    texts = ("Failed to allocate block of 262144 bytes (bad allocation)", "Failed to commit: Allocation failure")
    errors = [
        translate_error(kind(text), file)
        for kind, text in zip((duckdb.OutOfMemoryException, duckdb.TransactionException), texts, strict=True)
    ]
    assert {type(error) for error in errors} == {WarehouseError}
    assert not [error for error in errors if "llocat" in str(error)]
