"""``lookout backup`` and ``lookout restore``: a data folder in one file, and back."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli.data_folder import DEFAULT_FOLDER, find_data_folder, open_warehouse, settle_folder
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, FolderOption, JsonOption, MovedOption
from deployments.cli.warehouse import WaitOption, format_rebuild
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.errors import ConfigError
from monitors.plural import plural

if TYPE_CHECKING:
    from warehouse.backup import BackupManifest  # duckdb, which --help can do without


def backup_command(
    file: Annotated[
        Path | None, typer.Argument(help="the new file; the default is lookout-backup-TIME.tar.gz in this folder")
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    wait_s: WaitOption = 60,
    as_json: JsonOption = False,
) -> None:
    """Write the journal, keys and reports of the data folder into one file; runs continue meanwhile.

    The file has everything that Lookout stored, unmasked, and the keys of sessions and of the site: only its owner
    can read it. Not in it: lookout.toml, suites, and keys from the environment.
    """
    from flows.clock import utc_now  # duckdb
    from warehouse.backup import write_backup  # duckdb

    folder = find_data_folder(config, data_folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder} does not exist, so there is nothing to back up; `lookout verify` creates it")
    file = file or Path(f"lookout-backup-{utc_now():%Y%m%dT%H%M%SZ}.tar.gz")
    store = open_warehouse(config, data_folder)
    with show_waiting("Writing the backup"):
        manifest = write_backup(store, file, version=version("lookout-monitor"), wait_s=wait_s)
    size_bytes = file.stat().st_size
    if as_json:
        _print_json(manifest, file=str(file), bytes=size_bytes)
        return
    print_text(f"{file}: {plural(len(manifest.files), 'file')} of {folder}, {size_bytes / 1e6:.1f} MB")
    if not manifest.has_journal:
        print_text("  without the journal, which is in an object store: back up that store, too")
    print_text("Also save lookout.toml, the suites and the keys in the environment: they are not in this file.")


def restore_command(
    file: Annotated[Path, typer.Argument(help="a file that `lookout backup` wrote")],
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Verify a backup, restore it into a missing or empty data folder, and rebuild the warehouse.

    If anything is wrong with the file or the folder, nothing changes. Exit code 4 when the backup's journal was
    already incomplete: the folder is restored, and the output names what is missing.
    """
    from flows.data_folder import open_store_in  # duckdb
    from flows.folder_identity import require_valid_copy_options  # duckdb
    from monitors.config.file import load_config  # every model of the configuration
    from warehouse.backup import extract_backup, read_backup  # duckdb
    from warehouse.database.rebuild import rebuild_database  # duckdb
    from warehouse.folder_identity import IDENTITY_FILE

    configured = load_config(config) if config.exists() else None
    folder = (data_folder or (configured.data_folder if configured else DEFAULT_FOLDER)).resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            f"{folder} is not an empty folder, and a restore overwrites nothing: move it away, or set --data-folder"
        )
    with show_waiting("Verifying the backup"):
        manifest = read_backup(file, version=version("lookout-monitor"))
    if IDENTITY_FILE in manifest.files and not (moved or copy):
        raise ConfigError(
            f"{file} is a copy of a data folder that may still be in use. If that one is gone, add --moved: the "
            "restored one continues with its incidents. If both remain, add --copy: it sends nothing that the "
            "other one sent"
        )
    journal_at = configured.warehouse.journal if configured is not None else None
    if manifest.has_journal != (journal_at is None):
        place = "inside the data folder" if manifest.has_journal else "in an object store"
        raise ConfigError(
            f"the journal of this backup is {place}, but {config} says otherwise: change warehouse.journal there"
        )
    require_valid_copy_options(journal_at, moved=moved, copied=copy)
    with show_waiting("Restoring the data folder"), extract_backup(file, manifest, folder) as beside:
        report = rebuild_database(open_store_in(beside, journal_at), wait_s=0)
    settle_folder(folder, configured, moved=moved, copied=copy)
    if as_json:
        _print_json(manifest, data_folder=str(folder), whole=report.whole)
    else:
        made = f"made {manifest.made_at:%Y-%m-%d %H:%M} UTC by Lookout {manifest.lookout}"
        print_text(f"Restored {plural(len(manifest.files), 'file')} to {folder}, {made}")
        for line in format_rebuild(report):
            print_text(line)
        print_text("Next: `lookout doctor` checks keys, login sessions and this machine; then `lookout up`.")
    return ExitCode.PASS if report.whole else ExitCode.MONITOR


def _print_json(manifest: BackupManifest, **figures: str | int) -> None:
    head = manifest.model_dump(mode="json", exclude={"files"})
    write_json(json.dumps({**figures, "files": len(manifest.files), **head}, indent=2) + "\n")
