"""Renews the heartbeat in a data folder's lock file twice a minute, in the process that holds the lock."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import datetime

HEARTBEAT_S = 30.0


@contextmanager
def write_heartbeats(lock: int, now: Callable[[], datetime]) -> Generator[None]:
    """Renew the time in the open lock file ``lock`` during the ``with`` block. Empty the file at the end."""
    ended = threading.Event()
    holder = json.loads(os.pread(lock, os.fstat(lock).st_size, 0))

    def beat() -> None:
        while not ended.wait(HEARTBEAT_S):
            write_lock_file(lock, json.dumps(holder | {"alive_at": now().isoformat()}))

    beats = threading.Thread(target=beat, name="beats", daemon=True)
    beats.start()
    try:
        yield
    finally:
        ended.set()
        beats.join()
        write_lock_file(lock, "")


def write_lock_file(lock: int, text: str) -> None:
    """Overwrite the open lock file with ``text``. Errors are ignored.

    The write is not atomic. A process that reads an incomplete file assumes that the folder is not in use, until it
    reads the file again.
    """
    # A full disk must not end the monitor.
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, text.encode(), 0)
