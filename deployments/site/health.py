"""Checks of the monitor itself: schedules, heartbeat, undelivered alerts, unloaded segments, and disk space.

Slow checks, such as a request to the Prefect server, run in a background thread. Pages show the last results of
these checks. A missing result is shown as unknown, which is neither good nor bad.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deployments.up.one_installation import Holder, find_running_lock_holder
from flows.alerting.pipeline import MAX_REFUSED_AGE
from flows.data_folder import get_prefect_home
from flows.drill.status import DrillState, build_drill_status
from flows.runtime.slack import read_last_ping
from flows.server.schedule_state import ScheduleState, find_api_url, load_schedule_states
from flows.server.schedules import UTC_ZONE, Cron, PlannedDeployment, plan_deployments
from flows.verify.run_watch import RunState
from flows.watching.polls import WATCH_TO_DO, WatchPoll, format_late_polls, list_late_polls, read_polls
from monitors.alerts.liveness import Beat
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.records.base import Record, UtcTime
from warehouse.queries.drills import find_last_drill
from warehouse.queries.site.overview import (
    WaitingSegments,
    count_unsent_and_refused_alerts,
    measure_unloaded_segments,
)

if TYPE_CHECKING:
    from deployments.site.page import Site

REFRESH_INTERVAL: Final = timedelta(seconds=60)
MAX_LOAD_DELAY: Final = timedelta(hours=1)
"""Maximum time that a journal segment may wait until it is loaded into the warehouse.

Results of finished runs are loaded immediately, so a longer wait is a fault.
"""
MAX_SCHEDULE_DELAY: Final = timedelta(minutes=10)
START_TIMEOUT: Final = timedelta(minutes=2)
"""The time after the start of `lookout up` during which missing schedules are normal."""
MIN_FREE_DISK_GB: Final = 5.0
_GIGABYTE: Final = 1e9
_BEATS: Final = {Beat.STARTED: "a run began", Beat.PROVED: "a run graded", Beat.FAILED: "a run failed"}


class HealthLine(Record):
    """The result of one check of the monitor itself.

    ``ok`` is ``None`` if the result is unknown. The text ``unknown`` is then shown before ``text``. ``to_do`` and
    ``command`` state what to do. ``next_at``, the time of a schedule's next run, is shown in the time zone
    ``zone``.
    """

    what: str
    ok: bool | None
    text: str
    at: UtcTime | None = None
    next_at: UtcTime | None = None
    zone: str = UTC_ZONE
    unknown: str = "no data"
    to_do: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class SlowFacts:
    """The results of the background checks, and the time of these checks.

    ``None`` means that there was no answer.
    """

    asked_at: datetime
    schedules: Mapping[str, ScheduleState] | None
    waiting: WaitingSegments | None


class HealthChecker:
    """Runs the slow checks. `slow` contains their last results, or ``None`` before the first checks."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.slow: SlowFacts | None = None

    def run_slow_checks_if_old(self, site: Site) -> None:
        """Run the slow checks, unless their last results are recent. Never raises a `MonitorError`."""
        now = site.now()
        if self.slow is None or abs(now - self.slow.asked_at) >= REFRESH_INTERVAL:
            config = site.config
            api = find_api_url(config.prefect.api_url, get_prefect_home(config), self._environment)
            auth = self._environment.get("PREFECT_API_AUTH_STRING", "")
            states = load_schedule_states(api, config.prefect.tag, auth) if api else None
            self.slow = SlowFacts(
                now,
                None if states is None else {state.name: state for state in states},
                _count_waiting_segments(site, now),
            )


def _count_waiting_segments(site: Site, now: datetime) -> WaitingSegments | None:
    try:
        running_ids = {
            run.run_id for run in site.watch.list_recent_unfinished_runs(now) if run.state is not RunState.STOPPED
        }
        return measure_unloaded_segments(site.store, except_runs=running_ids)
    except MonitorError:
        return None


def build_monitor_health_lines(site: Site) -> tuple[HealthLine, ...]:
    """Return the results of all checks of the monitor. The schedules come last."""
    slow = site.health.slow
    return (
        *_build_heartbeat_lines(site),
        *_build_drill_lines(site),
        _build_unsent_alerts_line(site),
        _build_waiting_segments_line(slow.waiting if slow else None, site.now()),
        *_build_disk_lines(site.config.data_folder),
        *_build_poll_lines(site.config.data_folder, site.now()),
        *_build_schedule_lines(site, slow.schedules if slow else None),
    )


def _build_heartbeat_lines(site: Site) -> Iterator[HealthLine]:
    pings = {target: read_last_ping(site.config, target) for target in site.targets}
    if not any(pings.values()):
        yield HealthLine(what="heartbeat", ok=None, text="no run has sent a heartbeat yet")
        return
    for target, ping in pings.items():
        label = f"heartbeat of {target}"
        if ping is None:
            yield HealthLine(what=label, ok=None, text="no run has sent a heartbeat yet")
        elif ping.arrived is None:
            to_do = "Set LOOKOUT_HEARTBEAT_URL. Without it, no one is notified if Lookout itself is down."
            yield HealthLine(
                what=label, ok=None, text="not configured, according to the run of", at=ping.at, to_do=to_do
            )
        elif ping.arrived:
            yield HealthLine(what=label, ok=True, text=f"sent when {_BEATS[ping.beat]},", at=ping.at)
        else:
            to_do = "Check that the address in LOOKOUT_HEARTBEAT_URL is right and reachable."
            yield HealthLine(what=label, ok=False, text="did not arrive; sent at", at=ping.at, to_do=to_do)


def _build_drill_lines(site: Site) -> Iterator[HealthLine]:
    report, settings = find_last_drill(site.store), site.config.drill
    if report is None and not settings.enabled:
        return
    status = build_drill_status(report, settings, site.now())
    ok = {DrillState.PROVED: True, DrillState.NEVER: None}.get(status.state, False)
    command = status.to_do if status.to_do.startswith("lookout ") else ""
    to_do = "To test that an alert reaches you:" if command else status.to_do
    text = f"{status.text}." if to_do else status.text
    yield HealthLine(what="last drill", ok=ok, text=text, to_do=to_do, command=command)


def _build_unsent_alerts_line(site: Site) -> HealthLine:
    label = "alerts not yet delivered"
    unsent_alerts = count_unsent_and_refused_alerts(site.store, refused_since=site.now() - MAX_REFUSED_AGE)
    if not unsent_alerts.count:
        return HealthLine(what=label, ok=True, text="none")
    severe = f", {unsent_alerts.severe} of severity 3" if unsent_alerts.severe else ""
    refused = f", {unsent_alerts.refused} refused by Slack" if unsent_alerts.refused else ""
    return HealthLine(
        what=label,
        ok=False,
        text=f"{unsent_alerts.count}{severe}{refused}, the oldest of",
        at=unsent_alerts.oldest_at,
        to_do="The next run tries again. To find the broken channel:",
        command="lookout doctor",
    )


def _build_waiting_segments_line(waiting: WaitingSegments | None, now: datetime) -> HealthLine:
    label = "journal segments not loaded"
    if waiting is None:
        return HealthLine(what=label, ok=None, text="not counted yet")
    if not waiting.count:
        return HealthLine(what=label, ok=True, text="none")
    late = waiting.oldest_at is not None and now - waiting.oldest_at > MAX_LOAD_DELAY
    text = f"{plural(waiting.count, 'segment')}, the oldest of" if waiting.oldest_at else f"{waiting.count}"
    return HealthLine(
        what=label,
        ok=not late,
        text=text,
        at=waiting.oldest_at,
        to_do="No data is lost, but the pages do not show it yet. To load it:" if late else "",
        command="lookout warehouse load" if late else "",
    )


def _build_disk_lines(data_folder: Path, free_gb: Callable[[Path], float] | None = None) -> Iterator[HealthLine]:
    """Yield a line only if the disk has too little free space."""
    free = (free_gb or _measure_free_disk_gb)(data_folder)
    if free < MIN_FREE_DISK_GB:
        to_do = "Free some disk space, or store screenshots for fewer days ([evidence] in lookout.toml)."
        yield HealthLine(what="disk", ok=False, text=f"{free:.1f} GB are left", to_do=to_do)


def _build_poll_lines(data_folder: Path, now: datetime) -> Iterator[HealthLine]:
    """Yield a line about the polls of logs, Spaces, deploys and traffic sources.

    Yields nothing if there were no polls.
    """
    if polls := read_polls(data_folder):
        late = list_late_polls(data_folder, now)
        text = f"{format_late_polls(late)}." if late else f"{', '.join(poll.name for poll in polls)}:"
        at = None if late else min(polls, key=WatchPoll.compute_next_time).at
        yield HealthLine(what="watching", ok=not late, text=text, at=at, to_do=f"{WATCH_TO_DO}." if late else "")


def _measure_free_disk_gb(folder: Path) -> float:
    existing_folder = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing_folder).free / _GIGABYTE


def _build_schedule_lines(site: Site, states: Mapping[str, ScheduleState] | None) -> Iterator[HealthLine]:
    installation = find_running_lock_holder(site.config.data_folder, site.now())
    if (
        installation is not None
        and not _has_state_of_every_schedule(site, states)
        and _is_in_start_period(installation, site.now())
    ):
        since = installation.started_at
        text = "`lookout up` is registering the schedules; it started at"
        yield HealthLine(what="schedules", ok=None, unknown="starting", text=text, at=since)
        return
    if states is None and installation is not None:
        text = "Prefect's server does not answer yet, but `lookout up` is running. For the cause, see its log."
        yield HealthLine(what="schedules", ok=None, text=text)
        return
    if states is None:
        to_do = "Prefect's server does not answer. To start it and the schedules:"
        yield HealthLine(what="schedules", ok=None, text="unknown.", to_do=to_do, command="lookout up")
        return
    for planned in _iterate_scheduled_deployments(site):
        yield _build_schedule_line(planned, states.get(planned.name), site.now(), is_up=installation is not None)


def _iterate_scheduled_deployments(site: Site) -> Iterator[PlannedDeployment]:
    planned = plan_deployments(site.config, Path("lookout.toml"), site.config.schedules)
    return (deployment for deployment in planned if deployment.when is not None)


def _has_state_of_every_schedule(site: Site, states_by_name: Mapping[str, ScheduleState] | None) -> bool:
    states = (
        [states_by_name.get(deployment.name) for deployment in _iterate_scheduled_deployments(site)]
        if states_by_name is not None
        else [None]
    )
    return all(state is not None for state in states)


def _is_in_start_period(installation: Holder, now: datetime) -> bool:
    """Return whether `lookout up` was started so recently that its schedules may not exist yet."""
    return installation.started_at is not None and now - installation.started_at < START_TIMEOUT


def _build_schedule_line(
    planned: PlannedDeployment, state: ScheduleState | None, now: datetime, *, is_up: bool
) -> HealthLine:
    label = f"schedule {planned.name}"
    if state is not None and state.paused:
        text, to_do = "paused in Prefect, so it does not run by itself,", "To resume it:"
        return HealthLine(what=label, ok=False, text=text, at=state.paused_since, to_do=to_do, command=state.resume)
    if state is None and is_up:
        text = (
            "not registered. The runner of `lookout up` does not work, or only `lookout receive` is running. For "
            "the cause, see its log."
        )
        return HealthLine(what=label, ok=False, text=text)
    if state is None:
        return HealthLine(
            what=label, ok=False, text="not registered.", to_do="To register and run it:", command="lookout up"
        )
    late = state.next_at is not None and now - state.next_at > MAX_SCHEDULE_DELAY
    text = f"last run {state.ended.lower()}" if state.last_at else "never ran yet"
    if late:
        text = f"overdue; {text}"
    return HealthLine(
        what=label,
        ok=not (late or state.broke),
        text=text,
        at=state.last_at,
        next_at=state.next_at,
        zone=planned.when.time_zone if isinstance(planned.when, Cron) else UTC_ZONE,
    )
