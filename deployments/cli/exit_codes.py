"""The exit codes of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final

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


# fmt: off
MEANINGS: Final[Mapping[ExitCode, tuple[str, str]]] = {
    ExitCode.PASS: ("Success; for a verdict, PASS.", "Nothing."),
    ExitCode.FAIL: (
        "The application or the checked file is wrong; for a verdict, FAIL.",
        "Read the first printed reason; the report shows each failed case next to its gold."),
    ExitCode.USAGE: (
        "The command, the configuration or a file is not valid; Lookout asked nothing.",
        "The line on standard error names the file, key or option, and the accepted values."),
    ExitCode.INCONCLUSIVE: (
        "No verdict: too few answers could be graded, the app did not serve, or Ctrl-C or SIGTERM stopped the run.",
        "The reasons name what was missing. Run the same command again: it continues with the stored answers."),
    ExitCode.MONITOR: (
        "The monitor itself failed; this is not a result about the application.",
        "The line on standard error names the fault; `lookout doctor` checks everything that runs need."),
}
"""What each code means, and what to do then."""

_VERDICT: Final = {
    ExitCode.FAIL: "FAIL", ExitCode.INCONCLUSIVE: "INCONCLUSIVE, also when the application did not serve",
}
_NO_LINE: Final = {ExitCode.USAGE: (
    "no valid line; if some lines are valid, the output has an error for each invalid one"
)}
_DAMAGED: Final = {ExitCode.MONITOR: "records are damaged, missing or changed"}
SPECIAL_CODES: Final[Mapping[str, Mapping[ExitCode, str]]] = {
    "verify": _VERDICT,
    "gate": _VERDICT,
    "demo": {
        ExitCode.FAIL: "FAIL; expected, because the demo has planted faults", ExitCode.INCONCLUSIVE: "INCONCLUSIVE",
    },
    "nightly": {ExitCode.INCONCLUSIVE: "a nightly run could not be read or graded completely"},
    "repeatability": {ExitCode.INCONCLUSIVE: "a session stopped early, or its answers came from several builds"},
    "watch": {ExitCode.MONITOR: "with --once: a log or some of its lines could not be read"},
    "drill": {ExitCode.MONITOR: "the alert about the planted answer did not reach Slack"},
    "bisect": {ExitCode.INCONCLUSIVE: "the first bad build was not found"},
    "shrink": {
        ExitCode.INCONCLUSIVE: "the case does not fail; with --ask: no answer could be graded",
        ExitCode.FAIL: "with --ask: the question failed",
    },
    "doctor": {
        ExitCode.FAIL: "for a page or an API: the application has a fault",
        ExitCode.USAGE: "for an API: its settings in lookout.toml or its token are not correct for this API",
        ExitCode.INCONCLUSIVE: "for a page: Lookout may not be able to ask it",
        ExitCode.MONITOR: "without a target: a part that runs need does not work",
    },
    **dict.fromkeys(
        ("grade", "facts", "redact", "conversations", "localise", "efficiency", "first-look"), _NO_LINE
    ),
    "alerts list": {ExitCode.MONITOR: "some stored records cannot be read, so incidents may be missing"},
    "warehouse load": _DAMAGED,
    "warehouse check": _DAMAGED,
    "warehouse rebuild": _DAMAGED,
    "restore": {ExitCode.MONITOR: "restored, but the backup's journal was incomplete already"},
    "browser": {ExitCode.USAGE: "no browser works"},
    "browser install": {ExitCode.USAGE: "no browser could be installed"},
    "gold check": {ExitCode.FAIL: "something must be fixed"},
    "gold freeze": {ExitCode.FAIL: (
        "something must be fixed first; with --verify: it differs from the last frozen version"
    )},
    "gold mutants": {ExitCode.FAIL: "too few mutants are caught"},
    "gold push": {ExitCode.FAIL: "people changed cases in the dataset since the last push: nothing was written"},
    "gold pull": {ExitCode.FAIL: (
        "a case was changed on both sides, or an entry cannot be read; these were not changed"
    )},
    "gold draft": {ExitCode.INCONCLUSIVE: "the model gave no usable draft"},
    "gold translate": {ExitCode.INCONCLUSIVE: "the model gave no usable translation"},
}
# fmt: on
"""Special meanings of codes, by command as it is typed after ``lookout``."""


def exit_code_from_verdict(verdict: Verdict) -> ExitCode:
    """Return the exit code of a verdict: each has one of its name."""
    return ExitCode[verdict.name]


def exit_code_from_error(error: MonitorError) -> ExitCode:
    """Return USAGE for an error that the caller can fix, else MONITOR."""
    match error:
        case ConfigError() | GoldSetError() | QueryInvalid():
            return ExitCode.USAGE
        case _:
            return ExitCode.MONITOR
