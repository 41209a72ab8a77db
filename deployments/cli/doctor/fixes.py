"""The fixes of `lookout doctor --fix`: only what is safe without asking.

Safe is what adds and can be done twice: nothing that deletes, sends, ends a process, opens or closes a folder to
people, or writes into a file that a person wrote. All else is left, with the command that does it.
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
    "no installed browser starts. Install your distribution's chromium-headless-shell or chromium package, or set "
    "CHROMIUM_PATH to an executable"
)


class Fix(Record):
    """A fix that was tried. ``text`` says what was done or, where ``done`` is false, why not."""

    name: str
    done: bool
    text: str


def apply_fixes(context: DoctorContext) -> list[Fix]:
    """Apply all needed fixes, and return what was done. A fix that fails is reported; the others go on."""
    fixes: list[Fix] = []
    for fix in FIXES:
        try:
            fixes += fix(context)
        except (MonitorError, OSError) as error:
            fixes.append(Fix(name=fix.__name__.removeprefix("fix_"), done=False, text=str(error)))
    return fixes


def fix_browser(context: DoctorContext) -> Iterator[Fix]:
    """Install a browser where none starts. A browser set by ``CHROMIUM_PATH`` is never replaced."""
    if _check_browser_now(context).health is Health.GOOD:
        return
    if context.environment.get(BROWSER_VARIABLE):
        text = f"not changed, because {BROWSER_VARIABLE} sets the browser. Unset it, then run this command again"
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
    """Load into the warehouse what runs have written (idempotent)."""
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
