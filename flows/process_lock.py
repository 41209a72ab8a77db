"""Locks that let only one process on a machine do a job. A lock is released at the latest when its process ends."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, TextIO

from monitors.errors import AlreadyRuns, MonitorError, WarehouseInUse
from monitors.storage import make_private_folder
from warehouse.data_folder import open_lock_file

PAUSE_S: Final = 0.1


@contextmanager
def hold_job_lock(folder: Path, job: str, *, wait_s: float) -> Generator[None]:
    """Hold the exclusive lock for ``job`` during the ``with`` block. The lock file is in ``folder``.

    Raises `WarehouseInUse` if another process holds the lock for longer than ``wait_s`` seconds, and
    `WarehouseUnwritable`. Prefect's locks are not used, because they are released only minutes after a run is
    killed.
    """
    busy = WarehouseInUse(f"another process still works on {job} after {wait_s:g} s; try again later")
    with _hold_lock(folder, job, wait_s, busy):
        yield


@contextmanager
def hold_job_lock_without_waiting(folder: Path, job: str) -> Generator[None]:
    """Hold the exclusive lock for ``job`` during the ``with`` block, without waiting.

    The lock file is in ``folder``. Raises `AlreadyRuns` if another process holds the lock, and
    `WarehouseUnwritable`.
    """
    with _hold_lock(
        folder, job, 0, AlreadyRuns(f"{job} is already running in another process; this process did nothing")
    ):
        yield


@contextmanager
def _hold_lock(folder: Path, job: str, wait_s: float, refusal: MonitorError) -> Generator[None]:
    make_private_folder(folder)
    name = hashlib.sha256(job.encode()).hexdigest()[:16]
    end = monotonic() + wait_s
    with open_lock_file(folder / f".alone-{name}.lock") as lock:
        while not _try_lock(lock):
            if monotonic() >= end:
                raise refusal
            # flock has no timeout, so it is polled.
            sleep(PAUSE_S)
        yield


def _try_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
