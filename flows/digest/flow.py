"""Sends the daily digest: one message for each target about the last day.

The digest is sent even if nothing is wrong, so that people notice when it is missing. Alerts that wait in the
outbox are sent first. The digest shows the verification runs and the last nightly run over live traffic. Internal
faults of Lookout are sent to Lookout's owners in their own channel.

If Slack is down, the flow creates a Prefect run that sends the digest later. The state of the flow is then
Completed with the name Waiting.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.runtime import deployment, flow_run
from prefect.states import Completed, Scheduled

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault, resolve_other_faults
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify
from flows.artifacts import build_report_page_path
from flows.clock import read_scheduled_time, utc_now
from flows.data_folder import UPKEEP_WAIT_S, get_prefect_home, get_runs_folder
from flows.drill.course import MISSING_DRILL_FAULT
from flows.drill.status import DrillState, build_drill_status
from flows.nightly.context import compute_previous_due_at
from flows.nightly.format import format_clarifying_questions, format_rate_text, format_report_ratings
from flows.repeatability.format import format_repeatability_for_digest
from flows.runtime.secrets import get_environment
from flows.runtime.slack import build_notifier_without_run
from flows.server.missed_runs import cancel_missed_runs_of_deployment, list_skipped_runs
from flows.server.schedule_state import ScheduleState, find_api_url, load_schedule_states
from flows.server.schedules import plan_deployments
from monitors.alerts.digest import Digest, DigestFigure
from monitors.alerts.redact import redact
from monitors.alerts.sender import ARRIVED_BEFORE
from monitors.alerts.settings import AlertSettings
from monitors.alerts.traffic_census import CENSUS_WORDS, format_rate
from monitors.alerts.wording import FAILURE_TITLES
from monitors.config.file import Config, load_config
from monitors.config.sections import DrillSettings, ScheduleSettings, is_due_every_day
from monitors.errors import NotifyRejected, NotifyTransient, WarehouseBusy, WarehouseError
from monitors.plural import plural
from monitors.records.base import UtcTime
from monitors.records.estimates import RateUnknown
from monitors.records.incidents import (
    Capability,
    DeliveryStatus,
    Incident,
    IncidentKind,
    IncidentState,
    Link,
    Receipt,
)
from monitors.records.nightly import NightlyReport
from monitors.records.self_checks import DRILL_TARGET, DrillReport, RepeatabilityRun
from monitors.reports.write import build_report_paths
from monitors.sources.settings import NightlySettings
from warehouse.database.store import Store
from warehouse.queries.drills import find_last_drill
from warehouse.queries.incidents import count_alerts_to_send
from warehouse.queries.repeatability import find_newest_session
from warehouse.queries.runs import RunFigures, has_finished_run, list_runs_since
from warehouse.queries.traffic import list_recent_nightly_reports

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)
OVERLAP: Final = timedelta(hours=2)
"""A digest also covers this much time before its day.

Without this overlap, a digest that starts late could miss a run.
"""
GRADING_GRACE: Final = timedelta(hours=2)
"""A nightly run counts as missing if it is not graded within this time after it was due."""
MONITOR_INCIDENT_KINDS: Final = frozenset({IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID})


class DigestSettings(NamedTuple):
    """The settings of a target that the target's digest needs: schedules, live traffic, alerts and drills."""

    schedules: ScheduleSettings
    traffic: NightlySettings | None
    alerts: AlertSettings
    drill: DrillSettings


def select_digest_settings(config: Config, target: str) -> DigestSettings:
    """Select the settings of ``target`` that the target's digest needs."""
    return DigestSettings(config.schedules, config.require_target(target).traffic, config.alerts, config.drill)


def build_digest(
    store: Store,
    target: str,
    setup: DigestSettings,
    *,
    now: datetime,
    due_at: datetime,
    run_id: str,
    runs: Path,
    skipped_runs: Sequence[tuple[str, datetime]] = (),
    paused: Sequence[ScheduleState] = (),
) -> Digest:
    """Build the digest of ``target`` for the day that ends at ``now``.

    ``runs`` is the folder that contains the run folders. ``skipped_runs`` are runs that Prefect skipped after an
    outage, and ``paused`` are schedules that a person paused. Every attempt to send a digest uses the same id.
    Therefore the digest is sent only once. Raises `WarehouseError`.
    """
    runs_of_day = list_runs_since(store, target, now - DAY - OVERLAP)
    waiting = count_alerts_to_send(store, target)
    all_incidents = tuple(store.load_incidents(target).values())
    incidents = tuple(incident for incident in all_incidents if incident.kind not in MONITOR_INCIDENT_KINDS)
    expected = bool(setup.schedules.verify_cron) and is_due_every_day(setup.schedules.verify_cron)
    if not runs_of_day and setup.traffic is not None:  # a target with only live traffic may have no runs
        expected = expected and has_finished_run(store, target)
    newest = next(iter(list_recent_nightly_reports(store, target, 1)), None) if setup.traffic is not None else None
    graded = str(newest.run_id) if newest is not None else run_id
    return Digest(
        id=build_digest_id(target, due_at),
        target=target,
        run_id=runs_of_day[0].run_id if runs_of_day else graded,
        made_at=now,
        due_at=due_at,
        figures=(
            *_build_run_figures(runs_of_day, expected=expected),
            *_build_skipped_run_figures(skipped_runs),
            *_build_paused_schedule_figures(paused),
            *_build_nightly_figures(newest, setup.traffic, now),
            *_build_repeatability_figures(find_newest_session(store, target), now),
            *_build_lookout_fault_figures(all_incidents, setup.alerts),
            *_build_drill_figures(find_last_drill(store), setup.drill, now),
        ),
        incidents=incidents,
        recovered=sum(
            incident.state == "resolved" and incident.resolved_at is not None and now - incident.resolved_at <= DAY
            for incident in incidents
        ),
        unknown=_describe_missing_nightly_results(newest, setup.traffic, now),
        note=redact(f"{plural(waiting, 'message')} could not be sent yet") if waiting else None,
        links=tuple(_build_report_links(runs_of_day, newest, runs, setup.alerts.site_url)),
    )


def build_digest_id(target: str, due_at: datetime) -> str:
    """Build the id that readers see in the digest: a hash of the target and the time when the digest was due."""
    digest = hashlib.sha256(f"digest/{target}/{due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}".encode()).digest()
    return f"LK-{base64.b32encode(digest).decode('ascii')[:8]}"


def _build_run_figures(runs: Sequence[RunFigures], *, expected: bool) -> tuple[DigestFigure, ...]:
    if not runs:
        no_runs = DigestFigure(
            label="runs",
            value="no run in the last day: check that the schedule is active and that a worker is running",
        )
        return (no_runs,) if expected else ()
    newest = runs[0]
    verdicts = [run.verdict for run in runs]
    tally = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    graded, asked = sum(run.graded for run in runs), sum(run.asked for run in runs)
    cost = sum(run.cost_usd for run in runs)
    figures = {
        "runs": tally,
        "newest run": (
            f"{newest.verdict}, weighted {_format_score(newest.weighted)}, flat {_format_score(newest.flat)}"
        ),
        "answers graded": f"{graded:,} of {asked:,}",
        "p95": f"{newest.p95_ms / 1000:.1f} s" if newest.p95_ms is not None else "",
        "cost": f"${cost:.2f}" if cost else "",
    }
    return tuple(DigestFigure(label=label, value=value) for label, value in figures.items() if value)


def _build_skipped_run_figures(skipped_runs: Sequence[tuple[str, datetime]]) -> Iterator[DigestFigure]:
    """Yield one digest figure that lists all runs that were skipped after an outage.

    A run is skipped if a newer run replaces it.
    """
    due_times: dict[str, list[datetime]] = {}
    for name, due_at in skipped_runs:
        due_times.setdefault(name, []).append(due_at.astimezone(UTC))
    parts = [
        f"{name} of {times[0]:%Y-%m-%d %H:%M} UTC" + (f" and {len(times) - 1} more" if len(times) > 1 else "")
        for name, times in due_times.items()
    ]
    if parts:
        yield DigestFigure(label="skipped runs", value=redact("; ".join(parts)))


def _build_paused_schedule_figures(paused: Sequence[ScheduleState]) -> Iterator[DigestFigure]:
    for state in paused:
        since = f"{state.paused_since:%Y-%m-%d %H:%M} UTC" if state.paused_since else "an unknown time"
        text = f"{state.name}, paused at Prefect since {since}. `lookout doctor` shows how to resume it"
        yield DigestFigure(label="paused", value=redact(text))


def _format_score(value: float | None) -> str:
    return "nothing graded" if value is None else f"{value:.3f}"


def _describe_missing_nightly_results(
    newest: NightlyReport | None, traffic: NightlySettings | None, now: datetime
) -> str:
    """Describe which results of the last nightly run are missing. Return an empty string if none are missing.

    ``newest`` is the report of the last nightly run. ``traffic`` is ``None`` if the target has no live traffic.
    """
    if traffic is None:
        return ""
    due = compute_previous_due_at(now, traffic)
    if newest is None or newest.due_at < due:
        return "no night graded" if now - due >= GRADING_GRACE else ""
    if not newest.read:
        return "no new conversation"
    return "failures unknown" if newest.shortfalls and isinstance(newest.failed, RateUnknown) else ""


def _build_nightly_figures(
    newest: NightlyReport | None, traffic: NightlySettings | None, now: datetime
) -> Iterator[DigestFigure]:
    """Yield the figures of the last nightly run and the time of the next run.

    If the last nightly run is late or missing, a figure says so.
    """
    if traffic is None:
        return
    due = compute_previous_due_at(now, traffic)
    if newest is not None and newest.due_at >= due:
        yield from _build_graded_nightly_figures(newest)
    else:
        yield DigestFigure(label="night", value=_format_missing_nightly(newest, due, now))
    upcoming = compute_previous_due_at(due + timedelta(hours=36), traffic)
    yield DigestFigure(label="next night", value=f"{upcoming:%Y-%m-%d %H:%M} UTC")


def _format_missing_nightly(newest: NightlyReport | None, due: datetime, now: datetime) -> str:
    if newest is None:
        return "no nightly run has graded live traffic yet"
    due_night = f"the nightly run due at {due:%Y-%m-%d %H:%M} UTC"
    if now - due < GRADING_GRACE:
        return f"{due_night} has no results yet"
    last = f"{newest.due_at:%Y-%m-%d %H:%M} UTC"
    return (
        f"{due_night} is missing. The last nightly run with results was due at {last}. Check that the schedule is "
        "active and that a worker is running"
    )


def _build_graded_nightly_figures(nightly: NightlyReport) -> Iterator[DigestFigure]:
    until = f"until {nightly.until:%Y-%m-%d %H:%M} UTC"
    census_kinds = {kind_rate.kind.failure_kind for kind_rate in nightly.census}
    figures = {
        "night": f"{plural(nightly.read, 'conversation')} read {until}, {nightly.sampled:,} sampled"
        if nightly.read
        else f"no new conversations {until} ({nightly.known:,} already counted on earlier nights)",
        "severity-3 rate": format_rate_text(nightly.severe) if nightly.read else "",
        "any failure": format_rate_text(nightly.failed) if nightly.read else "",
        "failed in the sample": ", ".join(
            f"{FAILURE_TITLES[kind_rate.kind]} {kind_rate.failures:,}"
            for kind_rate in nightly.kinds
            if kind_rate.failures and kind_rate.kind not in census_kinds
        ),
        **{CENSUS_WORDS[kind_rate.kind]: format_rate(kind_rate) for kind_rate in nightly.census if kind_rate.found},
        "reports": format_report_ratings(nightly.reports) if nightly.reports is not None else "",
        "clarifying questions": format_clarifying_questions(nightly.questions)
        if nightly.questions.questions
        else "",
        "drift": nightly.drift_reading.text if nightly.drift_reading is not None else "",
        "not read completely": "; ".join(nightly.interrupted),
    }
    for label, value in figures.items():
        if value:
            yield DigestFigure(label=label, value=redact(value))


def _build_repeatability_figures(session: RepeatabilityRun | None, now: datetime) -> Iterator[DigestFigure]:
    """Yield how often repeated answers differed in the last repeatability session.

    Yield nothing if this session is more than a week old.
    """
    if session is None or now - session.finished_at > WEEK:
        return
    if session.void:
        yield DigestFigure(label="repeatability", value=redact(f"the last session was not valid: {session.void}"))
    elif session.figures is not None:
        yield DigestFigure(label="repeatability", value=format_repeatability_for_digest(session.figures))


def _build_lookout_fault_figures(incidents: Sequence[Incident], alerts: AlertSettings) -> tuple[DigestFigure, ...]:
    """Build the digest figure with the number of open internal faults of Lookout.

    Return no figure if no fault is open, or if Lookout's owners have their own channel.
    """
    open_faults = sum(
        incident.kind in MONITOR_INCIDENT_KINDS and incident.state is not IncidentState.RESOLVED
        for incident in incidents
    )
    if not open_faults or alerts.slack_monitor_channel is not None:
        return ()
    return (
        DigestFigure(label="monitor", value=f"{plural(open_faults, 'fault')} open; `lookout alerts` lists them"),
    )


def _build_drill_figures(
    report: DrillReport | None, settings: DrillSettings, now: datetime
) -> tuple[DigestFigure, ...]:
    """Build the digest figure about the last drill.

    Return no figure if drills are disabled and no drill was ever run.
    """
    if report is None and not settings.enabled:
        return ()
    return (DigestFigure(label="last drill", value=redact(build_drill_status(report, settings, now).text)),)


def _build_report_links(
    runs_of_day: Sequence[RunFigures], newest: NightlyReport | None, runs: Path, site_url: str | None
) -> Iterator[Link]:
    """Yield links to the reports of the newest run and of the last nightly run.

    Without a site URL, the links are file paths.
    """
    places = [("Newest report", runs_of_day[0].run_id)] if runs_of_day else []
    if newest is not None:
        places.append(("Night", newest.run_id))
    for label, run_id in places:
        file = build_report_paths(runs / run_id).html
        if site_url is not None:
            yield Link(label=label, href=f"{site_url.rstrip('/')}{build_report_page_path(run_id)}")
        elif file.is_file() or label != "Night":  # nightly runs of earlier versions have no report
            yield Link(label=label, href=str(file))


MIN_RETRY_WAIT: Final = timedelta(minutes=5)
MAX_RETRY_WAIT: Final = timedelta(hours=1)
"""Maximum wait before the next attempt to send a digest. `MIN_RETRY_WAIT` is the minimum wait.

Between these limits, the wait is half the time since the digest was due.
"""
WAITING: Final = "Waiting"
"""The name of the flow's state if a digest could not be sent and a later run sends it."""


@flow(name="digest", description=__doc__)
async def digest(
    config_path: Path, target: str | None = None, due_at: UtcTime | None = None
) -> State[tuple[str, ...]] | State[None]:
    """Send the digest of ``target``, or of all targets. The state's data are the ids of the digests.

    ``due_at`` is when the digest was due. The default is the time for which this run was scheduled. Raises
    `ConfigError` before anything is sent, and `NotifyTransient` for a digest that cannot be sent and is not
    retried.
    """
    config = await asyncio.to_thread(load_config, config_path)
    skipped = await cancel_missed_runs_of_deployment(config.schedules.missed, utc_now())
    if skipped is not None:
        return skipped
    names = [target] if target is not None else list(config.targets)
    due_at = due_at or read_scheduled_time()
    receipts: list[Receipt] = []
    unsent: dict[str, NotifyTransient] = {}
    for name in names:
        config.require_target(name)
        notifier = await asyncio.to_thread(build_notifier_without_run, config, name, Capability.DIGEST)
        began_at, loaded = notifier.now(), await load_journal_and_send_alerts(notifier)
        message = await asyncio.to_thread(
            build_digest,
            notifier.store,
            name,
            select_digest_settings(config, name),
            now=notifier.now(),
            due_at=due_at,
            run_id=notifier.run_id,
            runs=get_runs_folder(config),
            skipped_runs=await list_skipped_runs(name, due_at - DAY - OVERLAP, tag=config.prefect.tag),
            paused=await asyncio.to_thread(_load_paused_schedules, config, config_path, name),
        )
        try:
            receipt = await send_digest(notifier, message)
        except NotifyTransient as error:
            unsent[name] = error
            continue
        if loaded and receipt.status is DeliveryStatus.SENT:
            await resolve_other_faults(notifier, except_names=(), ending=SENT_AGAIN_TEXT, began_at=began_at)
        receipts.append(receipt)
    await notify_if_drill_overdue(config)
    repeated = sum(receipt.detail == ARRIVED_BEFORE for receipt in receipts)
    text = f"{len(receipts) - repeated} sent" + (f", {repeated} sent before" if repeated else "")
    if unsent:
        next_at = await _create_retry_runs(config_path, unsent, due_at)
        text += f"; {', '.join(unsent)}: retried at {next_at:%Y-%m-%d %H:%M} UTC, because "
        text += redact(str(next(iter(unsent.values()))))
    return Completed(
        name=WAITING if unsent else None, message=text, data=tuple(receipt.alert_id for receipt in receipts)
    )


async def _create_retry_runs(
    config_path: Path, unsent: Mapping[str, NotifyTransient], due_at: datetime
) -> datetime:
    """Create one run for each target whose digest could not be sent. Return the scheduled time of these runs.

    Raises the first target's error if no Prefect deployment started this run. Also raises this error if ``due_at``
    was at least a day ago, because the next digest is then due.
    """
    now = utc_now()
    if not deployment.id or now - due_at >= DAY:
        raise next(iter(unsent.values()))
    next_at = now + min(max((now - due_at) / 2, MIN_RETRY_WAIT), MAX_RETRY_WAIT)
    async with get_client() as client:
        for name in unsent:
            await client.create_flow_run_from_deployment(
                UUID(str(deployment.id)),
                parameters={"config_path": str(config_path), "target": name, "due_at": due_at.isoformat()},
                state=Scheduled(scheduled_time=next_at),
                tags=["digest", f"target:{name}"],
                idempotency_key=f"{flow_run.id}/{name}",
            )
    return next_at


def _load_paused_schedules(config: Config, config_path: Path, target: str) -> tuple[ScheduleState, ...]:
    """Load the paused schedules that affect ``target`` from Prefect.

    If Prefect does not answer, return no schedules.
    """
    environment = get_environment()
    api_url = find_api_url(config.prefect.api_url, get_prefect_home(config), environment)
    states = (
        load_schedule_states(api_url, config.prefect.tag, environment.get("PREFECT_API_AUTH_STRING", ""))
        if api_url
        else None
    )
    planned = plan_deployments(config, config_path, config.schedules)
    names = {plan.name for plan in planned if plan.when and plan.is_about(target)}
    return tuple(state for state in states or () if state.paused and state.name in names)


async def notify_if_drill_overdue(config: Config) -> None:
    """Notify Lookout's owners if the drill is overdue."""
    notifier = await asyncio.to_thread(build_notifier_without_run, config, DRILL_TARGET, Capability.DRILL)
    try:
        report = await asyncio.to_thread(find_last_drill, notifier.store)
    except WarehouseError:
        return  # the digest has already reported the warehouse's error
    status = build_drill_status(report, config.drill, notifier.now())
    if status.state is DrillState.OVERDUE:
        await notify_fault(
            notifier, Fault(MISSING_DRILL_FAULT, f"Drill missing: {status.text}. To do: {status.to_do}.")
        )


SENT_AGAIN_TEXT: Final = "Lookout can send complete digests again."


async def load_journal_and_send_alerts(notifier: Notifier) -> bool:
    """Load the journal into the warehouse and send waiting alerts. Return whether the journal was loaded.

    If the warehouse is locked, nothing is loaded, and a fault is reported.
    """
    try:
        await asyncio.to_thread(notifier.store.load_pending, UPKEEP_WAIT_S)
    except WarehouseBusy as error:
        await notify_fault(notifier, build_fault_from_error(error))
        return False
    await notify(notifier, ())
    return True


@task(name="send digest", cache_policy=NO_CACHE)
async def send_digest(notifier: Notifier, message: Digest) -> Receipt:
    """Send one digest, unless it was already sent to the channel.

    If every delivery path refuses the digest, the digest is printed and a fault is reported. Raises
    `NotifyTransient` if Slack is down.
    """
    try:
        return await notifier.sender.send_digest(message, again=True)
    except NotifyRejected as error:
        receipt = await notifier.terminal.send_digest(message)
        await notify_fault(notifier, build_fault_from_error(error))
        return receipt
