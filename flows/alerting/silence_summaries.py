"""Sum up what failed within a period of a recurring silence: one message for each target, after the period's end.

The summary is not the alert about an open incident: the next run that sees the fault sends it, as after any other
silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from flows.alerting.notifier import LOCK_WAIT_S, Notifier
from monitors.alerts.silence_summary import build_silence_summary
from monitors.records.incidents import Alert
from monitors.records.operator_actions import Silence
from monitors.records.recurrence import Period
from warehouse.queries.incidents import WithheldAlert, list_withheld_alerts, select_stored_alerts
from warehouse.queries.outbox import open_incident_book

MAX_SUMMARY_AGE: Final = timedelta(days=30)
"""Alerts that were withheld earlier are not summed up any more, for example because Lookout was off for so long."""
DECISION_LAG: Final = timedelta(minutes=1)
"""A decision within a period is stored a moment later, at most so long after the period's end."""


class EndedPeriod(NamedTuple):
    """A period of a recurring silence that is over, for one target."""

    target: str
    silence: Silence
    period: Period


def record_silence_summaries(notifier: Notifier) -> tuple[Alert, ...]:
    """Record the summaries that are due, about any target, and return them.

    A summary has the same id in every process, so it is stored and sent once. Raises `WarehouseError`.
    """
    now, store = notifier.now(), notifier.store
    silences = [silence for silence in notifier.actions.list_silences() if silence.recurrence is not None]
    due: dict[EndedPeriod, list[str]] = {}
    for alert in list_withheld_alerts(store, now - MAX_SUMMARY_AGE) if silences else ():
        if (ended := _find_ended_period(silences, alert, now)) is not None:
            due.setdefault(ended, []).append(alert.incident.fingerprint)

    recorded: list[Alert] = []
    for (target, silence, period), fingerprints in due.items():
        incidents = store.incidents(target)
        failed = [incidents[key] for key in dict.fromkeys(fingerprints)]
        production = target in notifier.actions.production_targets
        alerts = build_silence_summary(failed, silence, period, now=now, production=production)
        # If the clock was set back, a stored summary seems to be older than what it names.
        stored = select_stored_alerts(store, [alert.id for alert in alerts])
        unstored = [alert for alert in alerts if alert.id not in stored]
        if unstored:
            with open_incident_book(store, notifier.journal, target, wait_s=LOCK_WAIT_S) as book:
                book.record((), unstored)
        recorded += unstored
    return tuple(recorded)


def _find_ended_period(silences: Sequence[Silence], alert: WithheldAlert, now: datetime) -> EndedPeriod | None:
    """Find the first silence in one of whose periods the alert was withheld, if that period is over."""
    for silence in silences:
        period = next(silence.iterate_periods(alert.withheld_at - DECISION_LAG), None)
        if (
            period is not None
            and silence.is_about(alert.incident)
            and period.starts_at <= alert.withheld_at
            and period.ends_at + DECISION_LAG <= now
        ):
            return EndedPeriod(alert.incident.target, silence, period)
    return None
