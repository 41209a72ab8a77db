"""``lookout warehouse``: load, check, rebuild, compact, age and export what runs have kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.data_folder import store_of
from deployments.exit_codes import ExitCode
from monitors.records.base import Record

if TYPE_CHECKING:
    from warehouse.load import LoadReport  # duckdb, which --help can do without

app = typer.Typer(
    help="Look after the warehouse: load, check, rebuild, compact, age, export.", no_args_is_help=True
)

ConfigOption = Annotated[Path, typer.Option("--config", help="the configuration file")]
FolderOption = Annotated[Path | None, typer.Option("--data-folder", help="instead of the configuration's")]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
WaitOption = Annotated[float, typer.Option("--wait-s", min=0, help="how long to wait for other processes")]
DEFAULT_CONFIG = Path("lookout.toml")


@app.command()
def load(
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Load what runs have written since the last time; exit code 4 when something was damaged or had been lost."""
    report = store_of(config, data_folder).load_pending(wait_s)
    _say(report, "\n".join(_loaded(report)), as_json=as_json)
    raise typer.Exit(int(ExitCode.MONITOR if report.damaged or report.restored else ExitCode.PASS))


@app.command()
def check(
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Compare the warehouse with the journal; exit code 4 when something is missing or changed."""
    from warehouse.check import check as compare

    report = compare(store_of(config, data_folder), wait_s=wait_s)
    if as_json:
        _print_json(report)
    else:
        state = "sound" if report.sound else "NOT SOUND"
        typer.echo(f"{state}: {report.loaded} segments loaded, {report.pending} waiting to be loaded")
        for trouble in report.troubles:
            typer.echo(f"  {trouble.kind}: {trouble.text}")
    raise typer.Exit(int(ExitCode.PASS if report.sound else ExitCode.MONITOR))


@app.command()
def rebuild(
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Make the warehouse anew from the journal; the old file is kept beside it."""
    from warehouse.rebuild import rebuild as make_anew

    report = make_anew(store_of(config, data_folder), wait_s=wait_s)
    kept = f"; the old file is {report.kept_at}" if report.kept_at else ""
    rows = sum(report.loaded.rows.values())
    _say(report, f"Rebuilt from {report.loaded.segments} segments, {rows} rows{kept}", as_json=as_json)


@app.command()
def compact(
    days: Annotated[int, typer.Option(min=0, help="segments older than this many days")] = 7,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Move old segments into Parquet archives, each proven before a segment goes."""
    from flows.wiring import utc_now  # duckdb
    from warehouse.compact import compact as move

    store = store_of(config, data_folder)
    report = move(store, before=utc_now() - timedelta(days=days), wait_s=wait_s)
    _say(report, f"{report.segments} segments are now in {report.archives} archives", as_json=as_json)


@app.command()
def age(
    days: Annotated[int, typer.Option(min=0, help="what is older than this many days")],
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Remove personal data from what is old; keys stay as pseudonyms, made with LOOKOUT_AGE_KEY."""
    from flows.keys import age_key
    from flows.wiring import utc_now  # duckdb
    from warehouse.retention import age as remove

    key = age_key()
    store = store_of(config, data_folder)
    report = remove(store, before=utc_now() - timedelta(days=days), key=key, wait_s=wait_s)
    _say(
        report,
        f"Personal data removed from {report.segments} segments in {report.archives} archives",
        as_json=as_json,
    )


@app.command()
def pictures(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Remove screenshots and traces that are older than [evidence] says; failures are kept longer."""
    from flows.age_evidence import age_evidence_of  # pydantic's models
    from flows.wiring import utc_now
    from monitors.config import load_config

    gone = age_evidence_of(load_config(config), now=utc_now())
    _say(gone, f"{gone.files} screenshots and traces removed, {gone.bytes / 1e6:.1f} MB", as_json=as_json)


@app.command()
def export(
    goal: Annotated[Path, typer.Argument(help="the folder for the Parquet files, by table and day")],
    since: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="first day, UTC")],
    until: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="last day, UTC")],
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Write Parquet files, one folder a table and day; exporting twice gives the same files."""
    from warehouse.export import export as write

    store = store_of(config, data_folder)
    report = write(store, goal, since=_day(since), until=_day(until), wait_s=wait_s)
    _say(report, f"{report.rows} rows in {report.files} files under {os.path.relpath(goal)}", as_json=as_json)


def _loaded(report: LoadReport) -> Iterator[str]:
    yield f"{report.segments} segments loaded, {sum(report.rows.values())} rows"
    if report.restored:
        yield f"  {report.restored} of them had been loaded before and were missing from the file: they are back"
    if report.too_new:
        yield f"  {report.too_new} wait for a newer Lookout"
    yield from (f"  {error}" for error in report.errors())


def _day(moment: datetime) -> date:
    return moment.replace(tzinfo=UTC).date()


def _say(report: Record, words: str, *, as_json: bool) -> None:
    if as_json:
        _print_json(report)
    else:
        typer.echo(words)


def _print_json(report: Record) -> None:
    sys.stdout.write(report.model_dump_json(indent=2) + "\n")
