"""What a fire drill came to: the stations of an installation in the order of an alert's way, and how far one came.

A drill is in no score: it is a record of its own, beside the runs and not among them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Redacted

DRILL_TARGET: Final = "lookout-drill"
"""The name of the shadow target. No target of a configuration may have it."""

Seconds = Annotated[float, Field(ge=0.0)]


class DrillStation(StrEnum):
    """A part of the installation that an alert depends on; the values are what people read."""

    PREFECT = "Prefect server"
    WORKER = "worker"
    CONFIGURATION = "configuration"
    DATA_FOLDER = "data folder"
    SUITE = "suite"
    SCHEDULE = "schedule"
    NETWORK = "network"
    CLOCK = "clock"
    LOG = "hallucination log"
    RECEIVER = "receiver"
    PAGE = "shadow page"
    BROWSER = "browser"
    GRADERS = "graders"
    JUDGE = "judge"
    GATE = "gate"
    JOURNAL = "journal"
    WAREHOUSE = "warehouse"
    OUTBOX = "outbox"
    SLACK = "Slack"
    HEARTBEAT = "heartbeat"

    @property
    def place(self) -> str:
        """As it stands in a sentence: ``the browser``, ``Slack``."""
        return self.value if self is DrillStation.SLACK else f"the {self.value}"


class StationState(StrEnum):
    """How a station did."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SET_UP = "not set up"
    """The configuration has no such part, so there is nothing to try."""


class StationResult(Record):
    """One station: how it did, how long it took, what was found, and what to do where it failed."""

    station: DrillStation
    state: StationState
    took_s: Seconds
    found: Redacted
    to_do: str = ""


class DrillReport(Record):
    """One drill, as far as it came. ``stations`` end with the first that failed.

    ``fault`` is the planted fault in words. ``message_after_s`` is how long after the wrong answer Slack had
    accepted the message about it; ``None`` where it did not come so far. ``version`` is Lookout's.
    """

    drill_id: Identifier
    started_at: UtcTime
    finished_at: UtcTime
    fault: str = ""
    stations: tuple[StationResult, ...]
    message_after_s: Seconds | None = None
    finished: bool = False
    """False while it goes on: then nothing of it is proved yet."""
    version: str

    @property
    def failed(self) -> StationResult | None:
        """The station that failed."""
        return next((one for one in self.stations if one.state is StationState.FAILED), None)

    @property
    def passed(self) -> bool:
        """Whether the message about the wrong answer came through every station."""
        return self.finished and self.failed is None
