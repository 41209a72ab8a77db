"""The data folder is its owner's alone, files in it have the rights of the umask, and no link in it is followed."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.context import store_in
from flows.process_lock import alone
from flows.verify.run_folder import RunStart, begin
from monitors.errors import ConfigError, WarehouseError
from monitors.records.base import Severity
from monitors.storage import private_folder, write_atomically, write_once
from tests.builders import NOON, TARGET, assessment, exchange, gold_case
from warehouse.data_folder import lock_file
from warehouse.journal.rows import AssessmentRow, ResultRow
from warehouse.journal.segments import LocalSegments

SECRET = "what somebody else has"


@pytest.fixture(params=[0o022, 0o077, 0o002], ids=oct)
def umask(request) -> Iterator[int]:
    """The umask of a user."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def a_run(data: Path) -> None:
    """What a run writes."""
    store = store_in(data)
    case = gold_case("case-1", severity=Severity.WRONG)
    store.journal.append((ResultRow(row=exchange(case)), AssessmentRow(row=assessment(case))), run_id="run-1")
    store.load_pending(5)


def start(run_id: str) -> RunStart:
    return RunStart(run_id=run_id, target=TARGET, suite_sha256="0" * 64, commit=None, started_at=NOON)


def test_every_folder_that_is_made_is_its_owners_alone_and_files_follow_the_umask(tmp_path, umask):
    data = tmp_path / "new" / "data"
    a_run(data)
    with begin(data / "runs", start("run-1")), alone(data / "locks", "job", wait_s=1):
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
        store_in(data)
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
        segments.get("run-1/a.jsonl")
    planted(tmp_path / "data" / "runs" / "run-1" / "run.lock", victim)
    with pytest.raises(WarehouseError, match="run-1"):
        begin(tmp_path / "data" / "runs", start("run-1"))
    planted(tmp_path / "data" / "a.lock", victim)
    with pytest.raises(OSError, match="symbolic links"), lock_file(tmp_path / "data" / "a.lock"):
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
    private_folder(tmp_path / "a" / "b")
    private_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


@pytest.mark.usefixtures("umask")
def test_rights_that_are_given_hold_whatever_the_umask_says(tmp_path):
    write_atomically(tmp_path / "session.json", "{}", mode=0o660)
    assert mode(tmp_path / "session.json") == 0o660


def test_a_file_that_is_written_once_stays_as_the_first_wrote_it(tmp_path):
    assert write_once(tmp_path / "data" / "deploy", "first")
    assert not write_once(tmp_path / "data" / "deploy", "second")
    assert [path.read_text() for path in (tmp_path / "data").iterdir()] == ["first"]
