"""Queries about the state of all targets: last verdicts, trends and open incidents."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from decimal import Decimal

from monitors.records.base import Record, UtcTime
from warehouse.database.store import Store
from warehouse.journal.segments import parse_segment_id, parse_time
from warehouse.queries.site.nightly import NightlyFigures
from warehouse.queries.site.runs import RunHead

DEFAULT_POINTS = 30
"""Default number of runs or nightly runs in a trend."""


class RunPoint(RunHead):
    """A finished run's scores in a trend.

    ``effective_cases`` is Kish's effective sample size: the number of equally weighted cases that are as
    informative.
    """

    asked: int
    graded: int
    weighted_earned: Decimal
    weighted_total: Decimal
    flat_earned: Decimal
    flat_total: Decimal
    severe_not_correct: int
    effective_cases: float


class NightlyPoint(NightlyFigures):
    """A nightly run's figures in a trend. ``drifted`` is ``None`` if the run did not test for drift."""

    drifted: bool | None


class OpenIncidents(Record):
    """The number of a target's unresolved incidents with one severity."""

    target: str
    severity: int
    open: int
    acknowledged: int
    of_the_monitor: int
    newest_at: UtcTime


class LastEntry(Record):
    """The newest entry of a target's hallucination log, and the number of entries since a given time."""

    target: str
    logged_at: UtcTime
    recent: int


def list_last_runs_of_each_target(store: Store, *, most: int = DEFAULT_POINTS) -> tuple[RunPoint, ...]:
    """List the newest finished runs of each target, oldest first within a target."""
    table = store.query(
        "with chosen as ("
        "  select run_id from runs where not interrupted"
        "  qualify row_number() over (partition by target order by finished_at desc, run_id desc) <= $most"
        "), newest as ("
        "  select * exclude (report) from runs semi join chosen using (run_id)"
        "), weights as ("
        "  select t.run_id, sum(t.not_correct) filter (where t.severity = 3) as severe,"
        "    sum(t.weight * t.cases) ** 2 / nullif(sum(t.weight * t.weight * t.cases), 0) as effective"
        "  from tallies t semi join newest using (run_id) group by t.run_id"
        ") select run_id, target, environment, commit, finished_at, verdict, asked, graded, weighted_earned,"
        " weighted_total, flat_earned, flat_total, coalesce(severe, 0)::integer, coalesce(effective, 0)::double"
        " from newest left join weights using (run_id) order by target, finished_at, run_id",
        {"most": most},
    )
    return tuple(RunPoint.model_validate(dict(zip(RunPoint.model_fields, row, strict=True))) for row in table.rows)


def list_last_nightly_runs_of_each_target(store: Store, *, most: int = DEFAULT_POINTS) -> tuple[NightlyPoint, ...]:
    """List the newest nightly runs of each target, oldest first within a target."""
    table = store.query(
        "select target, run_id, due_at, sampled, graded, severe_rate, severe_low, severe_high, drifted"
        " from nightly_runs"
        " qualify row_number() over (partition by target order by due_at desc, run_id desc) <= $most"
        " order by target, due_at, run_id",
        {"most": most},
    )
    return tuple(
        NightlyPoint.model_validate(dict(zip(NightlyPoint.model_fields, row, strict=True))) for row in table.rows
    )


def count_open_incidents_by_severity(store: Store) -> tuple[OpenIncidents, ...]:
    """Count unresolved incidents by target and severity, most severe first."""
    table = store.query(
        "select target, severity, count(*) filter (where state = 'open'),"
        " count(*) filter (where state = 'acknowledged'), count(*) filter (where kind = 'monitor_fault'),"
        " max(last_seen_at) from incidents where state <> 'resolved' group by target, severity"
        " order by target, severity desc"
    )
    return tuple(
        OpenIncidents.model_validate(dict(zip(OpenIncidents.model_fields, row, strict=True))) for row in table.rows
    )


def list_last_log_entries(store: Store, since: datetime) -> tuple[LastEntry, ...]:
    """List each target's newest log entry, and the number of its log entries since ``since``."""
    table = store.query(
        "select target, max(coalesce(logged_at, read_at)),"
        " count(*) filter (where coalesce(logged_at, read_at) >= $since::timestamptz)"
        " from hallucinations group by target order by target",
        {"since": since.isoformat()},
    )
    return tuple(
        LastEntry.model_validate(dict(zip(LastEntry.model_fields, row, strict=True))) for row in table.rows
    )


class UnsentAlerts(Record):
    """The numbers of unsent messages, of unsent messages of severity 3, and of messages that Slack refused.

    ``oldest_at`` is the time of the oldest unsent message.
    """

    count: int
    severe: int
    refused: int
    oldest_at: UtcTime | None


def count_unsent_and_refused_alerts(store: Store, *, refused_since: datetime) -> UnsentAlerts:
    """Count the alerts that wait to be sent, and the alerts created after ``refused_since`` that Slack refused."""
    table = store.query(
        "select count(*), count(*) filter (where severity = 3), count(*) filter (where state = 'refused'),"
        " min(created_at) from unsent_alerts where state = 'waiting' or created_at >= $since::timestamptz",
        {"since": refused_since.isoformat()},
    )
    return UnsentAlerts.model_validate(dict(zip(UnsentAlerts.model_fields, table.rows[0], strict=True)))


class WaitingSegments(Record):
    """The number of journal segments that the warehouse has not loaded yet, and the time of the oldest of them."""

    count: int
    oldest_at: UtcTime | None


def measure_unloaded_segments(store: Store, *, except_runs: Collection[str] = ()) -> WaitingSegments:
    """Count the segments that are not loaded. Segments of the runs in ``except_runs`` are not counted.

    This function is too slow for a page, because it reads the names of all segments. Raises `WarehouseUnwritable`
    if the journal cannot be reached.
    """
    names = [name for name in store.journal.segments.list_segments() if name.partition("/")[0] not in except_runs]
    loaded = {str(row[0]) for row in store.query("select id from segments").rows}
    ids = [segment_id for segment_id in map(parse_segment_id, names) if segment_id not in loaded]
    times = [parse_time(segment_id) for segment_id in ids if segment_id[:1].isdigit()]
    return WaitingSegments(count=len(ids), oldest_at=min(times, default=None))


def list_known_targets(store: Store, configured: Iterable[str]) -> tuple[str, ...]:
    """List the names of all configured targets, and of all targets with runs in the warehouse."""
    table = store.query("select distinct target from runs union select distinct target from nightly_runs")
    return tuple(sorted({*configured, *(str(row[0]) for row in table.rows)}))
