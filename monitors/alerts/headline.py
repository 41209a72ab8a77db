"""The first line: what broke, how bad, where. It is all that a lock screen shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from monitors.alerts.inert import ELLIPSIS
from monitors.alerts.wording import (
    ABOUT_THE_MONITOR,
    MONITOR_MARK,
    RECOVERED_MARK,
    SEVERITY_MARKS,
    counted,
    what_broke,
)
from monitors.records.incidents import Alert, AlertItem, NotifyReason

TARGET_CHARACTERS: Final = 60
KINDS_NAMED: Final = 2

_PREFIX: Final[dict[NotifyReason, str]] = {
    NotifyReason.FIRST_SEEN: "",
    NotifyReason.WORSE: "Worse: ",
    NotifyReason.REGRESSED: "Back again: ",
    NotifyReason.REMINDER: "Still failing: ",
    NotifyReason.RECOVERED: "",
}


def headline(alert: Alert) -> str:
    """``🔴 SEV 3 · Personal data disclosed · suraksha-demo``."""
    return f"{mark(alert)} {_how_bad(alert)} · {_PREFIX[alert.reason]}{_what(alert.items)} · {short_target(alert)}"


def mark(alert: Alert) -> str:
    """The colour of the trouble, or the sign that it is over."""
    if alert.reason is NotifyReason.RECOVERED:
        return RECOVERED_MARK
    return MONITOR_MARK if alert.kind in ABOUT_THE_MONITOR else SEVERITY_MARKS[alert.severity]


def short_target(alert: Alert) -> str:
    """The target's name, cut when it would push the rest off a phone."""
    name = alert.target
    return name if len(name) <= TARGET_CHARACTERS else name[: TARGET_CHARACTERS - 1] + ELLIPSIS


def kinds_counted(items: Sequence[AlertItem], named: int | None = None) -> str:
    """``2 × Wrong fact stated, 1 × Source not cited``, the most first; the rest as ``…`` beyond ``named``."""
    most = Counter(what_broke(item) for item in items).most_common()
    words = [f"{count:,} × {what}" for what, count in most[:named]]
    return ", ".join(words) + (f", {ELLIPSIS}" if named is not None and len(most) > named else "")


def _how_bad(alert: Alert) -> str:
    return "Recovered" if alert.reason is NotifyReason.RECOVERED else f"SEV {int(alert.severity)}"


def _what(items: Sequence[AlertItem]) -> str:
    first = what_broke(items[0])
    if len(items) == 1:
        return first
    if all(what_broke(item) == first for item in items):
        return f"{len(items):,} × {first}"
    return f"{counted(len(items), 'failure')}: {kinds_counted(items, KINDS_NAMED)}"
