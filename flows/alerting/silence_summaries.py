"""Sends a summary after each period of a recurring silence. The summary lists what failed during the silence.

Each target gets one message. If an incident is still open after the period, the next run that finds the fault sends
an alert.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from flows.alerting.notifier import LOCK_WAIT_S, Notifier
from monitors.alerts.silence_summary import build_silence_summary
from monitors.records.incidents import Alert
from monitors.records.operator_actions import Silence
from monitors.records.recurrence import Period
from warehouse.queries.incidents import list_withheld_incidents_to_summarise
from warehouse.queries.outbox import open_incident_transaction

MAX_SUMMARY_AGE: Final = timedelta(days=30)
"""Maximum age of a withheld alert that a summary lists.

Older withheld alerts exist only if Lookout was not running.
"""
DECISION_LAG: Final = timedelta(minutes=1)
"""Maximum time between the decision to withhold an alert and the storage of this decision.

Therefore a summary is sent this long after the silence's period has ended.
"""


def record_silence_summaries(notifier: Notifier) -> tuple[Alert, ...]:
    """Record and return the summaries that are due for all targets. The summaries are not sent.

    A summary has the same id in every process. Therefore each summary is stored and sent only once. Raises
    `WarehouseError`.
    """
    now, store = notifier.now(), notifier.store
    silences = [silence for silence in notifier.actions.list_silences() if silence.recurrence is not None]
    due: dict[tuple[str, Silence, Period], list[str]] = {}
    for withheld_at, incident in (
        list_withheld_incidents_to_summarise(store, now - MAX_SUMMARY_AGE) if silences else ()
    ):
        for silence in silences:
            period = next(silence.iterate_periods(withheld_at - DECISION_LAG), None)
            if period and period.starts_at <= withheld_at and silence.is_about(incident):
                if period.ends_at + DECISION_LAG <= now:
                    due.setdefault((incident.target, silence, period), []).append(incident.fingerprint)
                break  # only the first silence that withheld the alert lists it

    recorded: list[Alert] = []
    for (target, silence, period), fingerprints in due.items():
        incidents = store.load_incidents(target)
        failed = [incidents[key] for key in dict.fromkeys(fingerprints)]
        production = target in notifier.actions.production_targets
        summaries = build_silence_summary(failed, silence, period, now=now, production=production)
        with open_incident_transaction(store, notifier.journal, target, wait_s=LOCK_WAIT_S) as book:
            book.record((), summaries)
        recorded += summaries
    return tuple(recorded)
