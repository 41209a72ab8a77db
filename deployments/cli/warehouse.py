"""``lookout warehouse``: load, check, rebuild, compact, age and export what runs have stored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli.data_folder import open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.errors import ConfigError
from monitors.plural import plural
from monitors.records.base import Record

if TYPE_CHECKING:
    from warehouse.database.load import LoadReport  # duckdb, which --help can do without
    from warehouse.database.rebuild import RebuildReport

WaitOption = Annotated[float, typer.Option("--wait-s", min=0, help="the longest wait for other processes")]


def load_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> ExitCode:
    """Load new results of runs; exit code 4 if some are damaged or missing."""
    with show_waiting("Loading results of runs"):
        report = open_warehouse(config, data_folder).load_pending(wait_s)
    _print_report(report, "\n".join(_format_load(report)), as_json=as_json)
    return ExitCode.MONITOR if report.damaged or report.restored or report.missing else ExitCode.PASS


def check_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> ExitCode:
    """Compare the warehouse with the journal; exit code 4 if rows are missing or changed."""
    from warehouse.database.check import check_database

    with show_waiting("Comparing the warehouse with the journal"):
        report = check_database(open_warehouse(config, data_folder), wait_s=wait_s)
    if as_json:
        _print_json(report)
    else:
        state = "sound" if report.is_sound else "NOT SOUND"
        print_text(f"{state}: {plural(report.loaded, 'segment')} loaded, {report.pending} waiting to be loaded")
        for problem in report.problems:
            print_text(f"  {problem.kind}: {problem.text}")
    return ExitCode.PASS if report.is_sound else ExitCode.MONITOR


def rebuild_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
    journal_only: Annotated[
        bool, typer.Option("--journal-only", help="drop rows that only the old file has")
    ] = False,
) -> ExitCode:
    """Rebuild the warehouse from the journal; the old file stays next to it.

    Exit code 4 when the journal no longer gives everything: the output names the segments, and rows of them that
    the old file still has are copied.
    """
    from warehouse.database.rebuild import rebuild_database

    with show_waiting("Rebuilding the warehouse from the journal"):
        report = rebuild_database(open_warehouse(config, data_folder), wait_s=wait_s, journal_only=journal_only)
    _print_report(report, "\n".join(format_rebuild(report)), as_json=as_json)
    return ExitCode.PASS if report.whole else ExitCode.MONITOR


def compact_command(
    *,
    days: Annotated[int, typer.Option(min=0, help="move segments older than this number of days")] = 7,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Move old segments into Parquet archives; each archive is checked before a segment is deleted."""
    from flows.clock import utc_now  # duckdb
    from warehouse.database.retention import compact_segments

    store = open_warehouse(config, data_folder)
    with show_waiting("Moving old segments into archives"):
        report = compact_segments(store, before=utc_now() - timedelta(days=days), wait_s=wait_s)
    moved = f"Moved {plural(report.segments, 'segment')} into {plural(report.archives, 'archive')}"
    _print_report(report, moved, as_json=as_json)


def age_command(
    *,
    days: Annotated[int | None, typer.Option(min=0, help="redact records older than this number of days")] = None,
    conversation: Annotated[
        str | None, typer.Option(help="redact this conversation now, whatever its age: its id in `conversations`")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Remove personal data from old records, or from one conversation.

    Keys become pseudonyms, made with LOOKOUT_AGE_KEY. Give either --days or --conversation.
    """
    from flows.clock import utc_now  # duckdb
    from flows.data_folder import RUNS_FOLDER  # duckdb
    from flows.nightly.grading import build_turn_id  # the graders
    from flows.runtime.secrets import load_age_key  # duckdb
    from warehouse.database.retention import ConversationReport, remove_conversation, remove_personal_data

    if (days is None) == (conversation is None):
        raise ConfigError("give either --days N or --conversation ID")
    key = load_age_key()
    store = open_warehouse(config, data_folder)
    with show_waiting("Removing personal data"):
        if conversation is not None:
            case_ids = build_turn_id(conversation, 0).removesuffix("1")
            report = remove_conversation(store, conversation, case_ids=case_ids, key=key, wait_s=wait_s)
        else:
            before = utc_now() - timedelta(days=days or 0)
            report = remove_personal_data(store, before=before, key=key, wait_s=wait_s)
    removed = f"{plural(report.segments, 'segment')} in {plural(report.archives, 'archive')}"
    text = f"Personal data removed from {removed}"
    if isinstance(report, ConversationReport):
        folders = (store.database.file.parent / RUNS_FOLDER / run_id for run_id in report.run_ids)
        reports = (f"  {folder} has reports that may quote it: delete it" for folder in folders if folder.exists())
        text = "\n".join((text, *reports))
    _print_report(report, text, as_json=as_json)


def pictures_command(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Remove screenshots and traces that are older than the limits under [evidence]."""
    from flows.clock import utc_now
    from flows.maintenance.findings import remove_old_evidence_and_reports  # pydantic's models
    from monitors.config.file import load_config

    with show_waiting("Removing old pictures"):
        removed = remove_old_evidence_and_reports(load_config(config), now=utc_now())
    files = plural(removed.files, "screenshot or trace", "screenshots and traces")
    _print_report(removed, f"{files} removed, {removed.bytes / 1e6:.1f} MB", as_json=as_json)


def export_command(
    goal: Annotated[Path, typer.Argument(help="the folder for the Parquet files, by table and day")],
    *,
    since: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="first day, UTC")],
    until: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="last day, UTC")],
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Write Parquet files, one folder for each table and day; a second export gives the same files."""
    from warehouse.database.parquet import export_parquet

    store = open_warehouse(config, data_folder)
    with show_waiting(f"Writing Parquet files under {goal}"):
        report = export_parquet(store, goal, since=_to_utc_date(since), until=_to_utc_date(until), wait_s=wait_s)
    written = f"{plural(report.rows, 'row')} in {plural(report.files, 'file')}"
    _print_report(report, f"{written} under {os.path.relpath(goal)}", as_json=as_json)


def _format_load(report: LoadReport) -> Iterator[str]:
    yield f"{plural(report.segments, 'segment')} loaded, {plural(sum(report.rows.values()), 'row')}"
    if report.restored:
        yield f"  {report.restored} of them were loaded before and missing from the file; they are restored"
    if report.too_new:
        yield f"  {report.too_new} wait for a newer Lookout"
    yield from (f"  {error}" for error in report.errors())


def format_rebuild(report: RebuildReport) -> Iterator[str]:
    """Yield the lines about a rebuild for a person: its counts, then what is missing and how to restore it."""
    backup = f"; the old file is {report.stored_at}" if report.stored_at else ""
    rows = sum(report.loaded.rows.values())
    yield f"Rebuilt from {plural(report.loaded.segments, 'segment')}, {plural(rows, 'row')}{backup}"
    if report.whole:
        return
    yield "INCOMPLETE: the journal no longer has all written records"
    yield from (f"  {error}" for error in report.errors())
    if report.loaded.too_new:
        yield f"  waiting for a newer Lookout: {plural(report.loaded.too_new, 'segment')}"
    damaged = {segment.stored_at for segment in report.loaded.damaged}
    for place in report.set_aside:
        if place not in damaged:
            yield f"  {place} was set aside earlier: restore it from a backup and rebuild, or delete it"


def _to_utc_date(moment: datetime) -> date:
    return moment.replace(tzinfo=UTC).date()


def _print_report(report: Record, text: str, *, as_json: bool) -> None:
    if as_json:
        _print_json(report)
    else:
        print_text(text)


def _print_json(report: Record) -> None:
    write_json(report.model_dump_json(indent=2) + "\n")
