"""A run that tells as it goes opens one thread: what it finds later goes below its first page."""

from __future__ import annotations

from collections.abc import Iterable

from monitors.alerts.wording import GRAVE
from monitors.records.incidents import AlertItem, Incident, IncidentState


def below_the_first_page(item: AlertItem, previous: Iterable[Incident]) -> AlertItem:
    """Give ``item`` the thread of what its run told before of the same kind; the item itself where there is none.

    Only for incidents that this run opened: a reminder's thread belongs to an older story. What is grave goes below
    a grave first page only: a leak is not told in a thread about a wrong number. Without threads (a webhook, a
    terminal) nothing is changed.
    """
    if item.incident.thread is not None:
        return item
    first = next((one for one in previous if _is_first_page(one, item.incident)), None)
    if first is None:
        return item
    place = {"thread": first.thread, "channel": first.channel}
    return item.model_copy(update={"incident": item.incident.model_copy(update=place)})


def _is_first_page(one: Incident, other: Incident) -> bool:
    return (
        one.thread is not None
        and one.kind is other.kind
        and one.target == other.target
        and one.last_run_id == other.last_run_id
        and one.occurrences == 1
        and (one.failure_kind in GRAVE or other.failure_kind not in GRAVE)
        and one.state is not IncidentState.RESOLVED
    )
