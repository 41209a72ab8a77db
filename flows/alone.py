"""One process at a time does a job, on one machine: by a lock that ends with whoever holds it."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, TextIO

from monitors.errors import WarehouseBusy

PAUSE_S: Final = 0.1


@contextmanager
def alone(folder: Path, job: str, *, wait_s: float) -> Generator[None]:
    """Have ``job`` for this process alone; ``folder`` is where the lock lies.

    A lock of ours and none of Prefect's: that of a killed run is held for minutes more. Raises `WarehouseBusy` when
    another process has the job for longer than ``wait_s`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(job.encode()).hexdigest()[:16]
    end = monotonic() + wait_s
    with (folder / f".alone-{name}.lock").open("a") as lock:
        while not _locked(lock):
            if monotonic() > end:
                raise WarehouseBusy(f"another process has been at work on {job} for {wait_s:g} s")
            sleep(PAUSE_S)
        yield


def _locked(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
