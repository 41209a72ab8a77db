"""Whether the monitor itself works: schedules, heartbeat, what waits to be sent or loaded, room on the disk.

What takes time (Prefect's server, the names of all segments) is asked by a thread of its own, and pages show what
it heard last. What nobody knows is said to be unknown: it is neither well nor ill.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deployments.up.one_installation import Holder, holder_of
from flows.data_folder import prefect_home
from flows.drill.standing import DrillState, standing_of
from flows.runtime.slack import last_ping
from flows.server.schedule_state import ScheduleState, api_in, schedule_states
from flows.server.schedules import UTC_ZONE, Cron, PlannedDeployment, planned_deployments
from flows.verify.run_watch import RunState
from monitors.alerts.liveness import Beat
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.records.base import Record, UtcTime
from warehouse.queries.drills import last_drill
from warehouse.queries.site.standing import WaitingSegments, unsent, waiting_segments

if TYPE_CHECKING:
    from deployments.site.page import Site

ASK_EVERY: Final = timedelta(seconds=30)
LATE_LOAD: Final = timedelta(hours=1)
"""Segments of runs that are over are loaded at once: what waits for so long, nobody loads."""
LATE_SCHEDULE: Final = timedelta(minutes=10)
STARTS_WITHIN: Final = timedelta(minutes=2)
"""A quarter of a minute on an idle machine; what is asked in the background is up to half a minute old."""
LITTLE_DISK_GB: Final = 5.0
_GIGABYTE: Final = 1e9
_BEATS: Final = {Beat.STARTED: "a run began", Beat.PROVED: "a run graded", Beat.FAILED: "a run failed"}


class HealthLine(Record):
    """One thing that shows whether the monitor itself works. ``ok`` is ``None`` where nothing is known.

    ``command`` ends the sentence ``to_do``. ``next_at`` is shown in the zone of its schedule. ``unknown`` is the
    word for what nobody knows.
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
    """What was asked in the background, and when. ``None`` is what did not answer."""

    asked_at: datetime
    schedules: Mapping[str, ScheduleState] | None
    waiting: WaitingSegments | None


class HealthWatch:
    """Asks in the background what no page should wait for; `slow` is what it heard last, ``None`` before that."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.slow: SlowFacts | None = None

    def renew(self, site: Site) -> None:
        """Ask, unless it was asked a moment ago. Never raises a `MonitorError`."""
        now = site.now()
        if self.slow is None or abs(now - self.slow.asked_at) >= ASK_EVERY:
            self.slow = SlowFacts(now, self._schedules(site), _waiting(site, now))

    def _schedules(self, site: Site) -> Mapping[str, ScheduleState] | None:
        config = site.config
        api = api_in(config.prefect.api_url, prefect_home(config), self._environment)
        found = schedule_states(api, self._environment.get("PREFECT_API_AUTH_STRING", "")) if api else None
        return None if found is None else {one.name: one for one in found}


def _waiting(site: Site, now: datetime) -> WaitingSegments | None:
    try:
        going = {run.run_id for run in site.watch.unfinished(now) if run.state is not RunState.STOPPED}
        return waiting_segments(site.store, leave_out=going)
    except MonitorError:
        return None


def monitor_lines(site: Site) -> tuple[HealthLine, ...]:
    """All that is known of the monitor, the schedules last."""
    slow = site.health.slow
    return (
        *_heartbeats(site),
        *_drill(site),
        _alerts(site),
        _segments(slow.waiting if slow else None, site.now()),
        *_disk(site.config.data_folder),
        *_schedules(site, slow.schedules if slow else None),
    )


def _heartbeats(site: Site) -> Iterator[HealthLine]:
    found = {target: last_ping(site.config, target) for target in site.targets}
    if not any(found.values()):
        yield HealthLine(what="heartbeat", ok=None, text="no run has sent one yet")
        return
    for target, ping in found.items():
        what = f"heartbeat of {target}"
        if ping is None:
            yield HealthLine(what=what, ok=None, text="no run has sent one yet")
        elif ping.arrived is None:
            to_do = "Without it nobody hears of it when all of this is down. Set LOOKOUT_HEARTBEAT_URL."
            yield HealthLine(what=what, ok=None, text="not configured, as the run said of", at=ping.at, to_do=to_do)
        elif ping.arrived:
            yield HealthLine(what=what, ok=True, text=f"sent when {_BEATS[ping.beat]},", at=ping.at)
        else:
            to_do = "See whether the address in LOOKOUT_HEARTBEAT_URL is right and reachable."
            yield HealthLine(what=what, ok=False, text="did not arrive", at=ping.at, to_do=to_do)


def _drill(site: Site) -> Iterator[HealthLine]:
    report, settings = last_drill(site.store), site.config.drill
    if report is None and not settings.enabled:
        return
    stands = standing_of(report, settings, site.now())
    ok = {DrillState.PROVED: True, DrillState.NEVER: None}.get(stands.state, False)
    command = stands.to_do if stands.to_do.startswith("lookout ") else ""
    to_do = "This proves that an alert reaches you:" if command else stands.to_do
    text = f"{stands.text}." if to_do else stands.text
    yield HealthLine(what="last drill", ok=ok, text=text, to_do=to_do, command=command)


def _alerts(site: Site) -> HealthLine:
    what, found = "alerts not yet delivered", unsent(site.store)
    if not found.count:
        return HealthLine(what=what, ok=True, text="none")
    severe = f", {found.severe} of severity 3" if found.severe else ""
    return HealthLine(
        what=what,
        ok=False,
        text=f"{found.count}{severe}, the oldest of",
        at=found.oldest_at,
        to_do="The next run tries again. This says which way is broken:",
        command="lookout doctor",
    )


def _segments(waiting: WaitingSegments | None, now: datetime) -> HealthLine:
    what = "journal segments not loaded"
    if waiting is None:
        return HealthLine(what=what, ok=None, text="not counted yet")
    if not waiting.count:
        return HealthLine(what=what, ok=True, text="none")
    late = waiting.oldest_at is not None and now - waiting.oldest_at > LATE_LOAD
    text = f"{plural(waiting.count, 'segment')}, the oldest of" if waiting.oldest_at else f"{waiting.count}"
    return HealthLine(
        what=what,
        ok=not late,
        text=text,
        at=waiting.oldest_at,
        to_do="Nothing is lost, and the pages lack it. This loads it:" if late else "",
        command="lookout warehouse load" if late else "",
    )


def _disk(data_folder: Path, free_gb: Callable[[Path], float] | None = None) -> Iterator[HealthLine]:
    """Said only where room is short."""
    free = (free_gb or _free_gb)(data_folder)
    if free < LITTLE_DISK_GB:
        to_do = "Make room, or let pictures age out sooner ([evidence] in lookout.toml)."
        yield HealthLine(what="disk", ok=False, text=f"{free:.1f} GB are left", to_do=to_do)


def _free_gb(folder: Path) -> float:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return shutil.disk_usage(there).free / _GIGABYTE


def _schedules(site: Site, known: Mapping[str, ScheduleState] | None) -> Iterator[HealthLine]:
    installation = holder_of(site.config.data_folder, site.now())
    if installation is not None and not _all_served(site, known) and _starts(installation, site.now()):
        since = installation.started_at
        text = "`lookout up` registers them; started"
        yield HealthLine(what="schedules", ok=None, unknown="starting", text=text, at=since)
        return
    if known is None and installation is not None:
        text = "unknown: Prefect's server does not answer yet. `lookout up` runs, and its log says why."
        yield HealthLine(what="schedules", ok=None, text=text)
        return
    if known is None:
        to_do = "Prefect's server, which knows, does not answer. This runs it and the schedules:"
        yield HealthLine(what="schedules", ok=None, text="unknown.", to_do=to_do, command="lookout up")
        return
    for planned in _scheduled(site):
        yield _schedule(planned, known.get(planned.name), site.now(), is_up=installation is not None)


def _scheduled(site: Site) -> Iterator[PlannedDeployment]:
    planned = planned_deployments(site.config, Path("lookout.toml"), site.config.schedules)
    return (one for one in planned if one.when is not None)


def _all_served(site: Site, known: Mapping[str, ScheduleState] | None) -> bool:
    states = [known.get(one.name) for one in _scheduled(site)] if known is not None else [None]
    return all(state is not None and not state.paused for state in states)


def _starts(installation: Holder, now: datetime) -> bool:
    """Whether it was started so lately that its schedules need not stand yet."""
    return installation.started_at is not None and now - installation.started_at < STARTS_WITHIN


def _schedule(planned: PlannedDeployment, state: ScheduleState | None, now: datetime, *, is_up: bool) -> HealthLine:
    what = f"schedule {planned.name}"
    if (state is None or state.paused) and is_up:
        text = "not run yet: `lookout up` runs, but not its runner, or only deploys; its log says why."
        return HealthLine(what=what, ok=False, text=text)
    if state is None or state.paused:
        text = "nobody runs it." if state is None else "paused: nobody runs it."
        return HealthLine(what=what, ok=False, text=text, to_do="This does:", command="lookout up")
    late = state.next_at is not None and now - state.next_at > LATE_SCHEDULE
    text = f"last run {state.ended.lower()}" if state.last_at else "never ran yet"
    if late:
        text = f"overdue; {text}"
    return HealthLine(
        what=what,
        ok=not (late or state.broke),
        text=text,
        at=state.last_at,
        next_at=state.next_at,
        zone=planned.when.time_zone if isinstance(planned.when, Cron) else UTC_ZONE,
    )
