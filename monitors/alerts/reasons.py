"""Why a person is told, if at all: a value, printed in the message and stored with it."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitors.alerts.folding import EVENTS
from monitors.records.incidents import Incident, IncidentState, NotifyReason


def reason_to_tell(
    before: Incident | None, after: Incident, *, now: datetime, reminder_interval: timedelta
) -> NotifyReason | None:
    """Return why ``after``, just seen, is news against ``before``; ``None`` when it is not.

    The clock is only asked for reminders, and only how far it is from the last message, either way: a clock that
    jumps by less than the interval says nothing twice, and one that came back from far ahead does not mute.
    """
    if after.state is IncidentState.RESOLVED:
        return None
    if before is None:
        return NotifyReason.FIRST_SEEN
    if before.state is IncidentState.RESOLVED:
        return NotifyReason.REGRESSED
    if after.severity > before.severity:
        return NotifyReason.WORSE
    if after.state is IncidentState.ACKNOWLEDGED:
        return None
    if after.last_notified_at is None:
        return _unsaid(after)
    due = abs(now - after.last_notified_at) >= reminder_interval and after.kind not in EVENTS
    return NotifyReason.REMINDER if due else None


def _unsaid(after: Incident) -> NotifyReason:
    """What was held back when the incident was silenced or inhibited."""
    if after.resolved_at is not None:
        return NotifyReason.REGRESSED
    return NotifyReason.FIRST_SEEN if after.thread is None else NotifyReason.WORSE
