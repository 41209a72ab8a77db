"""Find, format and change incidents for ``lookout alerts`` and for the site.

A person identifies an incident by the id in an alert message, or by the first characters of the incident's own id.
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
from warehouse.queries.incidents import Story, list_incidents, load_alerts_of_message

WAIT_S: Final = 10.0


@dataclass(frozen=True)
class IncidentSession:
    """The incidents of one data folder, and people's actions on them."""

    actions: OperatorActions
    config: Config | None

    @property
    def store(self) -> Store:
        """Return the warehouse."""
        return self.actions.store

    def apply_action(
        self, kind: ActionKind, incidents: Sequence[Incident], *, by: str, note: str
    ) -> ActionOutcome | None:
        """Store and apply a person's action, update the Slack messages, and return the outcome.

        If the warehouse is busy, return ``None``. The stored action is then applied later.
        """
        from flows.alerting.edits import (  # slow: imports Slack's client, which a list does not need
            edit_messages_after_actions,
            find_action_outcome,
        )
        from flows.runtime.slack import build_slack_bot  # slow, as above

        action = build_operator_action(
            kind, incidents, at=self.actions.now(), by=by, via=ActionVia.COMMAND, note=note
        )
        store_operator_action(self.actions, action)
        # The action is in the journal, so the next run loads it.
        with suppress(WarehouseBusy):
            apply_waiting_actions(self.actions, wait_s=WAIT_S)
        outcome = find_action_outcome(self.actions, action.id)
        bot = build_slack_bot(self.config) if self.config is not None else None
        if outcome is not None and bot is not None:
            asyncio.run(edit_messages_after_actions(self.actions, bot, [outcome]))
        return outcome


def load_and_describe_unreadable_records(session: IncidentSession) -> Sequence[str]:
    """Load new results, and return a sentence for each stored record that cannot be read.

    The result is empty if the warehouse is busy.
    """
    try:
        return session.store.load_and_list_losses(WAIT_S)
    except WarehouseBusy:
        return ()  # the list of incidents may be some minutes old


def open_session_and_apply_actions(config: Path, data_folder: Path | None) -> IncidentSession:
    """Open the incidents of a data folder. If the warehouse is not busy, first apply all pending actions.

    Raises `ConfigError`.
    """
    folder = find_data_folder(config, data_folder)
    if not (folder / DATABASE_FILE).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder} has no warehouse yet. The first run creates the warehouse")
    store = open_warehouse(config, data_folder)
    loaded = load_config(config) if config.exists() else None
    if loaded is not None:
        actions = build_operator_actions(loaded, store, utc_now)
    else:
        actions = OperatorActions(store, AlertSettings(), account_patterns=lambda _: (), now=utc_now)
    session = IncidentSession(actions=actions, config=loaded)
    # If the warehouse is busy, the incidents may be some minutes old.
    with suppress(WarehouseBusy):
        apply_waiting_actions(session.actions, wait_s=WAIT_S)
    return session


ID_SHOWN_LENGTH: Final = 8
"""The number of characters of an incident's id that a list shows. This is enough to identify an incident."""
MIN_ID_CHARACTERS: Final = 4

_ALERT: Final = re.compile(r"LK-[A-Z2-7]{8}", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"[0-9a-f]{1,64}", re.IGNORECASE)


def format_short_id(incident: Incident) -> str:
    """Return the first characters of an incident's id. Lists show this short id, and commands accept it."""
    return incident.fingerprint[:ID_SHOWN_LENGTH]


def find_by_incident_or_message_id(store: Store, incident_id: str) -> tuple[Incident, ...]:
    """Return the incident with this id, or the incidents in the message with this id (``LK-ABCDEFGH``).

    The first characters of an incident's id are enough. Raises `ConfigError` if nothing has this id.
    """
    if _ALERT.fullmatch(incident_id):
        return _find_incidents_of_message(store, incident_id.upper())
    if not _BEGINNING.fullmatch(incident_id) or len(incident_id) < MIN_ID_CHARACTERS:
        raise ConfigError(
            f"{incident_id!r} is not a valid id. Accepted: the id at the end of an alert message (LK-…), or at "
            "least the first 4 characters of an incident id from `lookout alerts list`"
        )
    incidents = [
        incident
        for incident in list_incidents(store, resolved_too=True)
        if incident.fingerprint.startswith(incident_id.lower())
    ]
    if not incidents:
        raise ConfigError(
            f"no incident has an id that begins with {incident_id}. For all ids, run `lookout alerts list --all`"
        )
    if len(incidents) > 1:
        few = ", ".join(incident.fingerprint[:12] for incident in incidents[:5])
        raise ConfigError(f"several incident ids begin with {incident_id}: {few}. Give more characters of the id")
    return (incidents[0],)


def _find_incidents_of_message(store: Store, alert_id: str) -> tuple[Incident, ...]:
    shown = {item.incident.fingerprint for alert in load_alerts_of_message(store, alert_id) for item in alert.items}
    incidents = tuple(
        incident for incident in list_incidents(store, resolved_too=True) if incident.fingerprint in shown
    )
    if not incidents:
        raise ConfigError(
            f"this data folder has no alert message {alert_id}. For all incidents, run `lookout alerts list --all`"
        )
    return incidents


_COLOURS = {Severity.MINOR: "yellow", Severity.MAJOR: "dark_orange", Severity.CRITICAL: "red"}
_LABEL_WIDTH = 12


def build_incident_table(
    incidents: Sequence[Incident], alerts: Mapping[str, str], silences: Sequence[Silence], now: datetime
) -> RenderableType:
    """Build a table with two or three lines for each incident: its fault, target, state and times.

    ``alerts`` maps the id of each incident to the id of its last message (``LK-…``).
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
                *map(Text, _format_title_and_failing_cases(incident)),
                Text(_format_state(incident, about, now, message), style="dim"),
            ),
        )
    return table


def build_silence_table(silences: Sequence[Silence], now: datetime) -> RenderableType:
    """Build a table of silences, with each silence's matchers, end, author and reason."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for silence in silences:
        when = format_silence_time(silence, now)
        ended = f" (ended by {remove_invisible_characters(silence.ended_by)})" if silence.ended_by else ""
        author, comment = map(remove_invisible_characters, (silence.author, silence.comment))
        text = f"{when}{ended} · {author}: {comment}"
        table.add_row(
            Text(silence.id, style="bold"), Group(Text(format_silence_matchers(silence)), Text(text, style="dim"))
        )
    return table


def format_silence_matchers(silence: Silence) -> str:
    """Format the matchers of a silence, such as ``target demo, kind drift``."""
    matchers = silence.map_fields_to_match().items()
    return ", ".join(
        f"{name} {wanted[:ID_SHOWN_LENGTH] if name == 'fingerprint' else wanted}" for name, wanted in matchers
    )


def format_silence_time(silence: Silence, now: datetime) -> str:
    """Format the period of a silence as ``until …``, ``from … until …`` or, after its end, ``over since …``.

    For a weekly silence, the text also states its weekly times.
    """
    if silence.is_over(now) or (period := next(silence.iterate_periods(now), None)) is None:
        return f"over since {format_utc(min(silence.ends_at, now))}"
    start = "" if silence.is_active(now) else f"from {format_utc(period.starts_at)} "
    recurring = f", {silence.recurrence}" if silence.recurrence else ""
    if silence.recurrence and silence.ends_at < NO_END:
        recurring += f" until {format_utc(silence.ends_at)}"
    return f"{start}until {format_utc(period.ends_at)}{recurring}"


def print_incident_story(
    console: Console,
    story: Story,
    session: IncidentSession,
    *,
    shown: Alert | None,
) -> None:
    """Print the history of an incident and the paths of its evidence.

    If the message ``shown`` is given, print it first.
    """
    incident, now = story.incident, session.actions.now()
    runs = session.store.database.file.parent / RUNS_FOLDER
    if shown is not None:
        from monitors.alerts.terminal import build_terminal_panel  # slow, and a list does not need it

        console.print(build_terminal_panel(shown, session.actions.settings))
    console.print(Text(f"{_format_title(incident)} · {incident.fingerprint[:16]}", style="bold"))
    for line in _format_title_and_failing_cases(incident)[1:]:
        console.print(Text(line))
    console.print(Text(_format_state(incident, story.silences, now)))
    console.print()
    for line in list_story_lines(story):
        console.print(Text.assemble((f"{format_utc(line.at)}  ", "dim"), line.text), soft_wrap=True)
    console.print()
    for label, path in _iterate_evidence_paths(story, runs):
        console.print(Text.assemble((f"{label:<{_LABEL_WIDTH}}", "dim"), path), soft_wrap=True)


def _format_title(incident: Incident) -> str:
    pieces = [format_fault(incident), incident.case_id or "", incident.target]
    return " · ".join(piece for piece in pieces if piece)


def _format_title_and_failing_cases(incident: Incident) -> Sequence[str]:
    """Return the title of the incident. If the incident is about a failed run, add a line with the failed cases."""
    if not incident.failed_cases:
        return (_format_title(incident),)
    return (_format_title(incident), f"failing: {remove_invisible_characters(format_ids(incident.failed_cases))}")


def _format_state(incident: Incident, silences: Sequence[Silence], now: datetime, message: str = "") -> str:
    """Format the state and times of an incident, and the silence that is active now or starts next, if any."""
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
    """One event in the history of an incident, and the id of the run that caused the event, if any."""

    at: datetime
    text: str
    run_id: str = ""


def list_story_lines(story: Story) -> Sequence[StoryLine]:
    """Return the lines of an incident's history, oldest first. The terminal and the site show these lines."""
    return sorted(_iterate_story_lines(story), key=lambda line: line.at)


def _iterate_story_lines(story: Story) -> Iterator[StoryLine]:
    yield from _iterate_state_changes(story.versions)
    for printed in story.messages:
        title = (
            "recovery message"
            if printed.reason is NotifyReason.RECOVERED
            else f"alert message, {REASON_WORDS[printed.reason]}"
        )
        status = printed.status.value if printed.status else "waiting to be sent"
        detail = f": {printed.detail}" if printed.detail else ""
        yield StoryLine(printed.created_at, f"{title}, {printed.alert_id}, {status}{detail}", printed.run_id)
    for done in story.done:
        title = DONE_WORDS[done.action.kind].lower()
        outcome = done.outcome.text if done.outcome else "this action is not applied yet"
        note = f", “{remove_invisible_characters(done.action.note)}”" if done.action.note else ""
        text = (
            f"{title} by {remove_invisible_characters(done.action.by)} ({done.action.via.value}){note}: {outcome}"
        )
        yield StoryLine(done.action.at, text)
    for silence in story.silences:
        when = str(silence.recurrence or f"until {format_utc(silence.ends_at)}")
        text = f"silenced by {remove_invisible_characters(silence.author)} {when}, {silence.id}"
        began_at = max(silence.starts_at, story.incident.opened_at) if silence.recurrence else silence.starts_at
        yield StoryLine(began_at, text)


def _iterate_state_changes(versions: Sequence[Incident]) -> Iterator[StoryLine]:
    """Yield a line for each change of state or severity.

    Acknowledgements are skipped, because `_iterate_story_lines` shows them as actions.
    """
    before: Incident | None = None
    for version in versions:
        if version.state is not IncidentState.ACKNOWLEDGED and _build_state_key(before) != _build_state_key(
            version
        ):
            over = version.state is IncidentState.RESOLVED  # resolved by a later run, which another line names
            seen_by = "" if over else version.last_run_id
            text = ", ".join(filter(None, (version.state.value, f"SEV {int(version.severity)}", seen_by)))
            changed_at = (version.resolved_at if over else None) or version.last_seen_at
            yield StoryLine(changed_at, text, seen_by)
        before = version


def _build_state_key(version: Incident | None) -> tuple[object, ...]:
    return (version.state, version.severity, version.opened_at) if version else ()


def _iterate_evidence_paths(story: Story, runs: Path) -> Iterator[tuple[str, str]]:
    folder = runs / story.incident.last_run_id
    if (folder / "report.html").exists():
        yield "report", str(folder / "report.html")
    for exchange in story.evidence:
        for label, path in (("screenshot", exchange.screenshot), ("trace", exchange.trace)):
            if path:
                yield label, str(runs / exchange.run_id / path)
