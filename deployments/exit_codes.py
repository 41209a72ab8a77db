"""What a command's exit code says."""

from __future__ import annotations

from enum import IntEnum

from monitors.errors import ConfigError, GoldSetError, MonitorError, QueryInvalid, WarehouseUnwritable
from monitors.records.runs import Verdict


class ExitCode(IntEnum):
    """The same for every command."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    MONITOR = 4


def of_verdict(verdict: Verdict) -> ExitCode:
    """The exit code of a run."""
    match verdict:
        case Verdict.PASS:
            return ExitCode.PASS
        case Verdict.FAIL:
            return ExitCode.FAIL
        case Verdict.INCONCLUSIVE:
            return ExitCode.INCONCLUSIVE


def of_error(error: MonitorError) -> ExitCode:
    """USAGE for what the caller can mend by calling otherwise, else MONITOR."""
    match error:
        case ConfigError() | GoldSetError() | QueryInvalid() | WarehouseUnwritable():
            return ExitCode.USAGE
        case _:
            return ExitCode.MONITOR
