"""Test the permissions of the data folder: only the owner can access it, and its files follow the umask.

No symbolic link in the folder is followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.data_folder import open_store_in
from flows.deploys.queue import DeployOutcome, DeployQueue, QueuedDeploy
from flows.process_lock import hold_job_lock
from flows.verify.run_folder import RunStart, begin_run
from monitors.errors import ConfigError, WarehouseError, WarehouseUnwritable
from monitors.records.base import Severity
from monitors.records.targets import DeployEvent, ReportedDeploy
from monitors.storage import make_private_folder, write_atomically, write_once
from tests.builders import NOON, TARGET, assessment, exchange, gold_case
from warehouse.data_folder import open_lock_file
from warehouse.journal.rows import AssessmentRow, ResultRow
from warehouse.journal.segments import LocalSegments

SECRET = "the data of another user"


@pytest.fixture(params=[0o022, 0o077, 0o002], ids=oct)
def umask(request) -> Iterator[int]:
    """Set the umask of the test process to each of several values that users have."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def a_run(data: Path) -> None:
    """Write the files of one run to the data folder."""
    store = open_store_in(data)
    case = gold_case("case-1", severity=Severity.MAJOR)
    store.journal.append((ResultRow(row=exchange(case)), AssessmentRow(row=assessment(case))), run_id="run-1")
    store.load_pending(5)


def start(run_id: str) -> RunStart:
    return RunStart(run_id=run_id, target=TARGET, suite_sha256="0" * 64, commit=None, started_at=NOON)


def test_every_folder_that_is_made_is_its_owners_alone_and_files_follow_the_umask(tmp_path, umask):
    data = tmp_path / "new" / "data"
    a_run(data)
    with begin_run(data / "runs", start("run-1")), hold_job_lock(data / "locks", "job", wait_s=1):
        write_atomically(data / "runs" / "run-1" / "results.json", "{}")
    made = list(data.rglob("*"))
    assert {mode(path) for path in (data, *made) if path.is_dir()} == {0o700}
    assert {mode(path) for path in made if path.is_file()} == {0o666 & ~umask}


def test_a_folder_that_stands_already_stays_as_it_is(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o750)
    a_run(tmp_path / "data")
    assert mode(tmp_path / "data") == 0o750


def test_the_data_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    a_run(tmp_path / "data")
    assert (tmp_path / "disk" / "journal" / "run-1").is_dir()


@pytest.mark.parametrize("link", ["journal", "runs", "warehouse.duckdb", "up.lock", "journal/run-2", "runs/run-2"])
def test_a_link_in_it_is_refused_by_name(tmp_path, link):
    data = tmp_path / "data"
    (data / link).parent.mkdir(parents=True, exist_ok=True)
    (data / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=f"{link} is a symbolic link"):
        open_store_in(data)
    assert not (tmp_path / "elsewhere").exists()


def planted(place: Path, victim: Path) -> None:
    victim.write_text(SECRET)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)


def test_a_link_that_was_planted_after_the_look_is_neither_written_through_nor_read(tmp_path):
    victim = tmp_path / "victim"
    (tmp_path / "data" / "journal" / "run-1").mkdir(parents=True)
    segments = LocalSegments(tmp_path / "data" / "journal")
    planted(tmp_path / "data" / "journal" / "run-1" / "a.jsonl", victim)
    with pytest.raises(OSError, match="symbolic links"):
        segments.read("run-1/a.jsonl")
    planted(tmp_path / "data" / "runs" / "run-1" / "run.lock", victim)
    with pytest.raises(WarehouseError, match="run-1"):
        begin_run(tmp_path / "data" / "runs", start("run-1"))
    planted(tmp_path / "data" / "a.lock", victim)
    with pytest.raises(WarehouseUnwritable, match="symbolic links"), open_lock_file(tmp_path / "data" / "a.lock"):
        pass
    assert victim.read_text() == SECRET


@pytest.mark.parametrize("write", [write_atomically, write_once])
def test_a_link_in_the_place_of_a_file_that_is_written_beside_is_replaced(tmp_path, write):
    victim, path = tmp_path / "victim", tmp_path / "data" / "file"
    planted(path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part"), victim)
    write(path, "new")
    assert (path.read_text(), victim.read_text()) == ("new", SECRET)
    assert not path.is_symlink()


def test_folders_are_made_once_and_twice_is_once(tmp_path):
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


class Swapper(threading.Thread):
    """A thread that repeatedly replaces a folder with a link to ``outside`` and then restores it."""

    def __init__(self, place: Path, outside: Path, swaps: int) -> None:
        super().__init__()
        self._place, self._outside, self._swaps = place, outside, swaps

    def run(self) -> None:
        aside, link = self._outside.with_name("aside"), self._outside.with_name("link")
        for _ in range(self._swaps):
            self._place.rename(aside)
            link.symlink_to(self._outside)
            while True:
                try:
                    link.rename(self._place)
                    break
                except OSError:  # a writer has made the folder again
                    shutil.rmtree(self._place, ignore_errors=True)
            self._place.unlink()
            while True:
                try:
                    aside.rename(self._place)
                    break
                except OSError:
                    shutil.rmtree(self._place, ignore_errors=True)


@pytest.mark.parametrize("place", ["journal", "journal/run-1", "deploys", "deploys/demo"])
def test_while_a_folder_is_swapped_for_a_link_nothing_is_written_or_read_outside(tmp_path, place):
    data, outside = tmp_path / "data", tmp_path / "outside"
    segments, queue = LocalSegments(data / "journal"), DeployQueue(data)
    for folder in ("journal/run-1", "deploys/demo"):
        (data / folder).mkdir(parents=True)
    for planted_in in (outside, outside / "run-1", outside / "demo"):
        planted_in.mkdir(parents=True)
        (planted_in / "secret.jsonl").write_text(SECRET)
    before = sorted(outside.rglob("*"))
    swapper = Swapper(data / place, outside, swaps=200)
    swapper.start()
    written = 0
    while swapper.is_alive():
        written += 1
        event = DeployEvent(target="demo", commit=f"{written:040x}", occurred_at=NOON, reported_by="poll")
        try:
            segments.write(f"run-1/{written}.jsonl", b"x")
            queue.save_if_new(QueuedDeploy(deploy=ReportedDeploy(event=event), stored_at=NOON))
            queue.store_outcome(ReportedDeploy(event=event), DeployOutcome(run_id=None, at=NOON))
            segments.set_aside(f"run-1/{written}.jsonl")
        except WarehouseError:
            pass  # the link was there
        assert "run-1/secret.jsonl" not in segments.list_segments()
        with pytest.raises(OSError, match=r"No such file|Not a directory"):
            segments.read("run-1/secret.jsonl")
    swapper.join()
    assert sorted(outside.rglob("*")) == before
    assert written > 0
    segments.write("run-1/after.jsonl", b"x")  # on a busy machine all of the others may have been refused
    assert "run-1/after.jsonl" in segments.list_segments()


@pytest.mark.usefixtures("umask")
def test_rights_that_are_given_hold_whatever_the_umask_says(tmp_path):
    write_atomically(tmp_path / "session.json", "{}", mode=0o660)
    assert mode(tmp_path / "session.json") == 0o660


def test_a_file_that_is_written_once_stays_as_the_first_wrote_it(tmp_path):
    assert write_once(tmp_path / "data" / "deploy", "first")
    assert not write_once(tmp_path / "data" / "deploy", "second")
    assert [path.read_text() for path in (tmp_path / "data").iterdir()] == ["first"]
