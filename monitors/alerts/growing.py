"""A run's first page, shown again with all that the run has found since: one message that grows, not a flood."""

from __future__ import annotations

from collections.abc import Sequence

from monitors.alerts.compose import OPENING, reason_of, thread_of, urgency
from monitors.records.incidents import Alert, AlertItem


def continues_a_page(alert: Alert) -> bool:
    """Whether ``alert`` is news of a run that has told of this kind before: it belongs into that first message."""
    return alert.reason in OPENING and thread_of(alert) is not None


def grown(first: Alert, later: Sequence[Alert]) -> Alert:
    """``first`` with everything that ``later`` brought, the worst first; id and time stay those of the first.

    Scores and links are the newest there are. A fault that came twice is shown as it was told last.
    """
    everything = (first, *later)
    newest: dict[str, AlertItem] = {}
    for alert in everything:
        newest |= {item.incident.fingerprint: item for item in alert.items}
    items = tuple(sorted(newest.values(), key=urgency))
    return first.model_copy(
        update={
            "items": items,
            "severity": max(item.incident.severity for item in items),
            "reason": reason_of(items),
            "flat": _newest([one.flat for one in everything]),
            "weighted": _newest([one.weighted for one in everything]),
            "links": next((one.links for one in reversed(everything) if one.links), ()),
        }
    )


def _newest(values: Sequence[str | None]) -> str | None:
    return next((value for value in reversed(values) if value is not None), None)
