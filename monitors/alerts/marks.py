"""What people did about a message: the line that says so, and what is left to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from monitors.alerts.gold_draft import is_wanted_as_gold
from monitors.alerts.inert import inert, visible
from monitors.alerts.wording import ABOUT_AN_ANSWER
from monitors.records.incidents import Alert, AlertItem
from monitors.records.marks import ActionKind, ActionVia, Mark

DONE_WORDS: Final[dict[ActionKind, str]] = {
    ActionKind.ACKNOWLEDGE: "Acknowledged",
    ActionKind.FALSE_ALARM: "Called a false alarm",
    ActionKind.ADD_TO_GOLD: "Drafted as a gold case",
    ActionKind.RESOLVE: "Resolved",
}
CASES_NAMED: Final = 3
_SLACK_ID: Final = re.compile(r"[UW][A-Z0-9]{2,20}")


def mark_line(mark: Mark, alert: Alert, *, slack: bool) -> str:
    """``Acknowledged by @asha · 02:14 UTC``; as ``mrkdwn`` that shows the person's name where ``slack``."""
    words = f"*{DONE_WORDS[mark.kind]}*" if slack else DONE_WORDS[mark.kind]
    about = _about(mark, alert.items)
    who = _who(mark, slack=slack)
    pieces = [f"{words} by {who}", inert(about) if slack else visible(about), _when(mark.at, alert.created_at)]
    return " · ".join(piece for piece in pieces if piece)


def is_left(kind: ActionKind, item: AlertItem, marks: Sequence[Mark]) -> bool:
    """Whether ``kind`` still makes sense for ``item``: each thing once, and nothing after it was called false."""
    done = {mark.kind for mark in marks if item.incident.fingerprint in mark.fingerprints}
    if kind in done:
        return False
    match kind:
        case ActionKind.ACKNOWLEDGE:
            return not done & {ActionKind.FALSE_ALARM, ActionKind.RESOLVE}
        case ActionKind.FALSE_ALARM:
            return item.incident.kind in ABOUT_AN_ANSWER
        case ActionKind.ADD_TO_GOLD:
            return is_wanted_as_gold(item)
        case ActionKind.RESOLVE:
            return False


def _who(mark: Mark, *, slack: bool) -> str:
    """A Slack user's id becomes their name in Slack; in an edited message it rings nobody."""
    if mark.via is ActionVia.SLACK and _SLACK_ID.fullmatch(mark.by):
        return f"<@{mark.by}>" if slack else f"@{mark.by}"
    return inert(mark.by) if slack else visible(mark.by)


def _about(mark: Mark, items: Sequence[AlertItem]) -> str:
    """Which of several it was about: by name while they are few."""
    meant = [item for item in items if item.incident.fingerprint in mark.fingerprints]
    if len(meant) == len(items):
        return ""
    named = [item.incident.case_id for item in meant if item.incident.case_id]
    if len(named) == len(meant) <= CASES_NAMED:
        return ", ".join(named)
    return f"{len(meant):,} of {len(items):,}"


def _when(at: datetime, sent: datetime) -> str:
    """The time alone on the day that the message was sent."""
    return at.strftime("%H:%M UTC" if at.date() == sent.date() else "%Y-%m-%d %H:%M UTC")
