"""The exit codes of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from monitors.errors import ConfigError, GoldSetError, MonitorError, QueryInvalid

if TYPE_CHECKING:
    from monitors.records.runs import Verdict  # slow: imports pydantic's models


class ExitCode(IntEnum):
    """The exit codes. The general meaning of a code is the same for all commands."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    MONITOR = 4


# fmt: off
MEANINGS: Final[Mapping[ExitCode, tuple[str, str]]] = {
    ExitCode.PASS: ("Success. For a verdict: PASS.", "Nothing."),
    ExitCode.FAIL: (
        "The application or the checked file has a fault. For a verdict: FAIL.",
        "Read the first printed reason. The report shows each failed case next to its gold (the right answer)."),
    ExitCode.USAGE: (
        "The command, the configuration or a file is not valid. Lookout asked no question.",
        "Read the line on standard error. It names the file, key or option, and the accepted values."),
    ExitCode.INCONCLUSIVE: (
        "No verdict: too few answers could be graded, the application did not answer, or the run was stopped.",
        "Read the printed reasons. Then run the same command again. It continues with the stored answers."),
    ExitCode.MONITOR: (
        "Lookout itself failed. This is not a result about the application.",
        "Read the line on standard error. Then run `lookout doctor`, which checks everything that a run needs."),
}
"""What each code means, and what to do."""

_VERDICT: Final = {
    ExitCode.FAIL: "FAIL", ExitCode.INCONCLUSIVE: "INCONCLUSIVE, also if the application did not answer",
}
_NO_LINE: Final = {ExitCode.USAGE: (
    "every line of the input is invalid (if some lines are valid, the exit code is 0)"
)}
_DAMAGED: Final = {ExitCode.MONITOR: "stored records are damaged, missing or changed"}
SPECIAL_CODES: Final[Mapping[str, Mapping[ExitCode, str]]] = {
    "verify": _VERDICT,
    "gate": _VERDICT,
    "demo": {
        ExitCode.FAIL: "FAIL, as expected, because the demo has planted faults",
        ExitCode.INCONCLUSIVE: "INCONCLUSIVE",
    },
    "nightly": {ExitCode.INCONCLUSIVE: "Lookout could not read or grade all of the night's live traffic"},
    "repeatability": {ExitCode.INCONCLUSIVE: "the measurement stopped early, or the build changed during it"},
    "watch": {ExitCode.MONITOR: "with --once: Lookout could not read a log or some of its lines"},
    "drill": {ExitCode.MONITOR: "the alert about the planted answer did not reach Slack"},
    "bisect": {ExitCode.INCONCLUSIVE: "the first bad build was not found"},
    "shrink": {
        ExitCode.INCONCLUSIVE: "the case did not fail, or (with --ask) no answer could be graded",
        ExitCode.FAIL: "with --ask: an answer failed",
    },
    "doctor": {
        ExitCode.FAIL: "for a page or an API: the application has a fault",
        ExitCode.USAGE: "for an API: the settings in lookout.toml or the token are wrong",
        ExitCode.INCONCLUSIVE: "for a page: Lookout may be unable to ask questions on the page",
        ExitCode.MONITOR: "without a target: a part that a run needs does not work",
    },
    **dict.fromkeys(
        ("grade", "facts", "redact", "conversations", "localise", "efficiency", "first-look"), _NO_LINE
    ),
    "alerts list": {ExitCode.MONITOR: "some stored records cannot be read, so incidents may be missing"},
    "warehouse load": _DAMAGED,
    "warehouse check": _DAMAGED,
    "warehouse rebuild": _DAMAGED,
    "restore": {ExitCode.MONITOR: "the data folder is restored, but the journal in the backup is incomplete"},
    "browser": {ExitCode.USAGE: "no browser works"},
    "browser install": {ExitCode.USAGE: "no browser could be installed"},
    "gold check": {ExitCode.FAIL: "the suite has a fault that must be fixed"},
    "gold freeze": {ExitCode.FAIL: (
        "the suite has a fault to fix first, or (with --verify) it differs from its newest frozen version"
    )},
    "gold mutants": {ExitCode.FAIL: "the rules catch too few of the wrong answers"},
    "gold push": {ExitCode.FAIL: "people changed cases in the dataset since the last push, so nothing was written"},
    "gold pull": {ExitCode.FAIL: (
        "a case was changed both in the suite and in the dataset, or an entry cannot be read (Lookout skips these)"
    )},
    "gold draft": {ExitCode.INCONCLUSIVE: "the model gave no usable draft"},
    "gold translate": {ExitCode.INCONCLUSIVE: "the model gave no usable translation"},
}
# fmt: on
"""What a code means for one command. The keys are the words that a user types after ``lookout``."""


def exit_code_from_verdict(verdict: Verdict) -> ExitCode:
    """Return the exit code of a verdict: PASS (0), FAIL (1) or INCONCLUSIVE (3)."""
    return ExitCode[verdict.name]


def exit_code_from_error(error: MonitorError) -> ExitCode:
    """Return USAGE for an error that the user can fix in the command or a file. Return MONITOR for other errors."""
    match error:
        case ConfigError() | GoldSetError() | QueryInvalid():
            return ExitCode.USAGE
        case _:
            return ExitCode.MONITOR
