"""Prevents maintenance from deleting data because this machine's clock is wrong.

A file in the data folder stores the time and the uptime of the last maintenance. If the clock advanced more than
the uptime did, the clock was set ahead. Old data is then not deleted until a maintenance run at least half a day
later confirms the clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from flows.alerting.faults import Fault
from monitors.records.base import Record, UtcTime
from monitors.storage import write_atomically

CLOCK_AHEAD: Final = "ClockAhead"
NOTE_FILE: Final = "clock.json"
MAX_GAIN: Final = timedelta(hours=1)
"""Maximum time by which the clock may advance more than the uptime. It is far shorter than all retention times."""
MAX_UNSEEN_GAIN: Final = timedelta(hours=48)
"""Time that the clock may advance between two maintenance runs if their uptimes cannot be compared.

The uptimes cannot be compared if the machine was restarted, or if an uptime is unknown. Maintenance runs daily.
"""
CONFIRMED_AFTER: Final = timedelta(hours=12)
"""Minimum time between the first doubtful reading of the clock and the maintenance run that confirms the clock."""


class Uptime(Record):
    """The time since this machine was started, including time in sleep mode. ``boot`` is the boot id."""

    boot: str
    seconds: float = Field(ge=0)


class ClockReading(Record):
    """The clock's time and the uptime at the same moment. ``uptime`` is ``None`` if it is unknown."""

    at: UtcTime
    uptime: Uptime | None = None


def build_clock_reading(at: datetime, uptime: tuple[str, float] | None) -> ClockReading:
    """Build a reading from the clock's time, and from the machine's boot id and uptime."""
    up = Uptime(boot=uptime[0], seconds=uptime[1]) if uptime is not None else None
    return ClockReading(at=at, uptime=up)


class ClockNote(Record):
    """The last trusted reading of the clock, and the first doubtful reading after it."""

    believed: ClockReading | None = None
    doubted: ClockReading | None = None


def check_clock_not_ahead_and_store_reading(
    data_folder: Path, reading: ClockReading, newest: datetime | None
) -> Fault | None:
    """Check the clock and store the reading. Return a fault, or ``None`` if old data may be deleted.

    Without a stored reading, the clock is compared with ``newest``, the time of the newest journal segment. Raises
    `WarehouseUnwritable`.
    """
    file = data_folder / NOTE_FILE
    note = _read_clock_note(file)
    before = note.believed or (ClockReading(at=newest) if newest is not None else None)
    ahead = timedelta(0) if before is None else _compute_clock_gain(before, reading)
    if before is None or ahead <= MAX_GAIN or _is_clock_confirmed(note.doubted, reading):
        write_atomically(file, ClockNote(believed=reading).model_dump_json(), within=data_folder)
        return None
    doubted = (
        note.doubted
        if note.doubted is not None and _compute_clock_gain(note.doubted, reading) <= MAX_GAIN
        else reading
    )
    write_atomically(file, ClockNote(believed=before, doubted=doubted).model_dump_json(), within=data_folder)
    return Fault(CLOCK_AHEAD, _format_clock_fault(before, reading))


def _read_clock_note(file: Path) -> ClockNote:
    try:
        return ClockNote.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return ClockNote()


def _compute_clock_gain(before: ClockReading, reading: ClockReading) -> timedelta:
    """Compute how much more the clock advanced than the uptime did.

    If the uptimes cannot be compared, compute how much more than `MAX_UNSEEN_GAIN` the clock advanced.
    """
    clock_advance = reading.at - before.at
    if before.uptime is None or reading.uptime is None or before.uptime.boot != reading.uptime.boot:
        return clock_advance - MAX_UNSEEN_GAIN
    return clock_advance - timedelta(seconds=reading.uptime.seconds - before.uptime.seconds)


def _is_clock_confirmed(doubted: ClockReading | None, reading: ClockReading) -> bool:
    if doubted is None or reading.at - doubted.at < CONFIRMED_AFTER:
        return False
    return _compute_clock_gain(doubted, reading) <= MAX_GAIN


def _format_clock_fault(before: ClockReading, reading: ClockReading) -> str:
    return (
        f"The clock shows {reading.at:%Y-%m-%d %H:%M} UTC. The last record is from {before.at:%Y-%m-%d %H:%M} UTC. "
        "Either the clock was set forward, or Lookout did not run on this machine for days. Lookout therefore did "
        "not remove personal data, pictures or traces. If the clock is right, do nothing: the first maintenance "
        f"run after {CONFIRMED_AFTER / timedelta(hours=1):g} hours removes the data that is due. If the clock is "
        "wrong, synchronise it with NTP."
    )
