"""Incidents in the terminal: what is broken now, worst first, in one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from deployments.alerts_find import short_id
from monitors.alerts.inert import visible
from monitors.alerts.marks import DONE_WORDS
from monitors.alerts.message import short_commit, span, utc
from monitors.alerts.settings import AlertSettings
from monitors.alerts.terminal import terminal_panel
from monitors.alerts.wording import REASON_WORDS, counted, fault_words
from monitors.records.base import Severity
from monitors.records.incidents import Incident, IncidentState, NotifyReason
from monitors.records.silences import Silence
from warehouse.incident_story import Done, Story, Told

_COLOURS = {Severity.ANNOYING: "yellow", Severity.WRONG: "dark_orange", Severity.PAGE: "red"}
_LABEL_WIDTH = 12


def incident_table(incidents: Sequence[Incident], silences: Sequence[Silence], now: datetime) -> RenderableType:
    """Two lines an incident, so that it fits 80 columns: what and where, then how it stands and since when."""
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for incident in incidents:
        quiet = next((one for one in silences if one.covers(incident, now)), None)
        shown.add_row(
            Text(short_id(incident), style="bold"),
            Text(f"SEV {int(incident.severity)}", style=_colour(incident)),
            Group(Text(_what(incident)), Text(_standing(incident, quiet, now), style="dim")),
        )
    return shown


def silence_table(silences: Sequence[Silence], now: datetime) -> RenderableType:
    """Who asked for quiet about what, why and until when."""
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for one in silences:
        about = ", ".join(f"{name} {_short(name, wanted)}" for name, wanted in one.matchers().items())
        when = f"until {utc(one.ends_at)}" if one.in_force(now) else f"over since {utc(one.ends_at)}"
        ended = f" (ended by {visible(one.ended_by)})" if one.ended_by else ""
        words = f"{when}{ended} · {visible(one.author)}: {visible(one.comment)}"
        shown.add_row(Text(one.id, style="bold"), Group(Text(about), Text(words, style="dim")))
    return shown


def print_story(console: Console, story: Story, settings: AlertSettings, runs: Path, now: datetime) -> None:
    """The last message as it was sent, then the incident's days line by line, then where the evidence is."""
    incident = story.incident
    if story.last_alert is not None:
        console.print(terminal_panel(story.last_alert, settings))
    quiet = next((one for one in story.silences if one.in_force(now)), None)
    console.print(Text(f"{_what(incident)} · {incident.fingerprint[:16]}", style="bold"))
    console.print(Text(_standing(incident, quiet, now)))
    console.print()
    for at, line in sorted(_lines(story), key=lambda pair: pair[0]):
        console.print(Text.assemble((f"{utc(at)}  ", "dim"), line), soft_wrap=True)
    console.print()
    for label, path in _evidence(story, runs):
        console.print(Text.assemble((f"{label:<{_LABEL_WIDTH}}", "dim"), path), soft_wrap=True)


def _what(incident: Incident) -> str:
    pieces = [fault_words(incident), incident.case_id or "", incident.target]
    return " · ".join(piece for piece in pieces if piece)


def _standing(incident: Incident, quiet: Silence | None, now: datetime) -> str:
    state = incident.state.value
    if incident.state is IncidentState.RESOLVED and incident.resolved_at is not None:
        state = f"resolved {span(now - incident.resolved_at)} ago"
    pieces = [
        state,
        f"since deploy {short_commit(incident.first_commit)}" if incident.first_commit else "",
        f"opened {span(now - incident.opened_at)} ago",
        f"seen in {counted(incident.occurrences, 'run')}, last {span(now - incident.last_seen_at)} ago",
        f"silenced until {utc(quiet.ends_at)}" if quiet else "",
    ]
    return " · ".join(piece for piece in pieces if piece)


def _lines(story: Story) -> Iterator[tuple[datetime, str]]:
    yield from _changes(story.versions)
    for told in story.told:
        yield told.created_at, _said(told)
    for done in story.done:
        yield done.action.at, _acted(done)
    for silence in story.silences:
        yield silence.starts_at, f"silenced by {visible(silence.author)} until {utc(silence.ends_at)}, {silence.id}"


def _changes(versions: Sequence[Incident]) -> Iterator[tuple[datetime, str]]:
    """Changes that runs brought; an acknowledgement is told by the line about the person."""
    before: Incident | None = None
    for version in versions:
        if version.state is not IncidentState.ACKNOWLEDGED and _standing_of(before) != _standing_of(version):
            yield _changed_at(version), f"{version.state.value}, SEV {int(version.severity)}, {version.last_run_id}"
        before = version


def _standing_of(version: Incident | None) -> tuple[object, ...]:
    return (version.state, version.severity, version.opened_at) if version else ()


def _changed_at(version: Incident) -> datetime:
    if version.state is IncidentState.RESOLVED and version.resolved_at is not None:
        return version.resolved_at
    return version.last_seen_at


def _said(told: Told) -> str:
    what = "recovery told" if told.reason is NotifyReason.RECOVERED else f"told, {REASON_WORDS[told.reason]}"
    status = told.status.value if told.status else "waiting to be sent"
    detail = f": {told.detail}" if told.detail else ""
    return f"{what}, {told.alert_id}, {status}{detail}"


def _acted(done: Done) -> str:
    what = DONE_WORDS[done.action.kind].lower()
    came = done.outcome.text if done.outcome else "waiting to be carried out"
    note = f", “{visible(done.action.note)}”" if done.action.note else ""
    return f"{what} by {visible(done.action.by)} ({done.action.via.value}){note}: {came}"


def _evidence(story: Story, runs: Path) -> Iterator[tuple[str, str]]:
    folder = runs / story.incident.last_run_id
    if (folder / "report.html").exists():
        yield "report", str(folder / "report.html")
    for one in story.evidence:
        for label, path in (("screenshot", one.screenshot), ("trace", one.trace)):
            if path:
                yield label, str(runs / one.run_id / path)


def _colour(incident: Incident) -> str:
    return "dim" if incident.state is IncidentState.RESOLVED else _COLOURS[incident.severity]


def _short(name: str, wanted: str) -> str:
    return wanted[:8] if name == "fingerprint" else str(wanted)
