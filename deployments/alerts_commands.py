"""``lookout alerts``: what is broken now, its history, and what a person decides about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.exit_codes import ExitCode
from monitors.errors import ConfigError
from monitors.records.base import Record
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from monitors.records.marks import ActionKind

if TYPE_CHECKING:
    from deployments.alerts_desk import AlertsDesk

app = typer.Typer(help="What is broken now: list, show, ack, silence, resolve.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(help="the id in a message (LK-…), or an incident's as `list` shows it")]
ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
FolderOption = Annotated[Path | None, typer.Option("--data-folder", help="instead of the configuration's")]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
ByOption = Annotated[str, typer.Option("--by", envvar=["LOOKOUT_USER", "USER"], help="who says so", min=1)]
NoteOption = Annotated[str, typer.Option("--note", help="why, for whoever asks later")]
DEFAULT_CONFIG = Path("lookout.toml")


@app.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="the resolved ones too")] = False,
    target: Annotated[str | None, typer.Option(help="of this target only")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Incidents that are not resolved, worst first."""
    from rich.console import Console  # with duckdb and pydantic's models, the time of a start

    from deployments.alerts_view import incident_table
    from warehouse.incident_story import all_incidents, silences_kept

    desk = _desk(config, data_folder)
    found = all_incidents(desk.store, resolved_too=everything, target=target)
    if as_json:
        _print_lines(found)
    elif found:
        Console().print(incident_table(found, silences_kept(desk.store), desk.people.now()))
    else:
        typer.echo("Nothing was ever broken here." if everything else "Nothing is broken that Lookout knows of.")


@app.command()
def show(
    incident: IdArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """An incident's last message, its history with why each message was sent, and where the evidence is."""
    from rich.console import Console  # as for list

    from deployments.alerts_find import meant
    from deployments.alerts_view import print_story
    from flows.wiring import RUNS_FOLDER
    from warehouse.incident_story import story_of

    desk = _desk(config, data_folder)
    stories = [story_of(desk.store, one) for one in meant(desk.store, incident)]
    if as_json:
        _print_lines(stories)
        return
    runs = desk.store.database.file.parent / RUNS_FOLDER
    for story in stories:
        print_story(Console(), story, desk.people.settings, runs, desk.people.now())


@app.command()
def ack(
    incident: IdArgument,
    *,
    by: ByOption,
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that you know: no reminder until it is worse."""
    _do(ActionKind.ACKNOWLEDGE, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


@app.command()
def resolve(
    incident: IdArgument,
    *,
    by: ByOption,
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that it is over; when a run sees it again, it is told as regressed."""
    _do(ActionKind.RESOLVE, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


@app.command("false-alarm")
def false_alarm(
    incident: IdArgument,
    *,
    by: ByOption,
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that the answer was right after all: a label for the graders, and quiet about it for a while."""
    _do(ActionKind.FALSE_ALARM, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


@app.command()
def draft(
    incident: IdArgument,
    *,
    by: ByOption,
    note: NoteOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draft a gold case of what a real user was told, redacted, to be reviewed."""
    _do(ActionKind.ADD_TO_GOLD, incident, by=by, note=note, place=(config, data_folder), as_json=as_json)


@app.command()
def silence(
    *,
    by: ByOption,
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
    """Say nothing about something for a while, with your name and a reason; what still fails then is told."""
    from deployments.alerts_silences import Quiet, make_silences  # as for list

    quiet = Quiet(
        author=by, comment=reason, target=target, case_id=case, failure_kind=failure, kind=kind, incident=incident
    )
    _say(make_silences(_desk(config, data_folder), quiet, lasting=lasting, until=until), as_json=as_json)


@app.command()
def silences(
    everything: Annotated[bool, typer.Option("--all", help="those that are over too")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """What nothing is said about, who asked for that, why, and until when."""
    from rich.console import Console  # as for list

    from deployments.alerts_view import silence_table
    from warehouse.incident_story import silences_kept

    desk = _desk(config, data_folder)
    now = desk.people.now()
    found = [one for one in silences_kept(desk.store) if everything or one.ends_at > now]
    if as_json:
        _print_lines(found)
    elif found:
        Console().print(silence_table(found, now))
    else:
        typer.echo("Nothing is silenced.")


@app.command()
def unsilence(
    silence_id: Annotated[str, typer.Argument(metavar="SILENCE", help="its id, as `silences` shows it")],
    by: ByOption,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a silence now; what still fails is told by the next run."""
    from deployments.alerts_silences import end_silence  # as for list

    _say([end_silence(_desk(config, data_folder), silence_id, by=by)], as_json=as_json)


def _desk(config: Path, data_folder: Path | None) -> AlertsDesk:
    from deployments.alerts_desk import alerts_desk  # duckdb, slack_sdk, pydantic's models

    return alerts_desk(config, data_folder)


def _do(
    kind: ActionKind, given: str, *, by: str, note: str, place: tuple[Path, Path | None], as_json: bool
) -> None:
    from deployments.alerts_find import meant  # as for list

    if not by.strip():
        raise ConfigError("who says so? --by NAME, or LOOKOUT_USER in the environment")
    desk = _desk(*place)
    outcome = desk.do(kind, meant(desk.store, given), by=by, note=note)
    if outcome is None:
        typer.echo("Kept; it is carried out as soon as the warehouse is free.", err=as_json)
    elif as_json:
        _print_lines([outcome])
    else:
        typer.echo(outcome.text)
    raise typer.Exit(int(ExitCode.PASS))


def _say(made: Sequence[Record], *, as_json: bool) -> None:
    if as_json:
        _print_lines(made)
        return
    from rich.console import Console  # as for list

    from deployments.alerts_silences import in_words

    for one in made:
        Console().print(in_words(one), soft_wrap=True, highlight=False, markup=False)


def _print_lines(records: Sequence[Record]) -> None:
    """JSON lines: one record each."""
    for record in records:
        sys.stdout.write(json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n")
