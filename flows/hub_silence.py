"""How often in a row a look at the Hub told nothing: noted for each target, as every look is a run of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from flows.kept_deploys import FOLDER
from monitors.records.base import Record, UtcTime
from warehouse.segment_store import make_folder, unwritable, write_atomically

FILE_NAME: Final = "hub-silence"


class Silence(Record):
    """Looks in a row that told nothing, since when, and whether the monitor's owners have heard of it."""

    failures: Annotated[int, Field(ge=0)] = 0
    since: UtcTime | None = None
    told: bool = False


class HubSilence:
    """One target's note. Raises `WarehouseUnwritable` where it cannot be kept."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self._file = data_folder / FOLDER / target / FILE_NAME

    def read(self) -> Silence:
        """As it stands; one that is torn or gone counts from nothing."""
        try:
            return Silence.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return Silence()

    def failed(self, now: UtcTime) -> Silence:
        """Another look told nothing."""
        known = self.read()
        after = known.model_copy(update={"failures": known.failures + 1, "since": known.since or now})
        self._write(after)
        return after

    def note_told(self) -> None:
        """The monitor's owners have heard of it."""
        self._write(self.read().model_copy(update={"told": True}))

    def over(self) -> None:
        """The Hub answers."""
        self._file.unlink(missing_ok=True)

    def _write(self, silence: Silence) -> None:
        try:
            make_folder(self._file.parent)
            write_atomically(self._file, silence.model_dump_json().encode())
        except OSError as error:
            raise unwritable(self._file, error) from error
