"""Only one `lookout up` uses a data folder, on this machine and on machines that share the folder."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest

from deployments.up import heartbeats
from deployments.up.heartbeats import write_heartbeats
from deployments.up.one_installation import (
    HEARTBEAT_TIMEOUT,
    LOCK_NAME,
    Holder,
    find_running_lock_holder,
    lock_data_folder,
)
from monitors.errors import AlreadyRuns
from tests.builders import NOON


def noon():
    return NOON


def noted(folder, **changes):
    """Write the lock file that another `lookout up` left in ``folder``. ``changes`` replace some of its values."""
    holder = {"host": "other", "kernel": "another", "pid": 7, "alive_at": NOON}
    (folder / LOCK_NAME).write_text(Holder(**(holder | changes)).model_dump_json())


def test_a_second_one_on_this_machine_is_refused(tmp_path):
    with (
        lock_data_folder(tmp_path, noon),
        pytest.raises(AlreadyRuns, match="another `lookout up`"),
        lock_data_folder(tmp_path, noon),
    ):
        pass


def test_one_on_another_machine_that_lives_is_refused_by_name(tmp_path):
    noted(tmp_path)
    with (
        pytest.raises(AlreadyRuns, match=r"on other \(process 7\)"),
        lock_data_folder(tmp_path, lambda: NOON + HEARTBEAT_TIMEOUT / 2),
    ):
        pass


def test_one_that_died_there_is_forgotten(tmp_path):
    noted(tmp_path)
    with lock_data_folder(tmp_path, lambda: NOON + HEARTBEAT_TIMEOUT):
        pass


def test_another_container_of_this_machine_and_this_machine_restarted_are_not_another_machine(tmp_path):
    with lock_data_folder(tmp_path, noon):
        here = json.loads((tmp_path / LOCK_NAME).read_text())
    noted(tmp_path, kernel=here["kernel"])
    with lock_data_folder(tmp_path, noon):
        pass
    noted(tmp_path, host=here["host"])
    with lock_data_folder(tmp_path, noon):
        pass


def test_a_living_process_renews_its_claim_and_a_clean_end_removes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(heartbeats, "HEARTBEAT_S", 0.001)
    renewed = threading.Event()
    times = iter(NOON + timedelta(seconds=n) for n in range(10**6))

    def now():
        time = next(times)
        if time > NOON + timedelta(seconds=5):
            renewed.set()
        return time

    with lock_data_folder(tmp_path, now) as lock, write_heartbeats(lock, now):
        assert renewed.wait(60)
        holders = (
            find_running_lock_holder(tmp_path, now()) for _ in range(10_000)
        )  # a reader may read half of a heartbeat
        holder = next(holder for holder in holders if holder is not None)
        assert holder.started_at < NOON + timedelta(seconds=2)
        assert holder.alive_at > NOON + timedelta(seconds=4)
    assert (tmp_path / LOCK_NAME).read_text() == ""
