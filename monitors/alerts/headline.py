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
    is_grave,
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
    """``2 × Wrong fact stated, Source not cited``: the gravest first, then the most; ``…`` beyond ``named``."""
    tally = Counter(what_broke(item) for item in items)
    grave = {what_broke(item) for item in items if is_grave(item)}
    most = sorted(tally, key=lambda what: (what not in grave, -tally[what], what))
    words = [f"{tally[what]:,} × {what}" if tally[what] > 1 else what for what in most[:named]]
    return ", ".join(words) + (f", {ELLIPSIS}" if named is not None and len(most) > named else "")


def one_of_each_first(items: Sequence[AlertItem]) -> tuple[AlertItem, ...]:
    """Order for a message that cannot show all: the gravest, then one of every other kind, then the rest."""
    before: Counter[str] = Counter()
    places: list[tuple[bool, int, int]] = []
    for place, item in enumerate(items):
        what = what_broke(item)
        places.append((not (is_grave(item) and before[what] == 0), before[what], place))
        before[what] += 1
    return tuple(items[place] for _, _, place in sorted(places))


def _how_bad(alert: Alert) -> str:
    return "Recovered" if alert.reason is NotifyReason.RECOVERED else f"SEV {int(alert.severity)}"


def _what(items: Sequence[AlertItem]) -> str:
    first = what_broke(items[0])
    if len(items) == 1:
        return first
    if all(what_broke(item) == first for item in items):
        return f"{len(items):,} × {first}"
    return f"{counted(len(items), 'failure')}: {kinds_counted(items, KINDS_NAMED)}"
