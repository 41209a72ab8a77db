"""The nightly digest: one message for each target, also when nothing is wrong, so that silence says something.

What still waits in the outbox goes out first. The digest sums up the last day from the warehouse. It covers what
the target's owner has set up: verification runs where they are scheduled, the nightly run over its live traffic
where that is configured. Faults of the monitor go to the monitor's owners, in their channel.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.alerting.faults import Fault, fault_of, notify_fault, resolve_other_faults
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify
from flows.data_folder import runs_folder
from flows.drill.course import MISSING
from flows.drill.standing import DrillState, standing_of
from flows.nightly.context import previous_due_at
from flows.nightly.format import questions_text, rate_text, reports_text
from flows.repeatability.format import digest_text
from flows.runtime.slack import notifier_without_run
from monitors.alerts.digest import Digest, DigestFigure
from monitors.alerts.redact import redact
from monitors.alerts.settings import AlertSettings
from monitors.alerts.traffic_census import CENSUS_WORDS, share_text
from monitors.alerts.wording import FAILURE_TITLES
from monitors.config.file import Config, load_config
from monitors.config.sections import DrillSettings, ScheduleSettings, fires_daily
from monitors.errors import NotifyRejected, WarehouseBusy, WarehouseError
from monitors.plural import plural
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
from monitors.sources.settings import NightlySettings
from warehouse.database.store import Store
from warehouse.queries.drills import last_drill
from warehouse.queries.incidents import count_waiting
from warehouse.queries.repeatability import last_repeatability
from warehouse.queries.runs import RunFigures, has_run, runs_since
from warehouse.queries.traffic import recent_nightly_reports

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)
SLACK: Final = timedelta(hours=2)
"""Two digests that start some minutes apart leave no gap between them."""
GRADING_TAKES: Final = timedelta(hours=2)
"""This long after its end a nightly run that is not graded is late, and not yet missing."""
OF_THE_MONITOR: Final = frozenset({IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID})


class DigestTarget(NamedTuple):
    """What is set up for a target: when it is asked its suite, its traffic's nightly runs, who hears of what."""

    schedules: ScheduleSettings
    traffic: NightlySettings | None
    alerts: AlertSettings
    drill: DrillSettings


def watched(config: Config, target: str) -> DigestTarget:
    """What the configuration sets up for ``target``."""
    return DigestTarget(config.schedules, config.target(target).traffic, config.alerts, config.drill)


def digest_of(store: Store, target: str, setup: DigestTarget, *, now: datetime, run_id: str, runs: Path) -> Digest:
    """The state of ``target`` at ``now`` and its last day.

    ``runs`` is where each run has its folder. The id follows from target and day: a digest that is made again is
    the same message. Raises `WarehouseError`.
    """
    found = runs_since(store, target, now - DAY - SLACK)
    waiting = count_waiting(store, target)
    every = tuple(store.incidents(target).values())
    incidents = tuple(one for one in every if one.kind not in OF_THE_MONITOR)
    expected = bool(setup.schedules.verify_cron) and fires_daily(setup.schedules.verify_cron)
    if not found and setup.traffic is not None:  # whoever only has traffic was never asked anything
        expected = expected and has_run(store, target)
    newest = next(iter(recent_nightly_reports(store, target, 1)), None) if setup.traffic is not None else None
    graded = str(newest.run_id) if newest is not None else run_id
    return Digest(
        id=digest_id(target, now),
        target=target,
        run_id=found[0].run_id if found else graded,
        made_at=now,
        figures=(
            *_run_figures(found, expected=expected),
            *_nightly_figures(newest, setup.traffic, now),
            *_repeatability_figures(last_repeatability(store, target), now),
            *_monitor_figures(every, setup.alerts),
            *_drill_figures(last_drill(store), setup.drill, now),
        ),
        incidents=incidents,
        recovered=sum(_ended(one, now) for one in incidents),
        unknown=_unknown_of(newest, setup.traffic, now),
        note=redact(f"{plural(waiting, 'message')} could not be sent yet") if waiting else None,
        links=_links(found, runs),
    )


def digest_id(target: str, now: datetime) -> str:
    """The visible id of a target's digest of one day."""
    digest = hashlib.sha256(f"digest/{target}/{now:%Y-%m-%d}".encode()).digest()
    return f"LK-{base64.b32encode(digest).decode('ascii')[:8]}"


def _run_figures(runs: Sequence[RunFigures], *, expected: bool) -> tuple[DigestFigure, ...]:
    if not runs:
        silent = DigestFigure(label="runs", value="none in the last day: is the schedule alive?")
        return (silent,) if expected else ()
    newest = runs[0]
    verdicts = [run.verdict for run in runs]
    tally = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    graded, asked = sum(run.graded for run in runs), sum(run.asked for run in runs)
    cost = sum(run.cost_usd for run in runs)
    figures = {
        "runs": tally,
        "newest run": f"{newest.verdict}, weighted {_score(newest.weighted)}, flat {_score(newest.flat)}",
        "answers graded": f"{graded:,} of {asked:,}",
        "p95": f"{newest.p95_ms / 1000:.1f} s" if newest.p95_ms is not None else "",
        "cost": f"${cost:.2f}" if cost else "",
    }
    return tuple(DigestFigure(label=label, value=value) for label, value in figures.items() if value)


def _score(value: float | None) -> str:
    return "nothing graded" if value is None else f"{value:.3f}"


def _unknown_of(newest: NightlyReport | None, traffic: NightlySettings | None, now: datetime) -> str:
    """Which results the last nightly run owes and does not have."""
    if traffic is None:
        return ""
    due = previous_due_at(now, traffic)
    if newest is None or newest.due_at < due:
        return "no night graded" if now - due >= GRADING_TAKES else ""
    if not newest.read:
        return "no new conversation"
    return "failures unknown" if newest.shortfalls and isinstance(newest.failed, RateUnknown) else ""


def _nightly_figures(
    newest: NightlyReport | None, traffic: NightlySettings | None, now: datetime
) -> Iterator[DigestFigure]:
    """The last nightly run; that it is late or missing where it is not graded; when the next one is."""
    if traffic is None:
        return
    due = previous_due_at(now, traffic)
    if newest is not None and newest.due_at >= due:
        yield from _graded_nightly(newest)
    else:
        yield DigestFigure(label="night", value=_missing_nightly(newest, due, now))
    upcoming = previous_due_at(due + timedelta(hours=36), traffic)
    yield DigestFigure(label="next night", value=f"{upcoming:%Y-%m-%d %H:%M} UTC")


def _missing_nightly(newest: NightlyReport | None, due: datetime, now: datetime) -> str:
    if newest is None:
        return "no night of live traffic was graded yet"
    this = f"the one until {due:%Y-%m-%d %H:%M} UTC"
    if now - due < GRADING_TAKES:
        return f"{this} is not graded yet"
    return (
        f"{this} is missing, the last one graded is of {newest.due_at:%Y-%m-%d %H:%M} UTC: is the schedule alive?"
    )


def _graded_nightly(nightly: NightlyReport) -> Iterator[DigestFigure]:
    until = f"until {nightly.until:%Y-%m-%d %H:%M} UTC"
    in_all = {one.kind.failure_kind for one in nightly.census}
    figures = {
        "night": f"{plural(nightly.read, 'conversation')} read {until}, {nightly.sampled:,} sampled"
        if nightly.read
        else f"no new conversation {until}, {nightly.known:,} known from earlier nights",
        "severity-3 rate": rate_text(nightly.severe) if nightly.read else "",
        "any failure": rate_text(nightly.failed) if nightly.read else "",
        "failed in the sample": ", ".join(
            f"{FAILURE_TITLES[one.kind]} {one.failures:,}"
            for one in nightly.kinds
            if one.failures and one.kind not in in_all
        ),
        **{CENSUS_WORDS[one.kind]: share_text(one) for one in nightly.census if one.found},
        "reports": reports_text(nightly.reports) if nightly.reports is not None else "",
        "clarifying questions": questions_text(nightly.questions) if nightly.questions.questions else "",
        "drift": nightly.drift_reading.text if nightly.drift_reading is not None else "",
        "not read to its end": "; ".join(nightly.interrupted),
    }
    for label, value in figures.items():
        if value:
            yield DigestFigure(label=label, value=redact(value))


def _repeatability_figures(session: RepeatabilityRun | None, now: datetime) -> Iterator[DigestFigure]:
    """How often answers flip, by the last session; nothing where there was none in the last week."""
    if session is None or now - session.finished_at > WEEK:
        return
    if session.void:
        yield DigestFigure(label="repeatability", value=redact(f"last session void: {session.void}"))
    elif session.figures is not None:
        yield DigestFigure(label="repeatability", value=digest_text(session.figures))


def _monitor_figures(incidents: Sequence[Incident], alerts: AlertSettings) -> tuple[DigestFigure, ...]:
    """The number of the monitor's open faults, where its owners have no channel of their own."""
    still = sum(one.kind in OF_THE_MONITOR and one.state is not IncidentState.RESOLVED for one in incidents)
    if not still or alerts.slack_monitor_channel is not None:
        return ()
    return (DigestFigure(label="monitor", value=f"{plural(still, 'fault')} open: `lookout alerts` lists them"),)


def _drill_figures(report: DrillReport | None, settings: DrillSettings, now: datetime) -> tuple[DigestFigure, ...]:
    """When an alert was last proved to reach people; nothing where nobody wants drills and none was done."""
    if report is None and not settings.enabled:
        return ()
    return (DigestFigure(label="last drill", value=redact(standing_of(report, settings, now).text)),)


def _ended(incident: Incident, now: datetime) -> bool:
    return incident.state == "resolved" and incident.resolved_at is not None and now - incident.resolved_at <= DAY


def _links(runs: Sequence[RunFigures], folder: Path) -> tuple[Link, ...]:
    if not runs:
        return ()
    return (Link(label="Newest report", href=str(folder / runs[0].run_id / "report.html")),)


RETRY_AFTER_S = (60.0, 300.0, 900.0)
"""A digest is no alert: it may come a quarter of an hour late, and the channel is searched before it is posted
again."""
LOAD_WAIT_S = 60.0


@flow(name="digest", description=__doc__)
async def digest(config_path: Path, target: str | None = None) -> State[tuple[str, ...]]:
    """Send the digest of ``target``, or of every target of the configuration; the state's data are their ids.

    Raises `ConfigError` before anything is sent.
    """
    config = await asyncio.to_thread(load_config, config_path)
    names = [target] if target is not None else list(config.targets)
    sent: list[str] = []
    for name in names:
        config.target(name)
        notifier = await asyncio.to_thread(notifier_without_run, config, name, Capability.DIGEST)
        began_at, loaded = notifier.now(), await catch_up(notifier)
        message = await asyncio.to_thread(
            digest_of,
            notifier.store,
            name,
            watched(config, name),
            now=notifier.now(),
            run_id=notifier.run_id,
            runs=runs_folder(config),
        )
        receipt = await send_digest(notifier, message)
        if loaded and receipt.status is DeliveryStatus.SENT:
            await resolve_other_faults(notifier, but=(), ending=SENT_AGAIN, began_at=began_at)
        sent.append(message.id)
    await notify_missing_drill(config)
    return Completed(message=f"{len(sent)} sent", data=tuple(sent))


async def notify_missing_drill(config: Config) -> None:
    """Report drills that do not come any more: nothing else would say that nobody proves the alerts."""
    notifier = await asyncio.to_thread(notifier_without_run, config, DRILL_TARGET, Capability.DRILL)
    try:
        report = await asyncio.to_thread(last_drill, notifier.store)
    except WarehouseError:
        return  # the digest has said that the warehouse is in trouble
    stands = standing_of(report, config.drill, notifier.now())
    if stands.state is DrillState.OVERDUE:
        await notify_fault(notifier, Fault(MISSING, f"Drill missing: {stands.text}. To do: {stands.to_do}."))


SENT_AGAIN: Final = "The digest is complete again, and was sent."


async def catch_up(notifier: Notifier) -> bool:
    """Load what runs wrote, and send what waits. False where somebody holds the warehouse, which is a fault."""
    try:
        await asyncio.to_thread(notifier.store.load_pending, LOAD_WAIT_S)
    except WarehouseBusy as error:
        await notify_fault(notifier, fault_of(error))
        return False
    await notify(notifier, ())
    return True


@task(
    name="send digest", cache_policy=NO_CACHE, retries=len(RETRY_AFTER_S), retry_delay_seconds=list(RETRY_AFTER_S)
)
async def send_digest(notifier: Notifier, message: Digest) -> Receipt:
    """Send one digest. If every delivery path refuses it, print it and report a fault."""
    try:
        return await notifier.sender.send_digest(message, again=True)
    except NotifyRejected as error:
        receipt = await notifier.terminal.send_digest(message)
        await notify_fault(notifier, fault_of(error))
        return receipt
