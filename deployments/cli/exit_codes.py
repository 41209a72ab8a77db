"""The exit codes of the commands."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from monitors.errors import ConfigError, GoldSetError, MonitorError, QueryInvalid

if TYPE_CHECKING:
    from monitors.records.runs import Verdict  # pydantic's models, which --help can do without


class ExitCode(IntEnum):
    """The same for every command."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    MONITOR = 4


def of_verdict(verdict: Verdict) -> ExitCode:
    """The exit code of a run: each verdict has one of its name."""
    return ExitCode[verdict.name]


def of_error(error: MonitorError) -> ExitCode:
    """USAGE for an error that the caller can fix by calling otherwise, else MONITOR."""
    match error:
        case ConfigError() | GoldSetError() | QueryInvalid():
            return ExitCode.USAGE
        case _:
            return ExitCode.MONITOR
