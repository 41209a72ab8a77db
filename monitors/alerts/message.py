"""An alert in words, before any rendering: Slack, terminal and preview show the same."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from monitors.alerts.headline import headline, kinds_counted
from monitors.alerts.inert import ELLIPSIS, visible
from monitors.alerts.wording import ABOUT_THE_MONITOR, REASON_WORDS, SEVERITY_WORDS, counted, what_broke
from monitors.records.base import Record
from monitors.records.incidents import Alert, AlertItem, IncidentKind, Link, NotifyReason

COMMIT_CHARACTERS: Final = 10
ONE_LINE_CHARACTERS: Final = 400
QUOTED_CHARACTERS: Final = 90
"""Of the question and of the answer in the one-line text: both fit on a watch with the headline."""
SCORED: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})

LABELS: Final = {IncidentKind.HALLUCINATION: ("Asked", "Unsupported", "Blocked reply")}
"""An entry of the application's log expects nothing: it says what it held back, and why."""


class Part(Record):
    """One failure in words. Empty texts were not there. ``labels`` name the three excerpts."""

    heading: str
    case_id: str = ""
    asked: str = ""
    expected: str = ""
    answered: str = ""
    labels: tuple[str, str, str] = ("Asked", "Expected", "Got")
    check: str
    rule: str
    history: str
    unconfirmed: bool = False

    @property
    def excerpts(self) -> tuple[tuple[str, str], ...]:
        """The excerpts that are there, each with its label."""
        texts = (self.asked, self.expected, self.answered)
        return tuple((label, text) for label, text in zip(self.labels, texts, strict=True) if text)


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
    about_the_monitor: bool = False
    over: bool = False


def message(alert: Alert, *, group_limit: int) -> Message:
    """Put ``alert`` into words; failures beyond ``group_limit`` are counted by kind, none is left out."""
    shown, rest = alert.items[:group_limit], alert.items[group_limit:]
    return Message(
        id=alert.id,
        headline=headline(alert),
        one_line=_one_line(alert),
        why_sent=REASON_WORDS[alert.reason],
        since=_since(alert),
        run_id=alert.run_id,
        at=utc(alert.created_at),
        parts=tuple(_part(item) for item in shown),
        more=f"and {counted(len(rest), 'more', 'more')}: {kinds_counted(rest)}" if rest else "",
        scores=_scores(alert),
        links=alert.links,
        about_the_monitor=alert.kind in ABOUT_THE_MONITOR,
        over=alert.reason is NotifyReason.RECOVERED,
    )


def utc(at: datetime) -> str:
    """``2026-11-21 02:00 UTC``."""
    return at.strftime("%Y-%m-%d %H:%M UTC")


def short_commit(commit: str) -> str:
    """The first characters of a commit, enough to find it."""
    return commit[:COMMIT_CHARACTERS]


def _part(item: AlertItem) -> Part:
    seen = item.observation
    return Part(
        heading=what_broke(item),
        case_id=item.incident.case_id or "",
        asked=visible(seen.asked or ""),
        expected=visible(seen.expected or ""),
        answered=visible(seen.answered or ""),
        labels=LABELS.get(seen.kind, ("Asked", "Expected", "Got")),
        check=visible(seen.reason),
        rule=_rule(item),
        history=_history(item),
        unconfirmed=seen.unconfirmed,
    )


def _rule(item: AlertItem) -> str:
    severity = item.incident.severity
    words = f"severity {int(severity)} ({SEVERITY_WORDS[severity]})"
    row = item.observation.policy_row
    return f"{words} by row {row}" if row else words


def _history(item: AlertItem) -> str:
    incident = item.incident
    often = counted(incident.occurrences, "run")
    since = f"deploy {short_commit(incident.first_commit)}" if incident.first_commit else "an unknown deploy"
    return f"{REASON_WORDS[item.reason]}; seen in {often} since {since}, {utc(incident.opened_at)}"


def _since(alert: Alert) -> str:
    commits = {item.incident.first_commit for item in alert.items}
    if len(commits) > 1:
        return "several deploys"
    commit = commits.pop()
    return f"deploy {short_commit(commit)}" if commit else "an unknown deploy"


def _scores(alert: Alert) -> str:
    if alert.flat is not None and alert.weighted is not None:
        return f"flat {alert.flat} · weighted {alert.weighted}"
    return "the run is still going" if alert.kind is IncidentKind.CASE_FAILURE else ""


def _one_line(alert: Alert) -> str:
    first = alert.items[0].observation
    said = [
        f"case {first.case_id}" if first.case_id else "",
        f"asked “{_short(first.asked)}”" if first.asked else "",
        f"got “{_short(first.answered)}”" if first.answered else "",
        "" if first.answered else _short(first.reason, QUOTED_CHARACTERS * 2),
        f"{len(alert.items) - 1:,} more" if len(alert.items) > 1 else "",
    ]
    detail = ", ".join(piece for piece in said if piece)
    tail = f" · {REASON_WORDS[alert.reason]} · since {_since(alert)} · {alert.id}"
    return _short(f"{headline(alert)}: {detail}", ONE_LINE_CHARACTERS - len(tail)) + tail


def _short(text: str, limit: int = QUOTED_CHARACTERS) -> str:
    flat = visible(text)
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + ELLIPSIS
