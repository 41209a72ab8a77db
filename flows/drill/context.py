"""What a drill works with, made of the configuration and of this process's clock, environment and chance."""

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
"""Inside the data folder: what a drill plants and reads."""


class StationFailed(MonitorError):
    """A station does not work. ``to_do`` is what helps, with the command where there is one."""

    def __init__(self, finding: str, to_do: str) -> None:
        super().__init__(finding)
        self.to_do = to_do


class NotSetUp(Exception):
    """The installation has no such part; the text says how it would have one."""


@dataclass
class DrillContext:
    """What a drill works with. ``prefect_api`` is absent where it runs without a worker.

    ``now`` is the clock, ``monotonic`` measures seconds, ``chance`` picks the fault. ``outside_at`` is the time by
    somebody else's clock, once one was heard, with our own at that moment.
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
        """Where a drill plants its log and stores its pictures."""
        return self.config.data_folder / DRILL_FOLDER


def build_drill_context(
    config: Config, config_path: Path, *, drill_id: str | None = None, prefect_api: str | None = None
) -> DrillContext:
    """A drill of this process, by the real clock, environment and chance."""
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
