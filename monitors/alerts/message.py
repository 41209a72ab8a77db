"""An alert in words, before any rendering: Slack, terminal and preview show the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from monitors.alerts.headline import headline, kinds_counted, one_of_each_first
from monitors.alerts.inert import ELLIPSIS, visible
from monitors.alerts.marks import mark_line
from monitors.alerts.wording import ABOUT_THE_MONITOR, REASON_WORDS, counted, what_broke
from monitors.records.base import Record
from monitors.records.incidents import Alert, AlertItem, Incident, IncidentKind, Link, NotifyReason

COMMIT_CHARACTERS: Final = 10
ONE_LINE_CHARACTERS: Final = 400
QUOTED_CHARACTERS: Final = 90
"""Of the question and of the answer in the one-line text: both fit on a watch with the headline."""
GROUPED_CHARACTERS: Final = 140
"""Of each excerpt when a message tells several failures: three of them fit on a phone."""
SCORED: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})
OWN_ROW: Final = "case"
OWN_ROW_NOTE: Final = " (the case's own severity)"
"""The severity table's row for a failure that is as severe as its case, see `Assessment.policy_row`."""

CASE_LABELS: Final = ("Asked", "Expected", "Got")
LOG_LABELS: Final = ("Asked", "Unsupported", "Blocked")
"""An entry of the application's log expects nothing: it says what it held back, and why."""


class Part(Record):
    """One failure in words. Empty texts were not there; ``excerpts`` are pairs of label and text."""

    heading: str
    case_id: str = ""
    excerpts: tuple[tuple[str, str], ...] = ()
    finding: str
    finding_label: str = ""
    severity: str
    row: str = ""
    row_note: str = ""
    history: str = ""
    unconfirmed: bool = False
    flaky: str = ""


class Message(Record):
    """What a person reads, top to bottom. ``one_line`` says it all for a lock screen or a watch."""

    id: str
    headline: str
    one_line: str
    why_sent: str
    since: str
    run_id: str
    at: str
    parts: tuple[Part, ...]
    more: str = ""
    scores: str = ""
    links: tuple[Link, ...] = ()
    marks: tuple[str, ...] = ()
    over: bool = False

    @property
    def alone(self) -> bool:
        """Whether it tells of one failure only, whose name the headline has."""
        return len(self.parts) == 1 and not self.more


def message(alert: Alert, *, group_limit: int) -> Message:
    """Put ``alert`` into words; failures beyond ``group_limit`` are counted by kind, none is left out."""
    items = one_of_each_first(alert.items)
    shown, rest = items[:group_limit], items[group_limit:]
    return Message(
        id=alert.id,
        headline=headline(alert),
        one_line=_one_line(alert),
        why_sent=REASON_WORDS[alert.reason],
        since=_since(alert),
        run_id=alert.run_id,
        at=utc(alert.created_at),
        parts=tuple(_part(item, alert) for item in shown),
        more=f"and {counted(len(rest), 'more', 'more')}: {kinds_counted(rest)}" if rest else "",
        scores=_scores(alert),
        links=alert.links,
        marks=tuple(mark_line(mark, alert, slack=False) for mark in alert.marks),
        over=alert.reason is NotifyReason.RECOVERED,
    )


def utc(at: datetime) -> str:
    """``2026-11-21 02:00 UTC``."""
    return at.strftime("%Y-%m-%d %H:%M UTC")


def span(lasted: timedelta) -> str:
    """``5 min``, ``3 h`` or ``2 days``: as a person would say it."""
    minutes = max(0, round(lasted.total_seconds() / 60))
    if minutes < 2 * 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"


def short_commit(commit: str) -> str:
    """The first characters of a commit, enough to find it."""
    return commit[:COMMIT_CHARACTERS]


def _part(item: AlertItem, alert: Alert) -> Part:
    seen, over = item.observation, item.reason is NotifyReason.RECOVERED
    alone = len(alert.items) == 1
    return Part(
        heading=what_broke(item),
        case_id=item.incident.case_id or "",
        excerpts=_excerpts(item, None if alone else GROUPED_CHARACTERS),
        finding=visible(seen.reason),
        finding_label="Failed check" if seen.kind is IncidentKind.CASE_FAILURE and not over else "",
        severity=f"Severity {int(item.incident.severity)}",
        row=visible(seen.policy_row or ""),
        row_note=OWN_ROW_NOTE if seen.policy_row == OWN_ROW else "",
        history="" if alone else _history(item, alert),
        unconfirmed=seen.unconfirmed,
        flaky=seen.flaky,
    )


def _excerpts(item: AlertItem, limit: int | None) -> tuple[tuple[str, str], ...]:
    seen = item.observation
    labels = LOG_LABELS if seen.kind is IncidentKind.HALLUCINATION else CASE_LABELS
    texts = (seen.asked, seen.expected, seen.answered)
    return tuple((label, _short(text, limit)) for label, text in zip(labels, texts, strict=True) if text)


def _history(item: AlertItem, alert: Alert) -> str:
    """What the message's head does not say of this one: another reason, an older deploy, more runs."""
    shared = len({other.incident.first_commit for other in alert.items}) == 1
    pieces = [
        REASON_WORDS[item.reason] if item.reason is not alert.reason else "",
        "" if shared else f"since {_deploy(item.incident.first_commit)}",
        f"seen in {item.incident.occurrences:,} runs" if item.incident.occurrences > 1 else "",
    ]
    return " · ".join(piece for piece in pieces if piece)


def _since(alert: Alert) -> str:
    """Since which deploy; for one incident alone also since when, how often, and how long it lasted."""
    deploy = _deploys(alert)
    only, *others = (item.incident for item in alert.items)
    if alert.reason is NotifyReason.RECOVERED:
        return _until(alert, deploy, only if not others else None)
    if others:
        return f"since {deploy}" if deploy else ""
    since = f"since {deploy} ({utc(only.opened_at)})" if deploy else f"since {utc(only.opened_at)}"
    return f"{since}, seen in {only.occurrences:,} runs" if only.occurrences > 1 else since


def _deploys(alert: Alert) -> str:
    """The deploy that all began with; nothing where it is unknown or beside the point."""
    commits = {item.incident.first_commit for item in alert.items}
    if alert.kind in ABOUT_THE_MONITOR or commits == {None}:
        return ""
    return _deploy(commits.pop()) if len(commits) == 1 else "several deploys"


def _until(alert: Alert, deploy: str, only: Incident | None) -> str:
    lasted = f"after {span(only.resolved_at - only.opened_at)}" if only and only.resolved_at else ""
    pieces = [f"with {_deploy(alert.commit)}" if alert.commit else "", lasted]
    broken = f"broken since {deploy}" if deploy else ""
    return ", ".join(piece for piece in (" ".join(p for p in pieces if p), broken) if piece)


def _deploy(commit: str | None) -> str:
    return f"deploy {short_commit(commit)}" if commit else "an unknown deploy"


def _scores(alert: Alert) -> str:
    if alert.kind not in SCORED:
        return ""
    if alert.flat is not None and alert.weighted is not None:
        return f"scores: flat {alert.flat}, weighted {alert.weighted}"
    return "no scores yet" if alert.kind is IncidentKind.CASE_FAILURE else ""


def _one_line(alert: Alert) -> str:
    first = one_of_each_first(alert.items)[0].observation
    said = [
        f"case {first.case_id}" if first.case_id else "",
        f"asked “{_short(first.asked)}”" if first.asked else "",
        f"got “{_short(first.answered)}”" if first.answered else "",
        "" if first.answered else _short(first.reason, QUOTED_CHARACTERS * 2),
        f"{len(alert.items) - 1:,} more" if len(alert.items) > 1 else "",
    ]
    detail = ", ".join(piece for piece in said if piece)
    why = "" if alert.reason is NotifyReason.RECOVERED else f" · {REASON_WORDS[alert.reason]}"
    since = _since(alert)
    tail = f"{why}{f' · {since}' if since else ''} · {alert.id}"
    return _short(f"{headline(alert)}: {detail}", ONE_LINE_CHARACTERS - len(tail)) + tail


def _short(text: str, limit: int | None = QUOTED_CHARACTERS) -> str:
    flat = visible(text)
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1].rstrip() + ELLIPSIS
