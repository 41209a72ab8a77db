"""The fixes of `lookout doctor --fix`, which are safe to apply without confirmation.

A safe fix only adds something, and can be repeated. It does not delete or send anything, end a process, change the
permissions of a folder, or write to a user's file. For other faults, the doctor prints a command to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from deployments import install_browser
from deployments.cli.doctor.checks import check_browser as browser_checks
from deployments.cli.doctor.services import DoctorContext, Health, HealthCheck
from flows.terminal import redirect_stdout_to_stderr
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.probes.settings import BROWSER_VARIABLE
from monitors.records.base import Record

LOCK_WAIT_S: Final = 10.0

BY_HAND: Final = (
    "no installed browser starts. Install your system's package chromium-headless-shell or chromium, or set "
    "CHROMIUM_PATH to the path of a browser"
)


class Fix(Record):
    """The result of a fix. ``text`` states what was done or, if ``done`` is false, why nothing was done."""

    name: str
    done: bool
    text: str


def apply_fixes(context: DoctorContext) -> list[Fix]:
    """Apply all needed fixes and return their results. If a fix fails, the other fixes are still applied."""
    fixes: list[Fix] = []
    for fix in FIXES:
        try:
            fixes += fix(context)
        except (MonitorError, OSError) as error:
            fixes.append(Fix(name=fix.__name__.removeprefix("fix_"), done=False, text=str(error)))
    return fixes


def fix_browser(context: DoctorContext) -> Iterator[Fix]:
    """Install a browser if no browser starts. A browser that is set with ``CHROMIUM_PATH`` is never replaced."""
    if _check_browser_now(context).health is Health.GOOD:
        return
    if context.environment.get(BROWSER_VARIABLE):
        text = (
            f"Lookout installed no browser, because {BROWSER_VARIABLE} is set. Unset it and run this command again"
        )
        yield Fix(name="browser", done=False, text=text)
        return
    with redirect_stdout_to_stderr():  # standard output is only for the results
        install_browser.install_command()
    now = _check_browser_now(context)
    done = now.health is Health.GOOD
    yield Fix(name="browser", done=done, text=f"installed {now.found}" if done else BY_HAND)


def _check_browser_now(context: DoctorContext) -> HealthCheck:
    """Check that a browser is found and starts."""
    return browser_checks(context)[0]


def fix_waiting_segments(context: DoctorContext) -> Iterator[Fix]:
    """Load new results of runs into the warehouse."""
    from flows.data_folder import open_store  # slow: imports duckdb
    from warehouse.database.store import JOURNAL_FOLDER  # slow import

    if context.config is None or not (context.data_folder / JOURNAL_FOLDER).exists():
        return
    report = open_store(context.config).load_pending(LOCK_WAIT_S)
    if report.segments:
        yield Fix(name="warehouse", done=True, text=f"loaded {plural(report.segments, 'file')} with new results")
    for error in report.errors():
        yield Fix(name="warehouse", done=False, text=str(error))


FIXES: Final[tuple[Callable[[DoctorContext], Iterator[Fix]], ...]] = (fix_browser, fix_waiting_segments)
