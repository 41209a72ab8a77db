"""The fixes of `lookout doctor --fix`, which are safe to apply without asking.

A safe fix only adds something and can be repeated. It never deletes or sends anything, ends a process, changes the
access to a folder, or writes into a file of a person. For other faults, the doctor prints the command to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from deployments import install_browser
from deployments.cli.doctor.checks import check_browser as browser_checks
from deployments.cli.doctor.services import DoctorContext, Health, HealthCheck
from flows.terminal import redirect_output_to_notes
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.probes.settings import BROWSER_VARIABLE
from monitors.records.base import Record

LOCK_WAIT_S: Final = 10.0

BY_HAND: Final = (
    "no installed browser starts. Install the package chromium-headless-shell or chromium of your system, or set "
    "CHROMIUM_PATH to an executable"
)


class Fix(Record):
    """A fix that was tried. ``text`` says what was done or, if ``done`` is false, why it was not done."""

    name: str
    done: bool
    text: str


def apply_fixes(context: DoctorContext) -> list[Fix]:
    """Apply all needed fixes and return their results. If one fails, the others are still applied."""
    fixes: list[Fix] = []
    for fix in FIXES:
        try:
            fixes += fix(context)
        except (MonitorError, OSError) as error:
            fixes.append(Fix(name=fix.__name__.removeprefix("fix_"), done=False, text=str(error)))
    return fixes


def fix_browser(context: DoctorContext) -> Iterator[Fix]:
    """Install a browser if none starts. A browser that ``CHROMIUM_PATH`` sets is never replaced."""
    if _check_browser_now(context).health is Health.GOOD:
        return
    if context.environment.get(BROWSER_VARIABLE):
        text = f"no browser was installed, because {BROWSER_VARIABLE} is set. Unset it and run this command again"
        yield Fix(name="browser", done=False, text=text)
        return
    with redirect_output_to_notes():  # standard output is for what was found
        install_browser.install_command()
    now = _check_browser_now(context)
    done = now.health is Health.GOOD
    yield Fix(name="browser", done=done, text=f"installed {now.found}" if done else BY_HAND)


def _check_browser_now(context: DoctorContext) -> HealthCheck:
    """Check that a browser is found and starts."""
    return browser_checks(context)[0]


def fix_waiting_segments(context: DoctorContext) -> Iterator[Fix]:
    """Load new results of runs into the warehouse."""
    from flows.data_folder import open_store  # duckdb
    from warehouse.database.store import JOURNAL_FOLDER  # as above

    if context.config is None or not (context.data_folder / JOURNAL_FOLDER).exists():
        return
    report = open_store(context.config).load_pending(LOCK_WAIT_S)
    if report.segments:
        yield Fix(name="warehouse", done=True, text=f"loaded {plural(report.segments, 'waiting segment')}")
    for error in report.errors():
        yield Fix(name="warehouse", done=False, text=str(error))


FIXES: Final[tuple[Callable[[DoctorContext], Iterator[Fix]], ...]] = (fix_browser, fix_waiting_segments)
