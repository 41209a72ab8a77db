"""Allows only one `lookout up` for each data folder, on this machine and on machines that share the folder."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TextIO

from pydantic import ValidationError

from deployments.up.heartbeats import write_lock_file
from monitors.errors import AlreadyRuns
from monitors.records.base import Record, UtcTime
from monitors.storage import make_private_folder
from warehouse.data_folder import open_lock_file

LOCK_NAME: Final = "up.lock"
HEARTBEAT_TIMEOUT: Final = timedelta(seconds=100)
"""An installation counts as dead if its last heartbeat is older than this.

The time allows for three missed heartbeats and for clocks that are slightly wrong.
"""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Holder(Record):
    """The process that uses the data folder. ``started_at`` is ``None`` if an earlier version wrote the record.

    ``kernel`` is the same in all containers of a machine, and changes when the machine restarts.
    """

    host: str
    kernel: str
    pid: int
    alive_at: UtcTime
    started_at: UtcTime | None = None

    def is_on_another_machine(self, other: Holder) -> bool:
        """Return whether ``other`` runs on another machine, where this machine's locks have no effect."""
        return self.host != other.host and self.kernel != other.kernel


@contextmanager
def lock_data_folder(data_folder: Path, now: Callable[[], datetime]) -> Generator[int]:
    """Lock the data folder, and yield the file descriptor of the lock. Raises `AlreadyRuns`.

    The lock ends with the ``with`` block or when the process dies. In a network folder, a lock may have no effect
    on other machines. Therefore the process also writes heartbeats into the lock file: the first heartbeat here,
    and later ones in `deployments.up.heartbeats`.
    """
    make_private_folder(data_folder)
    with open_lock_file(data_folder / LOCK_NAME) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRuns(
                f"another `lookout up` or `lookout receive` already uses {data_folder}. Stop it first, or set "
                "another data_folder"
            ) from None
        _refuse_another_machine(lock, data_folder, now())
        at = now()
        write_lock_file(lock.fileno(), _build_holder(at).model_dump_json())
        try:
            yield lock.fileno()
        finally:
            write_lock_file(lock.fileno(), "")


def find_running_lock_holder(data_folder: Path, at: datetime) -> Holder | None:
    """Return the process that uses the data folder now, or ``None`` if no process uses it.

    The result can also be ``None`` at the moment when the process writes a heartbeat.
    """
    lock = data_folder / LOCK_NAME
    try:
        holder = Holder.model_validate_json(lock.read_text(encoding="utf-8"))
        recent = abs(at - holder.alive_at) < HEARTBEAT_TIMEOUT
        alive = recent and (holder.is_on_another_machine(_build_holder(at)) or is_locked(lock))
    except (OSError, ValidationError):
        return None
    return holder if alive else None


def is_locked(lock: Path) -> bool:
    """Return whether a process holds this lock now."""
    if not lock.exists():
        return False
    with lock.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _refuse_another_machine(lock: TextIO, data_folder: Path, at: datetime) -> None:
    """Raise `AlreadyRuns` if another machine wrote a recent heartbeat into the lock file."""
    lock.seek(0)
    try:
        previous = Holder.model_validate_json(lock.read())
    except ValidationError:  # there was no process before, or the last one ended normally
        return
    if previous.is_on_another_machine(_build_holder(at)) and abs(at - previous.alive_at) < HEARTBEAT_TIMEOUT:
        raise AlreadyRuns(
            f"`lookout up` on {previous.host} (process {previous.pid}) already uses {data_folder}. Its last "
            f"heartbeat was at {previous.alive_at:%H:%M:%S} UTC. Two machines cannot share a data folder. Stop "
            "`lookout up` on one machine, or set another data_folder. If the other machine is down, wait "
            f"{HEARTBEAT_TIMEOUT.total_seconds():g} s"
        )


def _build_holder(at: datetime) -> Holder:
    kernel = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""
    return Holder(host=platform.node(), kernel=kernel, pid=os.getpid(), alive_at=at, started_at=at)
