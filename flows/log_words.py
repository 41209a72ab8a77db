"""What came of a look at a log, in words."""

from __future__ import annotations

from collections.abc import Sequence

from flows.log_follower import Looked
from flows.log_reading import LogLook


def state_name(looks: Sequence[Looked]) -> str:
    """Told, Quiet or Unreadable: what most needs a person."""
    if any(look.unreadable for look in looks):
        return "Unreadable"
    return "Told" if any(look.alerts for look in looks) else "Quiet"


def in_words_together(looks: Sequence[Looked]) -> list[str]:
    """One line for each log, whatever number of looks were taken at it."""
    logs: dict[str, Looked] = {}
    for look in looks:
        known = logs.get(look.target)
        logs[look.target] = look if known is None else _both(known, look)
    return [in_words(look) for look in logs.values()]


def _both(first: Looked, then: Looked) -> Looked:
    found = LogLook(
        entries=first.found.entries + then.found.entries,
        history=first.found.history + then.found.history,
        aside_count=first.found.aside_count + then.found.aside_count,
    )
    return Looked(target=then.target, found=found, unreadable=then.unreadable, alerts=(*first.alerts, *then.alerts))


def in_words(look: Looked) -> str:
    """One line for a person."""
    if look.unreadable:
        return f"{look.target}: {look.unreadable}"
    found = look.found
    parts = [f"{found.entries:,} new"]
    if found.history:
        parts.append(f"{found.history:,} from before it was watched")
    if found.aside_count:
        parts.append(f"{found.aside_count:,} put aside")
    if look.alerts:
        parts.append(f"told as {', '.join(look.alerts)}")
    return f"{look.target}: {', '.join(parts)}"
