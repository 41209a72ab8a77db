"""``lookout alerts``: show incidents with their history, and store a person's decisions about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from flows.terminal import print_text, write_json, write_note
from flows.terminal_console import make_terminal_console
from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import ActionKind, IncidentKind

if TYPE_CHECKING:
    from deployments.cli.alerts.incidents import IncidentSession
    from monitors.records.operator_actions import Silence

IdArgument = Annotated[
    str,
    typer.Argument(
        help="the id at the end of an alert message (LK-…), or the id of an incident from `lookout alerts list`"
    ),
]
ByOption = Annotated[
    str,
    typer.Option(
        "--as",
        envvar=["LOOKOUT_USER", "USER"],
        help="your name, which Lookout stores with your action",
        show_default=False,
    ),
]
NoteOption = Annotated[str, typer.Option("--note", help="the reason, shown in the history of the incident")]


def list_command(
    everything: Annotated[bool, typer.Option("--all", help="also list resolved incidents")] = False,
    target: Annotated[str | None, typer.Option(help="list only incidents of this target")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """List the incidents that are not resolved, worst first.

    If some stored records cannot be read, incidents may be missing, and the exit code is 4.
    """
    from deployments.cli.alerts.incidents import (
        build_incident_table,
        build_silence_table,
        load_and_describe_unreadable_records,
    )
    from warehouse.queries.incidents import find_latest_alert_ids, list_incidents

    session = _open_session_and_apply_actions(config, data_folder)
    incidents, losses = (
        list_incidents(session.store, resolved_too=everything, target=target),
        load_and_describe_unreadable_records(session),
    )
    for loss in losses:
        write_note(f"lookout: some incidents may be missing from this list: {loss}\n")
    now, silences = session.actions.now(), session.actions.list_silences()
    if as_json:
        _print_json_array(incidents)
    elif incidents:
        messages = find_latest_alert_ids(session.store, incidents)
        make_terminal_console().print(build_incident_table(incidents, messages, silences, now))
    elif not losses:
        print_text("No incidents." if everything else "No open incidents.")
    planned = [silence for silence in silences if silence.can_mute_later(now)]
    if planned and not as_json:
        print_text("\nPlanned silences:")
        make_terminal_console().print(build_silence_table(planned, now))
    return ExitCode.MONITOR if losses else ExitCode.PASS


def show_command(
    incident: IdArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an incident or an alert message, with its history and evidence."""
    from deployments.cli.alerts.incidents import find_by_incident_or_message_id, print_incident_story
    from warehouse.queries.incidents import load_alerts_of_message, load_incident_history

    session = _open_session_and_apply_actions(config, data_folder)
    silences = session.actions.list_silences()
    stories = [
        load_incident_history(session.store, match, silences)
        for match in find_by_incident_or_message_id(session.store, incident)
    ]
    if as_json:
        _print_json_lines(stories)
        return
    named = next(iter(load_alerts_of_message(session.store, incident.upper())), None)
    for story in stories:
        print_incident_story(make_terminal_console(), story, session, shown=named or story.last_alert)


def ack_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Acknowledge an incident. Lookout sends no reminder unless the incident gets worse."""
    _store_and_print_action(
        ActionKind.ACKNOWLEDGE, incident, by=by, note=note, location=(config, data_folder), as_json=as_json
    )


def resolve_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark an incident as resolved. If a later run finds the fault again, Lookout sends a new alert."""
    _store_and_print_action(
        ActionKind.RESOLVE, incident, by=by, note=note, location=(config, data_folder), as_json=as_json
    )


def false_alarm_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark an alert as a false alarm, because the answer was right. Lookout sends no alerts about it for a week."""
    _store_and_print_action(
        ActionKind.FALSE_ALARM, incident, by=by, note=note, location=(config, data_folder), as_json=as_json
    )


def draft_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a draft of a new case from an alert about a real user's question. Personal data is masked."""
    _store_and_print_action(
        ActionKind.ADD_TO_GOLD, incident, by=by, note=note, location=(config, data_folder), as_json=as_json
    )


def silence_command(
    *,
    by: ByOption = "",
    reason: Annotated[str, typer.Option("--reason", help="the reason for the silence", min=1)],
    incident: Annotated[
        str | None,
        typer.Argument(help="the id of an incident, or the id of a message (LK-…) to silence all its incidents"),
    ] = None,
    lasting: Annotated[
        str | None, typer.Option("--for", help="the duration of the silence, such as 90m, 4h or 2d")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            help="the end of the silence, such as 2026-03-02T08:00 or 08:00, in UTC unless --zone is given",
        ),
    ] = None,
    begins: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="the start of the silence, such as 2026-03-02T06:00 or 06:00, in UTC unless --zone is given; "
            "default: now",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            help='weekly periods of silence in the time zone --zone, such as "Sunday 02:00-04:00", "Mon-Fri, Sun '
            '22:00-06:00" or "day 01:00-01:30" (every day)',
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option("--zone", help="the time zone of --until, --from and --every, such as Europe/Berlin or UTC"),
    ] = None,
    target: Annotated[str | None, typer.Option(help="silence only incidents of this target")] = None,
    case: Annotated[str | None, typer.Option(help="silence only incidents of this case")] = None,
    failure: Annotated[FailureKind | None, typer.Option(help="silence only failures of this kind")] = None,
    kind: Annotated[IncidentKind | None, typer.Option(help="silence only incidents of this kind")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop alerts for some time. At the end, Lookout reports the faults that remain."""
    from deployments.cli.alerts.silences import (  # slow import
        SilenceMatchers,
        parse_silence_times,
        store_silences_and_apply_actions,
    )

    matchers = SilenceMatchers(
        author=_require_author(by),
        comment=reason,
        target=target,
        case_id=case,
        failure_kind=failure,
        kind=kind,
        incident=incident,
    )
    times = parse_silence_times(lasting=lasting, until=until, begins=begins, every=every, zone=zone)
    session = _open_session_and_apply_actions(config, data_folder)
    _print_silences(
        store_silences_and_apply_actions(session, matchers, times), session.actions.now(), as_json=as_json
    )


def silences_command(
    everything: Annotated[bool, typer.Option("--all", help="also list silences that have ended")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the silences with their author, reason and end."""
    from deployments.cli.alerts.incidents import build_silence_table

    session = _open_session_and_apply_actions(config, data_folder)
    now = session.actions.now()
    silences = [silence for silence in session.actions.list_silences() if everything or not silence.is_over(now)]
    if as_json:
        _print_json_array(silences)
    elif silences:
        make_terminal_console().print(build_silence_table(silences, now))
    else:
        print_text("There are no active or planned silences.")


def unsilence_command(
    silence_id: Annotated[
        str,
        typer.Argument(metavar="SILENCE", help="the id of the silence from `lookout alerts silences`"),
    ],
    by: ByOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a silence now. The next run reports the faults that are still there."""
    from deployments.cli.alerts.silences import end_silence_and_apply_pending_actions  # slow import

    session = _open_session_and_apply_actions(config, data_folder)
    ended = end_silence_and_apply_pending_actions(session, silence_id, by=_require_author(by))
    _print_silences([ended], session.actions.now(), as_json=as_json)


def _open_session_and_apply_actions(config: Path, data_folder: Path | None) -> IncidentSession:
    from deployments.cli.alerts.incidents import (
        open_session_and_apply_actions,  # duckdb, slack_sdk, pydantic's models
    )

    return open_session_and_apply_actions(config, data_folder)


def _require_author(by: str) -> str:
    """Return ``by``, the name of the person who acts. Raises `ConfigError` if the name is empty."""
    if not by.strip():
        raise ConfigError(
            "your name is missing. Lookout stores it with your action. Give your name with --as NAME or "
            "LOOKOUT_USER"
        )
    return by


def _store_and_print_action(
    kind: ActionKind, incident_id: str, *, by: str, note: str, location: tuple[Path, Path | None], as_json: bool
) -> None:
    from deployments.cli.alerts.incidents import find_by_incident_or_message_id  # slow import

    author = _require_author(by)
    session = _open_session_and_apply_actions(*location)
    outcome = session.apply_action(
        kind, find_by_incident_or_message_id(session.store, incident_id), by=author, note=note
    )
    if outcome is None:
        print_text(
            "Your action is stored. Lookout applies this action when the warehouse is no longer busy.", err=as_json
        )
    elif as_json:
        _print_json_lines([outcome])
    else:
        print_text(outcome.text)


def _print_silences(silences: Sequence[Silence], now: datetime, *, as_json: bool) -> None:
    if as_json:
        _print_json_lines(silences)
        return

    from deployments.cli.alerts.silences import format_silence_confirmation

    for silence in silences:
        print_text(format_silence_confirmation(silence, now))


def _print_json_array(records: Sequence[Record]) -> None:
    """Print the records as one JSON array, one record per line."""
    lines = (json.dumps(record.model_dump(mode="json"), ensure_ascii=False) for record in records)
    write_json("[\n" + ",\n".join(lines) + "\n]\n" if records else "[]\n")


def _print_json_lines(records: Sequence[Record]) -> None:
    """Print the records as JSON Lines."""
    for record in records:
        write_json(json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n")
