"""Stores the last polls of the watcher in a file of the data folder.

Other processes read this file to find out whether polls are late.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from monitors.records.base import Record, UtcTime
from monitors.storage import write_atomically

FILE_NAME: Final = "watching.json"
WRITE_EVERY_S: Final = 10.0
MAX_MISSED_POLLS: Final = 3
WATCH_TO_DO: Final = "Start `lookout up`. If it already runs, read the `service` lines in its log"


class WatchPoll(Record):
    """The last successful poll of a log, of a traffic source, or of the deployed commits.

    ``name`` is a readable name of the polled log, source or commits. ``every_s`` is the interval in seconds.
    ``target`` is ``None`` for a poll about all targets.
    """

    name: str
    target: str | None = None
    at: UtcTime
    every_s: float

    def compute_next_time(self) -> datetime:
        """Compute when the next poll is due."""
        return self.at + timedelta(seconds=self.every_s)

    def is_late(self, now: datetime) -> bool:
        """Return whether three polls in a row were missed.

        The times come from a file that is up to `WRITE_EVERY_S` seconds old.
        """
        return now - self.at > timedelta(seconds=MAX_MISSED_POLLS * self.every_s + 2 * WRITE_EVERY_S)


_POLLS: Final = TypeAdapter(tuple[WatchPoll, ...])


def write_polls(data_folder: Path, polls: Sequence[WatchPoll]) -> None:
    """Store the last polls. Raises `WarehouseUnwritable`."""
    write_atomically(data_folder / FILE_NAME, _POLLS.dump_json(tuple(polls)), within=data_folder)


def read_polls(data_folder: Path) -> tuple[WatchPoll, ...]:
    """Read the last polls. The result is empty if nothing has been watched yet."""
    try:
        return _POLLS.validate_json((data_folder / FILE_NAME).read_bytes())
    except (OSError, ValidationError):
        return ()


def list_late_polls(data_folder: Path, now: datetime, target: str | None = None) -> tuple[WatchPoll, ...]:
    """List the polls that are late. With ``target``, list only polls that affect this target."""
    polls = read_polls(data_folder)
    return tuple(poll for poll in polls if poll.is_late(now) and target in (None, poll.target or target))


def format_late_polls(late: Sequence[WatchPoll]) -> str:
    """Format which polls are late and the time of each last poll."""
    return "; ".join(
        f"the last poll of {poll.name} was at {poll.at:%Y-%m-%d %H:%M} UTC (expected every {poll.every_s:g} s)"
        for poll in late
    )
