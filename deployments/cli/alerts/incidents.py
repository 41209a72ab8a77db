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

from deployments.cli.data_folder import find_data_folder, open_warehouse
from flows.alerting.notifier import (
    OperatorActions,
    apply_waiting_actions,
    build_operator_actions,
    store_operator_action,
)
from flows.clock import utc_now
from flows.data_folder import RUNS_FOLDER
from monitors.alerts.message import DONE_WORDS, format_duration, format_utc, shorten_commit
from monitors.alerts.operator_actions import build_operator_action
from monitors.alerts.redact import remove_invisible_characters
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import REASON_WORDS, format_fault, format_ids
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, WarehouseBusy
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.incidents import ActionKind, ActionVia, Alert, Incident, IncidentState, NotifyReason
from monitors.records.operator_actions import NO_END, ActionOutcome, Silence
from warehouse.database.store import DATABASE_FILE, JOURNAL_FOLDER, Store
from warehouse.queries.incidents import IncidentAction, Story, list_incidents, load_shown_alerts

WAIT_S: Final = 10.0


@dataclass(frozen=True)
class IncidentSession:
    """One data folder's incidents and the operator actions on them."""

    actions: OperatorActions
    config: Config | None

    @property
    def store(self) -> Store:
        """The warehouse."""
        return self.actions.store

    def carry_out(
        self, kind: ActionKind, incidents: Sequence[Incident], *, by: str, note: str
    ) -> ActionOutcome | None:
        """Store an action on ``incidents``, carry it out and show it; ``None`` while it waits for the file."""
        from flows.alerting.edits import (  # messages, and with the next line Slack's
            edit_messages_after_actions,
            find_action_outcome,
        )
        from flows.runtime.slack import build_slack_bot  # client, which a list can do without

        action = build_operator_action(
            kind, incidents, at=self.actions.now(), by=by, via=ActionVia.COMMAND, note=note
        )
        store_operator_action(self.actions, action)
        # The action is in the journal; the next run loads it.
        with suppress(WarehouseBusy):
            apply_waiting_actions(self.actions, wait_s=WAIT_S)
        outcome = find_action_outcome(self.actions, action.id)
        bot = build_slack_bot(self.config) if self.config is not None else None
        if outcome is not None and bot is not None:
            asyncio.run(edit_messages_after_actions(self.actions, bot, [outcome]))
        return outcome


def list_losses(session: IncidentSession) -> Sequence[str]:
    """Return what of the stored incidents cannot be read, or why that is not known; empty if all can be."""
    try:
        return session.store.list_losses(WAIT_S)
    except WarehouseBusy:
        return ()  # what is shown may be some minutes old


def open_alerts_session(config: Path, data_folder: Path | None) -> IncidentSession:
    """Open the incidents of a configuration or a data folder, after loading the journal's pending rows."""
    folder = find_data_folder(config, data_folder)
    if not (folder / DATABASE_FILE).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder} has no warehouse yet; the first run creates one")
    store = open_warehouse(config, data_folder)
    session = _open_session(config, store)
    # What is shown may be some minutes old.
    with suppress(WarehouseBusy):
        apply_waiting_actions(session.actions, wait_s=WAIT_S)
    return session


def _open_session(config: Path, store: Store) -> IncidentSession:
    if config.exists():
        loaded = load_config(config)
        return IncidentSession(actions=build_operator_actions(loaded, store, utc_now), config=loaded)
    actions = OperatorActions(store=store, settings=AlertSettings(), account_patterns=lambda _: (), now=utc_now)
    return IncidentSession(actions=actions, config=None)


ID_SHOWN_LENGTH: Final = 8
"""Characters of an incident's id in lists: 32 bits, enough for all incidents of an installation."""
MIN_ID_CHARACTERS: Final = 4

_ALERT: Final = re.compile(r"LK-[A-Z2-7]{8}", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"[0-9a-f]{1,64}", re.IGNORECASE)


def format_short_id(incident: Incident) -> str:
    """Return the short form of an incident's id, as it is shown and may be typed."""
    return incident.fingerprint[:ID_SHOWN_LENGTH]


def find_incidents(store: Store, incident_id: str) -> tuple[Incident, ...]:
    """Return the incidents of a message (``LK-ABCDEFGH``), or the one whose id begins so. Raises `ConfigError`."""
    if _ALERT.fullmatch(incident_id):
        return _find_message_incidents(store, incident_id.upper())
    if not _BEGINNING.fullmatch(incident_id) or len(incident_id) < MIN_ID_CHARACTERS:
        raise ConfigError(
            f"{incident_id!r} is not a valid id; accepted: the id at the end of a message (LK-…), or at least 4 "
            "first characters of an incident's id from `lookout alerts list`"
        )
    incidents = [
        incident
        for incident in list_incidents(store, resolved_too=True)
        if incident.fingerprint.startswith(incident_id.lower())
    ]
    if not incidents:
        raise ConfigError(
            f"no incident has an id that begins with {incident_id}; `lookout alerts list --all` shows all incidents"
        )
    if len(incidents) > 1:
        few = ", ".join(incident.fingerprint[:12] for incident in incidents[:5])
        raise ConfigError(f"several incidents begin with {incident_id}: {few}; give more characters")
    return (incidents[0],)


def _find_message_incidents(store: Store, alert_id: str) -> tuple[Incident, ...]:
    shown = {item.incident.fingerprint for alert in load_shown_alerts(store, alert_id) for item in alert.items}
    incidents = tuple(
        incident for incident in list_incidents(store, resolved_too=True) if incident.fingerprint in shown
    )
    if not incidents:
        raise ConfigError(
            f"this data folder has no message {alert_id}; `lookout alerts list --all` shows all incidents"
        )
    return incidents


_COLOURS = {Severity.MINOR: "yellow", Severity.MAJOR: "dark_orange", Severity.CRITICAL: "red"}
_LABEL_WIDTH = 12


def build_incident_table(
    incidents: Sequence[Incident], alerts: Mapping[str, str], silences: Sequence[Silence], now: datetime
) -> RenderableType:
    """Build a table with two or three lines for each incident, at most 80 columns: what, where, state, since when.

    ``alerts`` maps fingerprints to the id of the last message about each (``LK-…``), as Slack shows it.
    """
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for incident in incidents:
        about = [silence for silence in silences if silence.is_about(incident)]
        message = alerts.get(incident.fingerprint, "")
        table.add_row(
            Text(format_short_id(incident), style="bold"),
            Text(
                f"SEV {int(incident.severity)}",
                style="dim" if incident.state is IncidentState.RESOLVED else _COLOURS[incident.severity],
            ),
            Group(
                *map(Text, _format_summary_lines(incident)),
                Text(_format_state(incident, about, now, message), style="dim"),
            ),
        )
    return table


def build_silence_table(silences: Sequence[Silence], now: datetime) -> RenderableType:
    """Build a table of silences: what they match, until when, who asked for them and why."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for silence in silences:
        when = format_silence_time(silence, now)
        ended = f" (ended by {remove_invisible_characters(silence.ended_by)})" if silence.ended_by else ""
        author, comment = map(remove_invisible_characters, (silence.author, silence.comment))
        text = f"{when}{ended} · {author}: {comment}"
        table.add_row(
            Text(silence.id, style="bold"), Group(Text(format_matchers(silence)), Text(text, style="dim"))
        )
    return table


def format_matchers(silence: Silence) -> str:
    """Format what a silence is about: ``target demo, kind drift``."""
    matchers = silence.list_matchers().items()
    return ", ".join(
        f"{name} {wanted[:ID_SHOWN_LENGTH] if name == 'fingerprint' else wanted}" for name, wanted in matchers
    )


def format_silence_time(silence: Silence, now: datetime) -> str:
    """Format when a silence mutes: ``until …``, or ``from … until …`` with the next period, and when it recurs."""
    if silence.is_over(now) or (period := next(silence.iterate_periods(now), None)) is None:
        return f"over since {format_utc(min(silence.ends_at, now))}"
    start = "" if silence.is_active(now) else f"from {format_utc(period.starts_at)} "
    recurring = f", {silence.recurrence}" if silence.recurrence else ""
    if silence.recurrence and silence.ends_at < NO_END:
        recurring += f" until {format_utc(silence.ends_at)}"
    return f"{start}until {format_utc(period.ends_at)}{recurring}"


def print_story(
    console: Console,
    story: Story,
    session: IncidentSession,
    *,
    shown: Alert | None,
) -> None:
    """Print the message that was ``shown``, then the incident's history, then the paths of its evidence."""
    incident, now = story.incident, session.actions.now()
    runs = session.store.database.file.parent / RUNS_FOLDER
    if shown is not None:
        from monitors.alerts.terminal import build_terminal_panel  # a message's parts, which a list can do without

        console.print(build_terminal_panel(shown, session.actions.settings))
    console.print(Text(f"{_format_title(incident)} · {incident.fingerprint[:16]}", style="bold"))
    for line in _format_summary_lines(incident)[1:]:
        console.print(Text(line))
    console.print(Text(_format_state(incident, story.silences, now)))
    console.print()
    for line in build_story_lines(story):
        console.print(Text.assemble((f"{format_utc(line.at)}  ", "dim"), line.text), soft_wrap=True)
    console.print()
    for label, path in _list_evidence(story, runs):
        console.print(Text.assemble((f"{label:<{_LABEL_WIDTH}}", "dim"), path), soft_wrap=True)


def _format_title(incident: Incident) -> str:
    pieces = [format_fault(incident), incident.case_id or "", incident.target]
    return " · ".join(piece for piece in pieces if piece)


def _format_summary_lines(incident: Incident) -> Sequence[str]:
    """Return the incident's title and, for a failed gate, the cases that failed in its last run."""
    if not incident.failed_cases:
        return (_format_title(incident),)
    return (_format_title(incident), f"failing: {remove_invisible_characters(format_ids(incident.failed_cases))}")


def _format_state(incident: Incident, silences: Sequence[Silence], now: datetime, message: str = "") -> str:
    """Format the state; of the ``silences`` about it, one in force, else the first that is still to come."""
    current = [silence for silence in silences if not silence.is_over(now)]
    silence = min(current, key=lambda silence: not silence.is_active(now), default=None)
    state = incident.state.value
    if incident.state is IncidentState.RESOLVED and incident.resolved_at is not None:
        state = f"resolved {format_duration(now - incident.resolved_at)} ago"
    pieces = [
        state,
        f"since deploy {shorten_commit(incident.first_commit)}" if incident.first_commit else "",
        f"opened {format_duration(now - incident.opened_at)} ago",
        f"seen in {plural(incident.occurrences, 'run')}, last {format_duration(now - incident.last_seen_at)} ago",
        f"silenced {format_silence_time(silence, now)}" if silence else "",
        f"message {message}" if message else "",
    ]
    return " · ".join(piece for piece in pieces if piece)


class StoryLine(NamedTuple):
    """One event of an incident's history, and the run that saw or sent it, if any."""

    at: datetime
    text: str
    run_id: str = ""


def build_story_lines(story: Story) -> Sequence[StoryLine]:
    """Return an incident's history, oldest first: the same lines in the terminal and on the site."""
    return sorted(_collect_story_lines(story), key=lambda line: line.at)


def _collect_story_lines(story: Story) -> Iterator[StoryLine]:
    yield from _collect_changes(story.versions)
    for printed in story.messages:
        title = (
            "recovery sent" if printed.reason is NotifyReason.RECOVERED else f"sent, {REASON_WORDS[printed.reason]}"
        )
        status = printed.status.value if printed.status else "waiting to be sent"
        detail = f": {printed.detail}" if printed.detail else ""
        yield StoryLine(printed.created_at, f"{title}, {printed.alert_id}, {status}{detail}", printed.run_id)
    for done in story.done:
        yield StoryLine(done.action.at, _format_action(done))
    for silence in story.silences:
        when = str(silence.recurrence or f"until {format_utc(silence.ends_at)}")
        text = f"silenced by {remove_invisible_characters(silence.author)} {when}, {silence.id}"
        began_at = max(silence.starts_at, story.incident.opened_at) if silence.recurrence else silence.starts_at
        yield StoryLine(began_at, text)


def _collect_changes(versions: Sequence[Incident]) -> Iterator[StoryLine]:
    """Yield the changes that runs brought. Acknowledgements are left to the line about the action."""
    before: Incident | None = None
    for version in versions:
        if version.state is not IncidentState.ACKNOWLEDGED and _build_state_key(before) != _build_state_key(
            version
        ):
            over = version.state is IncidentState.RESOLVED  # by a later run, which the message of its end names
            seen_by = "" if over else version.last_run_id
            text = ", ".join(filter(None, (version.state.value, f"SEV {int(version.severity)}", seen_by)))
            yield StoryLine(_find_change_time(version), text, seen_by)
        before = version


def _build_state_key(version: Incident | None) -> tuple[object, ...]:
    return (version.state, version.severity, version.opened_at) if version else ()


def _find_change_time(version: Incident) -> datetime:
    if version.state is IncidentState.RESOLVED and version.resolved_at is not None:
        return version.resolved_at
    return version.last_seen_at


def _format_action(done: IncidentAction) -> str:
    title = DONE_WORDS[done.action.kind].lower()
    outcome = done.outcome.text if done.outcome else "waiting for the warehouse"
    note = f", “{remove_invisible_characters(done.action.note)}”" if done.action.note else ""
    return f"{title} by {remove_invisible_characters(done.action.by)} ({done.action.via.value}){note}: {outcome}"


def _list_evidence(story: Story, runs: Path) -> Iterator[tuple[str, str]]:
    folder = runs / story.incident.last_run_id
    if (folder / "report.html").exists():
        yield "report", str(folder / "report.html")
    for exchange in story.evidence:
        for label, path in (("screenshot", exchange.screenshot), ("trace", exchange.trace)):
            if path:
                yield label, str(runs / exchange.run_id / path)
