"""``lookout alerts``: what is broken now, its history, and what a person decides about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from flows.terminal import print_text, write_json
from flows.terminal_console import terminal_console
from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import ActionKind, IncidentKind

if TYPE_CHECKING:
    from deployments.cli.alerts.incidents import IncidentSession

IdArgument = Annotated[str, typer.Argument(help="the id in a message (LK-…), or an incident's as `list` shows it")]
ByOption = Annotated[
    str,
    typer.Option("--by", envvar=["LOOKOUT_USER", "USER"], help="who says so: your name", show_default=False),
]
NoteOption = Annotated[str, typer.Option("--note", help="why, for whoever asks later")]


def list_command(
    everything: Annotated[bool, typer.Option("--all", help="the resolved ones too")] = False,
    target: Annotated[str | None, typer.Option(help="of this target only")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Incidents that are not resolved, worst first."""
    from deployments.cli.alerts.incidents import incident_table
    from warehouse.queries.incidents import all_incidents, all_silences, latest_alerts

    session = _open_session(config, data_folder)
    found = all_incidents(session.store, resolved_too=everything, target=target)
    if as_json:
        _print_lines(found)
    elif found:
        messages = latest_alerts(session.store, found)
        table = incident_table(found, messages, all_silences(session.store), session.people.now())
        terminal_console().print(table)
    else:
        print_text("Nothing was ever broken here." if everything else "Nothing is broken that Lookout knows of.")


def show_command(
    incident: IdArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """The message that was named, else an incident's last one; its history, and where the evidence is."""
    from deployments.cli.alerts.incidents import meant, print_story
    from warehouse.queries.incidents import alert_shown, story_of

    session = _open_session(config, data_folder)
    stories = [story_of(session.store, one) for one in meant(session.store, incident)]
    if as_json:
        _print_lines(stories)
        return
    named = next(iter(alert_shown(session.store, incident.upper())), None)
    for story in stories:
        print_story(terminal_console(), story, session, shown=named or story.last_alert)


def ack_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that you know: no reminder until it is worse."""
    _do(ActionKind.ACKNOWLEDGE, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


def resolve_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that it is over; when a run sees it again, the alert says that it is back."""
    _do(ActionKind.RESOLVE, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


def false_alarm_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that the answer was right after all: a label for the graders, and quiet about it for a while."""
    _do(ActionKind.FALSE_ALARM, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


def draft_command(
    incident: IdArgument,
    *,
    by: ByOption = "",
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draft a gold case, for review, from a real user's question and the answer, redacted."""
    _do(ActionKind.ADD_TO_GOLD, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


def silence_command(
    *,
    by: ByOption = "",
    reason: Annotated[str, typer.Option("--reason", help="why nothing is to be said about it", min=1)],
    incident: Annotated[str | None, typer.Argument(help="this incident, or those of this message")] = None,
    lasting: Annotated[str | None, typer.Option("--for", help="for how long: 90m, 4h, 2d")] = None,
    until: Annotated[str | None, typer.Option("--until", help="until when, UTC: 2026-03-02T08:00")] = None,
    target: Annotated[str | None, typer.Option(help="everything about this target")] = None,
    case: Annotated[str | None, typer.Option(help="this case")] = None,
    failure: Annotated[FailureKind | None, typer.Option(help="this kind of failure")] = None,
    kind: Annotated[IncidentKind | None, typer.Option(help="this kind of incident")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send no alert about something for a while, with your name and a reason; what still fails then is reported."""
    from deployments.cli.alerts.silences import SilenceMatchers, make_silences  # as for list

    quiet = SilenceMatchers(
        author=_named(by),
        comment=reason,
        target=target,
        case_id=case,
        failure_kind=failure,
        kind=kind,
        incident=incident,
    )
    _say(make_silences(_open_session(config, data_folder), quiet, lasting=lasting, until=until), as_json=as_json)


def silences_command(
    everything: Annotated[bool, typer.Option("--all", help="those that are over too")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what is silenced, who asked for that, why, and until when."""
    from deployments.cli.alerts.incidents import silence_table
    from warehouse.queries.incidents import all_silences

    session = _open_session(config, data_folder)
    now = session.people.now()
    found = [one for one in all_silences(session.store) if everything or one.ends_at > now]
    if as_json:
        _print_lines(found)
    elif found:
        terminal_console().print(silence_table(found, now))
    else:
        print_text("Nothing is silenced.")


def unsilence_command(
    silence_id: Annotated[str, typer.Argument(metavar="SILENCE", help="its id, as `silences` shows it")],
    by: ByOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a silence now; the next run reports what still fails."""
    from deployments.cli.alerts.silences import end_silence  # as for list

    _say([end_silence(_open_session(config, data_folder), silence_id, by=_named(by))], as_json=as_json)


def _open_session(config: Path, data_folder: Path | None) -> IncidentSession:
    from deployments.cli.alerts.incidents import open_alerts_session  # duckdb, slack_sdk, pydantic's models

    return open_alerts_session(config, data_folder)


def _named(by: str) -> str:
    """Who says so; `ConfigError` where nobody does."""
    if not by.strip():
        raise ConfigError("who says so? Give your name: --by NAME, or set LOOKOUT_USER")
    return by


def _do(
    kind: ActionKind, given: str, *, by: str, note: str, place: tuple[Path, Path | None], as_json: bool
) -> None:
    from deployments.cli.alerts.incidents import meant  # as for list

    who = _named(by)
    session = _open_session(*place)
    outcome = session.do(kind, meant(session.store, given), by=who, note=note)
    if outcome is None:
        print_text("Kept; it is carried out as soon as the warehouse is free.", err=as_json)
    elif as_json:
        _print_lines([outcome])
    else:
        print_text(outcome.text)


def _say(made: Sequence[Record], *, as_json: bool) -> None:
    if as_json:
        _print_lines(made)
        return

    from deployments.cli.alerts.silences import describe_record

    for one in made:
        terminal_console().print(describe_record(one), soft_wrap=True, highlight=False, markup=False)


def _print_lines(records: Sequence[Record]) -> None:
    """JSON lines: one record each."""
    for record in records:
        write_json(json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n")
