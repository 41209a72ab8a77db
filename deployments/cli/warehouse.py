"""``lookout warehouse``: load, check, rebuild, compact, age and export the stored results of runs."""

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
    from warehouse.database.load import LoadReport  # slow: imports duckdb
    from warehouse.database.rebuild import RebuildReport

WaitOption = Annotated[
    float, typer.Option("--wait-s", min=0, help="the maximum time in seconds to wait for other processes")
]


def load_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> ExitCode:
    """Load new results of runs into the warehouse."""
    with show_waiting("Loading results of runs"):
        report = open_warehouse(config, data_folder).load_pending(wait_s)
    _print_report(report, "\n".join(_iterate_load_lines(report)), as_json=as_json)
    return ExitCode.MONITOR if report.damaged or report.restored or report.missing else ExitCode.PASS


def check_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> ExitCode:
    """Check that the warehouse contains every row of its source, the journal."""
    from warehouse.database.check import check_database

    with show_waiting("Comparing the warehouse with the journal"):
        report = check_database(open_warehouse(config, data_folder), wait_s=wait_s)
    if as_json:
        _print_json(report)
    else:
        state = "No problem found" if report.is_sound else "PROBLEMS FOUND"
        print_text(
            f"{state}. {plural(report.loaded, 'segment')} of the journal loaded, {report.pending} not loaded yet."
        )
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
        bool, typer.Option("--journal-only", help="do not copy the rows that exist only in the old file")
    ] = False,
) -> ExitCode:
    """Rebuild the warehouse from the journal. The old file stays next to the new one.

    If a part of the journal is missing, its rows are copied from the old file. The output then lists the missing
    part, and the exit code is 4.
    """
    from warehouse.database.rebuild import rebuild_database

    with show_waiting("Rebuilding the warehouse from the journal"):
        report = rebuild_database(open_warehouse(config, data_folder), wait_s=wait_s, journal_only=journal_only)
    _print_report(report, "\n".join(iterate_rebuild_lines(report)), as_json=as_json)
    return ExitCode.PASS if report.has_all_data else ExitCode.MONITOR


def compact_command(
    *,
    days: Annotated[int, typer.Option(min=0, help="move segments that are older than this number of days")] = 7,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Move old journal segments into Parquet archives. Lookout checks each archive before it deletes a segment."""
    from flows.clock import utc_now  # slow: imports duckdb
    from warehouse.database.retention import compact_segments

    store = open_warehouse(config, data_folder)
    with show_waiting("Moving old segments into archives"):
        report = compact_segments(store, before=utc_now() - timedelta(days=days), wait_s=wait_s)
    moved = f"Moved {plural(report.segments, 'segment')} into {plural(report.archives, 'archive')}"
    _print_report(report, moved, as_json=as_json)


def age_command(
    *,
    days: Annotated[
        int | None,
        typer.Option(min=0, help="remove personal data from records that are older than this number of days"),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            help="remove personal data now from the conversation with this id. The view `conversations` lists "
            "the ids"
        ),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Remove personal data from old records, or from one conversation.

    Give either --days or --conversation. Conversation ids are replaced by pseudonyms, which are computed with
    LOOKOUT_AGE_KEY.
    """
    from flows.clock import utc_now  # slow: imports duckdb
    from flows.data_folder import RUNS_FOLDER  # slow: imports duckdb
    from flows.nightly.grading import build_turn_id  # slow: imports all graders
    from flows.runtime.secrets import load_pseudonym_key  # slow: imports duckdb
    from warehouse.database.retention import ConversationReport, remove_conversation_data, remove_personal_data

    if (days is None) == (conversation is None):
        raise ConfigError("give either --days N or --conversation ID")
    key = load_pseudonym_key()
    store = open_warehouse(config, data_folder)
    with show_waiting("Removing personal data"):
        if conversation is not None:
            case_ids = build_turn_id(conversation, 0).removesuffix("1")
            report = remove_conversation_data(store, conversation, case_ids=case_ids, key=key, wait_s=wait_s)
        else:
            before = utc_now() - timedelta(days=days or 0)
            report = remove_personal_data(store, before=before, key=key, wait_s=wait_s)
    removed = f"{plural(report.segments, 'segment')} in {plural(report.archives, 'archive')}"
    text = f"Removed personal data from {removed}."
    if isinstance(report, ConversationReport):
        folders = (store.database.file.parent / RUNS_FOLDER / run_id for run_id in report.run_ids)
        reports = (
            f"  {folder} has reports that may quote the conversation. Delete this folder."
            for folder in folders
            if folder.exists()
        )
        text = "\n".join((text, *reports))
    _print_report(report, text, as_json=as_json)


def pictures_command(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Delete screenshots and traces that are older than the limits under [evidence] in lookout.toml."""
    from flows.clock import utc_now
    from flows.maintenance.findings import remove_old_evidence_and_reports  # slow: imports pydantic
    from monitors.config.file import load_config

    with show_waiting("Deleting old screenshots and traces"):
        removed = remove_old_evidence_and_reports(load_config(config), now=utc_now())
    files = plural(removed.files, "screenshot or trace", "screenshots and traces")
    _print_report(removed, f"Deleted {files}, {removed.bytes / 1e6:.1f} MB.", as_json=as_json)


def export_command(
    goal: Annotated[Path, typer.Argument(help="the folder for the Parquet files")],
    *,
    since: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="the first day to export, UTC")],
    until: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="the last day to export, UTC")],
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Export the warehouse as Parquet files, in one folder for each table and day."""
    from warehouse.database.parquet import export_parquet

    store = open_warehouse(config, data_folder)
    with show_waiting(f"Writing Parquet files to {goal}"):
        report = export_parquet(store, goal, since=_to_utc_date(since), until=_to_utc_date(until), wait_s=wait_s)
    written = f"{plural(report.rows, 'row')} in {plural(report.files, 'file')}"
    _print_report(report, f"Exported {written} to {os.path.relpath(goal)}.", as_json=as_json)


def _iterate_load_lines(report: LoadReport) -> Iterator[str]:
    yield f"Loaded {plural(report.segments, 'segment')} with {plural(sum(report.rows.values()), 'row')}."
    if report.restored:
        yield (
            f"  Segments loaded again: {report.restored}. They were loaded before, but had disappeared from the "
            "warehouse."
        )
    if report.too_new:
        yield f"  Segments not loaded: {report.too_new}. A newer version of Lookout wrote them. Update Lookout."
    yield from (f"  {error}" for error in report.errors())


def iterate_rebuild_lines(report: RebuildReport) -> Iterator[str]:
    """Yield the lines about a rebuild: the counts, then the missing parts and how to restore them."""
    backup = f" The old file is now {report.stored_at}." if report.stored_at else ""
    rows = sum(report.loaded.rows.values())
    yield (
        f"Rebuilt the warehouse from {plural(report.loaded.segments, 'segment')} with "
        f"{plural(rows, 'row')}.{backup}"
    )
    if report.has_all_data:
        return
    yield "INCOMPLETE: some records are missing from the journal."
    yield from (f"  {error}" for error in report.errors())
    if report.loaded.too_new:
        yield (
            f"  {plural(report.loaded.too_new, 'segment')} not loaded, because a newer version of Lookout wrote "
            "them. Update Lookout."
        )
    damaged = {segment.stored_at for segment in report.loaded.damaged}
    for place in report.set_aside:
        if place not in damaged:
            yield (
                f"  {place} is damaged, so Lookout moved it out of the journal earlier. Restore it from a backup "
                "and rebuild, or delete it."
            )


def _to_utc_date(moment: datetime) -> date:
    return moment.replace(tzinfo=UTC).date()


def _print_report(report: Record, text: str, *, as_json: bool) -> None:
    if as_json:
        _print_json(report)
    else:
        print_text(text)


def _print_json(report: Record) -> None:
    write_json(report.model_dump_json(indent=2) + "\n")
