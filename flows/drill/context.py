"""The context of a drill: configuration, clock, environment and random numbers.

A drill plants a wrong answer on Lookout's own test page, and checks that the alert about the wrong answer arrives
in Slack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from flows.clock import Clock, utc_now
from flows.runtime.run import get_lookout_version
from flows.runtime.secrets import generate_nonce, generate_run_id, get_environment
from monitors.config.file import Config
from monitors.errors import MonitorError
from monitors.records.base import UtcTime
from monitors.records.self_checks import DRILL_TARGET

DRILL_FOLDER: Final = "drill"
"""Name of the folder inside the data folder for the files that a drill writes and reads."""


class StationFailed(MonitorError):
    """Raised if a station (one check of the drill) fails.

    ``to_do`` says how to fix the fault, if possible with a command.
    """

    def __init__(self, finding: str, to_do: str) -> None:
        super().__init__(finding)
        self.to_do = to_do


class NotSetUp(Exception):
    """Raised if this installation does not have the part that a station checks. The message names the part."""


@dataclass
class DrillContext:
    """The live objects and settings of one drill.

    ``chance`` is a random number that selects the planted fault. ``prefect_api`` is ``None`` if the drill runs
    without a worker. ``outside_at`` is a pair of times that were read at the same moment: an external server's time
    and this machine's time. A station of the drill sets ``outside_at``.
    """

    config: Config
    config_path: Path
    environment: Mapping[str, str]
    drill_id: str
    now: Clock
    monotonic: Callable[[], float]
    chance: int
    nonce: Callable[[], str]
    version: str
    prefect_api: str | None = None
    outside_at: tuple[UtcTime, UtcTime] | None = None

    @property
    def folder(self) -> Path:
        """The folder for the log file and the screenshots of the drill."""
        return self.config.data_folder / DRILL_FOLDER


def build_drill_context(
    config: Config, config_path: Path, *, drill_id: str | None = None, prefect_api: str | None = None
) -> DrillContext:
    """Build the context of a drill with the real clock, environment and random numbers."""
    return DrillContext(
        config=config,
        config_path=config_path,
        environment=get_environment(),
        drill_id=drill_id or generate_run_id(DRILL_TARGET),
        now=utc_now,
        monotonic=monotonic,
        chance=int(generate_nonce(), 16),
        nonce=generate_nonce,
        version=get_lookout_version(),
        prefect_api=prefect_api,
    )
