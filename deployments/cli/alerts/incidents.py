"""The review session of ``lookout alerts``: the warehouse, operator actions, and Slack where there is a token.

A person names incidents by the id in a message, or by the beginning of an incident's own id. The terminal shows
what is broken now, worst first, in one screen.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from deployments.cli.data_folder import data_folder_of, store_of
from flows.alerting.notifier import OperatorActions, act, apply_actions, people_of
from flows.clock import utc_now
from flows.data_folder import RUNS_FOLDER
from monitors.alerts.message import DONE_WORDS, short_commit, span, utc
from monitors.alerts.operator_actions import new_action
from monitors.alerts.redact import visible
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import REASON_WORDS, format_fault, some_of
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, WarehouseBusy
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.incidents import ActionKind, ActionVia, Alert, Incident, IncidentState, NotifyReason
from monitors.records.operator_actions import ActionOutcome, Silence
from warehouse.database.store import FILE_NAME, JOURNAL_FOLDER, Store
from warehouse.queries.incidents import IncidentAction, IncidentMessage, Story, alert_shown, all_incidents

WAIT_S: Final = 10.0


@dataclass(frozen=True)
class IncidentSession:
    """One data folder's incidents and the operator actions on them."""

    people: OperatorActions
    config: Config | None

    @property
    def store(self) -> Store:
        """The warehouse."""
        return self.people.store

    def do(self, kind: ActionKind, incidents: Sequence[Incident], *, by: str, note: str) -> ActionOutcome | None:
        """Store an action on ``incidents``, carry it out and show it; ``None`` while it waits for the file."""
        from flows.alerting.edits import outcome_of, update_alerts  # messages, and with the next line Slack's
        from flows.runtime.slack import slack_bot  # client, which a list can do without

        action = new_action(kind, incidents, at=self.people.now(), by=by, via=ActionVia.COMMAND, note=note)
        act(self.people, action)
        # The action is in the journal; the next run loads it.
        with suppress(WarehouseBusy):
            apply_actions(self.people, wait_s=WAIT_S)
        outcome = outcome_of(self.people, action.id)
        bot = slack_bot(self.config) if self.config is not None else None
        if outcome is not None and bot is not None:
            asyncio.run(update_alerts(self.people, bot, [outcome]))
        return outcome


def open_alerts_session(config: Path, data_folder: Path | None) -> IncidentSession:
    """The review session of a configuration or a data folder; it loads first what waits in the journal."""
    folder = data_folder_of(config, data_folder)
    if not (folder / FILE_NAME).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; a run makes one")
    store = store_of(config, data_folder)
    session = _open_session(config, store)
    # What is shown may be some minutes old.
    with suppress(WarehouseBusy):
        apply_actions(session.people, wait_s=WAIT_S)
    return session


def _open_session(config: Path, store: Store) -> IncidentSession:
    if config.exists():
        loaded = load_config(config)
        return IncidentSession(people=people_of(loaded, store, utc_now), config=loaded)
    people = OperatorActions(store=store, settings=AlertSettings(), account_patterns=lambda _: (), now=utc_now)
    return IncidentSession(people=people, config=None)


SHOWN_CHARACTERS: Final = 8
"""Of an incident's id in lists: 32 bits, enough for a lifetime of incidents."""
FEWEST_CHARACTERS: Final = 4

_ALERT: Final = re.compile(r"LK-[A-Z2-7]{8}", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"[0-9a-f]{1,64}", re.IGNORECASE)


def short_id(incident: Incident) -> str:
    """The short form of an incident's id, as it is shown and as it may be typed."""
    return incident.fingerprint[:SHOWN_CHARACTERS]


def meant(store: Store, given: str) -> tuple[Incident, ...]:
    """The incidents of a message (``LK-ABCDEFGH``), or the one whose id begins so. Raises `ConfigError`."""
    if _ALERT.fullmatch(given):
        return _of_message(store, given.upper())
    if not _BEGINNING.fullmatch(given) or len(given) < FEWEST_CHARACTERS:
        raise ConfigError(
            f"{given!r} is no id: the one at the end of a message (LK-…) is accepted, or the first characters of "
            "an incident's, at least 4, as `lookout alerts list` shows them"
        )
    found = [one for one in all_incidents(store, resolved_too=True) if one.fingerprint.startswith(given.lower())]
    if not found:
        raise ConfigError(f"no incident's id begins with {given}; `lookout alerts list --all` shows all")
    if len(found) > 1:
        few = ", ".join(one.fingerprint[:12] for one in found[:5])
        raise ConfigError(f"several incidents begin with {given}: {few}; give more characters")
    return (found[0],)


def _of_message(store: Store, alert_id: str) -> tuple[Incident, ...]:
    shown = {item.incident.fingerprint for alert in alert_shown(store, alert_id) for item in alert.items}
    found = tuple(one for one in all_incidents(store, resolved_too=True) if one.fingerprint in shown)
    if not found:
        raise ConfigError(f"no message {alert_id} is known here; `lookout alerts list --all` shows all incidents")
    return found


_COLOURS = {Severity.ANNOYING: "yellow", Severity.WRONG: "dark_orange", Severity.PAGE: "red"}
_LABEL_WIDTH = 12


def incident_table(
    incidents: Sequence[Incident], alerts: Mapping[str, str], silences: Sequence[Silence], now: datetime
) -> RenderableType:
    """Two or three lines for each incident, so that it fits 80 columns: what and where, its state and since when.

    ``alerts`` has the id of the last message about it (``LK-…``) by fingerprint: that is what Slack shows.
    """
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for incident in incidents:
        quiet = next((one for one in silences if one.covers(incident, now)), None)
        message = alerts.get(incident.fingerprint, "")
        shown.add_row(
            Text(short_id(incident), style="bold"),
            Text(f"SEV {int(incident.severity)}", style=_colour(incident)),
            Group(*map(Text, _lines_about(incident)), Text(_standing(incident, quiet, now, message), style="dim")),
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
        text = f"{when}{ended} · {visible(one.author)}: {visible(one.comment)}"
        shown.add_row(Text(one.id, style="bold"), Group(Text(about), Text(text, style="dim")))
    return shown


def print_story(
    console: Console,
    story: Story,
    session: IncidentSession,
    *,
    shown: Alert | None,
) -> None:
    """The message that was ``shown``, then the incident's days line by line, then where the evidence is."""
    incident, now = story.incident, session.people.now()
    runs = session.store.database.file.parent / RUNS_FOLDER
    if shown is not None:
        from monitors.alerts.terminal import terminal_panel  # a message's parts, which a list can do without

        console.print(terminal_panel(shown, session.people.settings))
    quiet = next((one for one in story.silences if one.in_force(now)), None)
    console.print(Text(f"{_what(incident)} · {incident.fingerprint[:16]}", style="bold"))
    for line in _lines_about(incident)[1:]:
        console.print(Text(line))
    console.print(Text(_standing(incident, quiet, now)))
    console.print()
    for line in story_lines(story):
        console.print(Text.assemble((f"{utc(line.at)}  ", "dim"), line.text), soft_wrap=True)
    console.print()
    for label, path in _evidence(story, runs):
        console.print(Text.assemble((f"{label:<{_LABEL_WIDTH}}", "dim"), path), soft_wrap=True)


def _what(incident: Incident) -> str:
    pieces = [format_fault(incident), incident.case_id or "", incident.target]
    return " · ".join(piece for piece in pieces if piece)


def _lines_about(incident: Incident) -> Sequence[str]:
    """What it is, and of a gate that fails which cases failed in the last run that saw it."""
    if not incident.failed_cases:
        return (_what(incident),)
    return (_what(incident), f"failing: {visible(some_of(incident.failed_cases))}")


def _standing(incident: Incident, quiet: Silence | None, now: datetime, message: str = "") -> str:
    state = incident.state.value
    if incident.state is IncidentState.RESOLVED and incident.resolved_at is not None:
        state = f"resolved {span(now - incident.resolved_at)} ago"
    pieces = [
        state,
        f"since deploy {short_commit(incident.first_commit)}" if incident.first_commit else "",
        f"opened {span(now - incident.opened_at)} ago",
        f"seen in {plural(incident.occurrences, 'run')}, last {span(now - incident.last_seen_at)} ago",
        f"silenced until {utc(quiet.ends_at)}" if quiet else "",
        f"message {message}" if message else "",
    ]
    return " · ".join(piece for piece in pieces if piece)


class StoryLine(NamedTuple):
    """One thing that happened to an incident, and the run that saw or sent it, where one did."""

    at: datetime
    text: str
    run_id: str = ""


def story_lines(story: Story) -> Sequence[StoryLine]:
    """What was seen, sent and decided, oldest first: the same lines in the terminal and on the site."""
    return sorted(_lines(story), key=lambda line: line.at)


def _lines(story: Story) -> Iterator[StoryLine]:
    yield from _changes(story.versions)
    for printed in story.messages:
        yield StoryLine(printed.created_at, _said(printed), printed.run_id)
    for done in story.done:
        yield StoryLine(done.action.at, _acted(done))
    for silence in story.silences:
        text = f"silenced by {visible(silence.author)} until {utc(silence.ends_at)}, {silence.id}"
        yield StoryLine(silence.starts_at, text)


def _changes(versions: Sequence[Incident]) -> Iterator[StoryLine]:
    """Changes that runs brought. An acknowledgement is not among them: the line about the person reports it."""
    before: Incident | None = None
    for version in versions:
        if version.state is not IncidentState.ACKNOWLEDGED and _standing_of(before) != _standing_of(version):
            over = version.state is IncidentState.RESOLVED  # by a later run, which the message of its end names
            seen_by = "" if over else version.last_run_id
            text = ", ".join(filter(None, (version.state.value, f"SEV {int(version.severity)}", seen_by)))
            yield StoryLine(_changed_at(version), text, seen_by)
        before = version


def _standing_of(version: Incident | None) -> tuple[object, ...]:
    return (version.state, version.severity, version.opened_at) if version else ()


def _changed_at(version: Incident) -> datetime:
    if version.state is IncidentState.RESOLVED and version.resolved_at is not None:
        return version.resolved_at
    return version.last_seen_at


def _said(message: IncidentMessage) -> str:
    what = "recovery sent" if message.reason is NotifyReason.RECOVERED else f"sent, {REASON_WORDS[message.reason]}"
    status = message.status.value if message.status else "waiting to be sent"
    detail = f": {message.detail}" if message.detail else ""
    return f"{what}, {message.alert_id}, {status}{detail}"


def _acted(done: IncidentAction) -> str:
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
