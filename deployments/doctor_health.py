"""What a check of the doctor says, and what it looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path

from monitors.config import Config
from monitors.records.base import Record


class Health(IntEnum):
    """How well it stands, the worst last."""

    GOOD = 0
    DOUBTFUL = 1
    BROKEN = 2

    @property
    def word(self) -> str:
        """As it is printed."""
        return {Health.GOOD: "ok", Health.DOUBTFUL: "look", Health.BROKEN: "broken"}[self]


class Check(Record):
    """One thing that was checked; ``to_do`` is empty where nothing is to be done."""

    name: str
    health: Health
    found: str
    to_do: str = ""


@dataclass
class Surroundings:
    """What the checks look at. ``config`` is absent where there is none that can be read."""

    config_path: Path
    config: Config | None
    environment: Mapping[str, str]
    now: datetime
    send_alerts: bool = True
    ask_judges: bool = True
    dates: list[datetime] = field(default_factory=list[datetime])

    @property
    def data_folder(self) -> Path:
        """Where everything is kept."""
        return self.config.data_folder if self.config else Path(".lookout").absolute()
